"""The training data as rows: state, inputs, acceleration, where each step leads, and the noise.

Accelerations are differences of the velocities inside each run; for runs of two states, such as
draws, the mean over the step, which the corrections of `regression` make exact. Noise is told from
stretches under one input. Where inputs change within a few samples the motion is not smooth, but
over each step, while the input is held, positions and velocities must fit together.
"""

import itertools
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.data.signal import differentiate, noise_levels
from mbdnode.models import AbstractRateModel
from mbdnode.multibody import AbstractSystem
from mbdnode.trajectory import Dataset, Trajectory

# Rows of a stretch from which noise can be told, and rows that are looked at, about.
_SHORTEST, _ENOUGH = 12, 100_000
# Below this part of the motion, noise is what rounding and an integrator leave; and below this
# one, what is left of a motion over one step.
CLEAN, _CLEAN_STEPS = 5e-6, 1e-4
# Of the median of a normal variable's absolute value.
_MEDIAN = 0.6745


class Rows(eqx.Module):
    """States of the minimal coordinates, one step after another.

    **Arguments:**

    - `z`, `s`, `u`, `a`: positions, velocities, inputs and accelerations at the start of the step.
    - `doubt`: by how much differences of another order disagree about `a`: where a force sets in
        within a few samples, they do.
    - `z_next`, `s_next`: after it.
    - `t`, `dt`: when it begins, and its length.
    - `mu`: the parameters, by name.
    - `weight`: one; zero for rows that only fill up, so that parts of the data have one shape.
    """

    z: Float[Array, "n nz"]
    s: Float[Array, "n nz"]
    u: Float[Array, "n nu"]
    a: Float[Array, "n nz"]
    doubt: Float[Array, "n nz"]
    z_next: Float[Array, "n nz"]
    s_next: Float[Array, "n nz"]
    t: Float[Array, " n"]
    dt: Float[Array, " n"]
    mu: dict[str, Float[Array, " n"]]
    weight: Float[Array, " n"]

    def __len__(self) -> int:
        return self.t.shape[0]


def rows_of(
    system: AbstractSystem,
    minimal: tuple[int, ...],
    data: Dataset,
    *,
    accelerations: bool = True,
) -> Rows:
    """Every step of the data.

    **Arguments:**

    - `system`: whose parameters have the values of each run, or their defaults.
    - `minimal`: the coordinates that are learned.
    - `data`: the runs.
    - `accelerations`: whether they are to be exact; if not, they are the mean over each step,
        which is all that some need, and quick.

    **Returns:**

    `Rows`, in order of run and time.
    """
    index = np.array(minimal)
    segments = []
    for run, values in zip(data.trajectories, data.parameters, strict=True):
        mu = {p.name: np.asarray(values.get(p.name, p.default)) for p in system.parameters}
        if run.t.ndim == 2 and (run.t.shape[1] == 2 or not accelerations):
            segments.append(_steps_of_a_batch(index, run, mu))
        else:
            segments += [
                _run_of_steps(index, one, {k: own.get(k, x) for k, x in mu.items()}, accelerations)
                for one, own in single_trajectories(Dataset(run, values))
            ]
    return Rows(*jax.tree.map(lambda *x: jnp.asarray(np.concatenate(x)), *segments))


def _run_of_steps(index: np.ndarray, run: Trajectory, mu: dict, accelerations: bool) -> tuple:
    t, z, s, u = (np.asarray(x) for x in (run.t, run.q[:, index], run.v[:, index], run.u))
    dt = np.diff(t)
    a = np.diff(s, axis=0) / dt[:, None]
    doubt = np.zeros_like(a)
    # Held inputs change from step to step, and a difference across steps would mix them.
    if accelerations and len(t) > 2 and not np.any(np.ptp(u, axis=0) > 0):
        a = differentiate(t, s)[:-1]
        doubt = np.abs(a - differentiate(t, s, 5)[:-1])
    held = {name: np.full(len(dt), float(value)) for name, value in mu.items()}
    ends = z[1:], s[1:], t[:-1], dt, held, np.ones_like(dt)
    return (z[:-1], s[:-1], u[:-1], a, doubt, *ends)


def _steps_of_a_batch(index: np.ndarray, run: Trajectory, mu: dict) -> tuple:
    """Of a batch of runs of one length, all at once: there may be many."""
    t, z, s, u = (np.asarray(x) for x in (run.t, run.q[..., index], run.v[..., index], run.u))
    # Written out: of a system without inputs, NumPy cannot tell how many rows of nothing there are.
    joined = lambda x: x.reshape(x.shape[0] * x.shape[1], *x.shape[2:])  # noqa: E731
    dt = np.diff(t, axis=1)
    a = joined(np.diff(s, axis=1) / dt[..., None])
    held = {
        name: np.repeat(np.broadcast_to(value, t.shape[:1]).astype(float), dt.shape[1])
        for name, value in mu.items()
    }
    begins = (joined(x[:, :-1]) for x in (z, s, u))
    ends = joined(z[:, 1:]), joined(s[:, 1:]), joined(t[:, :-1]), joined(dt), held
    return (*begins, a, np.zeros_like(a), *ends, np.ones(dt.size))


def single_trajectories(data: Dataset) -> list[tuple[Trajectory, dict]]:
    """Every run with its parameters, batches taken apart."""
    runs = []
    for run, values in zip(data.trajectories, data.parameters, strict=True):
        if run.t.ndim == 1:
            runs.append((run, dict(values)))
            continue
        # By NumPy: a program compiled for every slice would take longer than all of them.
        run = jax.tree.map(np.asarray, run)
        for i in range(run.t.shape[0]):
            own = {k: np.broadcast_to(np.asarray(x), run.t.shape[:1])[i] for k, x in values.items()}
            runs.append((jax.tree.map(lambda x, i=i: x[i], run), own))
    return runs


def recorded_rates(system: AbstractSystem, minimal: tuple[int, ...], data: Dataset) -> np.ndarray:
    """Which rates of the minimal coordinates were measured.

    **Arguments:**

    - `system`: gives the names.
    - `minimal`: the coordinates that are learned.
    - `data`: says what was recorded.

    **Returns:**

    Of every minimal coordinate whether its rate was measured, or follows by the constraints from
    rates that all were. A rate that was estimated from positions says nothing that they do not.
    """
    told = data.recorded
    if told is None:
        return np.ones(len(minimal), bool)
    pairs = list(zip(system.coordinate_names, system.rate_names, strict=True))
    all_measured = all(rate in told for name, rate in pairs if name in told)
    return np.array(
        [pairs[i][1] in told or (pairs[i][0] not in told and all_measured) for i in minimal]
    )


def filled_up(rows: Rows, count: int) -> Rows:
    """The same rows and more of no weight, so that a compiled program can be used again."""
    more = count - len(rows)
    if more == 0:
        return rows
    plain = jax.tree.map(np.asarray, rows)
    padded = jax.tree.map(lambda x: np.concatenate([x, np.repeat(x[-1:], more, axis=0)]), plain)
    padded.weight[len(rows) :] = 0.0
    return jax.tree.map(jnp.asarray, padded)


def side_by_side(segments: list[Rows]) -> Rows:
    """Segments of any length, filled up to the longest, with a leading axis."""
    longest = max(len(segment) for segment in segments)
    even = [filled_up(segment, longest) for segment in segments]
    return jax.tree.map(lambda *x: jnp.asarray(np.stack([np.asarray(y) for y in x])), *even)


def counted(rows: Rows) -> Rows:
    """The rows that have weight."""
    count = int(np.sum(np.asarray(rows.weight) > 0))
    return rows if count == len(rows) else jax.tree.map(lambda x: x[:count], rows)


def spread_of_accelerations(rows: Rows) -> Float[Array, " nz"]:
    """The unit in which accelerations are compared."""
    spread = jnp.std(counted(rows).a, axis=0)
    return jnp.where(spread > 0, spread, 1.0)


def trust(rows: Rows) -> np.ndarray:
    """How much each row's accelerations count: less where differences disagree about them."""
    unit = np.asarray(spread_of_accelerations(rows))
    doubt = np.linalg.norm(np.asarray(rows.doubt) / unit, axis=1)
    usual = max(float(np.median(doubt)), np.finfo(float).eps)
    return np.asarray(rows.weight) * usual / (usual + doubt)


def step_errors(
    model: AbstractRateModel, rows: Rows, integrator, unit: Float[Array, " nz"]
) -> Float[Array, "n columns"]:
    """The error of one step from every row, as one of the acceleration in units of its spread.

    Positions are divided by the step twice, since an acceleration moves them by half its square.
    """

    def one(row):
        rate = lambda time, y: model.minimal_rates(time, y[0], y[1], row.u, row.mu)  # noqa: E731
        end = row.z_next, row.s_next
        ahead = integrator.step_towards(rate, row.t, row.dt, (row.z, row.s), end)
        velocity = (ahead[1] - row.s_next) / (row.dt * unit)
        position = (ahead[0] - row.z_next) / (row.dt * row.dt * unit)
        return jnp.concatenate([velocity, position])

    missed = jax.vmap(one)(rows)
    return rows.weight[:, None] * missed


def rolled_out(model: AbstractRateModel, rows: Rows, integrator) -> tuple[Array, Array]:
    """Positions and velocities after every row, from the first row's state on."""

    def onward(y, row):
        t, dt, u, mu = row
        rate = lambda time, x: model.minimal_rates(time, x[0], x[1], u, mu)  # noqa: E731
        y, _ = integrator.step(rate, t, dt, y)
        return y, y

    along = rows.t, rows.dt, rows.u, rows.mu
    return jax.lax.scan(onward, (rows.z[0], rows.s[0]), along)[1]


def places(rows: Rows, names: tuple[str, ...]) -> Float[Array, "n places"]:
    """Positions and the named parameters, side by side."""
    return jnp.concatenate([rows.z, *(rows.mu[name][:, None] for name in names)], axis=1)


def varying(rows: Rows) -> tuple[str, ...]:
    """The parameters that differ between runs, by name."""
    return tuple(name for name, values in rows.mu.items() if np.ptp(np.asarray(values)) > 0)


def runs_of(rows: Rows) -> list[tuple[int, int]]:
    """First and last row (not included) of every run."""
    count = int(np.sum(np.asarray(rows.weight) > 0))
    t, dt = np.asarray(rows.t)[:count], np.asarray(rows.dt)[:count]
    breaks = np.abs(t[1:] - (t[:-1] + dt[:-1])) > 1e-6 * dt[:-1]
    same = np.all(np.asarray(rows.z)[1:count] == np.asarray(rows.z_next)[: count - 1], axis=1)
    edges = [0, *(np.flatnonzero(breaks | ~same) + 1), count]
    return [(int(a), int(b)) for a, b in itertools.pairwise(edges)]


@dataclass(frozen=True)
class Noise:
    """The size of the noise of every position and velocity.

    **Arguments:**

    - `z`, `s`: one value for each coordinate, never zero.
    - `relative`: the largest of them, as a part of the motion's deviation; zero where it is too
        small to tell from the motion.
    """

    z: np.ndarray
    s: np.ndarray
    relative: float

    @property
    def matters(self) -> bool:
        """Whether the data is measured rather than computed."""
        return self.relative > CLEAN


def estimate_noise(rows: Rows) -> Noise:
    """The noise of the data, from the data alone.

    **Arguments:**

    - `rows`: in order of run and time.

    **Returns:**

    The `Noise`; none of it where every run is too short to tell.
    """
    z, s = np.asarray(rows.z), np.asarray(rows.s)
    if all(last - first <= _SHORTEST for first, last in runs_of(rows)):
        return Noise(np.full(z.shape[1], 1e-12), np.full(z.shape[1], 1e-12), 0.0)
    spread = [np.where(np.std(x, axis=0) > 0, np.std(x, axis=0), 1.0) for x in (z, s)]
    stretches, clean = _stretches(rows), CLEAN
    if stretches:
        t = np.asarray(rows.t)
        sizes = [noise_levels([(t[a:b], x[a:b]) for a, b in stretches]) for x in (z, s)]
    else:
        sizes, clean = _noise_of_steps(rows), _CLEAN_STEPS
    relative = max(float(np.max(a / b)) for a, b in zip(sizes, spread, strict=True))
    floors = [np.maximum(a, 1e-12 * b) for a, b in zip(sizes, spread, strict=True)]
    return Noise(floors[0], floors[1], relative if relative > clean else 0.0)


def _stretches(rows: Rows) -> list[tuple[int, int]]:
    """Under one input and long enough; evenly many of them, since more say the same."""
    u, found = np.asarray(rows.u), []
    for first, last in runs_of(rows):
        changes = np.flatnonzero(np.any(np.diff(u[first:last], axis=0) != 0, axis=1)) + first + 1
        edges = [first, *changes, last]
        found += [(int(a), int(b)) for a, b in itertools.pairwise(edges) if b - a > _SHORTEST]
    most = max(1, _ENOUGH // max((b - a for a, b in found), default=1))
    if len(found) <= most:
        return found
    return [found[i] for i in np.linspace(0, len(found) - 1, most).astype(int)]


def _noise_of_steps(rows: Rows) -> list[np.ndarray]:
    """From positions that do not follow from the velocities at both ends of a step."""
    count = int(np.sum(np.asarray(rows.weight) > 0))
    z, z_next, s, s_next, dt = (
        np.asarray(x)[:count] for x in (rows.z, rows.z_next, rows.s, rows.s_next, rows.dt)
    )
    away = z_next - z - dt[:, None] * (s + s_next) / 2
    size = np.median(np.abs(away), axis=0) / (_MEDIAN * np.sqrt(2))
    part = size / np.where(np.std(z, axis=0) > 0, np.std(z, axis=0), 1.0)
    return [size, part * np.std(s, axis=0)]
