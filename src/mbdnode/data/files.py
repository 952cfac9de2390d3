"""Files that are replaced whole or not at all; and where one may be written.

The content goes to a temporary file in the destination's own directory, which then takes the
destination's name in one step of the file system. A reader, or a crash, sees the old file or the
new one and never a part. Files to be read are found and checked here, too, with nothing loaded.
"""

import errno
import fnmatch
import glob
import json
import math
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
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
# So many characters a temporary name has more than the one that it stands for.
_TEMPORARY = len("..01234567.part")


@contextmanager
def temporary_beside(path: Path) -> Iterator[Path]:
    """A name in the same directory for what is being written; what has it at the end is removed."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    _PARTS.add(part)
    try:
        yield part
    finally:
        # Also on an interrupt. After a rename there is nothing to remove, or what was replaced.
        _remove(part)
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
    """Write a file, or leave what was there.

    **Arguments:**

    - `destination`: where; an existing file keeps its permissions. What is no regular file, such as
        a device, is refused.
    - `fill`: writes the content to the binary file that it is given.
    """
    check_path(destination, to_write=True)
    destination = destination.resolve()
    _check_regular(destination)
    try:
        with temporary_beside(destination) as temporary:
            with open(temporary, "xb") as file:
                fill(file)
                file.flush()
                os.fsync(file.fileno())
            if destination.exists():
                shutil.copymode(destination, temporary)
            os.replace(temporary, destination)
    except OSError as error:
        was = "It is as it was" if destination.exists() else "It is not there"
        raise OSError(
            f"Writing '{destination}' failed: {error.strerror or error}. {was}; check the disk's "
            "free space and the directory's permissions, or choose another place."
        ) from error


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
    """JSON has no NaN: what is not a number is null."""
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
        if not glob.has_magic(text):
            check_path(Path(text))
        if not os.path.exists(text) and glob.has_magic(text):
            matching = sorted(Path(p) for p in glob.glob(text, recursive=True))
            matching = [path for path in matching if path.is_file()]
            if not matching:
                raise UserError(f"No file matches '{text}'. Check the pattern, or where you are.")
            found += matching
        else:
            found.append(must_be_file(text))
    if not found:
        raise UserError("No log was named. Give at least one file, or a pattern like 'runs/*.csv'.")
    return list(dict.fromkeys(found))


def must_be_file(path: str | os.PathLike[str]) -> Path:
    """Raise `UserError` unless a file can be opened for reading."""
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


def check_path(path: Path, *, to_write: bool = False) -> None:
    """Raise `UserError` for a path that can be that of no file, or whose links lead in a circle.

    **Arguments:**

    - `path`: to what is to be read or written.
    - `to_write`: whether a temporary name, which is longer, must be possible beside it.
    """
    try:
        for place in (path, f"{path}{'-' * _TEMPORARY}")[: 1 + to_write]:
            # What is not there may be made, or is refused by who knows for what it was meant.
            with suppress(FileNotFoundError, NotADirectoryError):
                os.stat(place)
    except ValueError:
        raise UserError(f"{str(path)!r} holds a NUL character. Choose another name.") from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise UserError(
                f"The name '{path}' is too long for this file system. Choose a shorter one."
            ) from None
        if error.errno != errno.ELOOP:
            raise
        raise UserError(f"The links in '{path}' lead in a circle. Choose another.") from None


def _check_regular(path: Path) -> None:
    """A rename would put a file in place of a device or a pipe, also where it is the system's."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise OSError(f"'{path}' is not a regular file. Choose another name.")


def check_new_file(path: str | os.PathLike[str]) -> Path:
    """Raise `UserError` unless a file can be made there, in place of none; also of a broken link.

    **Arguments:**

    - `path`: of the file.

    **Returns:**

    The path.
    """
    path = Path(path)
    check_path(path, to_write=True)
    if os.path.lexists(path):
        raise UserError(f"'{path}' exists already. Name another file, or remove it.")
    if not path.parent.is_dir():
        raise UserError(f"There is no directory '{path.parent}'. Create it, or choose another.")
    if not can_write_in(path.parent):
        raise UserError(f"'{path.parent}' cannot be written to. Choose another directory.")
    return path


def check_apart(out: str | os.PathLike[str], *sources: str | os.PathLike[str] | None) -> None:
    """Raise `UserError` where a command would write to what it reads.

    **Arguments:**

    - `out`: the file or folder that is to be written.
    - `sources`: files, folders and patterns that are read; None, or a name without a file, is none.

    Places are compared by what they are on the disk, so that another path or a link is no other
    place.
    """
    out = Path(out)
    # A link inside of a folder would be followed when the file of that name is written.
    inside = tuple(out.iterdir()) if out.is_dir() else ()
    for source in _present(sources):
        ways = {
            "is": _is_same(out, source),
            "holds": any(_is_same(place, out) for place in source.resolve().parents),
            "has a link to": any(_is_same(place, source) for place in inside),
            "is in": any(_is_same(place, source) for place in out.resolve().parents),
        }
        for how, met in ways.items():
            if met:
                what = f"'{out}'" if out == source else f"'{out}' {how} '{source}', which"
                raise UserError(
                    f"{what} is read and must stay as it is. Choose another place to write to."
                )


def _present(sources: Sequence[str | os.PathLike[str] | None]) -> Iterator[Path]:
    for source in filter(None, sources):
        text = os.fspath(source)
        yield from map(Path, [text] if os.path.exists(text) else glob.glob(text, recursive=True))


def _is_same(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and os.path.samefile(one, other)


def can_write_in(directory: Path) -> bool:
    """Whether a file can be made there, by making one that is removed at once.

    Some file systems, such as /proc, let nobody write, whatever the permissions say.
    """
    if not os.access(directory, os.W_OK | os.X_OK):
        return False
    probe = directory / f".mbdnode-{secrets.token_hex(4)}.part"
    try:
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError:
        return False
    return True


def check_destination(path: str | os.PathLike[str], suffixes: tuple[str, ...] = SUFFIXES) -> Path:
    """Raise unless `path` could be written to, so that nothing is computed in vain.

    **Arguments:**

    - `path`: where a file is to go.
    - `suffixes`: what it may end in; by default those of a trajectory that `mbdnode.write` knows.

    **Returns:**

    The path, with links followed. Raises `UserError` for a suffix that is not known and
    `OSError` for a place that cannot be written to.
    """
    path = as_path(path)
    check_path(path, to_write=True)
    if path.suffix.lower() not in suffixes:
        raise UserError(
            f"Cannot tell the format of '{path}' from its suffix '{path.suffix}'. "
            f"End the name in {' or '.join(suffixes)}."
        )
    if path.is_dir():
        raise IsADirectoryError(f"'{path}' is a directory. Name a file inside it.")
    _check_regular(path)
    directory = path.resolve().parent
    if not directory.exists():
        raise FileNotFoundError(
            f"The directory '{directory}' of '{path}' does not exist. Create it, or choose another."
        )
    if not directory.is_dir():
        raise NotADirectoryError(f"'{directory}' in '{path}' is a file. Choose another directory.")
    if not can_write_in(directory):
        raise PermissionError(
            f"The directory '{directory}' of '{path}' cannot be written to. Choose another, or "
            "change its permissions."
        )
    found = read_marker(directory) if path.exists() else None
    if found is not None and any(fnmatch.fnmatchcase(path.name, own) for own in found["files"]):
        raise UserError(
            f"'{path}' belongs to a result of `mbdnode {found['kind']}`. Choose another name."
        )
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(
            f"'{path}' exists and is write-protected. Choose another name, or change its "
            "permissions."
        )
    return path.resolve()


def separate_files(
    files: Sequence[Path], held_out: Sequence[Path]
) -> tuple[list[Path], list[Path]]:
    """Files to train on and files to judge by, none of them in both.

    **Arguments:**

    - `files`: what was named to be learned from; held-out files among them are left out.
    - `held_out`: what was named to be held out.

    **Returns:**

    The files to train on and those to judge by, each file once. Files are compared by what they are
    on the disk, so that another path, a pattern or a link makes no other file. Raises `UserError`
    if nothing is left to learn from.
    """
    judged = _by_identity(held_out)
    trained = {key: path for key, path in _by_identity(files).items() if key not in judged}
    if files and not trained:
        raise UserError(
            f"Every log is held out ({', '.join(map(str, judged.values()))}), so there is nothing "
            "to learn from. Name other logs, or hold out fewer."
        )
    return list(trained.values()), list(judged.values())


def _by_identity(files: Sequence[Path]) -> dict[tuple[int, int], Path]:
    found: dict[tuple[int, int], Path] = {}
    for path in files:
        stat = path.stat()
        found.setdefault((stat.st_dev, stat.st_ino), path)
    return found
