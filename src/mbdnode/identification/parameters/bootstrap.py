"""Bootstrap: how far parameters move when other data of the same kind is fitted.

The covariance `s^2 (J^T J)^-1` is right if the model is, and if the noise of one sample says
nothing of the next one's. A bootstrap assumes neither, but that runs are like each other: as many
runs as there are, taken at random from them with repetition, stand for other data. The parameters
are fitted again to each such set, from the values that were found:

    minimize  sum_b w_b |r_b|^2   over parameters and initial states,

where `r_b` are the residuals of block `b`, and `w` says how often it was taken (multinomial).
Where there are few runs, the blocks are stretches of them. A stretch is then simulated as a part of
its segment, as before; only its residuals count more or less.

Each repetition has a seed of its own, so it is the same whoever computes it.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from mbdnode.errors import UserError
from mbdnode.identification.parameters.fitting import Fit, FitRequest, Fitted, fit_each
from mbdnode.identification.parameters.output_error import OutputError
from mbdnode.identification.parameters.segments import SegmentedRuns

if TYPE_CHECKING:
    from mbdnode.identification.parameters.search import ParameterSearch

# With fewer runs than this, each is cut, into as many blocks at least in all: the standard error
# that is found from n blocks is itself uncertain by about 1 / sqrt(2 n) of its size.
_BLOCKS = 20
# Repetitions that are fitted side by side, whoever does so.
_TOGETHER = 8
# From the found values, a few iterations are enough.
_ITERATIONS = 10


@dataclass(frozen=True)
class Bootstrap:
    """Parameters as they were fitted to resampled data.

    **Arguments:**

    - `names`: of those that the data determines.
    - `values`: `(repetitions, names)`, without those whose simulation ended early.
    - `blocks`: how many were resampled.
    - `whole_runs`: whether they are runs; stretches of runs otherwise.
    - `failed`: how many repetitions are left out, since their simulation ended early.
    """

    names: tuple[str, ...]
    values: np.ndarray = field(repr=False)
    blocks: int
    whole_runs: bool
    failed: int = 0

    @property
    def standard_errors(self) -> dict[str, float]:
        """The standard deviation over the repetitions, by name."""
        errors = np.std(self.values, axis=0, ddof=1).tolist()
        return dict(zip(self.names, errors, strict=True))

    def intervals(self, level: float = 0.95) -> dict[str, tuple[float, float]]:
        """Percentile intervals, by name.

        **Arguments:**

        - `level`: the part of the repetitions that lies inside.

        **Returns:**

        Both ends of each.
        """
        if not 0 < level < 1:
            raise UserError(f"The level is {level}; it must be between 0 and 1, such as 0.95.")
        low, high = np.quantile(self.values, [(1 - level) / 2, (1 + level) / 2], axis=0).tolist()
        return dict(zip(self.names, zip(low, high, strict=True), strict=True))

    def rows(self) -> tuple[tuple[str, str, str], ...]:
        """Name, standard error and 95 % interval of every parameter, as text."""
        errors, intervals = self.standard_errors, self.intervals()
        return tuple(
            (name, f"{errors[name]:.2g}", "{:.6g} to {:.6g}".format(*intervals[name]))
            for name in self.names
        )

    def __str__(self) -> str:
        kind = "runs" if self.whole_runs else "stretches of runs"
        told = f"bootstrap of {len(self.values)} repetitions over {self.blocks} {kind}"
        if self.failed:
            told += f" ({self.failed} more ended early)"
        rows = self.rows()
        width = max(len(row[0]) for row in rows)
        lines = [f"  {name:<{width}}  ± {error}, 95 %: {ends}" for name, error, ends in rows]
        return "\n".join([f"{told}:", *lines])


def check_repetitions(repetitions: int) -> None:
    """Raise `UserError` if so few `repetitions` tell nothing; zero is for none."""
    if repetitions < 0 or repetitions == 1:
        raise UserError(
            f"bootstrap is {repetitions}; it is a number of repetitions, at least 2. For intervals "
            "of 95 % take 200 or more."
        )


def bootstrap(
    search: "ParameterSearch",
    fitted: Fitted,
    names: Sequence[str],
    repetitions: int,
    seed: int,
) -> Bootstrap:
    """Fit again to resampled data; `identify(..., bootstrap=...)` is its public face.

    **Arguments:**

    - `search`: that has ended.
    - `fitted`: where.
    - `names`: of the unknowns that the data determines.
    - `repetitions`: how many.
    - `seed`: of all of them; each has its number besides.

    **Returns:**

    A `Bootstrap`.
    """
    blocks = make_blocks([len(run.t) for run, _ in search.runs])
    options = {"held": search.held, "iterations": _ITERATIONS}
    asked = search.request(search.cut, [fitted.values], fitted.initial, **options)
    groups = [
        range(first, min(repetitions, first + _TOGETHER))
        for first in range(0, repetitions, _TOGETHER)
    ]
    given = [(asked, blocks, seed, group) for group in groups]

    def tell(done: int) -> None:
        search.tell(groups[done - 1][-1], repetitions, fitted, "bootstrap repetition")

    found = search.computed("bootstrap", fit_resampled, given, report=tell)
    values = np.concatenate([one["values"] for one in found])
    able = np.all(np.isfinite(values), axis=1)
    if np.sum(able) < 2:
        raise UserError(
            f"The simulation ended early in {int(np.sum(~able))} of {repetitions} bootstrap "
            "repetitions, so they tell nothing. Leave bootstrap out, or give tighter bounds."
        )
    columns = [search.unknowns.names.index(name) for name in names]
    return Bootstrap(
        tuple(names),
        values[able][:, columns],
        len(blocks),
        len(blocks) == len(search.runs),
        int(np.sum(~able)),
    )


def make_blocks(lengths: Sequence[int]) -> list[tuple[int, slice]]:
    """What is resampled: runs, or stretches of equal length where there are few.

    The run and the rows of each block.
    """
    parts = 1 if len(lengths) >= _BLOCKS else -(-_BLOCKS // len(lengths))
    found = []
    for run, rows in enumerate(lengths):
        edges = np.unique(np.linspace(0, rows, min(parts, rows) + 1).astype(int))
        found += [(run, slice(int(a), int(b))) for a, b in itertools.pairwise(edges)]
    return found


def times_taken(blocks: int, seed: int, repetition: int) -> np.ndarray:
    """How often a repetition takes each of so many blocks."""
    random = np.random.default_rng([seed, repetition])
    return random.multinomial(blocks, np.full(blocks, 1 / blocks))


def fit_resampled(
    problem: OutputError,
    runs: SegmentedRuns,
    asked: FitRequest,
    blocks: Sequence[tuple[int, slice]],
    seed: int,
    repetitions: Sequence[int],
) -> dict[str, np.ndarray]:
    """Some repetitions, side by side.

    The "values" of each; not numbers where the simulation ended early.
    """
    lanes = runs.lanes(asked.edges, asked.interpolation)
    (start,), initial = asked.starts, asked.initial
    assert initial is not None
    fits = []
    for repetition in repetitions:
        weights = np.zeros(lanes.counts.shape)
        for taken, (run, rows) in zip(
            times_taken(len(blocks), seed, repetition), blocks, strict=True
        ):
            weights[run, rows] = taken
        own = {**asked.options, "weights": weights}
        fits.append(Fit(lanes, asked.unknowns, start, initial, **own))
    nothing = np.full(len(start), np.nan)
    found = fit_each(problem, fits, asked.substeps)
    return {"values": np.array([nothing if one is None else one.values for one in found])}
