"""How well a fitted model does on the runs that it has not seen, in numbers and in a sentence."""

import math
from dataclasses import dataclass

import numpy as np

from mbdnode.evaluation.verdict import as_printed
from mbdnode.report.fit_story import FitStory, HeldOut, Horizon
from mbdnode.trajectory import Trajectory


@dataclass(frozen=True)
class Score:
    """One held-out run in numbers.

    **Arguments:**

    - `name`: of the run.
    - `seconds`, `rows`: its length.
    - `error`: root mean square over rows and recorded columns, in spreads of the motion, for as
        long as there is a prediction; None where nothing that was recorded moves.
    - `outside`: the share of predicted rows that lie outside the training data.
    - `ended_s`: the time of the last predicted row, if the prediction failed; None if it is whole.
    """

    name: str
    seconds: float
    rows: int
    error: float | None
    outside: float
    ended_s: float | None

    @property
    def rank(self) -> float:
        """The error, but for a prediction that failed worse than any other."""
        if self.ended_s is not None:
            return math.inf
        return math.nan if self.error is None else self.error


def score_runs(story: FitStory) -> tuple[Score, ...]:
    """The scores of all held-out runs.

    **Arguments:**

    - `story`: of the fit.

    **Returns:**

    One for each run, in their order.
    """
    spreads = _spreads(story.held_out)
    return tuple(_score(run, spreads) for run in story.held_out)


def columns_of(run: Trajectory) -> dict[str, np.ndarray]:
    """All columns by name, by NumPy: a program compiled for every length would take long."""
    parts = [np.asarray(part) for part in (run.t, run.q, run.v, run.u)]
    return dict(zip(run.columns, np.column_stack(parts).T, strict=True))


def predicted_rows(prediction: Trajectory) -> int:
    """How many rows there are before the first that is not a number."""
    states = np.concatenate([np.asarray(prediction.q), np.asarray(prediction.v)], axis=1)
    bad = np.flatnonzero(~np.all(np.isfinite(states), axis=1))
    return int(bad[0]) if bad.size else len(states)


def _spreads(runs: tuple[HeldOut, ...]) -> dict[str, float]:
    """The standard deviation of every recorded state, over all held-out runs together."""
    values: dict[str, list[np.ndarray]] = {}
    for run in runs:
        columns = columns_of(run.truth)
        for name in _recorded_states(run):
            values.setdefault(name, []).append(columns[name])
    whole = {name: np.concatenate(found) for name, found in values.items()}
    good = {name: found[np.isfinite(found)] for name, found in whole.items()}
    return {name: float(np.std(found)) if found.size else 0.0 for name, found in good.items()}


def _recorded_states(run: HeldOut) -> list[str]:
    states = (*run.truth.coordinates, *run.truth.rates)
    return [name for name in run.recorded if name in states]


def _score(run: HeldOut, spreads: dict[str, float]) -> Score:
    truth, found = columns_of(run.truth), columns_of(run.prediction)
    t, count = truth["t"], predicted_rows(run.prediction)
    moving = [name for name in _recorded_states(run) if spreads[name] > 0]
    error = None
    if moving and count:
        with np.errstate(over="ignore"):
            squares = np.array(
                [((found[name] - truth[name])[:count] / spreads[name]) ** 2 for name in moving]
            )
            told = squares[~np.isnan(squares)]
            error = float(np.sqrt(np.mean(told))) if told.size else None
    return Score(
        run.name,
        float(t[-1] - t[0]),
        len(t),
        error,
        float(np.mean(run.outside[:count])) if count else math.nan,
        None if count == len(t) else float(t[max(count - 1, 0)]),
    )


def percent(share: float) -> str:
    """A share of one as per cent, in two digits: "0.52 %", "13 %"."""
    value = 100 * share
    if not math.isfinite(value):
        return "-"
    if value == 0:
        return "0 %"
    if not 0.01 <= abs(value) < 1e5:
        return f"{as_printed(value)} %"
    return f"{value:.0f} %" if abs(value) >= 10 else f"{value:.2g} %"


def verdict(story: FitStory, scores: tuple[Score, ...]) -> str:
    """What a hurried reader must know.

    **Arguments:**

    - `story`: of the fit.
    - `scores`: of its held-out runs.

    **Returns:**

    One sentence: how well on held-out runs, and how far ahead it can be trusted.
    """
    if not scores:
        return "No run was held out, so it is not known how well the model predicts."
    return f"{_accuracy(scores)}, {_reach(story.horizon)}."


def _accuracy(scores: tuple[Score, ...]) -> str:
    where = "the held-out run" if len(scores) == 1 else f"{len(scores)} held-out runs"
    failed = [score for score in scores if score.ended_s is not None]
    ranks = [score.rank for score in scores if not math.isnan(score.rank)]
    if not ranks:
        return f"On {where} nothing that was recorded moves, so there is no error to tell"
    middle = float(np.median(ranks))
    if math.isfinite(middle):
        text = f"On {where} the prediction errs by {percent(middle)} of the motion's spread"
    else:
        text = f"On {where} the prediction fails before the end"
    if len(scores) > 1 and math.isfinite(middle):
        worst = "one that fails" if failed else percent(max(ranks))
        text += f" (the median; from {percent(min(ranks))} to {worst})"
    elif len(scores) > 1:
        text += f" ({len(failed)} of {len(scores)} times)"
    return text


def _reach(horizon: Horizon | None) -> str:
    if horizon is None:
        return "and how far ahead it can be trusted was not measured"
    bar = f"an error below {percent(horizon.limit)} for half of the starts"
    if horizon.trusted_s is None:
        return f"and at no time ahead can it be trusted ({bar})"
    if horizon.trusted_s >= float(horizon.ahead_s[-1]):
        return f"and it can be trusted as far ahead as was tried, {horizon.trusted_s:.3g} s ({bar})"
    return f"and it can be trusted {horizon.trusted_s:.3g} s ahead ({bar})"
