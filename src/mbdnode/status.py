"""How a rollout ended: as numbers while it is traced, as a sentence when it is read.

Inside a compiled rollout nothing can be raised, so each step leaves one of the `Outcome` codes
and the first that is not `COMPLETED` is kept, with the step, the time and the coordinate at
which it happened. Under `jax.vmap` every field gains the batch's leading axis.
"""

import enum

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int

import mbdnode.numerics  # noqa: F401  (float64 before the first array)


class Outcome(enum.IntEnum):
    """What can happen to a rollout."""

    NEAR_SINGULAR = -1
    COMPLETED = 0
    NOT_FINITE = 1
    CONSTRAINTS_UNSOLVED = 2
    STEP_UNSOLVED = 3
    START_UNSOLVED = 4
    SINGULAR = 5
    STEP_TOO_LONG = 6
    START_OFF_CONSTRAINTS = 7
    PARAMETER_OUT_OF_BOUNDS = 8
    TIMES_NOT_INCREASING = 9
    START_NOT_LEARNED = 10


# Of the motion: an error that can be seen in a plot of it.
TOO_LONG = 0.01

_SENTENCES = {
    Outcome.NEAR_SINGULAR: (
        "came close to a singular configuration, or could not take a step,",
        "with cross_singular=True it goes on, or says why",
    ),
    Outcome.NOT_FINITE: (
        "diverged (NaN or Inf)",
        "take a smaller step, or check forces and start",
    ),
    Outcome.CONSTRAINTS_UNSOLVED: (
        "stopped, as the Newton iteration for the dependent coordinates did not converge,",
        "take a smaller step, or name other independent coordinates",
    ),
    Outcome.STEP_UNSOLVED: (
        "could not solve the step's own equations",
        "take a smaller step, or looser tolerances",
    ),
    Outcome.SINGULAR: (
        "came to a bifurcation, a singular configuration with no unique smooth continuation,",
        "take a smaller step, or avoid it: a start, lengths or a load that lead past it",
    ),
    Outcome.STEP_TOO_LONG: (
        "could not follow the motion, since the step is too long,",
        "take a smaller step, that is, closer times",
    ),
}
# What `simulate` raises for plain numbers. Those of a traced call are not known when it is called.
_REFUSED = {
    Outcome.START_UNSOLVED: (
        "the start is not finite, or does not meet the constraints with these independent "
        "coordinates: they may be redundant or singular there; complete it with consistent_state, "
        "or name other independent coordinates"
    ),
    Outcome.START_OFF_CONSTRAINTS: (
        "the initial state is off the constraint manifold; complete it with consistent_state"
    ),
    Outcome.PARAMETER_OUT_OF_BOUNDS: (
        "a parameter is not a number within its bounds; outside of jit and vmap, simulate names it"
    ),
    Outcome.TIMES_NOT_INCREASING: (
        "the times do not increase, or are not finite; sort them and drop repetitions"
    ),
    Outcome.START_NOT_LEARNED: (
        "the forecaster has not learned this start, or this step; outside of jit and vmap, "
        "simulate says what it has learned"
    ),
}


class Status(eqx.Module):
    """The end of a rollout.

    **Arguments:**

    - `code`: an `Outcome`.
    - `step`: the index of the last good state, which is the last one if all went well.
    - `t`: the time of that state.
    - `coordinate`: index into the coordinates of the first offender; -1 if there is none.
    - `names`: the coordinates' names.
    - `passages`: how many singular configurations were passed, where the constraints lose a rank
        and the motion went on along its own branch; none by default.
    - `passed_t`: about when the first of them was met; NaN if there was none.
    - `error`: the estimated error of the integrator, the largest of any coordinate at any time as a
        part of that coordinate's travel; NaN if it was not estimated, as under `jit` and `vmap`.
    - `short_enough`: the longest step, of those tried, with an error below `TOO_LONG`; NaN if the
        error was not estimated, or is that of a learned model.
    """

    code: Int[Array, "*batch"]
    step: Int[Array, "*batch"]
    t: Float[Array, "*batch"]
    coordinate: Int[Array, "*batch"]
    names: tuple[str, ...] = eqx.field(static=True)
    passages: Int[Array, "*batch"]
    passed_t: Float[Array, "*batch"]
    error: Float[Array, "*batch"]
    short_enough: Float[Array, "*batch"]

    def __init__(self, code, step, t, coordinate, names, passages=None, passed_t=None):
        self.code, self.step, self.t, self.coordinate = code, step, t, coordinate
        self.names = names
        # With NumPy, since JAX would compile it for every shape.
        shape = np.shape(code)
        unknown = jnp.asarray(np.full(shape, np.nan), float)
        self.passages = jnp.asarray(np.zeros(shape), int) if passages is None else passages
        self.passed_t = unknown if passed_t is None else passed_t
        self.error = self.short_enough = unknown

    @property
    def ok(self) -> Bool[Array, "*batch"]:
        """Whether the rollout reached its last time."""
        code = self.code if isinstance(self.code, Tracer) else np.asarray(self.code)
        return jnp.asarray(code == Outcome.COMPLETED.value, bool)

    def __str__(self) -> str:
        code = np.asarray(self.code)
        if code.ndim:
            failed = int(np.count_nonzero(code))
            return f"{code.size - failed} of {code.size} rollouts completed"
        outcome = Outcome(int(code))
        if outcome == Outcome.COMPLETED:
            end = f"completed at t = {float(self.t):g} s (step {int(self.step)})"
            return f"{end}{self._passed()}{self._doubt()}"
        if outcome in _REFUSED:
            return _REFUSED[outcome]
        what, advice = _SENTENCES[outcome]
        if outcome == Outcome.STEP_TOO_LONG and not np.isnan(self.short_enough):
            advice = f"take dt below {_rounded_down(float(self.short_enough))} s"
        where = f", first in {self.names[int(self.coordinate)]!r}" if self.coordinate >= 0 else ""
        return (
            f"the rollout {what} in the step after t = {float(self.t):g} s "
            f"(step {int(self.step)}){where}; what came before is kept: {advice}"
        )

    @property
    def too_long(self) -> bool:
        """Whether a single rollout has an error of its integrator that can be seen."""
        return bool(self.error > TOO_LONG and not np.isnan(self.short_enough))

    def _doubt(self) -> str:
        if not self.error > TOO_LONG:
            return ""
        part = f"about {100 * float(self.error):.0f} % of" if self.error < 1 else "as large as"
        if not self.too_long:
            return (
                f"; shorter steps differ by {part} the motion: a learned model may have made up "
                "for the errors of its step, so keep to that of its training"
            )
        return (
            f"; the step is too long: error {part} the motion, take dt below "
            f"{_rounded_down(float(self.short_enough))} s"
        )

    def _passed(self) -> str:
        count = int(self.passages)
        if np.isnan(self.passed_t):
            return ""
        if count < 2:
            return f", past a singular configuration near t = {float(self.passed_t):g} s"
        return (
            f", past {count} singular configurations, the first near t = {float(self.passed_t):g} s"
        )


def _rounded_down(number: float) -> str:
    """Two digits, of which the last is not rounded up."""
    unit = 10.0 ** (np.floor(np.log10(number)) - 1)
    return f"{np.floor(number / unit * (1 + 1e-9)) * unit:.2g}"


def completed(t: Float[Array, ""], step: Int[Array, ""], names: tuple[str, ...]) -> Status:
    """The status of a rollout that has gone well so far."""
    zero, one_less = (jnp.asarray(x, int) for x in (0, -1))
    return Status(zero, step, t, one_less, names)
