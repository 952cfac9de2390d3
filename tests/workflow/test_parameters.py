"""`mbdnode fit` finds the parameters of a mechanism file, and keeps what is held out apart."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from mbdnode import read, write
from mbdnode.cli import main
from mbdnode.cli.arguments import parse_unknown, repeat_options
from mbdnode.data.logs import Columns
from mbdnode.identification.parameters import identify_parameters, search
from mbdnode.identification.search_checkpoint import SearchCheckpoint
from mbdnode.mechanisms import SingleMassSpringDamper, SinglePendulum, read_mechanism
from mbdnode.models import FittedMechanism, load, save
from mbdnode.simulation import simulate
from mbdnode.workflow.config import FitConfig, unknown_parameters
from mbdnode.workflow.fit import read_and_check

# A mass on a guide, between a spring and a damper: x'' = (F - k x - c x') / m.
SPRING = """
unknown = ["block_mass"]

[bodies.block]
mass = 1.0
inertia = 1.0
center = [0.0, 0.0]

[joints.guide]
type = "prismatic"
bodies = ["ground", "block"]
points = [[0.0, 0.0], [0.0, 0.0]]

[springs.coil]
type = "linear"
bodies = ["ground", "block"]
points = [[-2.0, 0.0], [0.0, 0.0]]
stiffness = 10.0
free_length = 2.0

[dampers.oil]
type = "linear"
bodies = ["ground", "block"]
points = [[-2.0, 0.0], [0.0, 0.0]]
damping = 1.0

[forces.push]
body = "block"
"""
MASS, STIFFNESS, DAMPING = 2.5, 40.0, 1.5
ROLES = ["--role", "time=t", "block_x=x", "push=F"]


def write_log(path, seed, rows=120, noise=0.002):
    """By the exact solution under a force that is held over each step, with noise."""
    step, random = 0.02, np.random.default_rng(seed)
    matrix = np.zeros((3, 3))
    matrix[0, 1] = 1.0
    matrix[1] = [-STIFFNESS / MASS, -DAMPING / MASS, 1 / MASS]
    onward = expm(matrix * step)
    force = np.repeat(random.normal(0.0, 20.0, rows // 10 + 1), 10)[:rows]
    states = [np.array([0.1, 0.0])]
    for push in force[:-1]:
        states.append((onward @ np.array([*states[-1], push]))[:2])
    x = np.array(states)[:, 0] + random.normal(0.0, noise, rows)
    table = np.column_stack([step * np.arange(rows), x, force])
    np.savetxt(path, table, delimiter=",", header="t,x,F", comments="", fmt="%.17g")
    return str(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("spring")
    (path / "spring.toml").write_text(SPRING)
    for seed in range(3):
        write_log(path / f"run{seed}.csv", seed)
    return path


def fit(folder: Path, out: Path, *logs: str) -> dict:
    arguments = ["fit", *logs, "--mechanism", str(folder / "spring.toml"), *ROLES]
    arguments += ["--unknown", "coil_stiffness=1:500", "oil_damping"]
    arguments += ["--holdout", str(folder / "run2.csv"), "--out", str(out)]
    assert main(arguments) == 0
    found = json.loads((out / "metrics.json").read_text())
    return {name: x for name, x in found.items() if not name.endswith("_seconds")}


@pytest.mark.slow
def test_fit_finds_parameters_and_never_trains_on_what_is_held_out(folder, tmp_path, capsys):
    logs = [str(folder / f"run{k}.csv") for k in range(3)]
    without = fit(folder, tmp_path / "without", *logs[:2])
    said = capsys.readouterr().out
    with_it = fit(folder, tmp_path / "with", *logs)
    assert without == with_it
    for name in ("model.safetensors", "held-out-0-prediction.csv", "mechanism.toml"):
        assert (tmp_path / "without" / name).read_bytes() == (tmp_path / "with" / name).read_bytes()
    # The file names one unknown parameter, the command two more.
    true = {"block_mass": MASS, "coil_stiffness": STIFFNESS, "oil_damping": DAMPING}
    found = without["parameters"]
    assert set(found) == set(true)
    for name, value in true.items():
        assert abs(found[name] - value) < 4 * without["standard_errors"][name]
        assert without["standard_errors"][name] < 0.05 * value
    assert without["model"] == "parameters"
    assert list(without["tried"]) == ["parameters"]
    assert "Taken: parameters, the simplest that predicts these pieces within the noise" in said
    assert "standard error" in said
    page = (tmp_path / "without" / "report.html").read_text()
    assert "Correlations" in page
    assert "coil_stiffness" in page
    check_prediction(tmp_path / "without", found, tmp_path / "p.csv")


def check_prediction(out: Path, found: dict, file: Path) -> None:
    """The folder holds the mechanism file and predicts from it."""
    written = read_mechanism(out / "mechanism.toml")
    values = {p.name: p.default for p in written.parameters}
    assert {name: values[name] for name in found} == found
    # A spring and a mass that are let go: x = a cos(w t) without damping.
    arguments = ["simulate", str(out), "--initial", "block_x=0.1", "--steps", "50", "--dt", "0.01"]
    assert main([*arguments, "--set", "oil_damping=0", "--out", str(file)]) == 0
    table = np.genfromtxt(file, delimiter=",", names=True)
    rate = np.sqrt(found["coil_stiffness"] / found["block_mass"])
    # RK4 at a step of 0.01 s: (w h)^5 / 120 a step.
    np.testing.assert_allclose(table["block_x"], 0.1 * np.cos(rate * table["t"]), atol=1e-7)


def test_parameters_of_a_class_are_the_same_whatever_is_held_out_beside(
    folder, tmp_path, monkeypatch
):
    """The same in Python, for a mechanism of the catalog; and nothing is searched for twice."""
    logs = [str(folder / f"run{k}.csv") for k in range(3)]
    columns = Columns("t", {"x": "x"})
    both = []
    for trained in (logs[:2], logs):
        config = FitConfig(
            tuple(trained),
            columns,
            mechanism="single-mass-spring-damper",
            model="parameters",
            unknown={"k": None},
            holdout_logs=(logs[2],),
        )
        prepared = read_and_check(config)
        assert prepared.rows == 240
        given = prepared.system, prepared.data.training, prepared.unknown
        both.append(identify_parameters(*given, kept=SearchCheckpoint(tmp_path / str(len(both)))))
    assert both[0].parameters["k"] == both[1].parameters["k"]
    # What was kept is read, in place of searched for.
    monkeypatch.setattr(search, "fit_arrays", lambda *_, **__: pytest.fail("searched again"))
    again = identify_parameters(*given, kept=SearchCheckpoint(tmp_path / "1"))
    assert again.parameters == both[1].parameters
    assert again.covariance.tobytes() == both[1].covariance.tobytes()


def test_fitted_mechanism_is_the_mechanism_with_other_defaults(tmp_path):
    system = SinglePendulum()
    model = FittedMechanism.for_system(system, names=("L",), values=(0.5,), interpolation="linear")
    save(model, tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert again.values == {"L": 0.5}
    assert again.interpolation == "linear"
    t = np.linspace(0.0, 0.5, 26)
    both = [
        simulate(again, t, {"theta": 0.3}, inputs=t),
        simulate(
            system, t, {"theta": 0.3}, inputs=t, interpolation="linear", parameters={"L": 0.5}
        ),
    ]
    np.testing.assert_array_equal(both[0].q, both[1].q)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--unknown", "coil=1:2"], "parameter"),
        (["--unknown", "coil_stiffness=12"], "two numbers with a colon"),
        (["--unknown", "oil_damping", "--model", "law"], "does not find them"),
        (["--unknown", "oil_damping", "--role", "oil_damping=1.0"], "Leave one of the two"),
    ],
)
def test_bad_unknowns_say_what_is_wrong(options, message, folder, tmp_path, capsys):
    start = ["fit", str(folder / "run0.csv"), "--mechanism", str(folder / "spring.toml"), *ROLES]
    assert main([*start, *options, "--out", str(tmp_path / "fit")]) != 0
    assert message in " ".join(capsys.readouterr().err.split())


def test_unknown_parameters_are_those_of_the_file_and_of_the_command(folder):
    system = read_mechanism(folder / "spring.toml")
    config = FitConfig(("run.csv",), mechanism="m.toml", unknown={"oil_damping": (0.0, None)})
    assert list(unknown_parameters(config, system)) == ["block_mass", "oil_damping"]
    law = FitConfig(("run.csv",), model="law")
    assert unknown_parameters(law, system) == {}


def test_unknowns_are_read_as_they_are_typed():
    typed = ["fit", "a.csv", "--unknown", "m", "c", "L=0.1:2", "k=0:", "--out", "fit"]
    assert repeat_options(typed).count("--unknown") == 4
    found = parse_unknown(["m,c", "L=0.1:2", "k=0:"])
    assert found == {"m": None, "c": None, "L": (0.1, 2.0), "k": (0.0, None)}


def test_spread_is_that_of_simulations_with_sampled_parameters(tmp_path):
    """An oscillator whose frequency is uncertain: the error of its phase grows with time."""
    system = SingleMassSpringDamper()
    stiffness, deviation = 50.0, 0.5
    settings = {"names": ("k",), "values": (stiffness,), "covariance": (deviation**2,)}
    model = FittedMechanism.for_system(system, **settings)
    t = np.arange(101) * 0.02
    run = simulate(model, t, {"x": 1.0})
    # dx/dk of x'' + (d x' + k x) / m = 0 from rest, by the same equation driven by -x / m.
    m, d = 10.0, 2.0

    def right(_, y):
        return [
            y[1],
            -(d * y[1] + stiffness * y[0]) / m,
            y[3],
            -(d * y[3] + stiffness * y[2] + y[0]) / m,
        ]

    exact = solve_ivp(right, (0.0, t[-1]), [1.0, 0.0, 0.0, 0.0], t_eval=t, rtol=1e-10, atol=1e-12).y
    # A central difference of one standard deviation: off by (0.01 w t)^2 / 24 of it.
    np.testing.assert_allclose(run.spread.q[:, 0], deviation * np.abs(exact[2]), atol=1e-5)
    np.testing.assert_allclose(run.spread.v[:, 0], deviation * np.abs(exact[3]), atol=2e-5)
    assert simulate(model.certain(), t, {"x": 1.0}).spread is None
    write(run, tmp_path / "run.csv")
    again = read(tmp_path / "run.csv").trajectories[0]
    np.testing.assert_array_equal(again.spread.q, run.spread.q)
    np.testing.assert_array_equal(again.spread.v, run.spread.v)
