"""Which members of an ensemble are still training, and what became of the others."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mbdnode.training.config import TrainingConfig

_ADVICE = "Lower the learning rate, shorten the window, or use precision=float64."


class Roster:
    """The members' losses so far and how each of them ended.

    A member ends by itself: it diverges, or its loss has not fallen for `patience` epochs, as it
    would in a training of its own.

    **Arguments:**

    - `seeds`: one for each member.
    - `config`: of their training.
    """

    def __init__(self, seeds: Sequence[int], config: TrainingConfig):
        self.seeds, self.config = tuple(seeds), config
        self.losses: list[list[float]] = [[] for _ in seeds]
        self.interrupted = False
        self._diverged: dict[int, str] = {}
        self._stopped: set[int] = set()
        self._epochs = 0

    @property
    def flags(self) -> list[bool]:
        """For each member whether it goes on."""
        ended = self._stopped | set(self._diverged)
        return [not self.interrupted and i not in ended for i in range(len(self.seeds))]

    @property
    def going(self) -> bool:
        """Whether any does."""
        return any(self.flags)

    @property
    def counted(self) -> list[int]:
        """The members that make up the ensemble: those that did not diverge, or all."""
        everyone = range(len(self.seeds))
        return [i for i in everyone if i not in self._diverged] or list(everyone)

    def last_loss(self, member: int) -> float:
        """The mean loss of its last epoch; not a number if it never finished one."""
        return self.losses[member][-1] if self.losses[member] else float("nan")

    def note(self, losses: Any, made: Any) -> float | None:
        """Enter an epoch.

        **Arguments:**

        - `losses`, `made`: for each member and update, its loss and whether it was made.

        **Returns:**

        The mean loss of those that went through it; None if none did.
        """
        survived = []
        for i in np.flatnonzero(self.flags):
            if not np.all(made[i]):
                update = self._epochs * made.shape[1] + int(np.argmin(made[i]))
                self._diverged[int(i)] = f"update {update} (epoch {self._epochs})"
                continue
            self.losses[i].append(float(np.mean(losses[i])))
            survived.append(self.losses[i][-1])
            if self._is_stalled(self.losses[i]):
                self._stopped.add(int(i))
        if not survived:
            return None
        self._epochs += 1
        return float(np.mean(survived))

    def interrupt(self) -> None:
        """End all that go on."""
        self.interrupted = self.going

    @property
    def outcome(self) -> str:
        """How the ensemble's training ended, as a word."""
        if len(self._diverged) == len(self.seeds):
            return "diverged"
        if self.interrupted:
            return "interrupted"
        return "completed" if self.going else "stopped"

    @property
    def status(self) -> str:
        """The same as a sentence."""
        patience = self.config.patience
        done = f"after {self._epochs} of {self.config.epochs} epochs"
        if self.outcome == "diverged":
            first = next(iter(self._diverged.values()))
            return (
                "the loss or its gradient was not finite in any member, in the first of them at "
                f"{first}; the weights before it are kept. {_ADVICE}"
            )
        members = f"{len(self.counted)} members"
        parts = {
            "interrupted": f"interrupted {done} of {members}",
            "completed": f"completed {self._epochs} epochs of {members}",
            "stopped": f"stopped {done} of {members}: no loss had fallen for {patience}",
        }[self.outcome]
        if self._stopped and self.outcome != "stopped":
            parts += (
                f"; {self._named(self._stopped)} stopped before, no loss falling for {patience}"
            )
        if self._diverged:
            when = ", ".join(self._diverged[i] for i in sorted(self._diverged))
            parts += (
                f"; {self._named(self._diverged)} diverged at {when} and is left out. {_ADVICE}"
            )
        return parts

    def _named(self, members) -> str:
        return "seed " + ", ".join(str(self.seeds[i]) for i in sorted(members))

    def _is_stalled(self, losses: list[float]) -> bool:
        patience = self.config.patience
        if patience is None or len(losses) <= patience:
            return False
        return min(losses[-patience:]) >= min(losses[:-patience])
