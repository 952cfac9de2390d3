"""What the numbers of a fit say, in a sentence."""

import numpy as np

from mbdnode.evaluation import Horizon, Scores, percent
from mbdnode.report.fit_story import FitStory
from mbdnode.trajectory import Trajectory


def columns_of(run: Trajectory) -> dict[str, np.ndarray]:
    """All columns by name, by NumPy: a program compiled for every length would take long."""
    parts = [np.asarray(part) for part in (run.t, run.q, run.v, run.u)]
    return dict(zip(run.columns, np.column_stack(parts).T, strict=True))


def verdict(story: FitStory) -> str:
    """What a hurried reader must know.

    **Arguments:**

    - `story`: of the fit.

    **Returns:**

    How well on held-out runs, how far ahead, and where predictions leave the limit.
    """
    if not story.scores.runs:
        return "No run was held out, so it is not known how well the model predicts."
    left = [run for run in story.scores.runs if run.where]
    more = f" {left[0].name}: the error {left[0].divergence}." if left else ""
    if len(left) > 1:
        more += f" So it does in {len(left)} of {len(story.scores.runs)} runs."
    return f"{_accuracy(story.scores)}; {_reach(story.horizon)}.{more}"


def _accuracy(scores: Scores) -> str:
    count = len(scores.runs)
    where = "the held-out run" if count == 1 else f"{count} held-out runs"
    if scores.ended:
        failed = f" ({len(scores.ended)} of {count})" if count > 1 else ""
        return f"On {where} the prediction ends before the run does{failed}"
    if scores.nrmse is None:
        return f"On {where} nothing that was recorded moves, so there is no error to tell"
    known = [run.nrmse for run in scores.runs if run.nrmse is not None]
    text = f"On {where} the NRMSE is {percent(scores.nrmse)} ({_columns(scores)}"
    if count > 1:
        text += f"; run by run from {percent(min(known))} to {percent(max(known))}"
    return text + ")"


def _columns(scores: Scores) -> str:
    return ", ".join(str(column) for column in scores.columns)


def _reach(horizon: Horizon | None) -> str:
    if horizon is None:
        return "the valid prediction time was not measured"
    bar = f"half of {horizon.predictions} predictions err by at most {percent(horizon.limit)}"
    if horizon.valid_s is None:
        return f"there is no time ahead for which {bar}"
    return f"the valid prediction time is {horizon} (so long {bar})"
