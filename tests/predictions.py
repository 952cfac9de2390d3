"""Short motions of three mechanisms, and predictions of them that go wrong in known ways."""

from functools import cache

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from mbdnode.mechanisms import SingleMassSpring, SinglePendulum, SliderCrank
from mbdnode.simulation import simulate

STEPS = 60


@cache
def truth_of(name):
    """A short motion of one of the three mechanisms."""
    if name == "single-mass-spring":
        return simulate(SingleMassSpring(), np.linspace(0.0, 6.0, STEPS + 1), {"x": 1.0})
    if name == "single-pendulum":
        t = np.linspace(0.0, 3.0, STEPS + 1)
        force = np.random.default_rng(0).normal(0.0, 1.0, (STEPS + 1, 1))
        return simulate(SinglePendulum(), t, {"theta": 1.0}, inputs=force)
    forces = np.random.default_rng(0).uniform(-10.0, 10.0, (STEPS + 1, 2))
    t = np.linspace(0.0, 6.0, STEPS + 1)
    return simulate(SliderCrank(), t, {"theta1": 1.0, "theta1_dot": 1.0}, inputs=forces)


def drifting(truth, rate):
    """A prediction that goes astray: off by a share of the truth that grows with time."""
    share = 1.0 + rate * truth.t[:, None]
    return eqx.tree_at(lambda x: (x.q, x.v), truth, (truth.q * share, truth.v * share))


def diverging(truth):
    """A prediction that explodes, then is no number any more."""
    t = np.asarray(truth.t)[:, None]
    share = np.where(t < 0.6 * t[-1], np.exp(np.minimum(20 * t, 300)), np.nan)
    q, v = jnp.asarray(np.asarray(truth.q) * share), jnp.asarray(np.asarray(truth.v) * share)
    return eqx.tree_at(lambda x: (x.q, x.v), truth, (q, v))
