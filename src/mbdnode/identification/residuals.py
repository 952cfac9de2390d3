"""What the residuals of a law say of what it lacks.

The residual of the acceleration over a step is what the law misses there. Of a law that misses
nothing but noise it has no structure. Where an input acts late, the residual follows what that
input was some time ago, beyond what it is now. Where it is a line in the spectrum, something acts
at that frequency that the data does not have; where it is correlated over many samples, something
that the state does not hold goes on acting: a hidden state, or a force that no candidate can
express.
"""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
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
# The longest lag that is looked for, as a part of the run.
_LONGEST = 0.1
# Standard deviations of a correlation that chance exceeds once in a thousand times.
_SURE = 3.3


def residual_hint(problem: Problem, model: Any, rows: Rows) -> str:
    """What to do about a law that does not explain the data.

    A part of a sentence; nothing where the residuals say nothing.
    """
    own = counted(rows)
    unit = spread_of_accelerations(own)
    missed = np.asarray(step_errors(model, own, problem.integrator, unit))
    missed = missed[:, : own.s.shape[1]]
    if not np.all(np.isfinite(missed)):
        return ""
    first, last = max(runs_of(own), key=lambda run: run[1] - run[0])
    size = max(1, samples_per_period(own) // _PER_PERIOD)
    t, u = np.asarray(own.t)[first:last], np.asarray(own.u)[first:last]
    effects = (np.asarray(_effects(model, own)) / np.asarray(unit))[first:last]
    inputs = {name: (u[:, i], effects[:, i]) for i, name in enumerate(problem.system.input_names)}
    dt_s = float(t[-1] - t[0]) / max(len(t) - 1, 1)
    return describe_residuals(dt_s, missed[first:last], size, inputs)


@eqx.filter_jit
def _effects(model: Any, rows: Rows):
    """What a law says that each input does to the accelerations: `(rows, inputs, columns)`."""

    def one(row):
        rates = lambda u: model.minimal_rates(row.t, row.z, row.s, u, row.mu)[1]  # noqa: E731
        without = jax.vmap(lambda gone: rates(row.u * (1 - gone)))(jnp.eye(len(row.u)))
        return rates(row.u)[None] - without

    return jax.vmap(one)(rows)


def describe_residuals(
    dt_s: float,
    residuals: np.ndarray,
    size: int = 1,
    inputs: Mapping[str, tuple[np.ndarray, np.ndarray]] | None = None,
) -> str:
    """Whether residuals follow the past of an input, are periodic, or have memory.

    **Arguments:**

    - `residuals`: `(rows, columns)` of one run, evenly spaced: prediction less truth.
    - `inputs`: by name, the values of each, `(rows,)`, and what the law says that they cause,
        `(rows, columns)`.
    """
    count = len(residuals) // size
    if count < _FEWEST:
        return ""
    means = residuals[: count * size].reshape(count, size, -1).mean(axis=1)
    means = means - means.mean(axis=0)
    most = int(np.argmax(np.sum(means**2, axis=0)))
    column = means[:, most]
    if not np.sum(column**2) > 0:
        return ""
    late = []
    for name, (u, effects) in (inputs or {}).items():
        rows = _lag(u, effects[:, most], residuals[:, most])
        late.append((_explained(u, rows, residuals[:, most]), rows * dt_s, name))
    part, lag_s, name = max(late, default=(0.0, 0.0, ""))
    if part > 0:
        return (
            f"the residuals follow input {name!r} of about {lag_s:.2g} s ago: an actuator lag or a "
            "delay; record what acts in place of the command"
        )
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


def _lag(u: np.ndarray, effect: np.ndarray, residual: np.ndarray) -> int:
    """How many rows late an input acts.

    What the input does is what the law says of it, less the residual. Its correlation with the
    input of some rows ago is largest at the lag.
    """
    count = len(u)
    given, felt = u - np.mean(u), effect - residual
    longest = max(int(_LONGEST * count), 1)
    follows = _correlations(given, felt - np.mean(felt))[:longest] / (count - np.arange(longest))
    return int(np.argmax(follows * (np.sign(effect @ given) or np.sign(follows[0]))))


def _explained(u: np.ndarray, rows: int, residual: np.ndarray) -> float:
    """The part of the residual's power that an input of some rows ago explains beside the present.

    Zero for a partial correlation that chance may give. What is correlated in itself counts as
    fewer independent rows (Bartlett).
    """
    if rows == 0:
        return 0.0
    now, past, missed = (x - np.mean(x) for x in (u[rows:], u[:-rows], residual[rows:]))
    own = float(now @ now) or 1.0
    past, missed = (x - (x @ now) / own * now for x in (past, missed))
    size = float(past @ past) * float(missed @ missed)
    if not size > 0:
        return 0.0
    part = float(past @ missed) ** 2 / size
    alike = np.abs(_correlations(past, past) * _correlations(missed, missed)) / size
    # Of the lags that are looked for: beyond them, noise would add up.
    alike = alike[: max(int(_LONGEST * len(u)), 1)]
    independent = len(now) / (2 * float(np.sum(alike)) - 1)
    # By Fisher's transform, whose standard deviation is one over this root.
    sure = np.arctanh(min(np.sqrt(part), 1 - 1e-12)) * np.sqrt(max(independent - 3, 0.0))
    return part if sure > _SURE else 0.0


def _correlations(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The sums of `first` times what `second` is so many rows later."""
    spectra = [np.fft.rfft(x, 2 * len(x)) for x in (first, second)]
    return np.fft.irfft(np.conj(spectra[0]) * spectra[1])[: len(first)]
