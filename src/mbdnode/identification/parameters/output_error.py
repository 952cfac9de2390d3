"""Output error: what the simulated motion misses of the one that was recorded.

The runs are cut into segments. From an initial state of its own each of them is simulated under the
recorded inputs, and what the simulation misses is given in units of each column's noise. Jacobians
are exact: each step carries the derivatives of the whole state by the parameters and by the initial
state of its segment along, `dy' = (df/dy) dy + df/dp`.

Segments, of one set of parameters or of several, are simulated side by side (see `schedule`).
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.identification.parameters.delays import delay_inputs
from mbdnode.identification.parameters.schedule import lanes_and_steps, make_schedules
from mbdnode.identification.parameters.segments import Lanes
from mbdnode.identification.parameters.unknowns import SensorTerm
from mbdnode.multibody import (
    AbstractMechanism,
    AbstractSystem,
    Partition,
    complete,
    exchange,
)
from mbdnode.simulation.friction_step import friction_change, sliding
from mbdnode.trajectory import State

# RK4: where each stage lies, and its weight.
_STAGES = np.array([[0.0, 1 / 6], [0.5, 1 / 3], [0.5, 1 / 3], [1.0, 1 / 6]])


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
    ) -> tuple[Float[np.ndarray, "runs rows columns"], Float[np.ndarray, "runs rows columns p_x"]]:
        """Residuals in units of the noise, and their derivatives by the parameters and by the
        initial state of the segment that the row is part of.
        """
        return self.each([(values, initial)], lanes, substeps)[0]

    def each(
        self, points: Sequence[tuple[Any, Any]], lanes: Lanes, substeps: Any
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """The same for several parameters and initial states, which are simulated side by side."""
        unit, counts = np.asarray(self.unit), np.asarray(lanes.counts)[..., None]
        found = []
        for _, read, slopes in self._simulated(points, lanes, substeps):
            away = np.where(counts, (read - np.asarray(lanes.measured)) / unit, 0.0)
            found.append((away, np.where(counts[..., None], slopes / unit[:, None], 0.0)))
        return found

    def paths(
        self, values: Any, initial: Any, lanes: Lanes, substeps: Any
    ) -> Float[np.ndarray, "runs rows states"]:
        """All coordinates and velocities at every row."""
        return self._simulated([(values, initial)], lanes, substeps)[0][0]

    def _simulated(self, points, lanes: Lanes, substeps):
        """Of each point: all states, what the sensors read, and its derivatives."""
        delays = tuple(
            self.system.input_names.index(one.column) for one in self.sensors if one.kind == "delay"
        )
        if delays:
            # Inputs that act as late as the values say, which come last among them.
            late = [np.asarray(values)[-len(delays) :] for values, _ in points]
            each = [delay_inputs(lanes, delays, own) for own in late]
            return [
                self._together([point], own, substeps)[0]
                for point, own in zip(points, each, strict=True)
            ]
        return self._together(points, lanes, substeps)

    def _together(self, points, lanes: Lanes, substeps):
        runs, rows = lanes.counts.shape
        states, shape = 2 * len(self.system.coordinates), np.shape(points[0][1])
        width = len(points[0][0]) + shape[-1]
        columns = len(self.columns)
        count, steps = lanes_and_steps(runs, rows, columns * width)
        found: list[Any] = [None] * len(points)
        for own, schedule in make_schedules(lanes.blocks(), rows, len(points), count, steps):
            # Those that are missing are there for the shape alone.
            given = [points[own[min(i, len(own) - 1)]] for i in range(count)]
            values, initial = (jnp.asarray(np.stack([p[k] for p in given])) for k in (0, 1))
            table = jnp.asarray(schedule.rows), jnp.asarray(schedule.jobs)
            done = self._walk(values, initial, lanes, table, jnp.asarray(schedule.steps), substeps)
            done = [np.asarray(x) for x in done]
            for job, number in enumerate(own):
                where = (schedule.rows >= 0) & (schedule.jobs == job)
                sizes = ((states,), (columns,), (columns, width))
                whole = [np.zeros((runs * rows, *size)) for size in sizes]
                for target, source in zip(whole, done, strict=True):
                    target[schedule.rows[where]] = source[where]
                found[number] = [x.reshape(runs, rows, *x.shape[1:]) for x in whole]
        return found

    @eqx.filter_jit
    def _walk(self, values, initial, lanes: Lanes, table, steps, substeps):
        """States, readings and their derivatives, at every step of every lane."""

        def flat(tree):
            return jax.tree.map(lambda x: x.reshape(x.shape[0] * x.shape[1], *x.shape[2:]), tree)

        rows = flat((lanes.t, lanes.dt, lanes.inputs, lanes.late, lanes.begins, lanes.segment))
        segments = flat((lanes.guess, lanes.partition))
        room, count = initial.shape[2], table[0].shape[1]
        length = lanes.counts.shape[1]
        width = values.shape[1] + initial.shape[3]
        places = self._places()

        def onward(carry, place, job):
            t, dt, inputs, late, begins, number = jax.tree.map(lambda x: x[place], rows)
            rests = place < 0
            dt, begins, run = jnp.where(rests, 0.0, dt), begins & ~rests, place // length
            own = jax.tree.map(lambda x: x[run * room + number], segments)
            mu = jax.tree.map(lambda x: x[run], lanes.mu)
            row = t, dt, inputs, late, begins
            return self._onward(
                carry, row, values[job], initial[job, run, number], own, mu, substeps
            )

        def advance(step, carry):
            lane, full, slopes = carry
            lane, found = jax.vmap(onward)(lane, table[0][step], table[1][step])
            return lane, full.at[step].set(found[0]), slopes.at[step].set(found[1][:, places])

        first = jax.tree.map(lambda x: jnp.broadcast_to(x[0], (count, *x.shape[1:])), segments)
        states = 2 * first[0].q.shape[1]
        nothing = jnp.zeros((count, states, width))
        full = jnp.zeros((*table[0].shape, states))
        slopes = jnp.zeros((*table[0].shape, len(places), width))
        start = (first[0], nothing, first[1]), full, slopes
        _, full, slopes = jax.lax.fori_loop(0, steps, advance, start)
        if not any(term.kind != "delay" for term in self.sensors):
            return full, full[..., places], slopes
        sampled = flat(lanes.sampled)[table[0]]
        read = lambda p, x, u: (self._read(p, x, u),) * 2  # noqa: E731
        both = jax.vmap(jax.vmap(jax.jacfwd(read, argnums=(0, 1), has_aux=True)))
        (by_values, by_state), found = both(values[table[1]], full[..., places], sampled)
        by_parameters = jnp.eye(values.shape[1], width)
        return full, found, by_state @ slopes + by_values @ by_parameters

    def _onward(self, carry, row, values, initial, own, mu, substeps):
        """One row further; a segment begins at its own initial state."""
        state, slope, partition = carry
        t, dt, inputs, late, begins = row
        count, size = values.shape[0], state.q.shape[0]
        width = count + initial.shape[0]
        origin, partition = _either(begins, own, (state, partition))
        split = partition.position, partition.velocity
        free = split[0].dependent.shape[0] == 0 and split[1].dependent.shape[0] == 0
        here = (
            None if free else jnp.concatenate([split[0].independent, size + split[1].independent])
        )
        y = jnp.concatenate([origin.q, origin.v])
        y, carried = (y, slope) if here is None else (y[here], slope[here])
        y = jnp.where(begins, initial, y)
        at_start = jnp.eye(initial.shape[0], width, count)
        carried = jnp.where(begins, at_start, carried)
        step = lambda y, p: self._step(  # noqa: E731
            y, p, mu, origin, partition, t, dt, _shifted(inputs, late, p), substeps
        )
        (along_y, along_p), (full, tangent) = jax.jacfwd(
            lambda y, p: _twice(*step(y, p)), argnums=(0, 1), has_aux=True
        )(y, values)
        slope = along_y @ carried + jnp.pad(along_p, ((0, 0), (0, width - count)))
        velocity = exchange(partition.velocity, tangent, partition.scale)
        if partition.position.rows.shape == partition.velocity.rows.shape:
            partition = Partition(velocity, velocity, partition.scale)
        return (State(full[:size], full[size:]), slope, partition), (full, slope)

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
        return jnp.concatenate([q, v]), tangent.steepness


def _shifted(inputs, late, values):
    """The inputs themselves, with their derivatives by the delays, which come last."""
    delays = values[values.shape[0] - late.shape[0] :]
    return inputs + jnp.tensordot(delays - jax.lax.stop_gradient(delays), late, 1)


def _twice(full, slope):
    return full, (full, slope)


def _either(condition, yes, no):
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)
