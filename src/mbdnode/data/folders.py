"""Folders of results: what kind each is, and how one takes another's place.

Every folder that a command writes has a file `mbdnode.json`, which says by which command it was
written and what belongs to it. A command writes to a new folder, to an empty one, or over a result
of its own; where there is anything else, it refuses.

A result is written to a sibling folder and renamed in. Whatever goes wrong before, a full disk or a
killed process included, leaves the old result as it was; whatever goes wrong after, the new one. An
old result is renamed aside first; if the process is killed between the two, the next that looks at
the folder takes it back.
"""

import contextlib
import csv
import fnmatch
import glob
import io
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from mbdnode.data.files import (
    MARKER,
    check_path,
    check_writable,
    read_marker,
    reason_of,
    replace_file,
    temporary_beside,
    write_json,
)
from mbdnode.errors import UserError

# What every folder of a trained model holds: what decides it, what came of it, and the model.
CONFIG, METRICS, MODEL = "config.json", "metrics.json", "model.safetensors"
# What is done of a fit that is not finished, and what it was begun with.
UNFINISHED, IDENTITY = "unfinished", "identity.json"
# What file managers put into folders, and what a killed writing leaves of a single file.
_NOBODYS = (".DS_Store", "Thumbs.db", "desktop.ini", ".*.part")
# The remains of a killed writing are removed by the next one, if nobody can be at it any more.
_STALE_S = 3600.0
_MOST_NAMED = 3


def folder_name(*parts: object) -> str:
    """Names and numbers as one name that every file system takes: "cart-pole-swing-up-0"."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", "-".join(map(str, parts)))


def check_folder(path: Path, kind: str) -> Path:
    """Raise `UserError` unless a command such as "fit", the `kind`, may write its result there.

    The folder is new, empty, or has a result of the same kind. It is returned with links followed.
    """
    check_path(path)
    path = path.resolve()
    _recover(path)
    if path.exists() and not path.is_dir():
        raise UserError(f"'{path}' is a file; name a folder.")
    if path.is_dir():
        _check_own(path, kind)
    if Path.cwd().is_relative_to(path):
        raise UserError(
            f"'{path}' is where you are, and a result takes the place of its folder as a whole. "
            "Choose another."
        )
    # The result is written beside its destination, so it is the parent that must let us.
    nearest = next(parent for parent in path.parents if parent.exists())
    for name in path.relative_to(nearest).parts:
        check_writable(nearest / name)
    return path


def _check_own(path: Path, kind: str) -> None:
    found = _read_kind(path, kind)
    own = (MARKER, *found["files"]) if found else ()
    foreign = sorted(
        entry.name
        for entry in path.iterdir()
        if not any(fnmatch.fnmatchcase(entry.name, name) for name in (*own, *_NOBODYS))
    )
    if foreign:
        more = "" if len(foreign) <= _MOST_NAMED else f" and {len(foreign) - _MOST_NAMED} more"
        why = f"which `mbdnode {kind}` did not write" if found else f"and no {MARKER}"
        raise UserError(
            f"'{path}' holds {', '.join(foreign[:_MOST_NAMED])}{more}, {why}. Choose another "
            "folder, or move that elsewhere."
        )


def _read_kind(path: Path, kind: str) -> dict[str, Any] | None:
    """What a folder says of itself, which must be of that kind."""
    found = read_marker(path)
    if found is not None and found["kind"] != kind:
        raise UserError(
            f"'{path}' holds a result of `mbdnode {found['kind']}`, not of `mbdnode {kind}`. "
            "Choose another folder."
        )
    return found


def find_result(path: Path, kind: str, files: Iterable[str]) -> Path:
    """Raise `UserError` unless a folder holds a finished result, with these files."""
    check_path(path)
    _recover(path)
    if not path.is_dir():
        what = "is a file" if path.exists() else "does not exist"
        raise UserError(f"'{path}' {what}; name a folder that `mbdnode {kind}` wrote.")
    _read_kind(path, kind)
    for name in files:
        if not (path / name).is_file():
            raise UserError(
                f"'{path}' has no {name}, so it is not the folder of a finished {kind}; name one "
                f"that `mbdnode {kind}` wrote."
            )
    return path


def check_begun(path: Path, kind: str) -> Path:
    """The file that says what a command began with in a folder, and did not finish.

    Raises `UserError` if there is none.
    """
    place = check_folder(path, kind) / UNFINISHED / IDENTITY
    if not place.is_file():
        ended = (path / METRICS).is_file()
        why = f"holds a finished {kind}" if ended else f"holds no {kind} that was begun"
        raise UserError(f"'{path}' {why}, so there is nothing to resume. Leave --resume out.")
    return place


def open_folder(
    path: Path,
    kind: str,
    files: Iterable[str],
    begin: Callable[[Path], Any] = lambda folder: None,
) -> Path:
    """Make a folder that is filled file by file, or go on with one; links are followed.

    `files` are names, or patterns such as "probe-*.csv", of what will be in it; `begin` writes the
    first ones.
    """
    path = check_folder(path, kind)
    found = read_marker(path)
    if found is None:
        replace_folder(path, kind, begin, files)
    else:
        write_json(path / MARKER, {"kind": kind, "files": sorted({*files, *found["files"]})})
        begin(path)
    return path


def replace_folder(
    path: Path, kind: str, fill: Callable[[Path], Any], files: Iterable[str] = ()
) -> None:
    """Write a whole result by `fill`, or leave what was there; `files` will be added later."""
    path = check_folder(path, kind)
    new = [folder for folder in path.parents if not folder.exists()]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_stale(path)
        with temporary_beside(path) as part:
            part.mkdir()
            fill(part)
            written = {*files, *(entry.name for entry in part.iterdir())}
            write_json(part / MARKER, {"kind": kind, "files": sorted(written)})
            if path.exists():
                shutil.copymode(path, part)
            _put(part, path)
    except OSError as error:
        was = "What it held is as it was" if path.exists() else "It is not there"
        raise OSError(
            f"Writing '{path}' failed: {reason_of(error)}. {was}; check the disk's free space and "
            "the folder's permissions, or choose another."
        ) from error
    finally:
        if not path.exists():
            for folder in new:
                with contextlib.suppress(OSError):
                    folder.rmdir()


def _aside(path: Path) -> Path:
    """Where an old result is while a new one takes its place."""
    return path.with_name(f".{path.name}.old")


def _put(part: Path, path: Path) -> None:
    """Rename the new folder in; the old one goes aside before."""
    old, was_there = _aside(path), path.exists()
    if old.exists():  # A process was killed while it removed that.
        shutil.rmtree(old)
    if was_there:
        os.rename(path, old)
    try:
        os.rename(part, path)
    except BaseException:
        if was_there:
            os.rename(old, path)
        raise
    (old / MARKER).unlink(missing_ok=True)  # No longer a result to take back.
    shutil.rmtree(old, ignore_errors=True)


def _recover(path: Path) -> None:
    """Take an old result back where none took its place."""
    if not path.exists() and (_aside(path) / MARKER).is_file():
        os.rename(_aside(path), path)


def _remove_stale(path: Path) -> None:
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _STALE_S:
                shutil.rmtree(left, ignore_errors=True)


def write_history(path: Path, history: list[dict[str, Any]]) -> None:
    """Write the rows of every epoch as CSV."""
    text = io.StringIO()
    columns = ["epoch", "loss", "learning_rate", "seconds"]
    columns += ["validation_loss"] if any("validation_loss" in row for row in history) else []
    writer = csv.DictWriter(text, columns, extrasaction="ignore")
    writer.writeheader()
    writer.writerows(history)
    replace_file(path, lambda file: file.write(text.getvalue().encode()))
