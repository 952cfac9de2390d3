"""Held-out pieces: what a fit to the other pieces misses of each.

The runs go, in order, into pieces, cut where there are fewer runs than pieces. Each piece in turn
is left out of the fit and then simulated from its first state, under its inputs, without looking at
it. The fits are to segments of the other pieces: the pieces themselves, parts of them, or all that
lies between two that are left out. Those that are left out do not count, so arrays keep their
shapes, one compiled program serves all fits, and all go on side by side. Initial states are not
fitted here: they are as measured, or as fitted before.

A piece tells something only if the others are not copies of it. Where a run repeats its motion, as
a reference that is followed again and again does, a piece is a phase of it, left out of every
period: a later period would be predicted well by whatever was adapted to the earlier ones.

Of a model that misses more than the noise, the best fit depends on how long its segments are: over
long ones a small force that it lacks adds up to all that it misses, over short ones what matters
for the prediction is not seen. Held-out pieces tell which length predicts best.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from mbdnode.identification.parameters.fitting import Fit, fit_each
from mbdnode.identification.parameters.output_error import OutputError
from mbdnode.identification.parameters.segments import Lanes, SegmentedRuns, initial_guess
from mbdnode.identification.parameters.unknowns import Unknowns

# They begin at a fit to all pieces, from which one to the others is near.
_ITERATIONS, _SETTLED = 10, 1e-4

# A motion repeats if it differs from itself a period later by less than this part of its size.
_REPEATS = 0.01

# The rows at which the segments of each run begin, and its last row.
Edges = list[np.ndarray]


def period_of(table: np.ndarray) -> int | None:
    """After how many rows a run repeats its motion.

    The rows of a period; None if the motion does not repeat, or not even twice.
    """
    size = np.std(table, axis=0)
    x = ((table - np.mean(table, axis=0)) / np.where(size > 0, size, 1.0))[:, size > 0]
    rows = len(x)
    if rows < 4 or not x.size:
        return None
    # The mean square difference at every lag, by the products of a row with later ones.
    spectrum = np.abs(np.fft.rfft(x, 2 * rows, axis=0)) ** 2
    products = np.sum(np.fft.irfft(spectrum, axis=0), axis=1)[:rows]
    squares = np.concatenate([[0.0], np.cumsum(np.sum(x**2, axis=1))])
    lag = np.arange(rows // 2 + 1)
    away = squares[rows - lag] + squares[rows] - squares[lag] - 2 * products[lag]
    away = away / ((rows - lag) * x.shape[1])
    # A lag at which the motion has come back: after it has been elsewhere.
    left = int(np.argmax(away > 1.0))
    back = np.flatnonzero((lag > left) & (away < _REPEATS**2))
    if away[left] <= 1.0 or not len(back):
        return None
    near = back[: int(np.argmax(np.diff(back, append=back[-1] + 2) > 1)) + 1]
    return int(near[np.argmin(away[near])])


def cut_into_blocks(
    lengths: Sequence[int], periods: Sequence[int | None], count: int
) -> tuple[Edges, list[list[int]]]:
    """Cut every run for pieces.

    **Arguments:**

    - `periods`: of runs that repeat their motion; None for the others.

    **Returns:**

    The rows at which blocks begin, and for each block the number of the part that it belongs to: of
    a run that repeats, the same phase of every period is one part.
    """
    parts = max(1, -(-count // len(lengths)))
    edges, owners = [], []
    for run, (last, period) in enumerate(zip(lengths, periods, strict=True)):
        if period is None or parts == 1:
            places = np.linspace(0, last, parts + 1)
        else:
            step = period / parts
            places = np.append(np.arange(0, last - step / 2, step), last)
        edges.append(places.astype(int))
        owners.append([run * parts + i % parts for i in range(len(places) - 1)])
    return edges, owners


@dataclass(frozen=True)
class Layout:
    """The data, cut into segments.

    **Arguments:**

    - `lanes`: the data.
    - `initial`: the initial state of each segment.
    """

    lanes: Lanes
    initial: np.ndarray


@dataclass(frozen=True)
class HoldOut:
    """How pieces are held out: what a worker is told, that has the runs.

    **Arguments:**

    - `blocks`: the rows at which they begin, and to which part each belongs, as `cut_into_blocks`
        gives them.
    - `count`: of pieces.
    - `interpolation`, `substeps`: of the inputs, and of the integrator in each step.
    - `unknowns`, `values`: the fit to all of the data, at which fits to a part of it begin.
    - `whole`: the initial state of each block.
    - `held`: whether initial states are as measured; else they are fitted to all of the data.
    - `settled`: the part of the cost by which an iteration of that fit must lower it to go on.
    """

    blocks: tuple[Edges, list[list[int]]]
    count: int
    interpolation: str
    substeps: int
    unknowns: Unknowns
    values: np.ndarray
    whole: np.ndarray
    held: bool
    settled: float


class Pieces:
    """The data in pieces.

    **Arguments:**

    - `problem`: gives residuals and Jacobians.
    - `runs`: the data.
    - `how`: it is cut, and fitted.
    """

    def __init__(self, problem: OutputError, runs: SegmentedRuns, how: HoldOut):
        self.problem, self.runs, self.how = problem, runs, how
        self.blocks, owners = how.blocks
        self.owners = [part for own in owners for part in own]
        self.whole = Layout(runs.lanes(self.blocks, how.interpolation), how.whole)
        # The same cut serves several variants.
        self._layouts: dict[tuple[bytes, ...], Layout] = {_key(self.blocks): self.whole}
        parts = max(self.owners) + 1
        self.groups = np.array_split(np.arange(parts), min(how.count, parts))
        self.masks = []
        for group in self.groups:
            mask = np.zeros(self.whole.lanes.counts.shape, bool)
            for part, (run, _, rows) in zip(self.owners, self.whole.lanes.blocks(), strict=True):
                mask[run, rows] |= part in group
            self.masks.append(mask)

    def lay_out(self, edges: Edges) -> Layout:
        """The data in segments that begin at these rows."""
        key, how = _key(edges), self.how
        if key not in self._layouts:
            lanes = self.runs.lanes(edges, how.interpolation)
            initial, near = initial_guess(lanes), None
            if not how.held:
                fit = Fit(lanes, how.unknowns, how.values, initial, settled=how.settled)
                near = fit_each(self.problem, [fit], how.substeps)[0]
            self._layouts[key] = Layout(lanes, initial if near is None else near.initial)
        return self._layouts[key]

    def edges(self, segments: int) -> Edges:
        """Every block cut into so many segments; for zero the runs themselves."""
        if not segments:
            return [edges[[0, -1]] for edges in self.blocks]
        found = []
        for edges in self.blocks:
            places = np.arange(segments * (len(edges) - 1) + 1) / segments
            found.append(np.interp(places, np.arange(len(edges)), edges).astype(int))
        return found

    def around(self, piece: int) -> Edges:
        """Longest segments: the piece, and what lies before and after it."""
        found, number = [], 0
        for edges in self.blocks:
            owners = self.owners[number : number + len(edges) - 1]
            own = [part in self.groups[piece] for part in owners]
            cuts = [i for i in range(1, len(own)) if own[i] or own[i - 1]]
            found.append(edges[[0, *cuts, len(edges) - 1]])
            number += len(own)
        return found

    def fits(self, unknowns: Unknowns, segments: int) -> list[Fit]:
        """For each piece one to the others, cut into segments."""
        layouts = (
            [self.lay_out(self.edges(segments))] * len(self.masks)
            if segments
            else [self.lay_out(self.around(i)) for i in range(len(self.masks))]
        )
        return [
            Fit(
                one.lanes,
                unknowns,
                self.how.values,
                one.initial,
                held=True,
                counts=~mask,
                iterations=_ITERATIONS,
                settled=_SETTLED,
            )
            for one, mask in zip(layouts, self.masks, strict=True)
        ]

    def missed(self, unknowns: Unknowns, segments: int) -> np.ndarray:
        """What fits to all pieces but one miss of that one.

        For each piece and recorded column, the root mean square of the residuals in units of the
        noise; infinite where the simulation ends early.
        """
        fitted = fit_each(self.problem, self.fits(unknowns, segments), self.how.substeps)
        able = [i for i, one in enumerate(fitted) if one is not None]
        points = [(one.values, self.whole.initial) for one in fitted if one is not None]
        substeps = jnp.asarray(self.how.substeps)
        answers = self.problem.each(points, self.whole.lanes, substeps) if points else []
        found = np.full((len(fitted), len(self.problem.columns)), np.inf)
        for number, (away, _) in zip(able, answers, strict=True):
            error = np.sqrt(np.mean(away[self.masks[number]] ** 2, axis=0))
            found[number] = np.where(np.isfinite(error), error, np.inf)
        return found


def cross_validate(
    problem: OutputError, runs: SegmentedRuns, how: HoldOut, unknowns: Unknowns, segments: int
) -> dict[str, np.ndarray]:
    """What `Pieces` gives as `missed`, by that name."""
    return {"missed": Pieces(problem, runs, how).missed(unknowns, segments)}


def _key(edges: Edges) -> tuple[bytes, ...]:
    return tuple(rows.tobytes() for rows in edges)


def simplest(missed: Sequence[np.ndarray]) -> int:
    """The first variant that is not worse than the best by more than one standard error.

    **Arguments:**

    - `missed`: of each variant, from simple to rich, as `Pieces.missed` gives it.

    **Returns:**

    Its number. The standard error is that of the mean difference over the pieces.
    """
    scores = [np.mean(one**2, axis=1) for one in missed]
    best = scores[int(np.argmin([np.sum(one) for one in scores]))]
    for number, one in enumerate(scores):
        if not np.all(np.isfinite(one)):
            continue
        away = one - best
        error = np.std(away, ddof=1) / np.sqrt(len(away)) if len(away) > 1 else 0.0
        if np.mean(away) <= error:
            return number
    return 0
