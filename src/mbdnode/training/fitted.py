"""What training gives back."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Fit:
    """A trained model and how it came about.

    **Arguments:**

    - `model`: with the last good weights.
    - `history`: for each epoch its number, mean loss, learning rate and seconds; iterations of a
        refinement follow, with a learning rate of zero.
    - `status`: how training ended, as a sentence.
    - `outcome`: the same as a word: completed, stopped, interrupted, or diverged.
    - `updates`: how many were made, in all.
    - `train_seconds`, `compile_seconds`: apart from each other.
    - `diagnostics`: what a user should know of the trained model, by name.
    """

    model: Any
    history: list[dict[str, Any]]
    status: str
    outcome: str
    updates: int
    train_seconds: float
    compile_seconds: float
    diagnostics: dict[str, Any] = field(default_factory=dict)
