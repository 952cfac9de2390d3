"""A file is replaced whole or not at all."""

import os
import stat

import pytest

from mbdnode.data.files import replace_file
from mbdnode.errors import UserError


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_content_is_written_and_nothing_else_is_left(tmp_path):
    replace_file(tmp_path / "a.bin", lambda file: file.write(b"new"))
    assert (tmp_path / "a.bin").read_bytes() == b"new"
    assert names(tmp_path) == ["a.bin"]


@pytest.mark.parametrize("error", [ValueError("bad"), KeyboardInterrupt(), OSError(28, "full")])
def test_failure_half_way_leaves_the_old_content(tmp_path, error):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")

    def half(file):
        file.write(b"ne")
        raise error

    with pytest.raises((type(error), OSError)):
        replace_file(path, half)
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a.bin"]


def test_failed_rename_leaves_the_old_content(tmp_path, monkeypatch):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")

    def refuse(*arguments):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match=r"a\.bin.*Permission denied.*It is as it was"):
        replace_file(path, lambda file: file.write(b"new"))
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a.bin"]


def test_old_content_is_there_until_the_new_is_whole(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")

    def fill(file):
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"

    replace_file(path, fill)
    assert path.read_bytes() == b"new"


def test_permissions_of_the_old_file_are_kept(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    path.chmod(0o640)
    replace_file(path, lambda file: file.write(b"new"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_link_is_followed_and_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "a.bin", tmp_path / "link.bin"
    target.write_bytes(b"old")
    link.symlink_to(target)
    replace_file(link, lambda file: file.write(b"new"))
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_place_that_cannot_be_written_to_is_named(tmp_path):
    with pytest.raises(OSError, match=r"Writing '.*' failed.*choose another place"):
        replace_file(tmp_path / "nowhere" / "a.bin", lambda file: file.write(b"new"))
    with pytest.raises(UserError, match=r"is a directory\. Name a file inside it"):
        replace_file(tmp_path, lambda file: file.write(b"new"))
    assert names(tmp_path) == []
