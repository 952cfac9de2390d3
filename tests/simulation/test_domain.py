"""Where the training data lies."""

import numpy as np
import pytest

import mbdnode as mbd
from mbdnode.simulation import training_domain

PENDULUM = mbd.mechanisms.SinglePendulum()
T = np.linspace(0.0, 4.0, 201)


@pytest.fixture(scope="module")
def domain():
    runs = [mbd.simulate(PENDULUM, T, {"theta_dot": rate}) for rate in (1.0, 1.5, 2.0)]
    return training_domain(PENDULUM, runs)


def test_run_between_the_training_runs_is_inside(domain):
    run = mbd.simulate(PENDULUM, T, {"theta_dot": 1.25}, domain=domain)
    assert np.mean(run.outside) < 0.05


def test_run_beyond_them_is_outside(domain):
    run = mbd.simulate(PENDULUM, T, {"theta_dot": 12.0}, domain=domain)
    assert np.mean(run.outside) > 0.9


def test_turn_more_is_no_distance(domain):
    near = mbd.simulate(PENDULUM, T, {"theta_dot": 1.5})
    turned = mbd.simulate(PENDULUM, T, {"theta": 2 * np.pi, "theta_dot": 1.5})
    assert domain.distance(turned) == pytest.approx(domain.distance(near), abs=1e-6)


def test_inputs_that_were_never_seen_are_outside(domain):
    run = mbd.simulate(PENDULUM, T, {"theta_dot": 1.5}, inputs=np.full((201, 1), 50.0))
    assert np.all(domain.outside(run))


def test_rows_after_a_failure_are_outside(domain):
    run = mbd.simulate(PENDULUM, T, {"theta_dot": 1e200})
    assert np.all(domain.outside(run)[-10:])


def test_distance_is_to_the_nearest_of_the_data(domain):
    run = mbd.simulate(PENDULUM, T, {"theta_dot": 2.5})
    from mbdnode.simulation.domain import features

    rows = features(run, (0,), (0,), (True,))
    scaled = (rows - domain.center) / domain.std
    brute = np.min(np.linalg.norm(scaled[:, None] - domain.points[None], axis=2), axis=1)
    assert domain.distance(run) == pytest.approx(brute, rel=1e-12)
