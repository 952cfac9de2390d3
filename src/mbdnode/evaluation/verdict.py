"""The paper's numbers with their source, and how ours compare.

The seed alone moves an error by a factor of two to three, so a median within a factor of three of
the printed number reproduces it; a smaller one is better, a greater one worse.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

SAME = 3.0


@dataclass(frozen=True)
class Reference:
    """One printed number.

    **Arguments:**

    - `model`, `integrator`: what it is of; "-" for a model without an integrator.
    - `value`: the number.
    - `source`: where it is printed.
    - `quantity`: "mse" for an error, "train_seconds" for a time.
    - `incomparable`: why ours cannot be compared with it, if so.
    """

    model: str
    integrator: str
    value: float
    source: str
    quantity: Literal["mse", "train_seconds"] = "mse"
    incomparable: str = ""


@dataclass(frozen=True)
class Verdict:
    """How our number compares.

    **Arguments:**

    - `kind`: the word.
    - `sentence`: with the factor, or the reason.
    """

    kind: Literal["reproduced", "better", "worse", "not comparable", "failed"]
    sentence: str


def judge(values: Sequence[float | None], reference: Reference) -> Verdict:
    """Compare the median of our seeds with the paper's number.

    **Arguments:**

    - `values`: one for each seed; None for a run that failed or left the numbers.
    - `reference`: the paper's.

    **Returns:**

    A `Verdict`.
    """
    found = [math.inf if v is None or math.isnan(v) else v for v in values]
    if not found:
        return Verdict("failed", "There is no finished run.")
    median = statistics.median(found)
    if reference.incomparable:
        return Verdict("not comparable", reference.incomparable)
    if math.isinf(median):
        return Verdict("failed", "At least half of the runs failed or left the numbers.")
    ratio = median / reference.value
    if ratio > SAME:
        return Verdict("worse", f"{_factor(ratio)} times the printed value")
    if ratio < 1 / SAME:
        return Verdict("better", f"{_factor(1 / ratio)} times smaller than printed")
    return Verdict("reproduced", f"{ratio:.2g} times the printed value")


def _factor(ratio: float) -> str:
    return f"{ratio:.2g}" if ratio < 100 else f"{ratio:.0e}"
