"""The statuses that an exported model returns, with a sentence for each."""

from mbdnode.simulation.rollout import NEEDS_PASSAGE
from mbdnode.status import Outcome

STATUS_TEXTS = (
    ("COMPLETED", Outcome.COMPLETED.value, "all is well"),
    ("NOT_FINITE", Outcome.NOT_FINITE.value, "diverged (NaN or Inf): take a smaller step"),
    (
        "CONSTRAINTS_UNSOLVED",
        Outcome.CONSTRAINTS_UNSOLVED.value,
        "could not close the constraints: take a smaller step",
    ),
    (
        "STEP_UNSOLVED",
        Outcome.STEP_UNSOLVED.value,
        "could not solve the equations of the step: take a smaller one",
    ),
    (
        "START_UNSOLVED",
        Outcome.START_UNSOLVED.value,
        "no consistent state with the known values near the guess",
    ),
    ("SINGULAR", Outcome.SINGULAR.value, "came to a singular configuration"),
    (
        "NEEDS_PASSAGE",
        NEEDS_PASSAGE,
        "a singular configuration is near: the step was taken, with less accuracy",
    ),
)
