"""Recorded rates that are not the derivatives of their positions."""

import jax.numpy as jnp
import numpy as np
import pytest

import mbdnode as mbd
from mbdnode.evaluation.predictions import predict_runs
from mbdnode.identification import estimate_state
from mbdnode.identification.biased_rates import without_biased_rates
from mbdnode.simulation import training_domain
from mbdnode.status import completed

T = np.arange(400) * 0.02
# A pendulum of small swings without friction, which is known in closed form.
OMEGA = 3.0
SYSTEM = mbd.AccelerationFunction(lambda t, q, v, u, mu: -(OMEGA**2) * q, (mbd.length("x"),))


def recorded(x, v):
    nothing, system = jnp.zeros(len(T)), SYSTEM
    return mbd.Trajectory(
        t=jnp.asarray(T),
        q=jnp.asarray(x)[:, None],
        v=jnp.asarray(v)[:, None],
        u=jnp.zeros((len(T), 0)),
        position_residual=nothing,
        velocity_residual=nothing,
        status=completed(jnp.asarray(T[-1]), jnp.array(len(T) - 1), system.coordinate_names),
        coordinates=system.coordinate_names,
        rates=system.rate_names,
        inputs=(),
    )


def swinging(noise_of_x=0.0, noise_of_v=0.0, gain=1.0, seed=0):
    random = np.random.default_rng(seed)
    x = np.cos(OMEGA * T) + noise_of_x * random.normal(size=len(T))
    v = -OMEGA * gain * np.sin(OMEGA * T) + noise_of_v * random.normal(size=len(T))
    return x, v


def amplitude_of(q, v):
    return np.hypot(float(q[0]), float(v[0]) / OMEGA)


def taken_out(x, v, told=None):
    return without_biased_rates(SYSTEM, mbd.Dataset(recorded(x, v), recorded=told), (0,))


def test_rates_with_a_gain_give_way_to_the_derivatives_of_positions():
    x, v = swinging(0.003, gain=0.97)
    data, names = taken_out(x, v)
    assert names == ("x_dot",)
    assert data.recorded == ("x",)
    # The gain alone makes 3 % of the amplitude, 0.06 as a standard deviation; the derivative of
    # positions with 0.3 % noise is several times as near.
    truth = -OMEGA * np.sin(OMEGA * T)
    away = np.std(np.asarray(data.trajectories[0].v)[:, 0] - truth)
    assert away < np.std(v - truth) / 2


def test_noise_that_neighbors_share_is_seen_beside_the_positions():
    x, v = swinging(0.002)
    white = np.random.default_rng(1).normal(0.0, 0.1 * np.sqrt(5), len(T) + 4)
    assert taken_out(x, v + np.convolve(white, np.ones(5) / 5, "valid"))[1] == ("x_dot",)


@pytest.mark.parametrize("noise_of_x", [0.001, 0.01, 0.05])
@pytest.mark.parametrize("noise_of_v", [0.003, 0.03, 0.15])
def test_rates_with_noise_of_their_own_are_kept(noise_of_x, noise_of_v):
    for seed in range(5):
        data, names = taken_out(*swinging(noise_of_x, noise_of_v, seed=seed))
        assert names == ()
        assert data.recorded is None


def test_rounded_positions_do_not_discredit_right_rates():
    x, v = swinging(0.0, 0.001)
    assert taken_out(np.round(x / 0.02) * 0.02, v)[1] == ()


def test_data_without_noise_is_left_as_it_is():
    assert taken_out(*swinging(gain=0.97))[1] == ()


def test_rates_that_were_estimated_are_not_judged():
    x, v = swinging(0.003, gain=0.97)
    assert taken_out(x, v, told=["x"])[1] == ()


def test_a_state_is_estimated_from_positions_where_rates_are_biased():
    x, v = swinging(0.003, gain=0.97)
    law = mbd.identify(SYSTEM, recorded(x, v), "fast")
    assert law.biased_rates == ("x_dot",)
    assert "positions alone" in law.status
    state = estimate_state(law.model, recorded(x, v))
    # From the rates as recorded the amplitude would be between 1.5 and 3 % too small; from about
    # 100 positions with 0.3 % noise it is told to 0.3 % / sqrt(50).
    assert amplitude_of(state.q, state.v) == pytest.approx(1.0, abs=3e-3)
    # The first 40 rows of a held-out run are too few to tell a bias: what is known of it must help.
    domain = training_domain(law.model, [recorded(x, v)])
    given = law.model, [("run", recorded(x, v), {})], None, domain, "rk4"
    found, usual = (
        amplitude_of(held.prediction.q[0], held.prediction.v[0])
        for held in (predict_runs(*given, biased=("x_dot",))[0], predict_runs(*given)[0])
    )
    # Positions alone, over a third of a period, tell it to 1 %; a rate that is 3 % off does not.
    assert abs(found - 1) < 0.01 < abs(usual - 1)
