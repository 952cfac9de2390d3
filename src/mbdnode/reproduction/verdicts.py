"""Verdicts: how a median over the seeds compares with the printed number, or by itself.

The seed alone moves an error by a factor of two to three, so a median within a factor of three of
the printed number reproduces it; a smaller one is better, a larger one worse. Where the paper
prints no number, the NRMSE itself is judged.
"""

import math
import statistics
from collections.abc import Sequence

from mbdnode.formatting import ROUND_OFF, as_printed
from mbdnode.models import LAW
from mbdnode.recipes import RECIPES
from mbdnode.report.tables import Verdict
from mbdnode.reproduction.cases.printed import Reference

SAME = 3.0
# What is off by less than a tenth of the motion's standard deviation is accurate: the limit of the
# valid prediction time of fits to logs.
ACCURATE = 0.1
# A law is compared with the paper's own method.
_COUNTERPARTS = {LAW: "mbd-node"}

# The words of a verdict, in the order in which the page counts them, each with a sign for whoever
# does not see its color.
VERDICTS = {
    "reproduced": "\N{CHECK MARK}",
    "better": "\N{BLACK UP-POINTING TRIANGLE}",
    "worse": "\N{BLACK DOWN-POINTING TRIANGLE}",
    "accurate": "\N{CHECK MARK}",
    "inaccurate": "\N{BLACK DOWN-POINTING TRIANGLE}",
    "not comparable": "\N{WHITE CIRCLE}",
    "failed": "\N{MULTIPLICATION X}",
}
_FAILED = Verdict("failed", "Half of the runs or more failed or diverged.")


def printed_error(
    references: Sequence[Reference], model: str, integrator: str, recipe: str
) -> Reference | None:
    """The paper's error that a run answers.

    As printed, model and integrator must be the same. A recipe of its own settings chooses its
    integrator itself, and answers the first error that the paper prints of the model; a law, of
    which the paper has none, that of MBD-NODE.
    """
    mine = _COUNTERPARTS.get(model, model)
    errors = [r for r in references if r.quantity == "mse" and r.model == mine]
    if _is_as_printed(recipe):
        errors = [r for r in errors if r.integrator == integrator]
    return errors[0] if errors else None


def printed_time(
    references: Sequence[Reference], model: str, integrator: str, recipe: str
) -> Reference | None:
    """The paper's time of what a run answers; of other settings that of the error they answer."""
    if not _is_as_printed(recipe):
        error = printed_error(references, model, integrator, recipe)
        if error is None:
            return None
        model, integrator = error.model, error.integrator
    times = [r for r in references if r.quantity == "train_seconds"]
    return next((r for r in times if (r.model, r.integrator) == (model, integrator)), None)


def _is_as_printed(recipe: str) -> bool:
    # Results may be of a recipe that is not known here, by another version or by hand.
    return recipe not in RECIPES or RECIPES[recipe].as_printed


def judge_printed(values: Sequence[float | None], reference: Reference) -> Verdict:
    """The verdict on our seeds' errors beside the paper's number; None is a run that failed."""
    median = median_of_all(values)
    if median is None:
        return _FAILED
    if reference.incomparable:
        return Verdict("not comparable", reference.incomparable)
    if median < ROUND_OFF:
        return Verdict("better", f"round-off: below {as_printed(ROUND_OFF, 1)}")
    ratio = median / reference.value
    if ratio > SAME:
        return Verdict("worse", f"{_factor(ratio)} times the printed value")
    if ratio < 1 / SAME:
        return Verdict("better", f"{_factor(1 / ratio)} times smaller than printed")
    return Verdict("reproduced", f"{_factor(ratio)} times the printed value")


def judge_unprinted(errors: Sequence[float | None]) -> Verdict:
    """The verdict on the NRMSE of our seeds, where the paper prints no number."""
    median = median_of_all(errors)
    if median is None:
        return _FAILED
    told = "round-off" if median**2 < ROUND_OFF else f"NRMSE {100 * median:.2g} %"
    kind = "accurate" if median < ACCURATE else "inaccurate"
    return Verdict(kind, f"{told}; the paper prints no number")


def median_of_all(values: Sequence[float | None]) -> float | None:
    """The median over all seeds, where one that failed is worse than any number."""
    found = [math.inf if v is None or not math.isfinite(v) else v for v in values]
    median = statistics.median(found) if found else math.inf
    return None if math.isinf(median) else median


def _factor(ratio: float) -> str:
    if ratio < 1e5:
        return f"{ratio:.2g}" if ratio < 10 else f"{float(f'{ratio:.2g}'):,.0f}"
    return as_printed(ratio)
