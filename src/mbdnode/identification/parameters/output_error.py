"""Output error: parameters for which the simulated motion is the one that was recorded.

The runs are cut into segments. From an initial state of its own each of them is simulated under the
recorded inputs, and what the simulation misses, in units of each column's noise, is made small over
the parameters and all initial states together by Levenberg-Marquardt. An initial state matters to
its own segment alone and is eliminated there, so a step does not cost more for there being many:

    minimize |r + J_p dp + J_x dx|   over dx in each segment, then over dp by a small dense problem.

Noise enters once, where it was measured, and not as an error of states or derivatives, so the
estimate has no errors-in-variables bias.

Jacobians are exact: each step carries the derivatives of the whole state by the parameters and by
the initial state of its segment along, `dy' = (df/dy) dy + df/dp`.
"""

from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mbdnode import levenberg_marquardt
from mbdnode.identification.parameters.delays import delay_inputs
from mbdnode.identification.parameters.segments import Lanes
from mbdnode.identification.parameters.unknowns import SensorTerm, Unknowns
from mbdnode.multibody import (
    AbstractMechanism,
    AbstractSystem,
    Partition,
    complete,
    exchange,
)
from mbdnode.simulation.stick_slip import friction_change, sliding
from mbdnode.trajectory import State

# Iterations at most for one length of segments; a cost that falls by less than this part settled.
_MOST_ITERATIONS, _SETTLED = 40, 1e-6
# How often a fit is made again with the prior of profiles in units of what the last one missed, as
# long as that falls by more than this.
_ROUNDS, _FALLS = 3, 0.5
# RK4: where each stage lies, and its weight.
_STAGES = np.array([[0.0, 1 / 6], [0.5, 1 / 3], [0.5, 1 / 3], [1.0, 1 / 6]])


@dataclass(frozen=True)
class Fitted:
    """Where the search ended.

    **Arguments:**

    - `values`: of the unknown parameters.
    - `initial`: `(runs, segments, 2 DOF)`, the independent positions and velocities at the start
        of each segment.
    - `residuals`: `(runs, rows, columns)`, in units of the noise; zero where no row is.
    - `jacobian`: of all residuals by the parameters, with the initial states eliminated; the last
        rows are those of smooth profiles.
    - `cost`: the sum of squares, that of the prior included.
    - `rows`: that count.
    - `states`: how many numbers of initial states were fitted.
    """

    values: np.ndarray
    initial: np.ndarray
    residuals: np.ndarray = field(repr=False)
    jacobian: np.ndarray = field(repr=False)
    cost: float
    rows: int
    states: int

    @property
    def rms(self) -> float:
        """The residual in units of the noise: one for a perfect model."""
        return float(np.sqrt(np.sum(self.residuals**2) / (self.rows * self.residuals.shape[2])))


class OutputError(eqx.Module):
    """What the simulation misses, and its derivatives.

    **Arguments:**

    - `system`: what is simulated.
    - `names`: of its unknown parameters.
    - `sensors`: what is unknown of the sensors and of the inputs' delays; their values follow
        those of the parameters.
    - `columns`: those that were recorded, among coordinates and velocities.
    - `unit`: the noise of each column.
    """

    system: AbstractSystem
    names: tuple[str, ...] = eqx.field(static=True)
    sensors: tuple[SensorTerm, ...] = eqx.field(static=True)
    columns: tuple[str, ...] = eqx.field(static=True)
    unit: Float[Array, " columns"]

    def __call__(
        self, values: Any, initial: Any, lanes: Lanes, substeps: Any
    ) -> tuple[Float[Array, "runs rows columns"], Float[Array, "runs rows columns p_x"]]:
        """Residuals in units of the noise, and their derivatives by the parameters and by the
        initial state of the segment that the row is part of.
        """
        return self._residuals(values, initial, self._delayed(values, lanes), substeps)

    def cost(self, values: Any, initial: Any, lanes: Lanes, substeps: Any) -> Float[Array, ""]:
        """The sum of squares of the residuals, without derivatives."""
        return self._cost(values, initial, self._delayed(values, lanes), substeps)

    def paths(
        self, values: Any, initial: Any, lanes: Lanes, substeps: Any
    ) -> Float[Array, "runs rows states"]:
        """All coordinates and velocities at every row."""
        return self._paths(values, initial, self._delayed(values, lanes), substeps)

    @eqx.filter_jit
    def _residuals(self, values, initial, lanes: Lanes, substeps: Int[Array, ""]):
        return jax.vmap(self._lane, (None, 0, 0, None))(values, initial, lanes, substeps)

    @eqx.filter_jit
    def _cost(self, values, initial, lanes: Lanes, substeps: Int[Array, ""]):
        missed, _ = jax.vmap(self._lane, (None, 0, 0, None))(values, initial, lanes, substeps)
        return jnp.sum(missed**2)

    @eqx.filter_jit
    def _paths(self, values, initial, lanes: Lanes, substeps: Int[Array, ""]):
        walk = jax.vmap(self._path, (None, 0, 0, None))
        return walk(values, initial, lanes, substeps)[0]

    def _delayed(self, values, lanes: Lanes) -> Lanes:
        """With inputs that act as late as the values say, which come last among them."""
        names = self.system.input_names
        places = tuple(names.index(one.column) for one in self.sensors if one.kind == "delay")
        if not places:
            return lanes
        return delay_inputs(lanes, places, np.asarray(values)[-len(places) :])

    def _path(self, values, initial, lane: Lanes, substeps):
        """The whole state at every row, and the derivatives of the recorded columns."""
        count = values.shape[0]
        width = count + initial.shape[1]
        places = self._places()
        at_start = jnp.zeros((initial.shape[1], width)).at[:, count:].set(jnp.eye(initial.shape[1]))
        by_parameters = jnp.eye(count, width)

        def onward(carry, row):
            state, slope, partition = carry
            t, dt, inputs, late, begins, number = row
            fresh, own = jax.tree.map(lambda x: x[number], (lane.guess, lane.partition))
            origin, partition = _either(begins, (fresh, own), (state, partition))
            y = jnp.concatenate(
                [
                    origin.q[partition.position.independent],
                    origin.v[partition.velocity.independent],
                ]
            )
            y = jnp.where(begins, initial[number], y)
            carried = jnp.concatenate(
                [
                    slope[: origin.q.shape[0]][partition.position.independent],
                    slope[origin.q.shape[0] :][partition.velocity.independent],
                ]
            )
            carried = jnp.where(begins, at_start, carried)
            step = lambda y, p: self._step(  # noqa: E731
                y, p, lane.mu, origin, partition, t, dt, _shifted(inputs, late, p), substeps
            )
            (along_y, along_p), (full, tangent) = jax.jacfwd(
                lambda y, p: _twice(*step(y, p)), argnums=(0, 1), has_aux=True
            )(y, values)
            slope = along_y @ carried + along_p @ by_parameters
            size = origin.q.shape[0]
            state = State(full[:size], full[size:])
            velocity = exchange(partition.velocity, tangent, partition.scale)
            if partition.position.rows.shape == partition.velocity.rows.shape:
                partition = Partition(velocity, velocity, partition.scale)
            return (state, slope, partition), (full, slope[places])

        first, own = jax.tree.map(lambda x: x[0], (lane.guess, lane.partition))
        nothing = jnp.zeros((2 * first.q.shape[0], width))
        rows = lane.t, lane.dt, lane.inputs, lane.late, lane.begins, lane.segment
        return jax.lax.scan(onward, (first, nothing, own), rows)[1]

    def _lane(self, values, initial, lane: Lanes, substeps):
        found, slopes = self._path(values, initial, lane, substeps)
        found = found[:, self._places()]
        by_parameters = jnp.eye(values.shape[0], slopes.shape[2])
        read = jax.vmap(self._read, (None, 0, 0))
        by_values, by_state = jax.vmap(jax.jacfwd(self._read, argnums=(0, 1)), (None, 0, 0))(
            values, found, lane.sampled
        )
        slopes = by_state @ slopes + by_values @ by_parameters[None]
        away = (read(values, found, lane.sampled) - lane.measured) / self.unit[None]
        away = jnp.where(lane.counts[:, None], away, 0.0)
        slopes = jnp.where(lane.counts[:, None, None], slopes / self.unit[None, :, None], 0.0)
        return away, slopes

    def _places(self) -> np.ndarray:
        """Of the recorded columns among coordinates and velocities."""
        names = [*self.system.coordinate_names, *self.system.rate_names]
        return np.array([names.index(name) for name in self.columns])

    def _read(self, values, state, u):
        """What the sensors read."""
        known = zip(self.sensors, values[len(self.names) :], strict=True)
        terms = [(term, value) for term, value in known if term.kind != "delay"]
        for term, value in terms:
            if term.kind == "gain":
                state = state.at[self.columns.index(term.column)].multiply(value)
        for term, value in terms:
            place = self.columns.index(term.column)
            if term.kind == "offset":
                state = state.at[place].add(value)
            elif term.kind != "gain":
                state = state.at[place].add(value * u[self.system.input_names.index(term.kind)])
        return state

    def _step(self, y, values, mu, origin: State, partition, t, dt, inputs, substeps):
        """The whole state after one step, and the slope of the tangent there."""
        system = self.system
        mu = {**mu, **{name: values[i] for i, name in enumerate(self.names)}}
        count = partition.position.independent.shape[0]

        def completed(time, y):
            near = origin.q + (time - t) * origin.v
            return complete(system, partition, time, y[:count], y[count:], near, mu)

        def load(time):
            u = inputs[-1]
            for lower in inputs[-2::-1]:
                u = u * (time - t) + lower
            return u

        part = dt / substeps

        def substep(number, y):
            begin, end = t + number * part, t + (number + 1) * part
            slips = None
            if isinstance(system, AbstractMechanism):
                q, v, _, _ = completed(begin, y)
                start = State(q, v)
                slips = sliding(system, partition.velocity, begin, start, part, load(begin), mu)
            moving = system if slips is None else slips

            def stage(carry, entry):
                slope, total = carry
                time = begin + entry[0] * part
                q, v, tangent, _ = completed(time, y + entry[0] * part * slope)
                a = moving.independent_acceleration(time, q, v, load(time), mu, tangent)
                slope = jnp.concatenate([v[partition.position.independent], a])
                return (slope, total + entry[1] * slope), None

            zero = jnp.zeros_like(y)
            (_, total), _ = jax.lax.scan(stage, (zero, zero), jnp.asarray(_STAGES))
            y = y + part * total
            if slips is None:
                return y
            q, v, tangent, _ = completed(end, y)
            change, shift = friction_change(slips, tangent, end, State(q, v), part, load(end), mu)
            moved = tangent.velocity(shift) - tangent.velocity(jnp.zeros_like(shift))
            return y + jnp.concatenate([moved[partition.position.independent], change])

        y = jax.lax.fori_loop(0, substeps, substep, y)
        q, v, tangent, _ = completed(t + dt, y)
        return jnp.concatenate([q, v]), tangent.slope


def _shifted(inputs, late, values):
    """The inputs themselves, with their derivatives by the delays, which come last."""
    delays = values[values.shape[0] - late.shape[0] :]
    return inputs + jnp.tensordot(delays - jax.lax.stop_gradient(delays), late, 1)


def _twice(full, slope):
    return full, (full, slope)


def _either(condition, yes, no):
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)


def fit_output(
    problem: OutputError,
    lanes: Lanes,
    unknowns: Unknowns,
    values: np.ndarray,
    initial: np.ndarray,
    substeps: int,
    *,
    held: bool = False,
    iterations: int = _MOST_ITERATIONS,
) -> Fitted | None:
    """The parameters and initial states with the smallest output error, near a start.

    **Arguments:**

    - `problem`: gives residuals and Jacobians.
    - `lanes`: the data.
    - `unknowns`: bounds and priors.
    - `values`, `initial`: where to begin.
    - `substeps`: of the integrator in each step.
    - `held`: whether initial states stay as they are.
    - `iterations`: at most, of Levenberg-Marquardt.

    **Returns:**

    What was `Fitted`; None if the simulation from there does not reach the end of the segments.
    """
    blocks, count = lanes.blocks(), jnp.asarray(substeps)
    smoothness = unknowns.smoothness()
    last: dict[bytes, tuple[np.ndarray, np.ndarray]] = {}

    def evaluated(x):
        """Residuals and derivatives come together, so the last ones are kept."""
        key = x[0].tobytes() + x[1].tobytes()
        if key not in last:
            last.clear()
            found = problem(jnp.asarray(x[0]), jnp.asarray(x[1]), lanes, count)
            last[key] = np.asarray(found[0]), np.asarray(found[1])
        return last[key]

    def residual(x):
        prior = (x[0] - unknowns.prior_mean) / unknowns.prior_std
        return np.concatenate([evaluated(x)[0].ravel(), prior, smooth @ x[0]])

    def step(jacobian, flat, damping):
        slopes, x = jacobian
        now = flat[: -len(x) - len(smooth)].reshape(slopes.shape[:-1])
        if held:
            reduced = slopes[..., : len(x)].reshape(-1, len(x)), now.ravel()
        else:
            reduced = _eliminated(now, slopes, blocks, len(x))
        change = unknowns.limited(x, _step(*reduced, x, unknowns, smooth, damping)) - x
        if held:
            return change, np.zeros_like(initial)
        return change, _moves(now, slopes, blocks, change, initial.shape)

    # A model that misses more than the noise, and misses alike from sample to sample, says less of
    # its profiles than its rows are many: their prior is in units of what it misses, which is known
    # after the fit.
    x, rounds = (values, initial), 0
    while True:
        unit = _unit_of_misses(evaluated(x)[0], blocks)
        smooth = unit * smoothness
        found = levenberg_marquardt.minimize(
            residual,
            lambda x: (evaluated(x)[1], x[0]),
            x,
            step=step,
            iterations=iterations,
            tolerance=_SETTLED,
        )
        x, rounds = found.x, rounds + 1
        if not (len(smoothness) and np.isfinite(found.cost)) or rounds == _ROUNDS:
            break
        if not _unit_of_misses(evaluated(x)[0], blocks) < _FALLS * unit:
            break
    if not np.isfinite(found.cost):
        return None
    now, slopes = evaluated(found.x)
    if not np.all(np.isfinite(slopes)):
        return None
    matrix = _eliminated(now, slopes, blocks, len(values))[0]
    matrix = np.vstack([matrix, smooth])
    rows = int(np.sum(np.asarray(lanes.counts)))
    values, initial = found.x
    states = 0 if held else len(blocks) * initial.shape[2]
    return Fitted(values, initial, now, matrix, float(found.cost), rows, states)


def _parts(now, slopes, blocks, count: int):
    """Of every segment: residuals, and their derivatives by parameters and by its own state."""
    for run, number, rows in blocks:
        matrix = slopes[run, rows].reshape(-1, slopes.shape[-1])
        yield run, number, now[run, rows].ravel(), matrix[:, :count], matrix[:, count:]


def _eliminated(now, slopes, blocks, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The problem of the parameters alone: matrix and right side, without what an initial state
    can make good.
    """
    matrices, sides = [], []
    for _, _, away, by_values, by_initial in _parts(now, slopes, blocks, count):
        both = np.column_stack([by_values, away])
        basis = np.linalg.qr(by_initial)[0]
        both = both - basis @ (basis.T @ both)
        matrices.append(both[:, :-1])
        sides.append(both[:, -1])
    return np.concatenate(matrices), np.concatenate(sides)


def _moves(now, slopes, blocks, change: np.ndarray, shape) -> np.ndarray:
    """What the initial states do when the parameters change."""
    moves = np.zeros(shape)
    for run, number, away, by_values, by_initial in _parts(now, slopes, blocks, len(change)):
        left = away + by_values @ change
        moves[run, number] = -np.linalg.lstsq(by_initial, left, rcond=1e-12)[0]
    return moves


def independent_residuals(residuals: np.ndarray, blocks) -> int:
    """How many residuals say something of their own: all of them where they are noise, and as many
    as change sign where a model misses alike from sample to sample.
    """
    parts = [part for run, _, rows in blocks if np.any(part := residuals[run, rows])]
    size = sum(part.size for part in parts)
    changes = sum(int(np.sum(part[1:] * part[:-1] < 0)) for part in parts)
    return max(1, min(size, 2 * changes + len(parts)))


def _unit_of_misses(residuals: np.ndarray, blocks) -> float:
    """The size of an independent residual if all were of that size; one for noise alone."""
    total = float(np.sum(residuals**2))
    return max(1.0, np.sqrt(total / independent_residuals(residuals, blocks)))


def _step(
    matrix: np.ndarray,
    right: np.ndarray,
    values: np.ndarray,
    unknowns: Unknowns,
    smooth: np.ndarray,
    damping: float,
) -> np.ndarray:
    """The damped step of the parameters that are not held by a bound."""
    prior = 1 / unknowns.prior_std
    matrix = np.vstack([matrix, np.diag(prior), smooth]) * unknowns.scale
    right = np.concatenate([right, prior * (values - unknowns.prior_mean), smooth @ values])
    slope = matrix.T @ right
    held = ((values <= unknowns.low) & (slope > 0)) | ((values >= unknowns.high) & (slope < 0))
    matrix = np.where(held, 0.0, matrix)
    # Relative to the longest column too: what the data cannot tell must not wander.
    lengths = np.linalg.norm(matrix, axis=0)
    floor = np.diag(1e-6 * np.sqrt(damping) * np.full(len(values), lengths.max(initial=0.0)))
    step = levenberg_marquardt.damped_step(
        np.vstack([matrix, floor]), np.concatenate([right, np.zeros(len(values))]), damping
    )
    return np.where(held, 0.0, step) * unknowns.scale
