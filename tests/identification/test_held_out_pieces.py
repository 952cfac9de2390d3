"""Pieces of a run that are held out, and what they choose: how long segments are."""

import jax.numpy as jnp
import numpy as np
import pytest

import mbdnode as mbd
from mbdnode.identification.parameters.cross_validation import cut_into_blocks, period_of
from mbdnode.status import completed


def motion(t):
    """Two harmonics of a period of 2 s, with velocity and acceleration."""
    size, rate = np.array([[0.30], [0.08]]), np.array([[np.pi], [2 * np.pi]])
    angle = rate * t + np.array([[0.0], [1.0]])
    q, v = size * np.sin(angle), size * rate * np.cos(angle)
    return q.sum(axis=0), v.sum(axis=0), -(rate**2 * q).sum(axis=0)


def test_period_is_that_of_the_motion():
    t = np.arange(801) * 0.01
    q, v, _ = motion(t)
    assert period_of(np.stack([q, v], axis=1)) == 200
    assert period_of(q[:, None]) == 200
    # Not even twice.
    assert period_of(q[:390, None]) is None
    # It comes near, and passes by.
    assert period_of((q + 0.05 * np.sin(1.3 * t))[:, None]) is None
    shake = np.random.default_rng(0).normal(0.0, 0.05, q.shape)
    assert period_of((q + shake)[:, None]) is None
    assert period_of(np.ones((50, 1))) is None


def test_pieces_of_a_motion_that_repeats_are_its_phases():
    (edges,), (owners,) = cut_into_blocks([800], [200], 4)
    assert edges.tolist() == list(range(0, 801, 50))
    assert owners == [0, 1, 2, 3] * 4
    # A rest that is shorter than half a block is part of the last.
    (edges,), (owners,) = cut_into_blocks([820], [200], 4)
    assert edges[-2:].tolist() == [750, 820]
    assert owners[-1] == 3
    (edges,), (owners,) = cut_into_blocks([800], [None], 4)
    assert edges.tolist() == [0, 200, 400, 600, 800]
    assert owners == [0, 1, 2, 3]
    # As many runs as pieces are not cut.
    edges, owners = cut_into_blocks([800, 600], [200, 200], 2)
    assert [x.tolist() for x in edges] == [[0, 800], [0, 600]]
    assert owners == [[0], [1]]


class Carriage(mbd.AbstractMechanism):
    """A mass with viscous friction."""

    coordinates = (mbd.length("x"),)
    inputs = (mbd.Input("u", "N"),)
    parameters = (mbd.positive("m", 1.0, "kg"), mbd.nonnegative("c", 1.0, "N s/m"))

    def mass_matrix(self, q, mu):
        return [mu["m"]]

    def force(self, t, q, v, u, mu):
        return [u[0] - mu["c"] * v[0]]


T = np.arange(801) * 0.01


def recorded(missing, noise=0.0):
    """The motion under the force that it needs: closed form, with a force that the model lacks."""
    system, (q, v, a), random = Carriage(), motion(T), np.random.default_rng(0)
    u, t = 2.0 * a + 3.0 * v + missing(q), T
    q = q + noise * random.standard_normal(len(t))
    nothing = jnp.zeros(len(t))
    run = mbd.Trajectory(
        t=jnp.asarray(t),
        q=jnp.asarray(q[:, None]),
        v=jnp.asarray(v[:, None]),
        u=jnp.asarray(u[:, None]),
        position_residual=nothing,
        velocity_residual=nothing,
        status=completed(jnp.asarray(t[-1]), jnp.array(len(t) - 1), system.coordinate_names),
        coordinates=system.coordinate_names,
        rates=system.rate_names,
        inputs=system.input_names,
    )
    return mbd.Dataset(run, recorded=["x"])


def identified(data, **settings):
    return mbd.identify(Carriage(), data, unknown=["m", "c"], interpolation="cubic", **settings)


def ripple(q):
    """A force of the place."""
    return 0.6 * np.sin(25 * q)


def random_walk(q):
    """A force that changes by about 0.2 N in a second, by chance."""
    return 0.02 * np.cumsum(np.random.default_rng(1).standard_normal(len(q)))


@pytest.mark.parametrize("missing", [ripple, random_walk])
def test_where_a_force_is_missing_segments_are_short_and_parameters_nearer_the_truth(missing):
    data = recorded(missing)
    whole, chosen = identified(data), identified(data, pieces=4)
    assert whole.segment_seconds > 1.5
    assert chosen.segment_seconds <= 0.5

    def off(found):
        return np.hypot(found.parameters["m"] / 2 - 1, found.parameters["c"] / 3 - 1)

    assert off(chosen) < 0.2 * off(whole)


def test_pieces_change_nothing_where_noise_is_all_that_is_missed():
    data = recorded(np.zeros_like, noise=0.002)
    whole, chosen = identified(data), identified(data, pieces=4)
    assert chosen.segment_seconds == whole.segment_seconds == 8.0
    for name, value in (("m", 2.0), ("c", 3.0)):
        assert chosen.parameters[name] == whole.parameters[name]
        assert abs(chosen.parameters[name] - value) < 3 * chosen.standard_errors[name]
