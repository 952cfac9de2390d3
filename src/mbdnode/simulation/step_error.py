"""The integrator's error, estimated from the same motion with shorter steps.

A method of order `p` leaves an error of about `c dt^p`, so half the step tells the error of the
whole one,

    q_dt - q = (q_dt - q_half) 2^p / (2^p - 1).

Where the step is too long this need not hold. Then steps are halved until two motions agree, and
the last one is the reference. Where dry friction acts, the step in which a contact comes to rest
leaves an error that depends on where in the step that is, and half the step may leave the same. So
the first motion to compare with has a quarter of the step.

Shorter steps are taken by the program that is already compiled, one part of the time after the
other: a motion with half the step costs two rollouts and no compilation.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from mbdnode.simulation.signals import Signal
from mbdnode.status import TOO_LONG, Outcome
from mbdnode.trajectory import State, Trajectory

# Of a step that is too long, shorter ones are tried down to 1/256 of it (of a chaotic cart-pole,
# 1/64 was not enough to tell the error of a step within a factor of three), as far as one has no
# more than so many steps times coordinates: measured, 0.3 s for nine and 2.6 s for 600 of them.
_MOST_HALVINGS, _MOST_NUMBERS = 8, 1_000_000
# A coordinate that hardly moves is measured by the others of its kind. What moves by less than half
# of the digits of its size may have been moved by rounding.
_LEAST_PART, _ROUNDING = 1e-3, 1e-8

# Outcomes of a rollout that cannot start.
_NO_START = (Outcome.START_UNSOLVED.value, Outcome.SINGULAR.value)

# From times, initial state and inputs to a rollout with as many rows as the one that is checked.
Rollout = Callable[[Float[Array, " n"], State, Signal], Trajectory]


def with_step_error(
    run: Trajectory,
    again: Rollout,
    order: int,
    signal: Signal,
    scale: np.ndarray,
    is_angle: np.ndarray,
    learned: bool,
    rubs: bool = False,
) -> Trajectory:
    """The rollout with the estimate of its integrator's error in its status.

    **Arguments:**

    - `again`: rolls out from another state, at other times, with other inputs.
    - `learned`: whether it is a model whose training may have made up for the integrator's error,
        so that a shorter step need not be better.
    - `rubs`: whether dry friction acts.

    **Returns:**

    The same rows. A rollout that failed, but goes on with shorter steps, has the status
    `STEP_TOO_LONG`.
    """
    status, t = run.status, np.asarray(run.t)
    last, outcome = int(status.step), int(status.code)
    if outcome == Outcome.NEAR_SINGULAR.value or (outcome in _NO_START and last == 0):
        return run
    steps = len(t) - 1
    until = min(last + 1, steps)
    own = before = np.asarray(run.q)[: last + 1]
    error = gap = np.inf
    longest = short = np.max(np.diff(t))
    code, agreed, first = outcome, False, 2 if rubs else 1
    for halvings in range(first, _MOST_HALVINGS + 1):
        if halvings > first and steps * 2**halvings * own.shape[1] > _MOST_NUMBERS:
            break
        motion = _motion(again, run, signal, 2**halvings, until)
        if motion is None:
            return run
        ended, (fine, code) = code, motion
        travel = _travel(fine, scale, is_angle)
        gap = _difference(before, fine, travel) * 2**order / (2**order - 1)
        error = gap if halvings == first else _difference(own, fine, travel)
        # Where both end early, for one reason, it is not the step.
        known = len(fine) > until or code == ended != Outcome.STEP_TOO_LONG.value
        agreed = gap < TOO_LONG and len(fine) == len(before) and known
        if agreed:
            break  # The step before the last is short enough.
        before, short = fine, longest / 2**halvings
    reached = len(before) > until
    if reached and not agreed:
        # None was found, so the order has to tell.
        short = min(short, 2 * short * (TOO_LONG / min(gap, 1.0)) ** (1 / order))
    if last == steps:
        error = error if reached else np.inf
    elif reached:
        outcome = Outcome.STEP_TOO_LONG.value
    elif outcome == Outcome.STEP_TOO_LONG.value:
        outcome = code
    found = (outcome, float(error), np.nan if learned else float(short))
    ends = lambda r: (r.status.code, r.status.error, r.status.short_enough)  # noqa: E731
    return eqx.tree_at(ends, run, tuple(jax.device_put(np.asarray(x)) for x in found))


def _motion(
    again: Rollout, run: Trajectory, signal: Signal, parts: int, until: int
) -> tuple[np.ndarray, int] | None:
    """The rows that are reached, up to `until`, with every step in `parts`, and how it ended.

    None if a part begins so close to a singular configuration that it cannot start there.
    """
    t, steps = np.asarray(run.t), len(run) - 1
    within = np.arange(parts) / parts
    times = np.append((t[:-1, None] + np.diff(t)[:, None] * within).ravel(), t[-1])
    state = State(run.q[0], run.v[0])
    rows, code = [np.asarray(run.q)[:1]], Outcome.COMPLETED.value
    for first in range(0, parts * until, steps):
        some = np.arange(first, first + steps)
        inputs = _shifted(signal, some // parts, times[some] - t[some // parts])
        part = again(jax.device_put(times[first : first + steps + 1]), state, inputs)
        good, code = int(part.status.step), int(part.status.code)
        if first and not good and code in _NO_START:
            return None
        reached = np.arange(first + 1, first + good + 1)
        rows.append(np.asarray(part.q)[1 : good + 1][reached % parts == 0])
        if code != Outcome.COMPLETED.value:
            break
        state = State(*(jax.device_put(np.asarray(x)[-1]) for x in (part.q, part.v)))
    return np.concatenate(rows)[: until + 1], code


def _shifted(signal: Signal, rows: np.ndarray, by: np.ndarray) -> Signal:
    """The inputs of some rows as polynomials of the time that is counted from later on."""
    if signal.coefficients is None:
        return signal
    shifted = np.asarray(signal.coefficients)[rows]
    degree = shifted.shape[1] - 1
    # Horner's scheme for all derivatives.
    for lowest in range(degree):
        for power in range(degree - 1, lowest - 1, -1):
            shifted[:, power] += by[:, None] * shifted[:, power + 1]
    return eqx.tree_at(lambda s: s.coefficients, signal, jax.device_put(shifted))


def _travel(q: np.ndarray, scale: np.ndarray, is_angle: np.ndarray) -> np.ndarray:
    """How far every coordinate moves, by which its error is measured."""
    with np.errstate(all="ignore"):
        moved, size = np.ptp(q, axis=0), np.max(np.abs(q), axis=0)
    for kind in (is_angle, ~is_angle):
        least = _LEAST_PART * np.max(moved[kind], initial=0.0)
        rounding = _ROUNDING * np.maximum(scale[kind], np.max(size[kind], initial=0.0))
        moved[kind] = np.maximum(moved[kind], np.maximum(least, rounding))
    return moved


def _difference(a: np.ndarray, b: np.ndarray, travel: np.ndarray) -> float:
    """The largest of the rows that both have, as a part of the travel."""
    rows = min(len(a), len(b))
    with np.errstate(all="ignore"):
        gaps = np.abs(a[:rows] - b[:rows])
        largest = float(np.max(np.where(gaps > 0, gaps / travel, gaps)))
    return largest if np.isfinite(largest) else np.inf
