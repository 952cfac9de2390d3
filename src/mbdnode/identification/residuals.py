"""What the residuals of a law say of what it lacks.

The residual of the acceleration over a step is what the law misses there. Of a law that misses
nothing but noise it has no structure. Where it is a line in the spectrum, something acts at that
frequency that the data does not have; where it is correlated over many samples, something that the
state does not hold goes on acting: a hidden state, or a force that no candidate can express.
"""

from typing import Any

import numpy as np

from mbdnode.data.rows import Rows, counted, runs_of, spread_of_accelerations, step_errors
from mbdnode.identification.problem import Problem
from mbdnode.identification.regression.weak_form import samples_per_period

# Means that a spectrum needs; the part of its power that makes a line; how many of its bins.
_FEWEST, _LINE, _BINS = 24, 0.5, 2
# A correlation between neighbors above which residuals have memory.
_CORRELATED = 0.5
# Means in a period of the motion: noise averages out over each.
_PER_PERIOD = 10


def residual_hint(problem: Problem, model: Any, rows: Rows) -> str:
    """What to do about a law that does not explain the data.

    **Arguments:**

    - `problem`: what was to be learned.
    - `model`: the law.
    - `rows`: the data.

    **Returns:**

    A part of a sentence; nothing where the residuals say nothing.
    """
    own = counted(rows)
    missed = np.asarray(step_errors(model, own, problem.integrator, spread_of_accelerations(own)))
    missed = missed[:, : own.s.shape[1]]
    if not np.all(np.isfinite(missed)):
        return ""
    first, last = max(runs_of(own), key=lambda run: run[1] - run[0])
    size = max(1, samples_per_period(own) // _PER_PERIOD)
    t = np.asarray(own.t)[first:last]
    return describe_residuals(float(t[-1] - t[0]) / max(len(t) - 1, 1), missed[first:last], size)


def describe_residuals(dt_s: float, residuals: np.ndarray, size: int = 1) -> str:
    """Whether residuals are periodic, or have memory.

    **Arguments:**

    - `dt_s`: from row to row.
    - `residuals`: `(rows, columns)` of one run, evenly spaced.
    - `size`: over how many rows means are taken first.

    **Returns:**

    A part of a sentence, or nothing.
    """
    count = len(residuals) // size
    if count < _FEWEST:
        return ""
    means = residuals[: count * size].reshape(count, size, -1).mean(axis=1)
    means = means - means.mean(axis=0)
    column = means[:, int(np.argmax(np.sum(means**2, axis=0)))]
    if not np.sum(column**2) > 0:
        return ""
    power = np.abs(np.fft.rfft(column * np.hanning(count + 2)[1:-1])) ** 2
    line = int(np.argmax(power))
    around = slice(max(line - _BINS, 0), line + _BINS + 1)
    # A line of a few cycles in the whole run is a trend.
    if line > 2 * _BINS and power[around].sum() > _LINE * power.sum():
        place = float(np.arange(len(power))[around] @ power[around] / power[around].sum())
        frequency = place / (count * size * dt_s)
        return (
            f"residuals are periodic at {frequency:.3g} Hz: give what drives the motion as an input"
        )
    if column[1:] @ column[:-1] > _CORRELATED * (column @ column):
        return (
            "residuals are correlated from sample to sample: forces with memory, or forces that no "
            "candidate can express, are missing"
        )
    return ""
