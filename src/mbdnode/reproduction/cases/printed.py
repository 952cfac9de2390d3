"""What the paper prints of a case: its numbers with their source, and its figures."""

import math
from dataclasses import dataclass
from typing import Literal

from mbdnode.errors import UserError


@dataclass(frozen=True)
class Exhibit:
    """One of the paper's figures, and how ours is drawn.

    **Arguments:**

    - `label`: the paper's own, such as "fig:smsd_xvt".
    - `kind`: a key of `DRAWERS` in `reproduction/figures.py`.
    - `caption`: what it shows.
    """

    label: str
    kind: str
    caption: str


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
