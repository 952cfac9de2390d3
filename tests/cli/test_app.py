import errno
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

import mbdnode
import mbdnode.reproduction.cases
from mbdnode.data.folders import open_folder


def test_version_is_that_of_the_package(run):
    assert run("--version").out.strip() == f"mbdnode {mbdnode.__version__}"


def test_help_names_every_command(run):
    result = run("--help")
    assert result.code == 0
    assert all(
        command in result.out for command in ("cases", "simulate", "run", "reproduce", "gallery")
    )


def test_without_arguments_the_help_is_shown(run):
    assert "Usage: mbdnode" in "".join(run()[1:])


def test_unknown_command_is_refused(run):
    result = run("simulat")
    assert result.code == 2
    assert "simulat" in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    "error",
    [
        np.linalg.LinAlgError("Singular matrix"),
        ValueError("operands could not be broadcast together with shapes (2,) (3,)"),
        TypeError("unsupported operand"),
        KeyError("theta"),
        RuntimeError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_mistake_of_ours_says_so_below_an_ordinary_traceback(run, tmp_path, monkeypatch, error):
    monkeypatch.setattr(mbdnode.reproduction.cases, "get_case", Mock(side_effect=error))
    result = run("simulate", "cart-pole", "--out", tmp_path / "a b.csv")
    assert result.code == 70
    above, said = result.err.split("internal error, please report")
    assert above.startswith("Traceback (most recent call last)")
    assert type(error).__name__ in above
    assert f"mbdnode simulate cart-pole --out '{tmp_path}/a b.csv'" in said
    assert mbdnode.__version__ in said


def test_what_the_system_refuses_is_no_mistake_of_ours(run, tmp_path, monkeypatch):
    refusal = OSError(errno.ENOSPC, "No space left on device", "run.csv")
    monkeypatch.setattr(mbdnode.reproduction.cases, "get_case", Mock(side_effect=refusal))
    result = run("simulate", "cart-pole", "--out", tmp_path / "run.csv")
    assert result.code == 2
    assert result.err == "error: The system refused 'run.csv': No space left on device.\n"


WRITERS = {
    "run": ("run", "single-mass-spring"),
    "mpc": ("mpc", "cart-pole"),
    "fit": ("fit", "log.csv", "--role", "time=t", "coordinates=x"),
    "reproduce": ("reproduce", "--quick"),
    "gallery": ("gallery",),
    "mechanism": ("mechanism", "cart.toml"),
}


@pytest.mark.parametrize("command", WRITERS)
def test_command_writes_to_no_folder_but_its_own(run, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    for kind in WRITERS:
        place = open_folder(Path(f"of-{kind}"), kind, ["truth.csv"])
        (place / "truth.csv").write_text("of another")
    Path("mine").mkdir()
    Path("mine/thesis.tex").write_text("mine")
    Path("loop").symlink_to("loop")
    Path("file").touch()
    for name in ("cart.toml", "log.csv"):
        Path(name).write_text("not looked at")
    before = {path: path.lstat().st_mtime_ns for path in tmp_path.rglob("*")}
    refused = {
        **{f"of-{kind}": f"`mbdnode {kind}`" for kind in WRITERS if kind != command},
        "mine": "thesis.tex",
        "loop": "symbolic links",
        "loop/sub": "symbolic links",
        "file": "is a file; name a folder",
        "file/sub": "file' is not a directory",
        ".": "holds cart.toml, file, log.csv",
    }
    for out, said in refused.items():
        result = run(*WRITERS[command], "--out", out)
        assert result.code == 2, result.err
        assert said in result.err
        assert len(result.err.splitlines()) == 1
    assert {path: path.lstat().st_mtime_ns for path in tmp_path.rglob("*")} == before


@pytest.mark.parametrize(
    "command", [("simulate", "cart-pole"), ("predict", "fit", "--like", "x.csv")]
)
def test_file_behind_a_circle_of_links_is_refused(run, tmp_path, command):
    (tmp_path / "a.csv").symlink_to(tmp_path / "b.csv")
    (tmp_path / "b.csv").symlink_to(tmp_path / "a.csv")
    result = run(
        *command, "--out", tmp_path / "a.csv", *["--like", "x.csv"] * (command[0] != "simulate")
    )
    assert result.code == 2
    assert "symbolic links" in result.err


def test_arithmetic_that_overflows_leaves_no_line_of_source_on_the_terminal():
    script = """
import sys, warnings
from mbdnode.cli import main
sys.argv = ["mbdnode", "--version"]
main()
warnings.warn("overflow encountered in square", RuntimeWarning)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == f"mbdnode {mbdnode.__version__}\n"
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("name", "last_line", "said"),
    [
        ("own_cart", "last = masses[1]", "IndexError: list index out of range"),
        ("own_pole", "last = (", "SyntaxError: '(' was never closed"),
    ],
)
def test_mistake_in_a_mechanism_of_the_users_own_names_its_line(
    run, tmp_path, monkeypatch, name, last_line, said
):
    monkeypatch.chdir(tmp_path)
    Path(f"{name}.py").write_text(f"masses = [1.0]\n{last_line}\n")
    Path("log.csv").write_text("t,x\n0,0\n1,1\n")
    result = run(
        *("fit", "log.csv", "--role", "time=t", "coordinates=x", "--out", "fit"),
        *("--mechanism", f"{name}:last"),
    )
    assert result.code == 2
    assert f"{name}.py', line 2, raised {said}" in result.err
    assert "internal error" not in result.err
