"""Files that are replaced whole or not at all; and where one may be read and written.

The content goes to a temporary file in the destination's own directory, which then takes the
destination's name in one step of the file system. A reader, or a crash, sees the old file or the
new one and never a part. Files to be read are found and checked here, too, with nothing loaded.
"""

import fnmatch
import glob
import json
import math
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from mbdnode.config import as_path
from mbdnode.errors import UserError

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
# Of the formats of trajectories.
SUFFIXES = (".csv", ".parquet")
# In every folder of results: by which command it was written, and what belongs to it.
MARKER = "mbdnode.json"
# What is being written at this moment, for a process that ends without a further line.
_PARTS: set[Path] = set()


@contextmanager
def temporary_beside(path: Path) -> Iterator[Path]:
    """A name in the same directory for what is being written; what has it at the end is removed."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    _PARTS.add(part)
    try:
        yield part
    finally:
        _remove(part)  # Nothing, after a rename.
        _PARTS.discard(part)


def remove_parts() -> None:
    """Remove what is being written, before the process ends at once."""
    for part in list(_PARTS):
        _remove(part)


def _remove(part: Path) -> None:
    if part.is_dir():
        shutil.rmtree(part, ignore_errors=True)
    else:
        part.unlink(missing_ok=True)


def replace_file(destination: Path, fill: Callable[[IO[bytes]], Any]) -> None:
    """Write a file by `fill`, or leave what was there; an existing file keeps its permissions."""
    destination = _followed(destination)
    try:
        with temporary_beside(destination) as part:
            with open(part, "xb") as file:
                fill(file)
                file.flush()
                os.fsync(file.fileno())
            if destination.exists():
                shutil.copymode(destination, part)
            os.replace(part, destination)
    except OSError as error:
        was = "It is as it was" if destination.exists() else "It is not there"
        raise OSError(
            f"Writing '{destination}' failed: {reason_of(error)}. {was}; check the disk's free "
            "space and the directory's permissions, or choose another place."
        ) from error


def reason_of(error: Exception) -> str:
    """What the system has against a file, in its own words."""
    cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
    return getattr(cause, "strerror", None) or str(cause)


def read_json(path: Path) -> Any:
    """What a JSON file holds. Raises `UserError` for a file that cannot be read as one."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(
            f"'{path}' cannot be read: {error.strerror}. Change its permissions, or copy it again "
            "from where it was written."
        ) from error
    except (ValueError, RecursionError) as error:  # Not text, not JSON, or nested without an end.
        raise UserError(
            f"'{path}' is not JSON ({error}), so it was damaged or changed. Copy it again from "
            "where it was written, or run again the command that wrote it."
        ) from error


def write_json(path: Path, values: Any) -> None:
    """Write plain data; what is not a number is null."""
    text = json.dumps(_without_nan(values), indent=2, allow_nan=False) + "\n"
    replace_file(path, lambda file: file.write(text.encode()))


def _without_nan(values: Any) -> Any:
    if isinstance(values, dict):
        return {key: _without_nan(value) for key, value in values.items()}
    if isinstance(values, (list, tuple)):
        return [_without_nan(value) for value in values]
    return None if isinstance(values, float) and not math.isfinite(values) else values


def read_marker(path: Path) -> dict[str, Any] | None:
    """What a folder says of itself: "kind" and "files"; None if it says nothing."""
    if not (path / MARKER).is_file():
        return None
    found = read_json(path / MARKER)
    try:
        return {"kind": str(found["kind"]), "files": tuple(map(str, found["files"]))}
    except (KeyError, TypeError) as error:
        raise UserError(
            f"'{path / MARKER}' does not say what the folder is. Remove that folder, or choose "
            "another."
        ) from error


def find_files(paths: Any) -> list[Path]:
    """The files that are meant, patterns written out, in the order of their names.

    **Arguments:**

    - `paths`: a path or a pattern such as `runs/*.csv`, or several.

    **Returns:**

    At least one path. Raises `UserError` for a pattern that nothing matches.
    """
    if isinstance(paths, (str, os.PathLike)) or not isinstance(paths, Iterable):
        paths = [paths]
    found: list[Path] = []
    for one in paths:
        text = str(as_path(one))
        if glob.has_magic(text) and not os.path.exists(text):
            matching = [p for p in sorted(glob.glob(text, recursive=True)) if os.path.isfile(p)]
            if not matching:
                raise UserError(f"No file matches '{text}'. Check the pattern, or where you are.")
            found += map(Path, matching)
        else:
            found.append(must_be_file(text))
    if not found:
        raise UserError("No log was named. Give at least one file, or a pattern like 'runs/*.csv'.")
    return list(dict.fromkeys(found))


def must_be_file(path: str | os.PathLike[str]) -> Path:
    """Raise `UserError` unless a file can be opened for reading, and has content."""
    path = Path(path)
    check_path(path)
    if path.is_dir():
        raise UserError(f"'{path}' is a directory. Name its files, for instance '{path}/*.csv'.")
    if not path.exists():
        raise UserError(f"There is no file '{path}'. Check the name, or where you are.")
    if not path.is_file():
        raise UserError(f"'{path}' is not a regular file. Copy its content to one.")
    if not os.access(path, os.R_OK):
        raise UserError(f"'{path}' may not be read. Change its permissions.")
    if path.stat().st_size == 0:
        raise UserError(
            f"'{path}' is empty. Name a file that is not, or leave it out where there are others."
        )
    return path


def check_path(path: Path) -> None:
    """Raise `UserError` for what can be the path of no file.

    Such are names that are too long, links that lead in a circle, and what lies in a directory that
    nobody may look into.
    """
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError) as error:  # A NUL character is a `ValueError`.
        raise UserError(
            f"{str(path)!r} cannot be reached: {reason_of(error)}. Choose another name."
        ) from None


def _followed(path: Path) -> Path:
    """A path that a file may take, links followed."""
    check_path(path)
    path = path.resolve()
    if path.is_dir():
        raise UserError(f"'{path}' is a directory. Name a file inside it.")
    # A rename would put a file in place of a device or a pipe.
    if path.exists() and not path.is_file():
        raise UserError(f"'{path}' is not a regular file. Choose another name.")
    if path.exists() and not os.access(path, os.W_OK):
        raise UserError(
            f"'{path}' exists and is write-protected. Choose another name, or change its "
            "permissions."
        )
    return path


def check_writable(path: Path) -> None:
    """Raise `UserError` unless a file or folder can be made there, by making one that goes at once.

    Some file systems, such as /proc, let nobody write, whatever the permissions say.
    """
    if not path.parent.is_dir():
        raise UserError(f"'{path.parent}' is not a directory. Create it, or choose another.")
    try:
        with temporary_beside(path) as probe:
            probe.touch(exist_ok=False)
    except (OSError, ValueError) as error:
        raise UserError(
            f"'{path}' cannot be written to: {reason_of(error)}. Choose another name or directory, "
            "or change the directory's permissions."
        ) from None


def check_new_file(path: str | os.PathLike[str]) -> Path:
    """Raise `UserError` unless a file can be made where there is none, nor a broken link."""
    path = Path(path)
    if os.path.lexists(path):
        raise UserError(f"'{path}' exists already. Name another file, or remove it.")
    check_writable(path)
    return path


def check_destination(path: str | os.PathLike[str], suffixes: tuple[str, ...] = SUFFIXES) -> Path:
    """Raise `UserError` unless a file could be written there, so that nothing is computed in vain.

    **Arguments:**

    - `path`: where a file is to go.
    - `suffixes`: what it may end in; by default those of a trajectory that `mbdnode.write` knows.

    **Returns:**

    The path, with links followed.
    """
    path = as_path(path)
    if path.suffix.lower() not in suffixes:
        raise UserError(
            f"Cannot tell the format of '{path}' from its suffix '{path.suffix}'. "
            f"End the name in {' or '.join(suffixes)}."
        )
    place = _followed(path)
    check_writable(place)
    found = read_marker(place.parent) if place.exists() else None
    if found is not None and any(fnmatch.fnmatchcase(place.name, own) for own in found["files"]):
        raise UserError(
            f"'{path}' belongs to a result of `mbdnode {found['kind']}`. Choose another name."
        )
    return place


def check_apart(out: str | os.PathLike[str], *sources: str | os.PathLike[str] | None) -> None:
    """Raise `UserError` where a command would write to the files, folders or patterns it reads.

    Places are compared by what they are on the disk, so that another path or a link is no other
    place.
    """
    # What is written is resolved first, and `missing/../run.csv` is then `run.csv`.
    place = Path(out).resolve()
    # A link inside of a folder would be followed when the file of that name is written.
    written = {*_identities([place, *(place.iterdir() if place.is_dir() else ())])}
    around = {*_identities(place.parents)}
    for source in filter(None, sources):
        text = os.fspath(source)
        for path in [text] if os.path.exists(text) else glob.glob(text, recursive=True):
            if written & {*_identities([path, *Path(path).resolve().parents])} or (
                around & {*_identities([path])}
            ):
                raise UserError(
                    f"'{out}' is, holds or lies in '{path}', which is read and must stay as it is. "
                    "Choose another place to write to."
                )


def _identities(paths: Iterable[str | Path]) -> dict[tuple[int, int], Path]:
    """What is there, by what it is on the disk."""
    found: dict[tuple[int, int], Path] = {}
    for path in filter(os.path.exists, paths):
        stat = os.stat(path)
        found.setdefault((stat.st_dev, stat.st_ino), Path(path))
    return found


def separate_files(
    files: Sequence[Path], held_out: Sequence[Path]
) -> tuple[list[Path], list[Path]]:
    """Files to train on and files to judge by, each file once and none of them in both.

    **Arguments:**

    - `files`: what was named to be learned from; held-out files among them are left out.
    - `held_out`: what was named to be held out.

    Files are compared by what they are on the disk, so that another path, a pattern or a link makes
    no other file. Raises `UserError` if nothing is left to learn from.
    """
    judged = _identities(held_out)
    trained = {key: path for key, path in _identities(files).items() if key not in judged}
    if files and not trained:
        raise UserError(
            f"Every log is held out ({', '.join(map(str, judged.values()))}), so there is nothing "
            "to learn from. Name other logs, or hold out fewer."
        )
    return list(trained.values()), list(judged.values())
