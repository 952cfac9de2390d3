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

    COMPLETED = 0
    NOT_FINITE = 1
    CONSTRAINTS_UNSOLVED = 2
    STEP_UNSOLVED = 3
    START_UNSOLVED = 4
    SINGULAR = 5


_SENTENCES = {
    Outcome.NOT_FINITE: (
        "diverged (NaN or Inf)",
        "take a smaller step, or check forces and start",
    ),
    Outcome.CONSTRAINTS_UNSOLVED: (
        "could not close the constraints",
        "take a smaller step, or name other independent coordinates",
    ),
    Outcome.STEP_UNSOLVED: (
        "could not solve the step's own equations",
        "take a smaller step, or looser tolerances",
    ),
    Outcome.SINGULAR: (
        "came to a singular configuration, through which no single smooth branch leads on,",
        "take a smaller step, or avoid it: a start, lengths or a load that lead past it",
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
    """

    code: Int[Array, "*batch"]
    step: Int[Array, "*batch"]
    t: Float[Array, "*batch"]
    coordinate: Int[Array, "*batch"]
    names: tuple[str, ...] = eqx.field(static=True)
    passages: Int[Array, "*batch"]
    passed_t: Float[Array, "*batch"]

    def __init__(self, code, step, t, coordinate, names, passages=None, passed_t=None):
        self.code, self.step, self.t, self.coordinate = code, step, t, coordinate
        self.names = names
        # With NumPy, since JAX would compile it for every shape.
        shape = np.shape(code)
        self.passages = jnp.asarray(np.zeros(shape), int) if passages is None else passages
        self.passed_t = jnp.asarray(np.full(shape, np.nan), float) if passed_t is None else passed_t

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
        if code == Outcome.COMPLETED:
            end = f"completed at t = {float(self.t):g} s (step {int(self.step)})"
            return f"{end}{self._passed()}"
        if code == Outcome.START_UNSOLVED:
            return (
                "the start does not meet the constraints with these independent coordinates: the "
                "constraints may be redundant or singular there; complete it with "
                "consistent_state, or name other independent coordinates"
            )
        what, advice = _SENTENCES[Outcome(int(code))]
        where = f", first in {self.names[int(self.coordinate)]!r}" if self.coordinate >= 0 else ""
        return (
            f"the rollout {what} in the step after t = {float(self.t):g} s "
            f"(step {int(self.step)}){where}; what came before is kept: {advice}"
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


def completed(t: Float[Array, ""], step: Int[Array, ""], names: tuple[str, ...]) -> Status:
    """The status of a rollout that has gone well so far."""
    zero, one_less = (jnp.asarray(x, int) for x in (0, -1))
    return Status(zero, step, t, one_less, names)
