"""A fit that was not finished: what is kept of it in its folder, and how it goes on.

While a fit runs, its folder has a part `unfinished` with every candidate, structure and stage that
is done (`mbdnode.identification.search_checkpoint`), and `identity.json`, which says of what: the
settings, a digest of every number that was read, the mechanism, the versions of what computes. A
fit that goes on must have the same, so that it ends where it would have ended, to the bit. A result
that is in the folder already stays until the new one takes its place as a whole, and then this part
goes with the old one.
"""

import contextlib
import hashlib
import importlib.metadata
import inspect
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mbdnode.config import to_dict
from mbdnode.data.files import MARKER, read_json, write_json
from mbdnode.data.folders import IDENTITY, UNFINISHED, check_begun, check_folder, open_folder
from mbdnode.errors import UserError
from mbdnode.identification.search_checkpoint import SearchCheckpoint
from mbdnode.mechanisms.described import AbstractDescribed
from mbdnode.parallel import ClusterLost
from mbdnode.training.checkpoint import digest
from mbdnode.workflow.config import KIND, FitConfig
from mbdnode.workflow.fitted import Prepared

_PACKAGES = ("mbdnode", "jax", "jaxlib", "numpy", "scipy")


def check_resume(path: Path, config: FitConfig) -> None:
    """Raise `UserError` unless a fit with these settings was begun in a folder and not finished."""
    _compare(path, read_json(check_begun(path, KIND)), {"settings": _settings(config)})


@contextmanager
def keeping(path: Path, prepared: Prepared, *, resume: bool) -> Iterator[SearchCheckpoint]:
    """A `SearchCheckpoint` in the folder of a fit; what is there is removed unless it is resumed.

    It stays if the process is killed, and goes if the fit ends with a `UserError`. Raises
    `UserError` if data, settings, mechanism or versions are others.
    """
    identity = _identity(prepared)
    folder = check_folder(path, KIND)
    place, new = folder / UNFINISHED, not folder.exists()

    def begin(folder: Path) -> None:
        (folder / UNFINISHED).mkdir(exist_ok=True)
        try:
            write_json(folder / UNFINISHED / IDENTITY, identity)
        except OSError:
            shutil.rmtree(folder / UNFINISHED, ignore_errors=True)
            raise

    if resume:
        _compare(path, read_json(place / IDENTITY), identity)
    else:
        shutil.rmtree(place, ignore_errors=True)
    open_folder(folder, KIND, [UNFINISHED], begin)
    # Two fits with one folder must not take each other's candidates for their own.
    name = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
    try:
        yield SearchCheckpoint(place / name)
    except ClusterLost:
        raise  # What is done is kept, as it is where this process is killed.
    except UserError:
        shutil.rmtree(place, ignore_errors=True)
        if new:
            (folder / MARKER).unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise


def how_to_resume(path: Path) -> str:
    """What to say to who interrupts a fit."""
    return f"What is done is in '{path}'; the same command with --resume goes on from there.\n"


def _settings(config: FitConfig) -> Any:
    """As JSON gives them back."""
    return json.loads(json.dumps(to_dict(config), default=str))


def _identity(prepared: Prepared) -> dict[str, Any]:
    data, stream = prepared.data, prepared.stream
    read = digest(
        (data.training.trajectories, data.training.parameters, [run[1:] for run in data.held_out])
    )
    if stream is not None:
        read = f"{read} {stream.identity}"
    return {
        "settings": _settings(prepared.config),
        "logs": read,
        "mechanism": _mechanism_identity(prepared.system),
        "versions": {name: importlib.metadata.version(name) for name in _PACKAGES},
    }


def _mechanism_identity(system: Any) -> str:
    """Of its file, or of the class that somebody wrote and may have changed."""
    if isinstance(system, AbstractDescribed):
        text = json.dumps(system.to_dict(), default=str)
    else:
        try:
            text = inspect.getsource(type(system))
        except (OSError, TypeError):  # Typed in, and not in a file.
            text = type(system).__qualname__
    return hashlib.sha256(f"{text} {digest(system)}".encode()).hexdigest()


def _compare(path: Path, before: Any, now: dict[str, Any]) -> None:
    """Raise `UserError` if what a fit was begun with is not what is to go on."""
    words = {
        "settings": "its settings",
        "logs": "what its logs hold",
        "mechanism": "its mechanism",
        "versions": "the versions of mbdnode, JAX, NumPy or SciPy",
    }
    changed = [words[key] for key, value in now.items() if before.get(key) != value]
    if changed == [words["settings"]]:
        names = [k for k, x in now["settings"].items() if before["settings"].get(k) != x]
        changed = [f"{words['settings']} ({', '.join(names)})"]
    if changed:
        raise UserError(
            f"The fit in '{path}' cannot go on: {' and '.join(changed)} changed since it was "
            "begun. Give it what it had, or leave --resume out to begin anew."
        )
