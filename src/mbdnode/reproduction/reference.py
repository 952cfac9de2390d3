"""The paper's numbers with their source, and how ours compare.

The seed alone moves an error by a factor of two to three, so a median within a factor of three of
the printed number reproduces it; a smaller one is better, a larger one worse. Of a study for which
the paper prints no number, the NRMSE itself is judged.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mbdnode.errors import UserError
from mbdnode.formatting import ROUND_OFF, as_printed
from mbdnode.models import LAW
from mbdnode.recipes import RECIPES
from mbdnode.report.tables import Verdict

SAME = 3.0
# Of a study for which the paper prints a figure at most: what is off by less than a tenth of the
# motion's standard deviation is accurate. The fits to logs are trusted up to the same part.
ACCURATE = 0.1
# A law is compared with the paper's own method.
_COUNTERPARTS = {LAW: "mbd-node"}

# The words of a verdict, in the order in which the page counts them.
VERDICTS = ("reproduced", "better", "worse", "accurate", "inaccurate", "not comparable", "failed")


@dataclass(frozen=True)
class Exhibit:
    """One of the paper's figures, and how ours is drawn.

    **Arguments:**

    - `label`: the paper's own, such as "fig:smsd_xvt".
    - `kind`: a key of `DRAWERS` in `reproduction/report/figures.py`.
    - `caption`: what it shows.
    - `columns`: the coordinates that it shows, by name; all that move if none is named.
    """

    label: str
    kind: str
    caption: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reference:
    """One printed number.

    **Arguments:**

    - `model`, `integrator`: what it is of; "-" for a model without an integrator.
    - `value`: the number.
    - `source`: where it is printed.
    - `quantity`: "mse" for an error, "train_seconds" for a time.
    - `incomparable`: why ours cannot be compared with it, if so.
    - `tables`: the labels of the paper's tables that print it, if not the one that prints all
        numbers of this kind.
    - `setting`: what else the table says of it, such as its coordinate system.
    """

    model: str
    integrator: str
    value: float
    source: str
    quantity: Literal["mse", "train_seconds"] = "mse"
    incomparable: str = ""
    tables: tuple[str, ...] = ()
    setting: str = ""

    def __post_init__(self):
        if not (math.isfinite(self.value) and self.value > 0):
            raise UserError(
                f"The paper's number for {self.model!r} is {self.value}; it must be above zero and "
                "finite. Leave the reference out if the paper prints none."
            )


def is_answered_by(
    reference: Reference, references: Sequence[Reference], model: str, integrator: str, recipe: str
) -> bool:
    """Whether a run answers one of the paper's numbers.

    As printed, model and integrator must be the same. A recipe of its own settings chooses its
    integrator itself, and answers the first error that the paper prints of the model; a law, of
    which the paper has none, that of MBD-NODE.

    **Arguments:**

    - `reference`, `references`: the number, and all of the case.
    - `model`, `integrator`, `recipe`: of the run.
    """
    counterpart = _COUNTERPARTS.get(model, model)
    if reference.model != counterpart:
        return False
    # Results may be of a recipe that is not known here, by another version or by hand.
    if recipe not in RECIPES or RECIPES[recipe].as_printed:
        return reference.integrator == integrator
    errors = [r for r in references if r.model == counterpart and r.quantity == "mse"]
    return bool(errors) and reference == errors[0]


def judge_printed(values: Sequence[float | None], reference: Reference) -> Verdict:
    """Compare the median of our seeds with the paper's number.

    **Arguments:**

    - `values`: one for each seed; None for a run that failed or diverged.
    - `reference`: the paper's.

    **Returns:**

    A `Verdict`.
    """
    if not values:
        return Verdict("failed", "There is no finished run.")
    median = median_of_all(values)
    if median is None:
        return Verdict("failed", "Half of the runs or more failed or diverged.")
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
    """Judge a study of which the paper prints no number.

    **Arguments:**

    - `errors`: the NRMSE of each seed, as a fraction; None for a run that failed.

    **Returns:**

    A `Verdict`: "accurate" below 10 %.
    """
    median = median_of_all(errors)
    if median is None:
        return Verdict("failed", "Half of the runs or more failed or diverged.")
    told = "round-off" if median**2 < ROUND_OFF else f"NRMSE {100 * median:.2g} %"
    kind = "accurate" if median < ACCURATE else "inaccurate"
    return Verdict(kind, f"{told}; the paper prints no number")


def median_of_all(values: Sequence[float | None]) -> float | None:
    """The median over all seeds, where one that failed is worse than any number.

    **Arguments:**

    - `values`: one for each seed; None, or not a finite number, for a failure.

    **Returns:**

    The median, or None where it is a failure, or where there are no seeds.
    """
    found = [math.inf if v is None or not math.isfinite(v) else v for v in values]
    median = statistics.median(found) if found else math.inf
    return None if math.isinf(median) else median


def _factor(ratio: float) -> str:
    if ratio < 1e5:
        return f"{ratio:.2g}" if ratio < 10 else f"{float(f'{ratio:.2g}'):,.0f}"
    return as_printed(ratio)
