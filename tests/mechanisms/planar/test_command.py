"""`mbdnode mechanism`: what it prints, what it writes, what it refuses."""

from pathlib import Path

import numpy as np
import pytest
import typer
from PIL import Image
from typer.testing import CliRunner

import mbdnode as mbd
from mbdnode.cli.mechanism import mechanism
from mbdnode.mechanisms.planar import read_mechanism
from mbdnode.multibody import position_residual, resolve_parameters

EXAMPLES = Path(__file__).parents[3] / "examples" / "mechanisms"
QUICK_RETURN = EXAMPLES / "quick_return.toml"


def call(*arguments):
    app = typer.Typer()
    app.command()(mechanism)
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    out = tmp_path_factory.mktemp("quick") / "return"
    start = ("--initial", "crank_angle=1.0", "--initial", "crank_angle_dot=12")
    return call(QUICK_RETURN, *start, "--steps", 500, "--dt", 0.002, "--out", out), out


def test_parts_degrees_of_freedom_and_the_assembled_configuration_are_printed(result):
    text = result[0].stdout
    assert result[0].exit_code == 0
    for line in ("quick return", "lever_bearing", "inputs: cutting, motor", "ram_mass"):
        assert line in text
    facts = {line.split("  ")[0]: line.split()[-1] for line in text.splitlines() if "  " in line}
    assert facts["coordinates"] == "15"
    assert facts["constraints"] == "14"
    assert facts["degrees of freedom"] == "1"
    assert facts["independent"] == "crank_angle"
    assert facts["redundant constraints"] == "0"


def test_a_quick_return_keeps_energy_and_constraints_and_returns_quickly(result):
    system = read_mechanism(QUICK_RETURN)
    run = mbd.read(result[1] / "trajectory.csv").trajectories[0]
    assert len(run.t) == 501
    mu = resolve_parameters(system)
    residuals = [np.max(np.abs(position_residual(system, run.t[0], q, mu))) for q in run.q[::50]]
    assert max(residuals) <= 1e-15
    energy = np.asarray(mbd.energy(system, run))
    assert np.ptp(energy) <= 1e-7 * np.max(np.abs(energy))
    # Over a turn the ram goes one way for longer than the other: the crank is ahead of the lever's
    # dead points, which are where it stands across the lever, acos(0.1/0.25) from the vertical.
    turn = np.asarray(run["crank_angle"]) % (2 * np.pi)
    forth = np.asarray(run["ram_x_dot"]) < 0
    dead = np.arccos(0.1 / 0.25)
    inside = np.abs((turn + np.pi / 2 + np.pi) % (2 * np.pi) - np.pi) > dead + 0.1
    outside = np.abs((turn + np.pi / 2 + np.pi) % (2 * np.pi) - np.pi) < dead - 0.1
    assert np.all(forth[inside])
    assert not np.any(forth[outside])


def test_status_tells_a_step_that_is_too_long(result, tmp_path):
    assert "status: completed at t = 1 s (step 500)\n" in result[0].stdout
    request = (
        "--initial",
        "crank_angle_dot=12",
        "--steps",
        20,
        "--dt",
        0.05,
        "--out",
        tmp_path / "a",
    )
    coarse = call(QUICK_RETURN, *request)
    assert coarse.exit_code == 0
    assert "status: completed at t = 1 s (step 20); the step is too long: error" in coarse.stdout


def test_pictures_and_film_are_written(result):
    out = result[1]
    names = {"mechanism.png", "mechanism.svg", "motion.gif", "trajectory.csv", "mbdnode.json"}
    assert {path.name for path in out.iterdir()} == names
    with Image.open(out / "motion.gif") as film:
        assert film.n_frames == 20  # at 20 a second for 1 s
        assert film.info["duration"] == 50
        first = np.asarray(film.convert("RGB"))
        film.seek(10)
        assert np.any(first != np.asarray(film.convert("RGB")))
    assert np.all(first[-1, -1] == 255)


def test_requests_that_make_no_sense_are_refused_before_anything_is_written(tmp_path):
    taken = tmp_path / "file"
    taken.write_text("")
    for arguments, words in (
        (("--steps", 5), "--steps needs --out"),
        (("--steps", 0, "--out", tmp_path / "a"), "at least 1"),
        (("--steps", 5, "--dt", -1, "--out", tmp_path / "a"), "above zero"),
        (("--out", taken), "is a file"),
        (("--initial", "crank_angel=1", "--out", tmp_path / "a"), "Did you mean 'crank_angle'"),
        (("--set", "ram_mass=-1", "--out", tmp_path / "a"), "must be above 0"),
    ):
        refused = call(QUICK_RETURN, *arguments)
        assert isinstance(refused.exception, (ValueError, OSError))
        assert words in str(refused.exception)
    assert list(tmp_path.iterdir()) == [taken]


def test_a_file_that_is_wrong_is_named_with_its_line(tmp_path):
    path = tmp_path / "wrong.toml"
    path.write_text("[bodies.a]\ncenter = [0.0, 0.0]\nmass = -1\n")
    refused = call(path)
    assert f"{path}, line 3, key 'bodies.a.mass'" in str(refused.exception)
