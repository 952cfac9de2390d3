"""The recorded runs side by side, cut into segments that each have an initial state of their own.

A segment begins by a step of no length from its initial state, so that where segments begin is
data: arrays keep their shapes, and one compiled program serves every length of segments.
"""

import itertools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from mbdnode.multibody import AbstractSystem, Partition, choose_partition, resolve_parameters
from mbdnode.simulation.interpolation import MOST_TERMS
from mbdnode.simulation.signals import make_signal
from mbdnode.trajectory import State, Trajectory


class Lanes(eqx.Module):
    """The runs side by side, row by row; shorter ones are filled up by steps of no length.

    **Arguments:**

    - `t`, `dt`: when the step that leads to a row begins, and its length.
    - `inputs`: polynomials in the time since then, lowest degree first.
    - `measured`, `sampled`: the recorded columns and the inputs, at the row itself.
    - `counts`: whether a row is part of the run.
    - `begins`: whether a segment begins at a row.
    - `segment`: the number of the segment that a row is part of, within its run.
    - `guess`, `partition`: of each segment, the state at its start as the data has it, which also
        chooses the branch, and its coordinates' split.
    - `mu`: the parameters of each run.
    - `late`: what inputs with an unknown delay change with it, for each of these delays.
    """

    t: Float[Array, "runs rows"]
    dt: Float[Array, "runs rows"]
    inputs: Float[Array, "runs rows terms nu"]
    measured: Float[Array, "runs rows columns"]
    sampled: Float[Array, "runs rows nu"]
    counts: Bool[Array, "runs rows"]
    begins: Bool[Array, "runs rows"]
    segment: Int[Array, "runs rows"]
    guess: State
    partition: Partition
    mu: dict[str, Float[Array, " runs"]]
    late: Float[Array, "runs rows delays terms nu"]

    def with_inputs(self, inputs, late) -> "Lanes":
        """The same with other inputs."""
        return eqx.tree_at(lambda x: (x.inputs, x.late), self, (inputs, late))

    def blocks(self) -> list[tuple[int, int, slice]]:
        """Run, segment and rows of every segment that has some."""
        found = []
        for run, (begins, counts) in enumerate(
            zip(np.asarray(self.begins), np.asarray(self.counts), strict=True)
        ):
            end = int(np.max(np.flatnonzero(counts), initial=-1)) + 1
            edges = [*np.flatnonzero(begins), end]
            pairs = enumerate(itertools.pairwise(edges))
            found += [(run, k, slice(a, b)) for k, (a, b) in pairs if a < b]
        return found


class SegmentedRuns:
    """The runs, laid out in segments as often as they are cut. A worker has its own copy.

    **Arguments:**

    - `system`, `runs`, `columns`, `rows`, `room`: as for `lay_out`.

    `splits` has the partitions at all rows at which a segment has begun so far, for each run.
    """

    def __init__(
        self,
        system: AbstractSystem,
        runs: list[tuple[Trajectory, dict[str, Any]]],
        columns: tuple[str, ...],
        rows: int,
        room: int,
    ):
        self.system, self.runs, self.columns = system, runs, columns
        self.rows, self.room = rows, room
        self.splits: list[dict[int, Partition]] = [{} for _ in runs]
        self._last: tuple[Any, Lanes] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Without what each machine lays out by itself."""
        return {**self.__dict__, "_last": None}

    def lanes(self, edges: list[np.ndarray], interpolation: str) -> Lanes:
        """With segments that begin at these rows of each run, but for its last one."""
        key = (interpolation, *(places.tobytes() for places in edges))
        if self._last is None or self._last[0] != key:
            self._last = key, self._laid_out(edges, interpolation)
        return self._last[1]

    def _laid_out(self, edges: list[np.ndarray], interpolation: str) -> Lanes:
        for (run, own), split, places in zip(self.runs, self.splits, edges, strict=True):
            new = [int(row) for row in places[:-1] if int(row) not in split]
            first = next(iter(split.values()), None)
            if first is not None and not first.position.dependent.size:
                split |= dict.fromkeys(new, first)  # Nothing to choose.
            elif new:
                split |= choose_splits(self.system, run, own, np.array(new))
        given = self.system, self.runs, self.columns, edges, self.splits, interpolation
        return lay_out(*given, self.room, self.rows)


def lay_out(
    system: AbstractSystem,
    runs: list[tuple[Trajectory, dict[str, Any]]],
    columns: tuple[str, ...],
    edges: list[np.ndarray],
    splits: list[dict[int, Partition]],
    interpolation: str,
    room: int,
    rows: int | None = None,
) -> Lanes:
    """The runs side by side, cut into segments.

    **Arguments:**

    - `edges`: the rows at which the segments of each run begin, and its last row.
    - `room`: for how many segments; the same for every cut, so that shapes are.
    """
    most = rows or max(len(run.t) for run, _ in runs)
    lanes = [
        _lane(system, run, own, columns, places, split, interpolation, most, room)
        for (run, own), places, split in zip(runs, edges, splits, strict=True)
    ]
    parts = jax.tree.map(lambda *x: jnp.asarray(np.stack(x)), *lanes)
    return Lanes(**{**parts, "guess": State(*parts["guess"])})


def _lane(system, run, own, columns, edges, splits, interpolation, most, room) -> dict[str, Any]:
    t = np.asarray(run.t, float)
    count = len(t)
    given = run.u if system.inputs else None
    signal = make_signal(system, jnp.asarray(t), given, interpolation)
    polynomials = np.asarray(signal.coefficients)
    # Of one shape for all interpolations, of which the simpler ones use the first terms.
    unused = MOST_TERMS - polynomials.shape[1]
    polynomials = np.pad(polynomials, ((1, 0), (0, unused), (0, 0)))
    # A segment begins by a step of no length under the input of the next one.
    polynomials[0] = polynomials[1]
    starts = np.asarray(edges[:-1])
    q, v = np.asarray(run.q, float), np.asarray(run.v, float)
    states = list(zip(q[starts], v[starts], strict=True))
    chosen = [splits[int(row)] for row in starts]
    spare = [-1] * (room - len(starts))
    stacked = lambda parts: jax.tree.map(  # noqa: E731
        lambda *x: np.stack(x), *parts, *(parts[i] for i in spare)
    )
    rows = np.arange(most)
    begins = np.isin(rows, starts)
    before = np.clip(rows - 1, 0, count - 1)
    here = np.clip(rows, 0, count - 1)
    dt = t[here] - t[before]
    table = np.stack([np.asarray(run[name]) for name in columns], axis=1)
    return dict(
        t=np.where(begins, t[here], t[before]),
        dt=np.where(begins, 0.0, dt),
        inputs=polynomials[here],
        measured=table[here],
        sampled=np.asarray(signal.samples)[here],
        counts=rows < count,
        begins=begins,
        segment=np.maximum(np.cumsum(begins) - 1, 0),
        guess=stacked(states),
        partition=stacked(chosen),
        mu=jax.tree.map(np.asarray, resolve_parameters(system, own)),
        late=np.zeros((most, 0, *polynomials.shape[1:])),
    )


def choose_splits(
    system: AbstractSystem, run: Trajectory, own: dict[str, Any], rows: np.ndarray
) -> dict[int, Partition]:
    """Of the coordinates at some rows of a run."""
    mu, t, q = resolve_parameters(system, own), np.asarray(run.t, float), np.asarray(run.q, float)
    found, last = {}, None
    for row in rows:
        if last is None or last.position.dependent.size:
            last = choose_partition(system, jnp.asarray(t[row]), jnp.asarray(q[row]), mu)
            # Which constraints repeat others is not part of a segment's shape.
            last = Partition(last.position, last.velocity, last.scale)
            last = jax.tree.map(np.asarray, last)
        found[int(row)] = last
    return found


def initial_guess(lanes: Lanes) -> np.ndarray:
    """Independent positions and velocities at the start of each segment, as the data has them."""
    split, guess = jax.tree.map(np.asarray, (lanes.partition, lanes.guess))
    z = np.take_along_axis(guess.q, split.position.independent, 2)
    s = np.take_along_axis(guess.v, split.velocity.independent, 2)
    return np.concatenate([z, s], axis=2)
