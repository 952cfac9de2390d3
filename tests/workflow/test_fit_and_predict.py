"""From logs to a folder, and from the folder to predictions, on the command line."""

import html
import json
import re
import shlex

import numpy as np
import pytest
from problems import solve_slider_crank

import mbdnode as mbd
from mbdnode.cli import main
from mbdnode.formatting import percent
from mbdnode.workflow.config import FitConfig, make_model

FILES = {
    "config.json",
    "read.txt",
    "history.csv",
    "model.safetensors",
    "domain.npz",
    "report.html",
    "metrics.json",
    "mbdnode.json",
}
CRANK = """
[bodies.crank]
center = [1.0, 0.0]
coordinates = ["x1", "y1", "theta1"]
[bodies.rod]
center = [4.0, 0.0]
coordinates = ["x2", "y2", "theta2"]
[bodies.slider]
center = [6.0, 0.0]
coordinates = ["x3", "y3", "theta3"]
[joints.bearing]
type = "revolute"
bodies = ["ground", "crank"]
points = [[0.0, 0.0], [-1.0, 0.0]]
[joints.pin]
type = "revolute"
bodies = ["crank", "rod"]
points = [[1.0, 0.0], [-2.0, 0.0]]
[joints.wrist]
type = "revolute"
bodies = ["rod", "slider"]
points = [[2.0, 0.0], [0.0, 0.0]]
[joints.rail]
type = "prismatic"
bodies = ["ground", "slider"]
points = [[0.0, 0.0], [0.0, 0.0]]
[torques.T]
bodies = ["ground", "crank"]
"""


def call(*arguments):
    return main([str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Logs of a turning crank: its angle, with some noise, and the torque."""
    folder = tmp_path_factory.mktemp("rig")
    (folder / "crank.toml").write_text(CRANK)
    random = np.random.default_rng(0)
    t = np.arange(0.0, 3.0, 0.02)
    for number in range(4):
        torque = 3.0 * np.sin((1.0 + 0.3 * number) * t)
        load = np.column_stack([np.zeros_like(t), torque])
        states = solve_slider_crank(load[:-1], (float(number), 1.0), 0.02)
        measured = states[:, 2] + random.normal(0.0, 0.003, len(t))
        table = np.column_stack([t, np.rad2deg(measured), torque])
        np.savetxt(
            folder / f"run{number}.csv",
            table,
            delimiter=",",
            header="t,theta1 [deg],T",
            comments="",
        )
    return folder


@pytest.fixture(scope="module")
def fitted(place):
    options = ["--recipe", "paper", "--epochs", "3", "--holdout", "0.25"]
    # By the mechanism's own names, which are those of the columns.
    roles = ["--role", "time=t", "theta1=theta1", "T=T", "--seed", "3"]
    logs, machine = place / "run*.csv", ["--mechanism", place / "crank.toml"]
    assert call("fit", logs, *machine, *roles, *options, "--out", place / "fit") == 0
    return place / "fit"


def test_folder_is_whole(fitted):
    names = {path.name for path in fitted.iterdir()}
    assert names == FILES | {"held-out-0-truth.csv", "held-out-0-prediction.csv"}
    metrics = json.loads((fitted / "metrics.json").read_text())
    assert metrics["training_runs"] == 3
    assert metrics["held_out_runs"] == 1
    assert metrics["training_rows"] == 450
    assert metrics["nrmse"] > 0
    assert 0 <= metrics["outside"] <= 1
    # The rate was estimated and the other coordinates follow: only the angle is judged.
    assert list(metrics["columns"]) == ["theta1"]
    assert metrics["columns"]["theta1"]["unit"] == "rad"


def test_all_nine_coordinates_are_predicted_with_the_constraints_kept(fitted):
    metrics = json.loads((fitted / "metrics.json").read_text())
    assert metrics["position_residual"] < 1e-10
    header = (fitted / "held-out-0-prediction.csv").read_text().splitlines()[0].split(",")
    assert header[1:10] == ["x1", "y1", "theta1", "x2", "y2", "theta2", "x3", "y3", "theta3"]
    table = np.genfromtxt(fitted / "held-out-0-prediction.csv", delimiter=",", names=True)
    assert table["x1"] == pytest.approx(np.cos(table["theta1"]), abs=1e-10)


def test_what_was_read_is_kept(fitted):
    text = (fitted / "read.txt").read_text()
    assert "4 runs, 4 trajectories: 600 rows read, 600 kept" in text
    assert "deg" in text
    assert "completed: 8 coordinates from theta1" in text


def test_prediction_like_a_log_has_its_rows_and_marks(fitted, place, capsys):
    assert call("predict", fitted, "--like", place / "run1.csv", "--out", place / "p.csv") == 0
    table = np.genfromtxt(place / "p.csv", delimiter=",", names=True)
    assert len(table) == 150
    assert set(np.unique(table["outside"])) <= {0.0, 1.0}
    # By the angle alone, in radians and in percent of its deviation: its rate was not recorded.
    measured = np.deg2rad(np.genfromtxt(place / "run1.csv", delimiter=",", skip_header=1)[:, 1])
    rmse = np.sqrt(np.mean((table["theta1"] - measured) ** 2))
    (said,) = [line for line in capsys.readouterr().out.splitlines() if "against the log" in line]
    assert said.endswith(f"(theta1 {rmse:.2g} rad = {percent(rmse / np.std(measured))})")


@pytest.mark.slow
def test_python_call_makes_the_same_folder_and_predictions_as_the_command(fitted, place):
    mbd.workflow.fit_logs(
        place / "run*.csv",
        place / "fit-python",
        columns={"time": "t", "coordinates": {"theta1": "theta1"}, "inputs": {"T": "T"}},
        mechanism=str(place / "crank.toml"),
        **{"recipe": "paper", "epochs": 3, "holdout": 0.25, "seed": 3},
    )
    files = {path.name: path.read_bytes() for path in fitted.iterdir()}
    made = {path.name: path.read_bytes() for path in (place / "fit-python").iterdir()}
    assert made.keys() == files.keys()
    # The report has the command and the date in it, metrics and history the seconds.
    page = html.unescape(made.pop("report.html").decode())
    assert "mbdnode.workflow.fit_logs([" in page
    assert "epochs=3" in page
    one, other = json.loads(made.pop("metrics.json")), json.loads(files["metrics.json"])
    assert {n: v for n, v in one.items() if "seconds" not in n} == {
        n: v for n, v in other.items() if "seconds" not in n
    }
    made.pop("history.csv")
    assert made == {name: files[name] for name in made}

    run, scores = mbd.workflow.predict_like(place / "fit-python", place / "run1.csv")
    mbd.write(run, place / "python.csv")
    assert call("predict", fitted, "--like", place / "run1.csv", "--out", place / "p.csv") == 0
    assert (place / "python.csv").read_bytes() == (place / "p.csv").read_bytes()
    assert [column.name for column in scores.columns] == ["theta1"]
    start = {"theta1": 1.0, "theta1_dot": 0.5}
    run = mbd.workflow.predict_from(place / "fit-python", start, steps=5, dt_s=0.02)
    assert float(run.t[-1]) == pytest.approx(0.1)


def test_prediction_far_from_the_data_is_marked(fitted, place):
    start = ["--initial", "theta1=1", "theta1_dot=40", "--steps", "3", "--dt", "0.01"]
    assert call("simulate", fitted, *start, "--out", place / "far.csv") == 0
    table = np.genfromtxt(place / "far.csv", delimiter=",", names=True)
    assert np.all(table["outside"] == 1)


def test_prediction_from_a_start_under_recorded_inputs(fitted, place):
    start = ["--initial", "theta1=1", "theta1_dot=0.5", "--inputs", place / "run2.csv"]
    assert call("simulate", fitted, *start, "--out", place / "driven.csv") == 0
    table = np.genfromtxt(place / "driven.csv", delimiter=",", names=True)
    torque = np.genfromtxt(place / "run2.csv", delimiter=",", skip_header=1)[:, 2]
    assert table["T"] == pytest.approx(torque)
    assert table["theta1"][0] == 1.0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["simulate", "FIT", "--initial", "theta1=1"], "give --steps, or --inputs FILE"),
        (["simulate", "FIT", "--initial", "phi=1", "--steps", "3", "--dt", "0.1"], "phi"),
        (["simulate", "FIT", "--initial", "theta1=1", "--steps", "0"], "at least 1"),
        (["simulate", "FIT", "--inputs", "nowhere.csv"], "no file 'nowhere.csv'"),
        (["simulate", "FIT", "--inputs", "LOG", "--steps", "3"], "gives the times, so leave"),
        (["simulate", "FIT", "--steps", "3", "--integrator", "rk5"], "'rk5'"),
        (["simulate", "FIT", "--steps", "3", "--seed", "1"], "has no random inputs"),
        (["predict", "FIT", "--like", "nowhere.csv"], "nowhere.csv"),
        (["predict", "FIT", "--like", "LOG", "--role", "gaps=never"], "Known: refuse, split"),
        (["predict", "FIT", "--like", "LOG", "--set", "mass=2"], "Unknown parameter 'mass'"),
        (["predict", "FIT"], "Missing option '--like'"),
    ],
)
def test_impossible_prediction_is_refused(arguments, says, fitted, place, tmp_path, capsys):
    places = {"LOG": place / "run1.csv", "FIT": fitted}
    arguments = [places.get(word, word) for word in arguments]
    assert call(*arguments, "--out", tmp_path / "p.csv") == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "p.csv").exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--role", "time=t", "coordinates=phi"], "phi"),
        (["--role", "time=t", "coordinates=theta1", "--recipe", "quick"], "quick"),
        (["--role", "time=t", "coordinates=theta1", "--model", "lstm"], "--recipe paper"),
        (["--role", "time=t", "coordinates=theta1", "--holdout", "1.5"], "below 1"),
        (["--role", "time=t", "coordinates=theta1", "--epochs", "3"], "has none"),
        (["--role", "when=t"], "coordinates=when:t"),
        (["--role", "time=t", "time=x"], "twice"),
        (["--role", "units=deg"], "units=theta:deg"),
        (["--role", "time=t", "theta9=theta1", "--mechanism", "slider-crank"], "theta1"),
        (["--role", "time"], "role=column"),
        (["--columns", "nowhere.toml"], "nowhere.toml"),
        (["--role", "time=t", "coordinates=theta1", "--mechanism", "crank"], "catalog"),
        ([], 'give it: time="t", coordinates=["theta1 [deg]"], inputs=["T"]'),
    ],
)
def test_impossible_fit_is_refused_and_nothing_is_written(options, says, place, tmp_path, capsys):
    assert call("fit", place / "run0.csv", *options, "--out", tmp_path / "fit") == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "fit").exists()


def test_page_says_what_to_type_to_make_it_again(fitted):
    text = html.unescape((fitted / "report.html").read_text())
    command = re.search(r"mbdnode fit [^\n<]*", text)[0]
    words = shlex.split(command)
    assert words[words.index("--seed") :][:2] == ["--seed", "3"]
    assert words[words.index("--epochs") :][:2] == ["--epochs", "3"]
    assert {"--role", "time=t", "theta1=theta1", "T=T"} <= set(words)


def test_a_setting_is_spelled_alike_on_the_command_line_and_in_python(place, tmp_path, capsys):
    lines = (place / "run0.csv").read_text().splitlines()
    log = tmp_path / "gap.csv"
    log.write_text("\n".join([*lines[:50], *lines[70:]]) + "\n")
    roles = ["--role", "time=t", "coordinates=theta1"]
    assert call("fit", log, *roles, "--out", tmp_path / "fit") == 2
    message = capsys.readouterr().err
    assert 'Pass gaps="split" to cut the run there, or longest_step_s=... to allow' in message
    with pytest.raises(ValueError, match='Pass gaps="split"'):
        mbd.read(log, time="t", coordinates=["theta1"])


def test_folder_of_something_else_is_left_alone(place, tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("mine")
    roles = ["--role", "time=t", "coordinates=theta1"]
    assert call("fit", place / "run0.csv", *roles, "--out", tmp_path) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_folder_without_a_fit_is_refused(place, tmp_path, capsys):
    log = place / "run1.csv"
    assert call("predict", tmp_path, "--like", log, "--out", tmp_path / "p.csv") == 2
    assert "not the folder of a finished fit" in capsys.readouterr().err


def test_structure_is_that_of_a_network():
    named = FitConfig(logs=("run.csv",), recipe="adam-lm", structure="lagrangian")
    system = mbd.mechanisms.CartPole()
    model, _ = make_model(named, system, ())
    assert model.settings.structure == "lagrangian"
    several, _ = make_model(FitConfig(logs=("run.csv",), recipe="adam-lm"), system, ())
    assert [one.settings.structure for one in several] == ["free", "lagrangian"]
    with pytest.raises(ValueError, match="auto has none: it is for mbd-node"):
        FitConfig(logs=("run.csv",), recipe="fast", structure="lagrangian")
    with pytest.raises(ValueError, match=r"'lagrange'.*Did you mean 'lagrangian'"):
        FitConfig(logs=("run.csv",), recipe="adam-lm", structure="lagrange")


@pytest.mark.parametrize(
    ("recipe", "model"), [("fast", "auto"), ("best", "auto"), ("adam-lm", "mbd-node")]
)
def test_model_is_left_to_the_data_unless_the_recipe_trains_a_network(recipe, model):
    assert FitConfig(logs=("run.csv",), recipe=recipe).model == model
    with pytest.raises(ValueError, match="Leave --model out"):
        FitConfig(logs=("run.csv",), recipe=recipe, model="lstm")


def test_recipe_of_the_paper_has_the_papers_settings_for_every_model():
    spring = mbd.mechanisms.SingleMassSpring()
    found = {}
    for model in ("hnn", "lnn", "lstm", "fcnn", "mbd-node"):
        config = make_model(FitConfig(("run.csv",), recipe="paper", model=model), spring, ())[1]
        found[model] = config.epochs, config.learning_rate, config.batch_size, config.shuffle
    # As printed, but that models with an update for each step have them in batches of 64 here: a
    # log has too many steps.
    assert found == {
        "hnn": (30_000, 1e-3, None, False),
        "lnn": (400, 1e-4, 64, True),
        "lstm": (400, 5e-4, 16, True),
        "fcnn": (600, 5e-4, 64, True),
        "mbd-node": (300, 1e-3, 64, True),
    }
