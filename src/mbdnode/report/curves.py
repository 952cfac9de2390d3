"""The trajectories of a chapter as plain data for the page's plots."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mbdnode.evaluation.verdict import ROUND_OFF
from mbdnode.report.chapters import Chapter, Entry
from mbdnode.report.palette import Palette, method_of
from mbdnode.report.panels import Predicted, moving, shown_entries, squared_error, thinned
from mbdnode.report.titles import error_text, letters
from mbdnode.trajectory import Trajectory

_MOST_POINTS = 800
_MOST_LOSSES = 200
_DIGITS = 5


def make_curves(
    chapter: Chapter, shown: Sequence[Predicted], palette: Palette
) -> dict[str, Any] | None:
    """What the plots of a chapter show.

    **Arguments:**

    - `chapter`: of the case.
    - `shown`: whose predictions to show.
    - `palette`: the report's.

    **Returns:**

    Plain data, or None where nothing was predicted.
    """
    if not shown:
        return None
    truth = shown[0].truth
    # What the mechanism is steered by comes first.
    independent = chapter.mechanism.independent or ()
    coordinates = sorted(moving(chapter.mechanism, truth), key=lambda c: c.name not in independent)
    rows = thinned(len(truth), _MOST_POINTS)
    first = {one.title for one in shown_entries(chapter)}
    names = [name for c in coordinates for name in (c.name, c.rate)]
    return {
        "t": _numbers(np.asarray(truth.t)[rows]),
        "trainEnd": chapter.train_end_s,
        "roundOff": ROUND_OFF,
        "columns": {
            key: {"title": letters(key), "unit": unit}
            for c in coordinates
            for key, unit in ((c.name, c.unit), (c.rate, f"{c.unit}/s"))
        },
        "pairs": [
            {"position": c.name, "velocity": c.rate, "isAngle": c.is_angle} for c in coordinates
        ],
        "truth": _columns(truth, names, rows),
        "entries": [
            {
                "title": one.title,
                "shown": one.title in first,
                "place": palette.methods[method_of(one.entry)],
                "variant": variant,
                "error": _error_text(one.entry),
                "columns": _columns(one.prediction, names, rows),
                "squares": _numbers(squared_error(one.truth, one.prediction)[rows], digits=3),
                "losses": _losses(one.entry),
            }
            for one, variant in zip(shown, _variants(shown), strict=True)
        ],
    }


def _variants(shown: Sequence[Predicted]) -> list[int]:
    """Zero for a method's first integrator, then one, and so on."""
    methods = [method_of(one.entry) for one in shown]
    return [methods[:place].count(method) for place, method in enumerate(methods)]


def _columns(trajectory: Trajectory, names: Sequence[str], rows: np.ndarray) -> dict[str, list]:
    return {name: _numbers(np.asarray(trajectory[name])[rows]) for name in names}


def _losses(entry: Entry) -> dict[str, list]:
    """The loss over epochs, counted from one."""
    history = np.asarray(entry.history, float)
    rows = thinned(len(history), _MOST_LOSSES) if len(history) else np.zeros(0, int)
    losses = np.where(history > 0, history, np.nan)
    return {"epochs": (rows + 1).tolist(), "values": _numbers(losses[rows], digits=3)}


def _numbers(values: np.ndarray, digits: int = _DIGITS) -> list[float | None]:
    """Short numbers; JSON has no other word than null for what is not a number."""
    return [float(f"{v:.{digits}g}") if math.isfinite(v) else None for v in values.tolist()]


def _error_text(entry: Entry) -> str:
    return error_text(entry.median())
