"""The training data as rows: state, inputs, acceleration, where each step leads, and the noise.

Over each step the inputs are polynomials of the time since it began: held, or through their samples
as lines or a cubic spline. Accelerations are differences of the velocities inside each run. Where
inputs change, the motion is smooth over single steps alone, and so are runs of two states: there
they are the mean over the step, which is that in its middle, and `by_steps` says so.

Noise is told from stretches under one input. Where there are none, positions must follow from the
velocities over each step, and what is left of a motion after that is smooth.
"""

import itertools
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.data.signal import differentiate, noise_levels
from mbdnode.integrators import stage_slopes
from mbdnode.multibody import AbstractSystem
from mbdnode.multibody.kinematics import compiled
from mbdnode.simulation.interpolation import input_polynomials
from mbdnode.trajectory import Dataset, Trajectory

# Rows of a stretch from which noise can be told, and rows that are looked at, about.
_SHORTEST, _ENOUGH = 12, 100_000
# Below this part of the motion, noise is what rounding and an integrator leave; and below this
# one, what is left of a motion over one step.
CLEAN, _CLEAN_STEPS = 5e-6, 1e-4


class Rows(eqx.Module):
    """States of the minimal coordinates, one step after another.

    **Arguments:**

    - `z`, `s`, `u`, `a`: positions, velocities, inputs and accelerations at the start of the step;
        accelerations are means over it where `by_steps` says so.
    - `doubt`: by how much differences of another order disagree about `a`: where a force sets in
        within a few samples, they do.
    - `z_next`, `s_next`: after it.
    - `t`, `dt`: when it begins, and its length.
    - `mu`: the parameters, by name.
    - `weight`: one; zero for rows that only fill up, so that parts of the data have one shape.
    - `u_slopes`: coefficients of the higher powers of the time since the step began, in the inputs;
        none for inputs that are held.
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
    u_slopes: Float[Array, "n powers nu"]

    def __len__(self) -> int:
        return self.t.shape[0]


def rows_of(
    system: AbstractSystem,
    minimal: tuple[int, ...],
    data: Dataset,
    *,
    accelerations: bool = True,
    interpolation: str = "constant",
) -> Rows:
    """Every step of the data.

    **Arguments:**

    - `system`: whose parameters have the values of each run, or their defaults.
    - `minimal`: the coordinates that are learned.
    - `data`: the runs.
    - `accelerations`: whether they are to be exact; if not, they are the mean over each step,
        which is all that some need, and quick.
    - `interpolation`: of the inputs between samples.

    **Returns:**

    `Rows`, in order of run and time.
    """
    index = np.array(minimal)
    segments = []
    for run, values in zip(data.trajectories, data.parameters, strict=True):
        mu = {p.name: np.asarray(values.get(p.name, p.default)) for p in system.parameters}
        if run.t.ndim == 2 and (not accelerations or _are_means(run)):
            segments.append(_steps(index, run, mu, False, interpolation))
        else:
            for one, own in single_trajectories(Dataset(run, values)):
                own = {k: own.get(k, x) for k, x in mu.items()}
                segments.append(_steps(index, one, own, accelerations, interpolation))
    # By device_put: asarray would compile a program for every shape.
    return Rows(*jax.tree.map(lambda *x: jax.device_put(np.concatenate(x)), *segments))


def _are_means(batch: Trajectory) -> bool:
    """Whether accelerations are means over steps in every run of a batch, as in `by_steps`."""
    changes = np.any(np.ptp(np.asarray(batch.u), axis=1) > 0, axis=1)
    return batch.t.shape[1] == 2 or bool(np.all(changes))


def _steps(
    index: np.ndarray, run: Trajectory, mu: dict, accelerations: bool, interpolation: str
) -> tuple:
    """Of a run, or of a batch of runs of one length, all at once: there may be many."""
    t, q, v, u = (np.asarray(x) for x in (run.t, run.q, run.v, run.u))
    slopes = input_polynomials(t, u, interpolation)[..., 1:, :]
    if t.ndim == 1:
        t, q, v, u, slopes = (x[None] for x in (t, q, v, u, slopes))
    z, s = q[..., index], v[..., index]
    # Written out: of a system without inputs, NumPy cannot tell how many rows of nothing there are.
    joined = lambda x: x.reshape(x.shape[0] * x.shape[1], *x.shape[2:])  # noqa: E731
    dt = np.diff(t, axis=1)
    a = joined(np.diff(s, axis=1) / dt[..., None])
    doubt = np.zeros_like(a)
    # Where inputs change from step to step, a difference across steps would mix them.
    if accelerations and t.shape[1] > 2 and not np.any(np.ptp(u[0], axis=0) > 0):
        a = differentiate(t[0], s[0])[:-1]
        doubt = np.abs(a - differentiate(t[0], s[0], 5)[:-1])
    held = {
        name: np.repeat(np.broadcast_to(value, t.shape[:1]).astype(float), dt.shape[1])
        for name, value in mu.items()
    }
    begins = (joined(x[:, :-1]) for x in (z, s, u))
    ends = joined(z[:, 1:]), joined(s[:, 1:]), joined(t[:, :-1]), joined(dt), held
    return (*begins, a, doubt, *ends, np.ones(dt.size), joined(slopes))


def by_steps(rows: Rows) -> bool:
    """Whether accelerations are means over steps: inputs change, or runs have two states each."""
    own = counted(rows)
    runs = runs_of(own)
    u = np.asarray(own.u)
    return all(last - first == 1 for first, last in runs) or any(
        bool(np.any(np.ptp(u[first:last], axis=0) > 0)) for first, last in runs
    )


def begun_later(u: Array, slopes: Array, later: Array) -> tuple[Array, Array]:
    """The same inputs as polynomials of the time since a later one."""
    at = lambda time: input_after(u, slopes, time)  # noqa: E731
    value, found, factorial = at(later), [], 1.0
    for power in range(1, slopes.shape[0] + 1):
        at, factorial = jax.jacfwd(at), factorial * power
        found.append(at(later) / factorial)
    return value, jnp.stack(found) if found else slopes


def input_after(u: Array, slopes: Array, later: Array) -> Array:
    """The inputs some time after a step began, from their values then and their slopes."""
    value = jnp.zeros_like(u)
    for slope in slopes[::-1]:
        value = (value + slope) * later
    return u + value


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
    """Of every minimal coordinate, whether its rate was measured.

    It was too if it follows by the constraints from rates that all were. A rate that was estimated
    from positions says nothing that they do not.
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
    return jax.tree.map(jax.device_put, padded)


def side_by_side(segments: list[Rows]) -> Rows:
    """Segments of any length, filled up to the longest, with a leading axis."""
    longest = max(len(segment) for segment in segments)
    even = [filled_up(segment, longest) for segment in segments]
    return jax.tree.map(lambda *x: jax.device_put(np.stack([np.asarray(y) for y in x])), *even)


def counted(rows: Rows) -> Rows:
    """The rows that have weight."""
    count = int(np.sum(np.asarray(rows.weight) > 0))
    if count == len(rows):
        return rows
    return jax.tree.map(lambda x: jax.device_put(np.asarray(x)[:count]), rows)


def spread_of_accelerations(rows: Rows) -> Float[Array, " nz"]:
    """The unit in which accelerations are compared."""
    spread = np.std(np.asarray(counted(rows).a), axis=0)
    return jax.device_put(np.where(spread > 0, spread, 1.0))


def trust(rows: Rows) -> np.ndarray:
    """How much each row's accelerations count: less where differences disagree about them."""
    unit = np.asarray(spread_of_accelerations(rows))
    doubt = np.linalg.norm(np.asarray(rows.doubt) / unit, axis=1)
    usual = max(float(np.median(doubt)), np.finfo(float).eps)
    return np.asarray(rows.weight) * usual / (usual + doubt)


@compiled
def step_errors(
    model: Any, rows: Rows, integrator, unit: Float[Array, " nz"]
) -> Float[Array, "n columns"]:
    """The error of one step from every row, as one of the acceleration in units of its spread.

    Positions are divided by the step twice, since an acceleration moves them by half its square.
    """

    def one(row):
        def rate(time, y):
            u = input_after(row.u, row.u_slopes, time - row.t)
            return model.minimal_rates(time, y[0], y[1], u, row.mu)

        y, end = (row.z, row.s), (row.z_next, row.s_next)
        if integrator.tableau is None:
            ahead = integrator.step_towards(rate, row.t, row.dt, y, end)
        else:
            weights, slopes = stage_slopes(
                integrator.tableau,
                row.t,
                row.dt,
                lambda time, own, found: rate(time, _moved(y, own, found)),
                y,
            )
            ahead = _moved(y, weights, slopes)
        velocity = (ahead[1] - row.s_next) / (row.dt * unit)
        position = (ahead[0] - row.z_next) / (row.dt * row.dt * unit)
        return jnp.concatenate([velocity, position])

    missed = jax.vmap(one)(rows)
    return rows.weight[:, None] * missed


def _moved(y, weights, slopes):
    """A pair, moved by a sum of slopes."""
    return jax.tree.map(lambda x, k: x + weights @ k, y, slopes)


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
    """The noise of rows in order of run and time; none where every run is too short to tell."""
    z, s = np.asarray(rows.z), np.asarray(rows.s)
    if all(last - first <= _SHORTEST for first, last in runs_of(rows)):
        return Noise(np.full(z.shape[1], 1e-12), np.full(z.shape[1], 1e-12), 0.0)
    spread = [np.where(np.std(x, axis=0) > 0, np.std(x, axis=0), 1.0) for x in (z, s)]
    stretches, clean, t = _stretches(rows), CLEAN, np.asarray(rows.t)
    if stretches:
        sizes = [noise_levels([(t[a:b], x[a:b]) for a, b in stretches]) for x in (z, s)]
    else:
        sizes, clean = _noise_under_inputs(rows), _CLEAN_STEPS
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
    return _evenly(found)


def _evenly(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """As many as make enough rows together."""
    most = max(1, _ENOUGH // max((b - a for a, b in spans), default=1))
    if len(spans) <= most:
        return spans
    return [spans[i] for i in np.linspace(0, len(spans) - 1, most).astype(int)]


def _noise_under_inputs(rows: Rows) -> list[np.ndarray]:
    """Upper bounds: a held input that changes bends velocities within a sample, as noise does.

    A position less the sum of the velocities up to it keeps its noise, and of the motion only the
    error of the sums, which bends less. No velocity is taken as noisier than its position, in parts
    of their motion.
    """
    t, z, s, dt = (np.asarray(x) for x in (rows.t, rows.z, rows.s, rows.dt))
    runs = _evenly([(a, b) for a, b in runs_of(rows) if b - a > _SHORTEST])
    summed = []
    for a, b in runs:
        steps = dt[a : b - 1, None] * (s[a : b - 1] + s[a + 1 : b]) / 2
        moved = np.concatenate([np.zeros((1, z.shape[1])), np.cumsum(steps, axis=0)])
        summed.append((t[a:b], z[a:b] - moved))
    directly = [noise_levels([(t[a:b], x[a:b]) for a, b in runs]) for x in (z, s)]
    size = np.fmin(directly[0], noise_levels(summed))
    part = size / np.where(np.std(z, axis=0) > 0, np.std(z, axis=0), 1.0)
    return [size, np.fmin(directly[1], part * np.std(s, axis=0))]
