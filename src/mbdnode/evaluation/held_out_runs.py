"""Which runs are kept from training, to be judged by: the one place that splits.

What is held out must be unknown to the model, so whole runs are held out, and the same run is never
on both sides: files are the same if they are one file on the disk whatever they are called, runs
are the same if their rows are. A single run is cut in time, and rates that were estimated from its
positions are estimated anew in each part: one that was made from positions on both sides of the cut
would tell the training data what follows.
"""

import itertools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from mbdnode.data.signal import FEWEST_ROWS, estimate_rate
from mbdnode.errors import UserError
from mbdnode.trajectory import Dataset, Trajectory, rows_identity

# Rows of a part that can be learned from, and of one that can be judged by.
_FEWEST_TRAINING, _FEWEST_HELD_OUT = 10, FEWEST_ROWS

# A run's name, the run, and its parameters.
NamedRun = tuple[str, Trajectory, dict[str, float]]


@dataclass(frozen=True)
class Holdout:
    """What is learned from, and what is judged by.

    **Arguments:**

    - `training`: a dataset.
    - `held_out`: runs by name, with their parameters.
    - `notes`: what a user should know of the split, in sentences.
    """

    training: Dataset
    held_out: tuple[NamedRun, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Span:
    """Rows of one segment of a run, both ends included, that are on one side of the split."""

    run: int
    segment: int
    first: int
    last: int
    held_out: bool


def split_runs(
    lengths: Sequence[Sequence[int]],
    fraction: float,
    seed: int = 0,
    *,
    gap: int = 0,
    identities: Sequence[Hashable] | None = None,
) -> list[Span]:
    """Decide which rows are held out.

    **Arguments:**

    - `lengths`: for each run, the rows of each of its segments.
    - `fraction`: of the runs, at least one of several; of a single run, of its rows, from the end.
        Zero for none.
    - `seed`: of the sample.
    - `gap`: rows between the two parts of a single run, in neither of them.
    - `identities`: what tells runs apart; runs that are equal go together. All differ if not given.

    **Returns:**

    Spans, in order. Raises `UserError` for a fraction that cannot be.
    """
    if not 0 <= fraction < 1:
        raise UserError(
            f"The part that is held out is {fraction:g}; it must be at least 0 and below 1."
        )
    names = list(range(len(lengths))) if identities is None else list(identities)
    distinct = list(dict.fromkeys(names))
    if fraction > 0 and len(distinct) == 1:
        return _cut_in_time(lengths, fraction, gap)
    chosen: set[Hashable] = set()
    if fraction > 0:
        count = min(max(1, round(fraction * len(distinct))), len(distinct) - 1)
        order = np.random.default_rng(seed).permutation(len(distinct))
        chosen = {distinct[i] for i in order[:count]}
    return [
        Span(run, segment, 0, rows - 1, names[run] in chosen)
        for run, segments in enumerate(lengths)
        for segment, rows in enumerate(segments)
    ]


def _cut_in_time(lengths: Sequence[Sequence[int]], fraction: float, gap: int) -> list[Span]:
    """The end of the first run is held out; copies of it would know its end, and are left out."""
    segments = lengths[0]
    total = sum(segments)
    last = int((1 - fraction) * (total - 1))
    spans = []
    for segment, (before, rows) in enumerate(
        zip(itertools.accumulate(segments, initial=0), segments, strict=False)
    ):
        kept = min(last - before + 1, rows)
        if kept >= FEWEST_ROWS:
            spans.append(Span(0, segment, 0, kept - 1, False))
        first = max(0, last - before + 1 + gap)
        if rows - first >= _FEWEST_HELD_OUT:
            spans.append(Span(0, segment, first, rows - 1, True))
    learned = sum(span.last - span.first + 1 for span in spans if not span.held_out)
    if learned <= _FEWEST_TRAINING or not any(span.held_out for span in spans):
        between = f", with a gap of {gap} between them," if gap else ""
        raise UserError(
            f"The only run has {total} rows, too few to learn from one part{between} and judge by "
            "the other. Log more, or pass --holdout 0."
        )
    return spans


def run_names(data: Dataset) -> list[str]:
    """A name for each trajectory: its file and run, and the segment where a run was cut."""
    if data.summary is None:
        return [f"run {number}" for number in range(len(data.trajectories))]
    return [
        run.place if len(run.segments) == 1 else f"{run.place}, segment {segment + 1}"
        for run in data.summary.runs
        for segment in range(len(run.segments))
    ]


def split(data: Dataset, fraction: float, seed: int = 0) -> Holdout:
    """Hold out a part of the runs; of a single run, its end.

    **Arguments:**

    - `data`: all of it, as it was read.
    - `fraction`, `seed`: as for `split_runs`.

    **Returns:**

    A `Holdout`. Raises `UserError` for a fraction that leaves nothing to learn from.
    """
    runs, names = data.trajectories, run_names(data)
    segments = _segments_of_runs(data)
    identities = [tuple(_identity(runs[i]) for i in places) for places in segments]
    lengths = [[len(runs[i]) for i in places] for places in segments]
    spans = split_runs(lengths, fraction, seed, identities=identities)
    training, held_out = [], []
    for span in spans:
        place = segments[span.run][span.segment]
        whole = (span.first, span.last) == (0, len(runs[place]) - 1)
        part = runs[place]
        if not whole:
            part = _with_own_rates(part.rows(span.first, span.last), data.recorded)
        values = dict(data.parameters[place])
        if span.held_out:
            held_out.append((names[place] + ("" if whole else ", its end"), part, values))
        else:
            training.append((part, values))
    return Holdout(_dataset(training, data), tuple(held_out))


def hold_out_runs(data: Dataset, held_out: Dataset) -> Holdout:
    """Judge by some runs, and learn from the others.

    **Arguments:**

    - `data`: to learn from; runs of it that are held out are left out.
    - `held_out`: to judge by.

    **Returns:**

    A `Holdout`. Raises `UserError` if nothing is left to learn from.
    """
    judged = {_identity(run) for run in held_out.trajectories}
    training, repeated = [], []
    for name, run, values in zip(run_names(data), data.trajectories, data.parameters, strict=True):
        if _identity(run) in judged:
            repeated.append(name)
        else:
            training.append((run, dict(values)))
    if not training:
        raise UserError(
            f"Every run is held out ({', '.join(repeated)}), so there is nothing to learn from. "
            "Name other logs, or hold out fewer."
        )
    notes = tuple(
        f"not trained on: {name}, which is the same as a held-out run" for name in repeated
    )
    rest = zip(run_names(held_out), held_out.trajectories, held_out.parameters, strict=True)
    named = tuple((name, run, dict(values)) for name, run, values in rest)
    return Holdout(_dataset(training, data), named, notes)


def _segments_of_runs(data: Dataset) -> list[list[int]]:
    """For each run, the numbers of its trajectories."""
    if data.summary is None:
        return [[number] for number in range(len(data.trajectories))]
    counts = [len(run.segments) for run in data.summary.runs]
    ends = list(itertools.accumulate(counts))
    return [list(range(end - count, end)) for count, end in zip(counts, ends, strict=True) if count]


def _identity(run: Trajectory) -> str:
    return rows_identity(run.t, run.q, run.u)


def _with_own_rates(run: Trajectory, recorded: Sequence[str] | None) -> Trajectory:
    """A part of a run, its rates estimated from its own positions where they were not measured."""
    v = np.array(run.v)
    for place, rate in enumerate(run.rates):
        if recorded is not None and rate not in recorded:
            v[:, place] = estimate_rate(np.asarray(run.t), np.asarray(run.q)[:, place]).values
    return eqx.tree_at(lambda part: part.v, run, jnp.asarray(v))


def _dataset(parts: Sequence[tuple[Trajectory, dict]], like: Dataset) -> Dataset:
    runs, values = zip(*parts, strict=True)
    return Dataset(list(runs), list(values), like.summary, like.recorded)
