"""`mbdnode mechanism`, and `mbdnode simulate` of a file: what they print, write and refuse."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import mbdnode as mbd
from mbdnode.cli import main
from mbdnode.mechanisms import read_mechanism
from mbdnode.multibody import position_residual, resolve_parameters

EXAMPLES = Path(__file__).parents[3] / "examples" / "mechanisms"
QUICK_RETURN = EXAMPLES / "quick_return.toml"


def call(*arguments):
    return main([str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    out = tmp_path_factory.mktemp("quick")
    start = ("--initial", "crank_angle=1.0", "crank_angle_dot=12", "--steps", 500, "--dt", 0.002)
    files = ("--out", out / "run.csv", "--plot", out / "run.gif")
    assert call("simulate", QUICK_RETURN, *start, *files) == 0
    return out


def test_parts_degrees_of_freedom_and_the_assembled_configuration_are_printed(tmp_path, capsys):
    out = tmp_path / "return"
    assert call("mechanism", QUICK_RETURN, "--initial", "crank_angle=1.0", "--out", out) == 0
    text = capsys.readouterr().out
    names = {"mechanism.png", "mechanism.svg", "mbdnode.json"}
    assert {path.name for path in out.iterdir()} == names
    for line in ("quick return", "lever_bearing", "inputs: cutting, motor", "ram_mass"):
        assert line in text
    facts = {line.split("  ")[0]: line.split()[-1] for line in text.splitlines() if "  " in line}
    assert facts["coordinates"] == "15"
    assert facts["constraints"] == "14"
    assert facts["degrees of freedom"] == "1"
    assert facts["independent"] == "crank_angle"
    assert facts["redundant constraints"] == "0"


def test_a_quick_return_keeps_energy_and_constraints_and_returns_quickly(simulated):
    system = read_mechanism(QUICK_RETURN)
    run = mbd.read(simulated / "run.csv").trajectories[0]
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


def test_status_tells_a_step_that_is_too_long(tmp_path, capsys):
    request = ("--initial", "crank_angle_dot=12", "--steps", 20, "--dt", 0.05)
    assert call("simulate", QUICK_RETURN, *request, "--out", tmp_path / "a.csv") == 0
    assert "completed at t = 1 s (step 20); the step is too long: error" in capsys.readouterr().out


def test_the_motion_is_animated(simulated):
    with Image.open(simulated / "run.gif") as film:
        assert film.n_frames == 20  # at 20 a second for 1 s
        assert film.info["duration"] == 50
        first = np.asarray(film.convert("RGB"))
        film.seek(10)
        assert np.any(first != np.asarray(film.convert("RGB")))
    assert np.all(first[-1, -1] == 255)


def test_requests_that_make_no_sense_are_refused_before_anything_is_written(tmp_path, capsys):
    taken = tmp_path / "file"
    taken.write_text("")
    for arguments, words in (
        (("--out", taken), "is a file"),
        (("--initial", "crank_angel=1", "--out", tmp_path / "a"), "Did you mean 'crank_angle'"),
        (("--set", "ram_mass=-1", "--out", tmp_path / "a"), "must be above 0"),
    ):
        assert call("mechanism", QUICK_RETURN, *arguments) == 2
        assert words in capsys.readouterr().err
    for arguments, words in (
        ((), "give --steps, or --inputs FILE"),
        (("--steps", 0), "at least 1"),
        (("--steps", 5, "--dt", -1), "above zero"),
        (("--steps", 5, "--initial", "crank_angel=1"), "Did you mean 'crank_angle'"),
        (("--steps", 5, "--set", "ram_mass=-1"), "must be above 0"),
        (("--steps", 5, "--seed", 1), "has no random inputs"),
        (("--steps", 5, "--role", "T=T"), "give it by --inputs FILE"),
        (("--steps", 5, "--plot", tmp_path / "a.txt"), "End the name in .png"),
    ):
        assert call("simulate", QUICK_RETURN, *arguments, "--out", tmp_path / "a.csv") == 2
        assert words in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [taken]


def test_a_file_that_is_wrong_is_named_with_its_line(tmp_path, capsys):
    path = tmp_path / "wrong.toml"
    path.write_text("[bodies.a]\ncenter = [0.0, 0.0]\nmass = -1\n")
    assert call("mechanism", path) == 2
    assert f"{path}, line 3, key 'bodies.a.mass'" in capsys.readouterr().err
