"""Every request that cannot be met: exit code 2, one line that helps, nothing is computed."""

import importlib
from pathlib import Path
from unittest.mock import Mock

import pytest

CASES = {
    "unknown case": ("double-pendulm", "", ("'double-pendulm'", "Did you mean 'double-pendulum'?")),
    "unknown integrator": ("cart-pole", "--integrator rk5", ("'rk5'", "'rk4'")),
    "unknown coordinate": ("cart-pole", "--initial thata=1", ("'thata'", "Did you mean 'theta'?")),
    "unknown parameter": ("cart-pole", "--set mass=1", ("'mass'", "Known: M, m, l, g")),
    "negative mass": ("cart-pole", "--set m=-1", ("'m'", "-1 kg", "above 0", "default is 1")),
    "zero mass": ("cart-pole", "--set m=0", ("'m'", "0 kg", "above 0")),
    "mass not a number": ("cart-pole", "--set m=nan", ("'m'", "nan", "finite")),
    "start not a number": ("cart-pole", "--initial x=nan", ("'x'", "nan", "finite")),
    "infinite start": ("cart-pole", "--initial x=inf", ("'x'", "inf", "finite")),
    "start is a word": ("cart-pole", "--initial x=here", ("x=here", "not a number")),
    "start without value": ("cart-pole", "--initial x", ("'x'", "name=value")),
    "start given twice": ("cart-pole", "--initial x=1 x=2", ("'x'", "twice")),
    "zero step": ("cart-pole", "--dt 0", ("0 s", "above zero", "0.005 s")),
    "negative step": ("cart-pole", "--dt -0.1", ("-0.1 s", "above zero")),
    "step not a number": ("cart-pole", "--dt nan", ("nan s", "finite")),
    "no steps": ("cart-pole", "--steps 0", ("0", "at least 1")),
    "endless steps": (
        "cart-pole",
        "--steps 2000000000",
        ("2,000,000,000 steps", "about 640.0 GB", "16.0 GB are free", "fewer steps"),
    ),
    "steps of 23 digits": (
        "cart-pole",
        "--steps 99999999999999999999999",
        ("99,999,999,999,999,999,999,999 steps", "GB of memory", "fewer steps"),
    ),
    "negative steps": ("cart-pole", "--steps -3", ("-3", "at least 1")),
    "seed without use": ("cart-pole", "--seed 1", ("no random inputs", "Leave it out")),
    "negative seed": ("slider-crank", "--seed -1", ("-1", "at least 0")),
    "not separable": (
        "double-pendulum",
        "--integrator lf2",
        ("DoublePendulum", "separable", "rk4"),
    ),
    "no closed form": ("double-pendulum", "--integrator analytic", ("closed-form", "dopri8")),
    "impossible start": ("slider-crank", "--initial x3=7", ("x3 = 7", "residual")),
    "steps not whole": ("cart-pole", "--steps 1.5", ("--steps", "valid int")),
    "more arguments": ("cart-pole", "x=1", ("x=1",)),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_request_is_refused_with_its_value_and_a_way_out(run, tmp_path, monkeypatch, name):
    def must_not_run(*arguments, **options):
        raise AssertionError("computed before everything was checked")

    # By the module, since the function of the same name hides it in its package.
    module = importlib.import_module("mbdnode.simulation.simulate")
    monkeypatch.setattr(module, "rollout", must_not_run)
    monkeypatch.setattr("mbdnode.errors.free_memory", lambda: 16 * 10**9)
    case, options, parts = CASES[name]
    result = run("simulate", case, *options.split(), "--out", tmp_path / "run.csv")
    assert result.code == 2
    assert result.out == ""
    assert "Traceback" not in result.err
    missing = [part for part in parts if part not in result.err]
    assert not missing, f"{missing} not in: {result.err}"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("target", "parts"),
    [
        ("run.txt", ("run.txt", ".csv or .parquet")),
        ("folder.csv", ("folder.csv", "is a directory")),
        ("missing/run.csv", ("missing", "is not a directory", "Create it")),
        ("file/run.csv", ("file' is not a directory",)),
    ],
)
def test_bad_destination_is_refused_before_anything_else(run, tmp_path, target, parts):
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "file").touch()
    before = sorted(tmp_path.rglob("*"))
    result = run("simulate", "no-such-case", "--out", tmp_path / target)
    assert result.code == 2
    assert result.err.startswith("error: ")
    assert len(result.err.splitlines()) == 1
    assert all(part in result.err for part in parts)
    assert sorted(tmp_path.rglob("*")) == before


def test_protected_directory_is_refused(run, tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "touch", Mock(side_effect=PermissionError(13, "Permission denied")))
    result = run("simulate", "cart-pole", "--out", tmp_path / "run.csv")
    assert result.code == 2
    assert str(tmp_path) in result.err
    assert "cannot be written to" in result.err


def test_existing_file_survives_a_bad_request(run, tmp_path):
    out = tmp_path / "run.csv"
    out.write_text("precious")
    assert run("simulate", "cart-pole", "--set", "m=-1", "--out", out).code == 2
    assert out.read_text() == "precious"


def test_destination_is_required(run):
    result = run("simulate", "cart-pole")
    assert result.code == 2
    assert "--out" in result.err
