"""Plans of a nonlinear model: what linearises them, and how far to go towards a better one.

A plan holds states and inputs, `z_1 ... z_N` and `u_0 ... u_(N-1)`, and need not yet agree with the
model: where `z_(k+1)` differs from the model's step from `z_k` there is a gap, which the next
programme closes to first order. Unlike a rollout, such a plan can follow an unstable motion
without being thrown off it. Every step is linearised half way along it, where taking `A` and `B`
as constant is an error of third order in the step, and discretised exactly.

How far to go towards the programme's plan is decided by cost and gaps as the model has them, not
its linearisation.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.control.linearization import discretize_all
from mbdnode.control.state_space import StateSpace
from mbdnode.control.task import Task


class Forecaster:
    """Compiled forecasts with one model and one task.

    `advance` is one step, `follow` many of them; `linearise` and `measure` take a whole plan.

    **Arguments:**

    - `space`: the model in minimal form.
    - `task`: weights, bounds, horizon and step.
    - `terminal`: the weight at the end of the horizon.
    """

    def __init__(self, space: StateSpace, task: Task, terminal: np.ndarray):
        arrays = jax.tree.map(jnp.asarray, (task.Q, task.R, terminal, task.z_low, task.z_high))
        cost = functools.partial(_cost, *arrays, task.violation_cost)
        step = functools.partial(_advance, space, task.dt_s)
        self.advance = jax.jit(step)
        self.linearise = jax.jit(functools.partial(_linearise, space, step, cost, task.dt_s))
        self.follow = jax.jit(functools.partial(_follow, step, task.dt_s))
        self.measure = jax.jit(functools.partial(_measure, step, cost, task.dt_s))


def _advance(space: StateSpace, dt, t, z, u, near):
    """One step of RK4, and the configuration at its start."""
    k1, q = space.rate(t, z, u, near)
    k2, _ = space.rate(t + dt / 2, z + dt / 2 * k1, u, q)
    k3, _ = space.rate(t + dt / 2, z + dt / 2 * k2, u, q)
    k4, _ = space.rate(t + dt, z + dt * k3, u, q)
    return z + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4), q


def _follow(step: Any, dt, t, z, near, u, load):
    """The states that inputs lead to, the first included, and the configurations on the way."""

    def onward(carry, now):
        state, q = carry
        time, acting = now
        new, q = step(time, state, acting, q)
        return (new, q), (new, q)

    times = t + dt * jnp.arange(u.shape[0], dtype=float)
    _, (states, q) = jax.lax.scan(onward, (z, near), (times, u + load[None]))
    return jnp.concatenate([z[None], states]), q


def _linearise(
    space: StateSpace, step: Any, cost: Any, dt, t, near, states, u, load, reference, u_reference
):
    """The model along a plan, `[A B d]` of every step; the configurations; its cost and gaps."""
    times = t + dt * jnp.arange(u.shape[0], dtype=float)
    acting = u + load[None]
    ends, q = jax.vmap(step)(times, states[:-1], acting, near)
    A, B = jax.vmap(space.jacobians)(times + dt / 2, (states[:-1] + ends) / 2, acting, q)
    A, B = discretize_all(A, B, dt)
    applied = jnp.einsum("kij,kj->ki", A, states[:-1]) + jnp.einsum("kij,kj->ki", B, u)
    model = jnp.concatenate([A, B, (ends - applied)[..., None]], axis=-1)
    return model, q, _judged(cost, states, u, ends, reference, u_reference)


def _measure(step: Any, cost: Any, dt, t, near, states, u, load, reference, u_reference):
    """The cost of a plan, and the sum of its gaps."""
    times = t + dt * jnp.arange(u.shape[0], dtype=float)
    ends, _ = jax.vmap(step)(times, states[:-1], u + load[None], near)
    return _judged(cost, states, u, ends, reference, u_reference)


def _judged(cost: Any, states, u, ends, reference, u_reference):
    gaps = jnp.sum(jnp.abs(states[1:] - ends))
    return jnp.stack([cost(states, u, reference, u_reference), gaps])


def _cost(Q, R, P, z_low, z_high, violation_cost, states, u, reference, u_reference):
    """What the programme minimises."""
    away, effort = states[1:] - reference, u - u_reference
    running = jnp.einsum("ki,ij,kj->", away[:-1], Q, away[:-1])
    spent = jnp.einsum("ki,ij,kj->", effort, R, effort)
    over = jnp.maximum(states[1:] - z_high[None], z_low[None] - states[1:])
    over = jnp.maximum(over, 0.0)
    return running + spent + away[-1] @ P @ away[-1] + violation_cost * jnp.sum(over + over**2)
