"""Held-out pieces: what a fit to the other pieces misses of each.

The runs go, in order, into pieces, cut where there are fewer runs than pieces. Each piece in turn
is left out of the fit and then simulated from its first state, under its inputs, without looking at
it. The fits are to segments of the other pieces: the pieces themselves, parts of them, or all that
lies between two that are left out. Those that are left out do not count, so arrays keep their
shapes, one compiled program serves all fits, and all go on side by side. Initial states are not
fitted here: they are as measured, or as fitted before.

Of a model that misses more than the noise, the best fit depends on how long its segments are: over
long ones a small force that it lacks adds up to all that it misses, over short ones what matters
for the prediction is not seen. Held-out pieces tell which length predicts best.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from mbdnode.identification.parameters.fitting import Fit, fit_each
from mbdnode.identification.parameters.output_error import OutputError
from mbdnode.identification.parameters.segments import Lanes
from mbdnode.identification.parameters.unknowns import Unknowns

# They begin at a fit to all pieces, from which one to the others is near.
_ITERATIONS, _SETTLED = 10, 1e-4

# The rows at which the segments of each run begin, and its last row.
Edges = list[np.ndarray]


@dataclass(frozen=True)
class Layout:
    """The data, cut into segments.

    **Arguments:**

    - `lanes`: the data.
    - `initial`: the initial state of each segment.
    """

    lanes: Lanes
    initial: np.ndarray


class Pieces:
    """The data in pieces.

    **Arguments:**

    - `problem`: gives residuals and Jacobians.
    - `lengths`: the last row of each run.
    - `count`: of pieces.
    - `lay_out`: makes a `Layout` of the rows at which segments begin.
    - `substeps`: of the integrator in each step.
    """

    def __init__(
        self,
        problem: OutputError,
        lengths: Sequence[int],
        count: int,
        lay_out: Callable[[Edges], Layout],
        substeps: int,
    ):
        self.problem, self.lengths, self.substeps = problem, lengths, substeps
        self.lay_out = lay_out
        self.parts = max(1, -(-count // len(lengths)))
        self.whole = lay_out(self.edges(1))
        blocks = self.whole.lanes.blocks()
        self.groups = np.array_split(np.arange(len(blocks)), min(count, len(blocks)))
        self.masks = []
        for group in self.groups:
            mask = np.zeros(self.whole.lanes.counts.shape, bool)
            for number in group:
                run, _, rows = blocks[number]
                mask[run, rows] = True
            self.masks.append(mask)

    def edges(self, segments: int) -> Edges:
        """Every part of a run cut into so many segments; for zero the runs themselves."""
        count = self.parts * segments or 1
        return [np.linspace(0, last, count + 1).astype(int) for last in self.lengths]

    def around(self, piece: int) -> Edges:
        """Longest segments: the piece, and what lies before and after it."""
        found, number = [], 0
        for edges in self.edges(1):
            own = [number + i in self.groups[piece] for i in range(len(edges) - 1)]
            cuts = [i for i in range(1, len(own)) if own[i] or own[i - 1]]
            found.append(edges[[0, *cuts, len(edges) - 1]])
            number += len(own)
        return found

    def fits(self, unknowns: Unknowns, values: np.ndarray, segments: int) -> list[Fit]:
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
                values,
                one.initial,
                held=True,
                counts=~mask,
                iterations=_ITERATIONS,
                settled=_SETTLED,
            )
            for one, mask in zip(layouts, self.masks, strict=True)
        ]


def cross_validate(
    pieces: Pieces, asked: Sequence[tuple[Unknowns, int]], values: np.ndarray
) -> list[np.ndarray]:
    """What fits to all pieces but one miss of that one.

    **Arguments:**

    - `pieces`: the data.
    - `asked`: of each variant, what is sought with its priors, and into how many segments a part of
        a run is cut; zero for the longest segments.
    - `values`: where to begin.

    **Returns:**

    Of each variant, for each piece and recorded column, the root mean square of the residuals in
    units of the noise; infinite where the simulation ends early.
    """
    fits = [fit for unknowns, cut in asked for fit in pieces.fits(unknowns, values, cut)]
    fitted = fit_each(pieces.problem, fits, pieces.substeps)
    able = [i for i, one in enumerate(fitted) if one is not None]
    points = [(one.values, pieces.whole.initial) for one in fitted if one is not None]
    lanes, substeps = pieces.whole.lanes, jnp.asarray(pieces.substeps)
    answers = dict(zip(able, pieces.problem.each(points, lanes, substeps), strict=True))
    found = []
    for first in range(0, len(fits), len(pieces.masks)):
        rows = []
        for number, mask in enumerate(pieces.masks):
            missed = np.full(len(pieces.problem.columns), np.inf)
            if first + number in answers:
                missed = np.sqrt(np.mean(answers[first + number][0][mask] ** 2, axis=0))
            rows.append(np.where(np.isfinite(missed), missed, np.inf))
        found.append(np.array(rows))
    return found


def simplest(missed: Sequence[np.ndarray]) -> int:
    """The first variant that is not worse than the best by more than one standard error.

    **Arguments:**

    - `missed`: of each variant, from simple to rich, as `cross_validate` gives it.

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
