"""Short motions of three mechanisms, and predictions of them that go wrong in known ways."""

from functools import cache

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from motions import as_trajectory
from problems import mass_spring, solve, solve_pendulum, solve_slider_crank

from mbdnode.mechanisms import SingleMassSpring, SinglePendulum, SliderCrank

STEPS = 60


@cache
def truth_of(name):
    """A short motion of one of the three mechanisms."""
    t = np.linspace(0.0, 3.0 if name == "single-pendulum" else 6.0, STEPS + 1)
    random = np.random.default_rng(0)
    if name == "single-mass-spring":
        states = solve(mass_spring, [1.0, 0.0], t)
        return as_trajectory(SingleMassSpring(), t, states, np.zeros((STEPS + 1, 0)))
    if name == "single-pendulum":
        force = random.normal(0.0, 1.0, (STEPS + 1, 1))
        states = solve_pendulum(force[:-1], [1.0, 0.0], 0.05)
        return as_trajectory(SinglePendulum(), t, states, force)
    forces = random.uniform(-10.0, 10.0, (STEPS + 1, 2))
    states = solve_slider_crank(forces[:-1], dt_s=0.1)
    return as_trajectory(SliderCrank(), t, states, forces)


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
