"""The training data as rows: state, inputs, acceleration, and where each step leads.

Accelerations are differences of the velocities inside each run; for runs of two states, such as
draws, the mean over the step, which the corrections of `regression` make exact.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.models import AbstractRateModel
from mbdnode.training.differentiation import differentiate
from mbdnode.training.objectives.base import single_runs
from mbdnode.trajectory import Dataset


class Rows(eqx.Module):
    """States of the minimal coordinates, one step after another.

    **Arguments:**

    - `z`, `s`, `u`, `a`: positions, velocities, inputs and accelerations at the start of the step.
    - `z_next`, `s_next`: after it.
    - `t`, `dt`: when it begins, and its length.
    """

    z: Float[Array, "n nz"]
    s: Float[Array, "n nz"]
    u: Float[Array, "n nu"]
    a: Float[Array, "n nz"]
    z_next: Float[Array, "n nz"]
    s_next: Float[Array, "n nz"]
    t: Float[Array, " n"]
    dt: Float[Array, " n"]

    def __len__(self) -> int:
        return self.t.shape[0]


def rows_of(minimal: tuple[int, ...], data: Dataset) -> Rows:
    """Every step of the data.

    **Arguments:**

    - `minimal`: the coordinates that are learned.
    - `data`: the runs.

    **Returns:**

    `Rows`, in order of run and time.
    """
    index = np.array(minimal)
    pieces = []
    inputs = [u for run in data.trajectories for u in _each(run.u, run.t.ndim)]
    for (t, q, v, _), u in zip(single_runs(data), inputs, strict=True):
        z, s, dt = q[:, index], v[:, index], np.diff(t)
        mean = np.diff(s, axis=0) / dt[:, None]
        # Held inputs change from step to step, and a difference across steps would mix them.
        smooth = len(t) > 2 and not np.any(np.ptp(u, axis=0) > 0)
        a = differentiate(t, s)[:-1] if smooth else mean
        pieces.append((z[:-1], s[:-1], u[:-1], a, z[1:], s[1:], t[:-1], dt))
    return Rows(*(jnp.asarray(np.concatenate(x)) for x in zip(*pieces, strict=True)))


def _each(u, dimensions: int) -> list[np.ndarray]:
    values = np.asarray(u)
    return [values] if dimensions == 1 else list(values)


def sizes(model_rows: Rows) -> Float[Array, " nz"]:
    """The unit of each coordinate: its largest value."""
    return jnp.max(jnp.abs(model_rows.z), axis=0)


def step_errors(
    model: AbstractRateModel, rows: Rows, integrator, unit: Float[Array, " nz"]
) -> Float[Array, "n columns"]:
    """The error of one step from every row, as one of the acceleration in units of its spread.

    Positions are divided by the step twice, since an acceleration moves them by half its square.
    """

    def one(t, dt, z, s, u, z_next, s_next):
        rate = lambda time, y: model.minimal_rates(time, y[0], y[1], u, {})  # noqa: E731
        ahead = integrator.step_towards(rate, t, dt, (z, s), (z_next, s_next))
        velocity = (ahead[1] - s_next) / (dt * unit)
        position = (ahead[0] - z_next) / (dt * dt * unit)
        return jnp.concatenate([velocity, position])

    return jax.vmap(one)(rows.t, rows.dt, rows.z, rows.s, rows.u, rows.z_next, rows.s_next)


def rolled_out(model: AbstractRateModel, rows: Rows, integrator) -> tuple[Array, Array]:
    """Positions and velocities after every row, from the first row's state on."""

    def onward(y, row):
        t, dt, u = row
        rate = lambda time, x: model.minimal_rates(time, x[0], x[1], u, {})  # noqa: E731
        y, _ = integrator.step(rate, t, dt, y)
        return y, y

    return jax.lax.scan(onward, (rows.z[0], rows.s[0]), (rows.t, rows.dt, rows.u))[1]
