"""Inputs that act later than they were recorded."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import mbdnode as mbd
from mbdnode.identification.parameters.delays import _delayed

DT, COUNT = 0.02, 301
T = np.arange(COUNT) * DT
TRUE = {"m": 1.3, "c": 0.8}


class Slide(mbd.AbstractMechanism):
    """A mass on a spring of 20 N/m with a damper, pushed."""

    coordinates = (mbd.length("x"),)
    inputs = (mbd.Input("push", "N"),)
    parameters = (mbd.positive("m", 1.0, "kg"), mbd.nonnegative("c", 0.5, "N s/m"))

    def mass_matrix(self, q, mu):
        return [mu["m"]]

    def force(self, t, q, v, u, mu):
        return [u[0] - 20.0 * q[0] - mu["c"] * v[0]]


def smooth(t):
    return 3.0 * jnp.sin(2.3 * t) + 2.0 * jnp.cos(6.1 * t + 0.4)


def identified(course, sampled, how):
    """The delay and the parameters, from positions under a course of which samples are known."""
    fine = np.arange(4 * (COUNT - 1) + 1) * (DT / 4)
    # Held over each quarter of a step, at its middle: the error is below 1e-5 of the motion.
    loads = np.asarray(course(fine + DT / 8))[:, None]
    run = mbd.simulate(Slide(), fine, {"x": 0.1}, inputs=loads, parameters=TRUE)
    q, v = np.asarray(run.q)[::4], np.asarray(run.v)[::4]
    whole = mbd.simulate(Slide(), T, {"x": 0.1}, inputs=np.asarray(sampled)[:, None])
    seen = eqx.tree_at(lambda r: (r.q, r.v), whole, (jnp.asarray(q), jnp.asarray(v)))
    data = mbd.Dataset(seen, recorded=["x"])
    return mbd.identify(
        Slide(), data, unknown=["m", "c"], sensors={"push": "delay"}, interpolation=how
    )


@pytest.mark.parametrize(("how", "delay"), [("cubic", 0.051), ("constant", 0.03)])
def test_delay_of_an_input_is_found_with_the_parameters(how, delay):
    late = np.random.default_rng(0).normal(size=COUNT + 10) * 3.0

    def held(t):
        """Samples that are each held over a step; a quarter of a step is not cut by the delay."""
        return late[np.maximum(np.floor(np.round((t - delay) / DT, 6)), 0).astype(int)]

    if how == "cubic":
        found = identified(lambda t: smooth(np.maximum(t - delay, 0.0)), smooth(T), how)
    else:
        found = identified(held, late[:COUNT], how)
    # What a held input does within a step depends on when in it, to second order of the step.
    assert found.sensors["push delay"] == pytest.approx(delay, rel=0.02)
    assert found.parameters == pytest.approx(TRUE, rel=0.01)


def test_delayed_polynomials_are_the_delayed_course():
    t = np.linspace(0.0, 1.0, 11)
    # A cubic polynomial on every step, all of one course: 1 - 2 t + 3 t^2 - t^3.
    course = np.polynomial.Polynomial([1.0, -2.0, 3.0, -1.0])
    own = np.array([[course.deriv(k)(a) / f for k, f in enumerate((1, 1, 2, 6))] for a in t[:-1]])
    late = _delayed(own, t, 0.23)
    for row, begin in zip(late[3:], t[3:-1], strict=True):
        s = np.linspace(0.0, 0.1, 5)
        np.testing.assert_allclose(
            np.polynomial.Polynomial(row)(s), course(begin + s - 0.23), atol=1e-12
        )
    # A held input keeps its impulse: half a step late, it is the mean of two samples.
    steps = np.zeros((10, 4))
    steps[:, 0] = np.arange(10.0) ** 2
    half = _delayed(steps, t, 0.05)[:, 0]
    np.testing.assert_allclose(half[1:], (steps[1:, 0] + steps[:-1, 0]) / 2, atol=1e-12)


def test_delay_of_what_is_no_input_is_refused():
    run = mbd.simulate(Slide(), T[:20], {"x": 0.1}, inputs=np.zeros((20, 1)))
    data = mbd.Dataset(run, recorded=["x"])
    with pytest.raises(mbd.UserError, match="unknown of a sensor"):
        mbd.identify(Slide(), data, unknown=["m"], sensors={"x": "delay"})
