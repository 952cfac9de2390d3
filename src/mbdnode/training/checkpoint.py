"""Checkpoints: training can be killed at any moment and go on to the same bits.

A checkpoint holds weights, optimizer moments and multipliers exactly, the number of finished
epochs and the history. The order of the windows depends on seed and epoch alone. So the epochs
after a checkpoint compute what they would have computed without it.
"""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

from mbdnode.errors import UserError
from mbdnode.models.files import filled, named_arrays, read_arrays, write_arrays


@dataclass(frozen=True)
class Checkpoint:
    """Where and how often to write.

    **Arguments:**

    - `path`: the file; it is replaced whole or not at all.
    - `interval_s`: minimum time between two writings.
    - `resume`: go on from the file if it is there.
    """

    path: Path
    interval_s: float = 10.0
    resume: bool = False

    def of_candidate(self, number: int) -> Path:
        """Where the errors of one of several networks are kept, while they are compared."""
        return self.path.with_name(f"{self.path.stem}-candidate-{number}{self.path.suffix}")


def digest(tree: Any) -> str:
    """What tells the numbers of one tree from those of another."""
    found = hashlib.sha256()
    for leaf in jax.tree.leaves(tree):
        if eqx.is_array_like(leaf):
            found.update(np.asarray(leaf).tobytes())
    return found.hexdigest()


def write_checkpoint(
    path: str | os.PathLike, progress: Any, history: list[dict[str, Any]], identity: Any
) -> None:
    """Write where training stands; `identity` is what must be the same to go on from here."""
    header = {"version": 1, "kind": "checkpoint", "history": history, "identity": identity}
    write_arrays(path, named_arrays(progress), header)


def read_checkpoint(
    path: str | os.PathLike, blank: Any, identity: Any
) -> tuple[Any, list[dict[str, Any]]]:
    """Read it back into the shape of `blank`."""
    arrays, header = read_arrays(path)
    _check_identity(path, header, identity)
    return filled(blank, arrays, path), header["history"]


def _check_identity(path: str | os.PathLike, header: dict[str, Any], identity: Any) -> None:
    if header.get("kind") != "checkpoint" or header.get("version") != 1:
        raise UserError(f"{path} is not a checkpoint that this program can read.")
    before = header["identity"]
    different = [k for k in identity if not _agree(before.get(k), identity[k])]
    if different or before.keys() != identity.keys():
        different = different or sorted(before.keys() ^ identity.keys())
        raise UserError(
            f"{path} belongs to another run: {', '.join(different)} differ. Start anew in another "
            "folder, or resume with the settings of that run."
        )


def _agree(before: Any, now: Any) -> bool:
    """Whether two parts of an identity are the same, settings younger than the file left blank."""
    if isinstance(before, dict) and isinstance(now, dict):
        before = {**{name: "" for name in now.keys() - before.keys()}, **before}
    return before == now


def read_identity(path: str | os.PathLike) -> Any:
    """What is noted of the run that wrote a checkpoint."""
    return read_arrays(path)[1].get("identity", {})


def read_errors(checkpoint: Checkpoint | None, number: int, identity: Any) -> np.ndarray | None:
    """The validation errors of one of several networks, as `write_errors` left them.

    The errors; None where there are none. Raises `UserError` for those of another run.
    """
    if checkpoint is None or not checkpoint.resume:
        return None
    path = checkpoint.of_candidate(number)
    if not path.is_file():
        return None
    arrays, header = read_arrays(path)
    _check_identity(path, header, identity)
    return arrays["errors"]


def write_errors(checkpoint: Checkpoint, number: int, errors: np.ndarray, identity: Any) -> None:
    """Keep what a network reached on the validation split; `identity` is that of its training."""
    header = {"version": 1, "kind": "checkpoint", "identity": identity}
    write_arrays(checkpoint.of_candidate(number), {"errors": errors}, header)


def is_refinement(row: dict[str, Any]) -> bool:
    """Whether a row of the history is an iteration of the refinement; Adam's rate is never zero."""
    return row.get("refinement", row["learning_rate"] == 0.0)
