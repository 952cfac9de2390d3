"""A run's folder: the configuration first, then, in one step, what came of it.

config.json         all that decides the result; `mbdnode run --config` repeats it
metrics.json        errors, residuals, times, how it ended; the last to be written
history.csv         loss and learning rate of every epoch
model.safetensors   the trained model
truth.csv, prediction.csv
probe-*.csv         the same for motions that were not trained on, where the case has some
figure.png          truth and prediction
checkpoint.safetensors, only while training is not finished
error.txt           why it failed, if it was one of several
mbdnode.json        that this is a run, and which files are its own
"""

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mbdnode.config import from_dict, to_dict
from mbdnode.data import write
from mbdnode.data.files import read_json, write_json
from mbdnode.data.folders import CONFIG, METRICS, MODEL, check_folder, replace_folder, write_history
from mbdnode.data.folders import open_folder as open_result
from mbdnode.data.logs import read
from mbdnode.errors import UserError
from mbdnode.models import AbstractModel, save
from mbdnode.report.style import save_figure
from mbdnode.reproduction.cases import Case, get_case
from mbdnode.reproduction.config import RunConfig
from mbdnode.reproduction.run import Probe, RunResult, check, run_case
from mbdnode.reproduction.run_figure import draw_run
from mbdnode.reproduction.titles import structure_text
from mbdnode.trajectory import Trajectory

CHECKPOINT, ERROR = "checkpoint.safetensors", "error.txt"
KIND = "run"
# What a run's folder holds before it holds a result.
FIRST_FILES = (CONFIG, CHECKPOINT, "checkpoint-candidate-*.safetensors", ERROR)


def open_run_folder(path: Path, config: RunConfig, *, resume: bool) -> Path:
    """Make the folder, write the configuration, and return the path of the checkpoint.

    Raises `UserError` for a folder of another run, or of anything else.
    """
    path = check_folder(path, KIND)
    existing = path / CONFIG
    if resume and not existing.is_file():
        raise UserError(f"There is no {CONFIG} in '{path}', so there is nothing to resume there.")
    if resume and (path / METRICS).is_file() and not (path / CHECKPOINT).is_file():
        raise UserError(f"The run in '{path}' is finished; there is nothing to resume.")
    if existing.is_file() and read_config(existing).asked != config.asked:
        raise UserError(
            f"'{path}' holds another run (its {CONFIG} differs). Choose another --out, or remove "
            "that folder."
        )
    open_result(
        path, KIND, FIRST_FILES, lambda folder: write_json(folder / CONFIG, to_dict(config))
    )
    return path / CHECKPOINT


def read_config(path: Path) -> RunConfig:
    """The configuration in a file that `open_run_folder` wrote."""
    return from_dict(RunConfig, read_json(path))


def is_finished(path: Path, config: RunConfig) -> bool:
    """Whether the folder holds this very run, carried out to its end."""
    if not (path / METRICS).is_file() or (path / CHECKPOINT).is_file():
        return False
    try:
        ended = read_json(path / METRICS)["outcome"] != "interrupted"
        return ended and read_config(path / CONFIG).asked == config.asked
    except (UserError, KeyError, TypeError):
        return False


def run_in_folder(
    path: Path, config: RunConfig, *, report: Callable | None = None, resume: bool = False
) -> RunResult:
    """Run, and leave everything in a folder. After Ctrl-C the checkpoint stays there."""
    check(config)
    checkpoint = open_run_folder(path, config, resume=resume)
    result = run_case(config, report=report, checkpoint=checkpoint, resume=resume)
    write_result(path, result)
    return result


def write_result(path: Path, result: RunResult) -> None:
    """Write all files of a finished run, in one step; its checkpoint goes."""
    replace_folder(path, KIND, lambda part: _fill(part, result))


def _fill(path: Path, result: RunResult) -> None:
    write_json(path / CONFIG, to_dict(result.ran))
    write_history(path / "history.csv", result.fit.history)
    if isinstance(result.fit.model, AbstractModel):
        save(result.fit.model, path / MODEL)
    write(result.truth, path / "truth.csv")
    write(result.prediction, path / "prediction.csv")
    for probe in result.probes:
        write(probe.truth, path / f"probe-{probe.name}-truth.csv")
        write(probe.prediction, path / f"probe-{probe.name}-prediction.csv")
    case, summary = get_case(result.config.case), result.summary()
    who = result.model_name + structure_text([summary])
    figure = draw_run(
        f"{case.title}: {who}, recipe {result.config.recipe}, seed {result.config.seed}",
        case.mechanism,
        result.truth,
        result.prediction,
        train_end_s=case.train_steps * case.dt_s,
        history=[row["loss"] for row in result.fit.history],
    )
    save_figure(figure, path / "figure.png")
    write_json(path / METRICS, summary)


@dataclass(frozen=True)
class StoredRun:
    """A run as its folder holds it; `history` is the loss of every epoch."""

    config: RunConfig
    metrics: Mapping[str, Any]
    truth: Trajectory
    prediction: Trajectory
    history: tuple[float, ...]
    probes: tuple[Probe, ...]


def read_run(path: Path) -> StoredRun:
    """Read a finished run. Raises `UserError` for a folder that does not hold one."""
    config = read_config(path / CONFIG)
    case = get_case(config.case)
    metrics = read_json(path / METRICS)
    try:
        with open(path / "history.csv", newline="") as file:
            history = tuple(float(row["loss"]) for row in csv.DictReader(file))
    except OSError as error:
        raise UserError(f"'{path}' is not a finished run: {error.strerror}.") from error

    def pair(stem: str = "") -> tuple[Trajectory, Trajectory]:
        truth, found = (path / f"{stem}{name}.csv" for name in ("truth", "prediction"))
        return _trajectory(truth, case), _trajectory(found, case)

    errors = metrics.get("probes", {})
    probes = tuple(
        Probe(trial.name, trial.title, *pair(f"probe-{trial.name}-"), **errors[trial.name])
        for trial in case.trials
        if trial.name in errors
    )
    return StoredRun(config, metrics, *pair(), history, probes)


def _trajectory(path: Path, case: Case) -> Trajectory:
    run, system = read(path).trajectories[0], case.mechanism
    names = ("t", *system.coordinate_names, *system.rate_names, *system.input_names)
    if run.columns != names:
        raise UserError(
            f"'{path}' has the columns {', '.join(run.columns)}; "
            f"{type(system).__name__} has {', '.join(names)}."
        )
    return run
