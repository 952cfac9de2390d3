"""What a controller decided, step by step, and what came of it."""

import enum
from typing import Any

import equinox as eqx
import numpy as np


class Decision(enum.IntEnum):
    """How a control input was found."""

    SOLVED = 0
    SOFTENED = 1
    UNSOLVED = 2
    UNPREDICTED = 3
    UNMEASURED = 4
    NOT_REACHED = 5


SENTENCES = {
    Decision.SOLVED: "solved",
    Decision.SOFTENED: "solved, but the plan leaves a bound on the states",
    Decision.UNSOLVED: "the solver failed, and the last plan was carried on",
    Decision.UNPREDICTED: "the prediction diverged (NaN or Inf), and the last plan was carried on",
    Decision.UNMEASURED: "the measured state was not finite, and the last plan was carried on",
    Decision.NOT_REACHED: "not reached: the plant had failed before",
}
_FALLBACKS = (Decision.UNSOLVED, Decision.UNPREDICTED, Decision.UNMEASURED)


class Decisions(eqx.Module):
    """The decisions of a closed loop, one for each row of its trajectory.

    The last row has no step after it and repeats the decision before it.

    **Arguments:**

    - `code`: a `Decision`.
    - `seconds`: what finding it took, NaN where none was looked for.
    - `error`: the largest error of a controlled state against its reference.
    - `t`: the times.
    - `worst`: index into `names` of the state with that error.
    - `names`: the states.
    """

    code: Any
    seconds: Any
    error: Any
    t: Any
    worst: Any
    names: tuple[str, ...] = eqx.field(static=True)

    @property
    def statuses(self) -> list[str]:
        """A sentence for each decision."""
        return [SENTENCES[Decision(int(code))] for code in self.code]

    @property
    def fallbacks(self) -> int:
        """How many steps were taken by the last plan, for want of a new one."""
        return int(np.count_nonzero(np.isin(np.asarray(self.code)[:-1], _FALLBACKS)))

    @property
    def softened(self) -> int:
        """How many plans left a bound on the states."""
        return int(np.count_nonzero(np.asarray(self.code)[:-1] == Decision.SOFTENED))

    def settled_at(self, tolerance: float = 1e-3) -> float | None:
        """When the error went below the tolerance for good; None if it did not.

        **Arguments:**

        - `tolerance`: for every controlled state, in its own unit.

        **Returns:**

        A time in seconds.
        """
        outside = ~(np.asarray(self.error) < tolerance)
        if outside[-1]:
            return None
        return float(np.asarray(self.t)[np.flatnonzero(outside)[-1] + 1 if outside.any() else 0])

    def verdict(self, tolerance: float = 1e-3) -> str:
        """Whether the loop settled, as a sentence.

        **Arguments:**

        - `tolerance`: as for `settled_at`.

        **Returns:**

        What a user reads.
        """
        reached = np.flatnonzero(np.isfinite(np.asarray(self.error)))
        last = int(reached[-1])
        when = self.settled_at(tolerance)
        if last + 1 < len(np.asarray(self.error)):
            text = f"did not settle: the plant failed after t = {float(self.t[last]):g} s"
        elif when is not None:
            text = f"settled below {tolerance:g} after {when:g} s"
        else:
            name, away = self.names[int(self.worst[last])], float(self.error[last])
            text = (
                f"did not settle below {tolerance:g} within {float(self.t[-1]):g} s: {name} is "
                f"{away:.3g} off at the end"
            )
        text += f"; {self.fallbacks} fallback(s)" if self.fallbacks else ""
        return text + (f"; {self.softened} plan(s) left a bound" if self.softened else "")
