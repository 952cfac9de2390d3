"""The refinement of an ensemble: one member after the other, since each has a large Jacobian."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mbdnode.training.engine import Progress, Task
from mbdnode.training.refinement import refine


@dataclass(frozen=True)
class Refinements:
    """Where the members of an ensemble stand at the end of their training.

    **Arguments:**

    - `members`: the progress of each.
    - `losses`: the last loss of each.
    - `status`, `outcome`: how their refinement ended, as an addition to a sentence and as a word;
        empty if there was none.
    - `iterations`: how many were made, in all.
    - `compile_seconds`: that it took.
    """

    members: list[Progress]
    losses: list[float]
    status: str = ""
    outcome: str = ""
    iterations: int = 0
    compile_seconds: float = 0.0


def refine_members(
    task: Task, given: Refinements, history: list[dict[str, Any]], report: Callable | None
) -> Refinements:
    """Refine every member as `fit` would refine it alone.

    **Arguments:**

    - `task`: with the data to fit.
    - `given`: where the members stand.
    - `history`: of the epochs; a row is added for each iteration, with the members' mean loss.
    - `report`: called with each of these rows, when all members are done.

    **Returns:**

    Where they stand now. Ctrl-C ends it after the running iteration; the members after that one
    are then as they were.
    """
    members, losses = list(given.members), list(given.losses)
    added: list[list[dict[str, Any]]] = []
    compile_s, outcome = 0.0, "completed"
    for number, member in enumerate(given.members):
        own = list(history)
        members[number], outcome, _, seconds = refine(task, member, own, None, _keep_nothing)
        compile_s += seconds
        added.append(own[len(history) :])
        losses[number] = own[-1]["loss"]
        if outcome == "interrupted":
            break
    counts = [len(rows) for rows in added]
    for row in _merged(added, len(history)):
        history.append(row)
        if report is not None:
            report(row, task.config.epochs + task.config.refinement)
    status = f"; refined {min(counts)} to {max(counts)} times"
    if outcome == "interrupted":
        status = f"; interrupted in the refinement of member {len(counts)} of {len(members)}"
    return Refinements(members, losses, status, outcome, sum(counts), compile_s)


def _keep_nothing(progress: Progress, at_an_end: bool) -> None:
    """An ensemble has no checkpoint."""


def _merged(added: list[list[dict[str, Any]]], first: int) -> list[dict[str, Any]]:
    """One row an iteration; a member that has settled counts with its last loss."""
    rows = []
    for k in range(max(len(own) for own in added)):
        reached = [own[min(k, len(own) - 1)]["loss"] for own in added if own]
        spent = [own[k]["seconds"] for own in added if k < len(own)]
        rows.append(
            {
                "epoch": first + k,
                "loss": float(np.mean(reached)),
                "learning_rate": 0.0,
                "seconds": float(sum(spent)),
            }
        )
    return rows
