"""Energy without inputs: kept to the integrator's order, and for good by a symplectic one.

The paper's conservative cases are the mass on a spring, the double pendulum and the cart-pole.
"""

import numpy as np
import pytest

import mbdnode as mbd
from mbdnode.mechanisms import (
    CartPole,
    DoublePendulum,
    SingleMassSpring,
    SinglePendulum,
    SliderCrank,
)

SPRING = (SingleMassSpring(), {"x": 1.0}, 0.1)
SPRING_SHORT_STEP = (SingleMassSpring(), {"x": 1.0}, 0.005)
DOUBLE = (DoublePendulum(), {"theta1": np.pi / 2, "theta2": np.pi / 4}, 0.02)
POLE = (CartPole(), {"theta": np.pi / 6, "x": 1.0}, 0.01)
CRANK = (SliderCrank(), {"theta1": 1.0, "theta1_dot": 3.0}, 0.04)


def energy_error(mechanism, start, dt_s, steps, integrator, parameters=None):
    """The relative error of the energy at every step."""
    t = np.arange(steps + 1) * dt_s
    run = mbd.simulate(mechanism, t, start, integrator=integrator, parameters=parameters)
    assert run.status.ok
    energy = np.asarray(mbd.energy(mechanism, run, parameters))
    return np.abs(energy - energy[0]) / np.max(np.abs(energy))


@pytest.mark.parametrize(
    ("system", "integrator", "order"),
    [
        (SPRING_SHORT_STEP, "fe1", 1),
        (SPRING, "mp2", 2),
        (SPRING, "rk4", 4),
        (SPRING, "lf2", 2),
        (SPRING, "ys4", 4),
        (SPRING, "fk6", 6),
        (DOUBLE, "rk4", 4),
        (DOUBLE, "mp2", 2),
        (POLE, "mp2", 2),
        (POLE, "rk4", 4),
        (CRANK, "rk4", 4),
    ],
)
def test_halving_the_step_divides_the_energy_error_by_two_to_the_order(system, integrator, order):
    mechanism, start, dt_s = system
    coarse = energy_error(mechanism, start, dt_s, 200, integrator)[:101].max()
    fine = energy_error(mechanism, start, dt_s / 2, 200, integrator).max()
    measured = np.log2(coarse / fine)
    # Energy may converge one order faster than the state, as it does for MP2 and RK4 on a linear
    # oscillator; it may not converge more slowly.
    assert order - 0.3 <= measured <= order + 1.5


def first_and_last_tenth(error):
    tenth = len(error) // 10
    return error[:tenth].max(), error[-tenth:].max()


@pytest.mark.parametrize("integrator", ["lf2", "ys4", "fk6"])
def test_a_symplectic_composition_does_not_drift_in_100_000_steps(integrator):
    # A long step, so that the error is far above round-off, which does accumulate.
    error = energy_error(SingleMassSpring(), {"x": 1.0}, 0.2, 100_000, integrator)
    first, last = first_and_last_tenth(error)
    assert first > 1e-7
    assert last <= 1.01 * first


def test_the_implicit_midpoint_rule_does_not_drift_in_100_000_steps_of_a_nonlinear_pendulum():
    error = energy_error(
        SinglePendulum(),
        {"theta": 2.0},
        0.05,
        100_000,
        "implicit-midpoint",
        parameters={"c": 0.0},
    )
    first, last = first_and_last_tenth(error)
    assert first > 1e-7
    assert last <= 1.01 * first


def test_rk4_does_drift_so_that_the_tests_above_can_fail():
    error = energy_error(SingleMassSpring(), {"x": 1.0}, 0.05, 100_000, "rk4")
    first, last = first_and_last_tenth(error)
    assert last > 2 * first
