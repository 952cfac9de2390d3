"""A folder of results is of one kind, and is replaced whole or not at all."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import Mock

import pytest

from mbdnode.data import check_destination, folders
from mbdnode.data.folders import MARKER, check_folder, find_result, folder_name, replace_folder
from mbdnode.data.folders import open_folder as open_result
from mbdnode.errors import UserError

FILES = {"config.json": b"{}", "model.bin": b"12", "metrics.json": b"[]"}


def _write(content):
    def fill(part):
        for name in FILES:
            (part / name).write_bytes(content)

    return fill


def _held(path):
    return {entry.name: entry.read_bytes() for entry in path.iterdir() if entry.name != MARKER}


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "results" / "one"
    replace_folder(path, "fit", _write(b"old"))
    return path


def test_folder_says_what_it_is_and_what_belongs_to_it(old):
    assert json.loads((old / MARKER).read_text()) == {"kind": "fit", "files": sorted(FILES)}
    assert _held(old) == dict.fromkeys(FILES, b"old")


def test_result_of_the_same_kind_is_replaced_whole(old):
    (old / MARKER).write_text(json.dumps({"kind": "fit", "files": [*FILES, "more.csv"]}))
    (old / "more.csv").write_text("of the old one")
    replace_folder(old, "fit", _write(b"new"))
    assert _held(old) == dict.fromkeys(FILES, b"new")
    assert [path.name for path in old.parent.iterdir()] == ["one"]


def test_result_of_another_kind_is_refused(old):
    with pytest.raises(UserError, match="result of `mbdnode fit`, not of `mbdnode run`"):
        check_folder(old, "run")
    with pytest.raises(UserError, match="result of `mbdnode fit`"):
        replace_folder(old, "mpc", _write(b"new"))
    with pytest.raises(UserError, match="result of `mbdnode fit`"):
        open_result(old, "reproduce", ())
    assert _held(old) == dict.fromkeys(FILES, b"old")


@pytest.mark.parametrize("marked", [True, False])
def test_foreign_files_are_refused(old, marked):
    (old / "thesis.tex").write_text("precious")
    if not marked:
        (old / MARKER).unlink()
    said = r"thesis\.tex, which `mbdnode fit` did" if marked else r"and no mbdnode\.json"
    with pytest.raises(UserError, match=said):
        replace_folder(old, "fit", _write(b"new"))
    assert (old / "thesis.tex").read_text() == "precious"


def test_what_file_managers_leave_is_nobodys(old):
    (old / ".DS_Store").touch()
    assert check_folder(old, "fit") == old


def test_damaged_marker_is_refused(old):
    for text in ("[" * 100_000, "", "[]", '{"kind": "fit"}', '{"kind": "fit", "files": 3}'):
        (old / MARKER).write_text(text)
        with pytest.raises(UserError, match=r"mbdnode\.json"):
            check_folder(old, "fit")


def test_new_and_empty_folders_are_taken(tmp_path):
    (tmp_path / "empty").mkdir()
    for name in ("empty", "new", "deep/er"):
        replace_folder(tmp_path / name, "fit", _write(b"new"))
        assert _held(tmp_path / name) == dict.fromkeys(FILES, b"new")


def test_link_to_a_folder_stays_a_link(old):
    link = old.parent / "link"
    link.symlink_to(old, target_is_directory=True)
    replace_folder(link, "fit", _write(b"new"))
    assert link.is_symlink()
    assert _held(old) == dict.fromkeys(FILES, b"new")


def test_link_that_leads_to_itself_is_refused(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    for path in (tmp_path / "a", tmp_path / "a" / "sub"):
        with pytest.raises(UserError, match="link"):
            check_folder(path, "fit")


def test_folder_inside_a_file_is_refused(tmp_path):
    (tmp_path / "file").touch()
    for name in ("file/sub", "file/sub/deeper"):
        with pytest.raises(UserError, match="file' is not a directory"):
            check_folder(tmp_path / name, "fit")
    with pytest.raises(UserError, match="is a file; name a folder"):
        check_folder(tmp_path / "file", "fit")


def test_folder_that_one_is_in_is_refused(old, monkeypatch):
    monkeypatch.chdir(old)
    with pytest.raises(UserError, match="where you are"):
        check_folder(Path(), "fit")


def test_folder_that_is_filled_step_by_step_adds_to_what_is_its_own(tmp_path):
    path = open_result(tmp_path / "run", "run", ["config.json"])
    (path / "config.json").touch()
    open_result(path, "run", ["probe-*.csv"])
    (path / "probe-far.csv").touch()
    assert check_folder(path, "run") == path


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("name", [*FILES, MARKER, "rename 1", "rename 2"])
def test_failure_at_any_file_leaves_the_old_result(old, monkeypatch, name, error):
    before, rename, made = _held(old), os.rename, []

    def fill(part):
        for own in FILES:
            (part / own).write_bytes(b"ne")
            if own == name:
                raise error

    def fail(*both):
        made.append(both)
        if name == f"rename {len(made)}":
            raise error
        rename(*both)

    monkeypatch.setattr(os, "rename", fail)
    if name == MARKER:
        monkeypatch.setattr(folders, "write_json", Mock(side_effect=error))
    with pytest.raises((KeyboardInterrupt, OSError)) as caught:
        replace_folder(old, "fit", fill)
    if isinstance(error, OSError):
        assert "No space left on device. What it held is as it was" in str(caught.value)
    assert _held(old) == before
    assert check_folder(old, "fit") == old
    assert [path.name for path in old.parent.iterdir()] == ["one"]


@pytest.mark.parametrize("name", [*FILES, MARKER])
def test_a_full_disk_leaves_no_folder_where_there_was_none(tmp_path, monkeypatch, name):
    def fill(part):
        for own in FILES:
            (part / own).write_bytes(b"ne")
            if own == name:
                raise OSError(28, "No space left on device")

    if name == MARKER:
        full = OSError(28, "No space left on device")
        monkeypatch.setattr(os, "fsync", Mock(side_effect=full))
    for begin in (replace_folder, lambda path, kind, fill: open_result(path, kind, (), fill)):
        with pytest.raises(OSError, match=r"No space left on device\. It is not there"):
            begin(tmp_path / "deep" / "er" / "one", "fit", fill)
        assert list(tmp_path.iterdir()) == []


KILLED = """
import os, shutil, signal, sys
from pathlib import Path
from mbdnode.data.folders import replace_folder

path, moment = Path(sys.argv[1]), sys.argv[2]
die = lambda *arguments, **options: os.kill(os.getpid(), signal.SIGKILL)

def fill(part):
    for name in {names!r}:
        (part / name).write_bytes(b"ne")
        if name == moment:
            die()
        (part / name).write_bytes(b"new")

rename, made = os.rename, []
def counted(*both):
    made.append(both)
    rename(*both)
    if moment == f"rename {{len(made)}}":
        die()
os.rename = counted
if moment == "removal":
    shutil.rmtree = die
replace_folder(path, "fit", fill)
"""


@pytest.mark.parametrize(
    ("moment", "after"),
    [
        *((name, b"old") for name in FILES),
        ("rename 1", b"old"),
        ("rename 2", b"new"),
        ("removal", b"new"),
    ],
)
def test_kill_leaves_a_whole_result_and_can_be_repeated(old, moment, after):
    script = KILLED.format(names=list(FILES))
    command = [sys.executable, "-c", script, str(old), moment]
    assert subprocess.run(command, capture_output=True).returncode == -signal.SIGKILL
    assert find_result(old, "fit", FILES) == old
    assert _held(old) == dict.fromkeys(FILES, after)
    replace_folder(old, "fit", _write(b"again"))
    assert _held(old) == dict.fromkeys(FILES, b"again")


def test_remains_of_a_killed_writing_are_removed_when_nobody_can_be_at_it(old):
    left = old.with_name(f".{old.name}.0a1b2c3d.part")
    fresh = old.with_name(f".{old.name}.4a1b2c3d.part")
    left.mkdir()
    fresh.mkdir()
    long_ago = time.time() - 2 * 3600
    os.utime(left, (long_ago, long_ago))
    replace_folder(old, "fit", _write(b"new"))
    assert not left.exists()
    assert fresh.exists()


def test_file_of_a_result_is_not_replaced_by_another_trajectory(tmp_path):
    open_result(tmp_path / "run", "run", ["truth.csv", "probe-*.csv"])
    for name in ("truth.csv", "probe-far.csv"):
        (tmp_path / "run" / name).touch()
        with pytest.raises(UserError, match="belongs to a result of `mbdnode run`"):
            check_destination(tmp_path / "run" / name)
    (tmp_path / "mine.csv").touch()
    assert check_destination(tmp_path / "mine.csv") == tmp_path / "mine.csv"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere", "does not exist"),
        ("one/model.bin", "is a file"),
        ("empty", r"has no config\.json"),
        ("run", "result of `mbdnode run`"),
    ],
)
def test_folder_without_the_result_is_not_read(old, name, message):
    (old.parent / "empty").mkdir()
    open_result(old.parent / "run", "run", ())
    with pytest.raises(UserError, match=message):
        find_result(old.parent / name, "fit", ["config.json"])


def test_names_of_folders_are_for_every_file_system():
    assert folder_name("cart-pole:swing-up", "mbd-node", 0) == "cart-pole-swing-up-mbd-node-0"
    assert folder_name('a<b>"c|d?e*f\\g/h') == "a-b-c-d-e-f-g-h"


def test_names_of_folders_tell_all_cases_apart():
    from mbdnode.reproduction.cases import CASES, CONTROL_TASKS

    assert len({folder_name(name).lower() for name in CASES}) == len(CASES)
    assert len({folder_name(name).lower() for name in CONTROL_TASKS}) == len(CONTROL_TASKS)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc")
def test_a_file_system_that_takes_no_files_is_refused_at_once():
    with pytest.raises(UserError, match=r"'/proc/fit' cannot be written to: .* Choose another"):
        check_folder(Path("/proc/fit"), "fit")
    with pytest.raises(UserError, match=r"'/proc/run.csv' cannot be written to"):
        check_destination("/proc/run.csv")


@pytest.mark.parametrize("content", [b"{", b"\xff", b""])
def test_a_damaged_marker_is_refused_with_a_way_out(old, content):
    (old / MARKER).write_bytes(content)
    with pytest.raises(UserError, match=r"mbdnode.json.*not JSON.*Copy it again .*run again"):
        find_result(old, "fit", [])
