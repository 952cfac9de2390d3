"""Rollouts of laws along recorded motions, and how they change, by two programs for each form.

Segments come in many counts and lengths: those of shooting, windows that tell an initial state, the
ends of runs at several lengths. A program that is compiled for each of these shapes takes longer
than all of its numbers. So there are two for a form, whatever the segments: paths, and paths with
their changes. Each takes a batch of segments over a stretch of at most so many steps; longer
segments go on from where the stretch before ended. Which coefficients are differentiated is data
too: a coefficient or a value of the initial state is a direction `(dc, dx)`, and directions are
carried along the path, a batch of them at a time. With rates `f(x, c)` and a stage
`x_i = x + h sum a_ij k_j`, `k_i = f(x_i, c)` of an explicit Runge-Kutta method,

    dk_i = (df/dx) dx_i + (df/dc) dc.

A law has few accelerations and many coefficients, so reverse mode gives both matrices at once, for
all directions. The stages run in a loop: the law is compiled once and not for each of them.
"""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.data.rows import Rows, input_after
from mbdnode.integrators import stage_slopes

# Segments, directions and steps that go through a program at a time. Of few segments, the numbers
# take less time than what is around them: 64 take hardly longer than 16.
_SEGMENTS, _DIRECTIONS, _STEPS = 64, 32, 128


@dataclass(frozen=True)
class _Stretch:
    """The same steps of a batch of segments.

    **Arguments:**

    - `segments`: which of them; the batch is filled up.
    - `steps`: which of their steps; the stretch is filled up.
    - `along`: times, steps, inputs and parameters, `(steps, segments, ...)`.
    """

    segments: slice
    steps: slice
    along: Any

    @property
    def places(self) -> tuple[slice, slice]:
        """Of its segments and steps among all."""
        return self.segments, self.steps

    @property
    def counts(self) -> tuple[int, int]:
        """Of its steps and segments, without what fills them up."""
        return tuple(one.stop - one.start for one in (self.steps, self.segments))


class SegmentRollouts:
    """Segments of recorded motion, along which laws are rolled out.

    Steps of no weight, which fill segments up to one length, are not computed: what is found for
    them is zero.

    **Arguments:**

    - `rows`: of each segment, with a leading axis.
    """

    def __init__(self, rows: Rows):
        self.shape, self.size = rows.t.shape, 2 * rows.z.shape[-1]
        lengths = np.sum(np.asarray(rows.weight) > 0, axis=1)
        every = rows.t, rows.dt, rows.u, rows.u_slopes, rows.mu
        along = jax.tree.map(lambda x: np.swapaxes(np.asarray(x), 0, 1), every)
        self._batches: list[list[_Stretch]] = []
        for first in range(0, self.shape[0], _SEGMENTS):
            chosen = slice(first, min(first + _SEGMENTS, self.shape[0]))
            longest = int(np.max(lengths[chosen]))
            steps = [slice(k, min(k + _STEPS, longest)) for k in range(0, longest, _STEPS)]
            self._batches.append([_stretch(along, chosen, one) for one in steps])

    def paths(self, model: Any, initial: Any, integrator: Any) -> np.ndarray:
        """Positions and velocities after every step.

        `(segments, steps, positions and velocities)`.
        """
        found = np.zeros((*self.shape, self.size))
        for batch in self._batches:
            state = None
            for stretch in batch:
                if state is None:
                    state = _filled(np.asarray(initial)[stretch.segments], _SEGMENTS)
                steps, count = stretch.counts
                given = jax.device_put((state, np.array(steps)))
                path = np.asarray(_run(model, integrator, stretch.along, *given))
                state = path[steps - 1]
                found[stretch.places] = np.swapaxes(path[:steps, :count], 0, 1)
        return found

    def changes(
        self, model: Any, initial: Any, integrator: Any, wanted: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """How the paths change with coefficients, and with their initial states.

        By the coefficients, `(segments, steps, positions and velocities, coefficients)`, and the
        same by positions and velocities of the initial states.
        """
        count = wanted.size + self.size
        index = np.concatenate([wanted, np.zeros(self.size, int)])
        moved = np.concatenate([np.zeros((wanted.size, self.size)), np.eye(self.size)])
        found = np.zeros((*self.shape, self.size, count))
        for first in range(0, count, _DIRECTIONS):
            part = slice(first, min(first + _DIRECTIONS, count))
            given = index[part], np.arange(count)[part] < wanted.size, moved[part]
            directions = tuple(_filled(x, _DIRECTIONS, 0) for x in given)
            if not wanted.size and not model.is_law:
                # A network has so many weights that none of them should be carried along in vain.
                directions = None, None, directions[2]
            self._differentiate(model, initial, integrator, directions, found[..., part])
        return found[..., : wanted.size], found[..., wanted.size :]

    def _differentiate(
        self, model: Any, initial: Any, integrator: Any, directions: Any, found: np.ndarray
    ) -> None:
        """Fill in the changes along some directions."""
        index, along, moved = directions
        for batch in self._batches:
            state, tangents = None, np.broadcast_to(moved, (_SEGMENTS, *moved.shape))
            for stretch in batch:
                if state is None:
                    state = _filled(np.asarray(initial)[stretch.segments], _SEGMENTS)
                steps, count = stretch.counts
                given = jax.device_put((state, tangents, index, along, np.array(steps)))
                pair = _run_with_changes(model, integrator, stretch.along, *given)
                path, changes = (np.asarray(x) for x in pair)
                state, tangents = path[steps - 1], changes[steps - 1]
                own = changes[:steps, :count, : found.shape[-1]]
                found[stretch.places] = np.transpose(own, (1, 0, 3, 2))


def _stretch(along: Any, segments: slice, steps: slice) -> _Stretch:
    def cut(x):
        own = np.swapaxes(_filled(np.swapaxes(x[steps, segments], 0, 1), _SEGMENTS), 0, 1)
        return jax.device_put(_filled(own, _STEPS))

    return _Stretch(segments, steps, jax.tree.map(cut, along))


def _filled(x: np.ndarray, count: int, value: int | None = None) -> np.ndarray:
    """With so many entries, the last one again, or a value."""
    more = np.repeat(x[-1:], count - len(x), axis=0)
    return np.concatenate([x, more if value is None else np.full_like(more, value)])


def values_of(model: Any) -> np.ndarray:
    """All coefficients of a model, in one row."""
    return np.concatenate([np.ravel(x) for x in jax.tree.leaves(model.network)])


def with_values(model: Any, values: Any) -> Any:
    """The model with other coefficients, in one row."""
    leaves, structure = jax.tree.flatten(model.network)
    ends = np.cumsum([np.size(x) for x in leaves])
    parts = [values[b - np.size(x) : b].reshape(x.shape) for x, b in zip(leaves, ends, strict=True)]
    if isinstance(values, np.ndarray):  # By NumPy, since JAX would compile each of these.
        parts = [jax.device_put(x) for x in parts]
    return eqx.tree_at(lambda m: m.network, model, jax.tree.unflatten(structure, parts))


def _rate(model: Any, row: Any) -> Any:
    """Rates along a step, from the time and the state in one row."""
    t, _, u, slopes, mu = row

    def rate(time, x):
        half = x.shape[0] // 2
        acting = input_after(u, slopes, time - t)
        return model.minimal_rates(time, x[:half], x[half:], acting, mu)

    return rate


def _advanced(model: Any, integrator: Any, y: Any, row: Any) -> Any:
    """The state after one step."""
    rate = _rate(model, row)
    if integrator.tableau is None:
        half = y.shape[0] // 2
        whole = lambda time, x: rate(time, jnp.concatenate(x))  # noqa: E731
        return jnp.concatenate(integrator.step(whole, *row[:2], (y[:half], y[half:]))[0])
    stage = lambda time, own, found: jnp.concatenate(rate(time, y + own @ found))  # noqa: E731
    weights, slopes = stage_slopes(integrator.tableau, row[0], row[1], stage, y)
    return y + weights @ slopes


def _advanced_with_changes(model: Any, integrator: Any, y: Any, moved: Any, which: Any, row: Any):
    """The state after one step, and how it changes along the directions.

    `which` are the coefficients of the directions, and whether there is one; both None where only
    states change.
    """
    index, along = which
    if index is None:
        step = lambda x: _advanced(model, integrator, x, row)  # noqa: E731
        return jax.vmap(lambda dx: jax.jvp(step, (y,), (dx,)), out_axes=(None, 0))(moved)
    values = _raveled(model)
    if integrator.tableau is None or not model.is_law:
        ways = jax.nn.one_hot(index, values.shape[0], dtype=values.dtype)
        ways = jnp.where(along[:, None], ways, 0.0)
        step = lambda c, x: _advanced(with_values(model, c), integrator, x, row)  # noqa: E731
        push = lambda way, dx: jax.jvp(step, (values, y), (way, dx))  # noqa: E731
        return jax.vmap(push, out_axes=(None, 0))(ways, moved)
    half = y.shape[0] // 2

    def stage(time, own, found):
        x, dx = y + own @ found[0], moved + jnp.tensordot(own, found[1], 1)
        of = lambda c, x: _rate(with_values(model, c), row)(time, x)[1]  # noqa: E731
        a, back = jax.vjp(of, values, x)
        by_values, by_state = jax.vmap(back)(jnp.eye(half, dtype=y.dtype))
        da = dx @ by_state.T + jnp.where(along[:, None], by_values.T[index], 0.0)
        # Of a law, positions change by the velocities.
        rates = jnp.concatenate([x[half:], a])
        return rates, jnp.concatenate([dx[:, half:], da], axis=1)

    weights, (slopes, changes) = stage_slopes(integrator.tableau, row[0], row[1], stage, (y, moved))
    return y + weights @ slopes, moved + jnp.tensordot(weights, changes, 1)


def _raveled(model: Any) -> Any:
    return jnp.concatenate([jnp.ravel(x) for x in jax.tree.leaves(model.network)])


@eqx.filter_jit
def _run(model, integrator, along, state, steps):
    """Paths of a batch, `(steps, segments, state)`."""

    def onward(i, now):
        state, path = now
        row = jax.tree.map(lambda x: x[i], along)
        state = jax.vmap(lambda y, own: _advanced(model, integrator, y, own))(state, row)
        return state, path.at[i].set(state)

    begun = state, jnp.zeros((_STEPS, *state.shape), state.dtype)
    return jax.lax.fori_loop(0, steps, onward, begun)[1]


@eqx.filter_jit
def _run_with_changes(model, integrator, along, state, tangents, index, free, steps):
    """Paths of a batch, and their changes, `(steps, segments, directions, state)`."""

    def onward(i, now):
        state, tangents, path, changes = now
        row = jax.tree.map(lambda x: x[i], along)
        one = lambda y, moved, own: _advanced_with_changes(  # noqa: E731
            model, integrator, y, moved, (index, free), own
        )
        state, tangents = jax.vmap(one)(state, tangents, row)
        return state, tangents, path.at[i].set(state), changes.at[i].set(tangents)

    path, changes = (jnp.zeros((_STEPS, *x.shape), x.dtype) for x in (state, tangents))
    return jax.lax.fori_loop(0, steps, onward, (state, tangents, path, changes))[2:]
