"""Motions that are made without compiling anything.

Those of one coordinate are for tests of learning: a law `theta'' = law(theta, rate)` stepped by the
classical Runge-Kutta method in plain Python, so that a model that is fitted to steps of `rk4` can
find the law to round-off. They are given the names of `SinglePendulum`, whose own law need not be
the one that made them.
"""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from mbdnode.mechanisms import SinglePendulum
from mbdnode.simulation import simulate
from mbdnode.status import completed
from mbdnode.trajectory import Trajectory

Law = Callable[[float, float], float]


def stepped(law: Law, start: tuple[float, float], dt_s: float, steps: int) -> np.ndarray:
    """Rows `(theta, rate)`, the start first."""
    rate = lambda y: np.array([y[1], law(y[0], y[1])])  # noqa: E731
    rows = [np.array(start, float)]
    for _ in range(steps):
        y = rows[-1]
        k1 = rate(y)
        k2 = rate(y + dt_s / 2 * k1)
        k3 = rate(y + dt_s / 2 * k2)
        k4 = rate(y + dt_s * k3)
        rows.append(y + dt_s / 6 * (k1 + 2 * k2 + 2 * k3 + k4))
    return np.stack(rows)


def recorded(states: np.ndarray, dt_s: float, system=None) -> Trajectory:
    """Rows `(q, v)` as a trajectory of a system of one coordinate; its inputs are zero."""
    system = SinglePendulum() if system is None else system
    t = np.arange(len(states)) * dt_s
    return as_trajectory(system, t, states, np.zeros((len(t), len(system.inputs))))


def as_trajectory(system, t, states, inputs) -> Trajectory:
    """Rows `(q, v)` and inputs, as of a simulation of `system` that came to its end."""
    q, v = np.split(np.asarray(states, float), 2, axis=1)
    none = jnp.asarray(np.zeros(len(t)))
    return Trajectory(
        t=jnp.asarray(t, float),
        q=jnp.asarray(q),
        v=jnp.asarray(v),
        u=jnp.asarray(inputs, float),
        position_residual=none,
        velocity_residual=none,
        status=completed(
            jnp.asarray(t[-1], float), jnp.asarray(len(t) - 1), system.coordinate_names
        ),
        coordinates=system.coordinate_names,
        rates=system.rate_names,
        inputs=system.input_names,
    )


def with_noise(states: np.ndarray, part: float, seed: int = 0) -> np.ndarray:
    """The same rows, each column with normal noise of this part of its own spread."""
    drawn = np.random.default_rng(seed).normal(size=states.shape)
    return states + part * np.std(states, axis=0) * drawn


def pendulum(theta: float, rate: float) -> float:
    """The law of `SinglePendulum`."""
    return -9.81 * np.sin(theta) - 0.1 * rate


def missed_unseen(model, dt_s: float, steps: int) -> float:
    """By how much a rollout misses a motion of the pendulum, in its standard deviation.

    It begins at 0.85 rad, which the tests do not learn from, within the range that they do.
    """
    unseen = stepped(pendulum, (0.85, 0.0), dt_s, steps)[:, 0]
    run = simulate(model, np.arange(steps + 1) * dt_s, {"theta": 0.85, "theta_dot": 0.0})
    away = np.asarray(run.q)[:, 0] - unseen
    return float(np.sqrt(np.mean(away**2)) / np.std(unseen))


def acceleration(model, theta: float, rate: float, *, force: float = 0.0, **values) -> float:
    """What a model of `SinglePendulum` says, with parameters at their defaults or these values."""
    parameters = {p.name: p.default for p in SinglePendulum().parameters} | values
    mu = {name: jnp.asarray(float(value)) for name, value in parameters.items()}
    state = jnp.array([theta]), jnp.array([rate]), jnp.array([force])
    return float(_accelerations(model, *state, mu)[0])


@eqx.filter_jit
def _accelerations(model, q, v, u, mu):
    """Compiled in one piece: operation by operation takes much longer."""
    return model.minimal_rates(jnp.zeros(()), q, v, u, mu)[1]
