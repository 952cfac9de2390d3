"""A run's folder: the configuration first, then what came of it.

config.json         all that decides the result; `mbdnode run --config` repeats it
metrics.json        errors, residuals, times, how it ended
history.csv         loss and learning rate of every epoch
model.safetensors   the trained model
truth.csv, prediction.csv
figure.png          truth and prediction
checkpoint.safetensors, only while training is not finished
"""

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

from mbdnode.config import from_dict, to_dict
from mbdnode.data import write
from mbdnode.data.atomic import replace_file
from mbdnode.experiments import get_case
from mbdnode.experiments.run import RunConfig, RunResult
from mbdnode.models import save
from mbdnode.report.comparison import Comparison, draw_comparison
from mbdnode.report.style import save as save_figure

CONFIG, METRICS, CHECKPOINT = "config.json", "metrics.json", "checkpoint.safetensors"


def open_folder(path: Path, config: RunConfig, *, resume: bool) -> Path:
    """Make the folder and write the configuration.

    **Arguments:**

    - `path`: where; its parent must exist or be makeable.
    - `config`: of the run.
    - `resume`: the folder must hold this very run.

    **Returns:**

    The path of the checkpoint. Raises `ValueError` for a folder of another run.
    """
    if path.exists() and not path.is_dir():
        raise ValueError(f"'{path}' is a file; name a folder for the run.")
    existing = path / CONFIG
    if resume and not existing.is_file():
        raise ValueError(f"There is no {CONFIG} in '{path}', so there is nothing to resume there.")
    if resume and (path / METRICS).is_file() and not (path / CHECKPOINT).is_file():
        raise ValueError(f"The run in '{path}' is finished; there is nothing to resume.")
    if existing.is_file() and read_config(existing) != config:
        raise ValueError(
            f"'{path}' holds another run (its {CONFIG} differs). Choose another --out, or remove "
            "that folder."
        )
    path.mkdir(parents=True, exist_ok=True)
    _write_json(existing, to_dict(config))
    return path / CHECKPOINT


def read_config(path: Path) -> RunConfig:
    """The configuration in a file that `open_folder` wrote."""
    try:
        return from_dict(RunConfig, json.loads(path.read_text()))
    except OSError as error:
        raise ValueError(f"'{path}' cannot be read: {error.strerror}.") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"'{path}' is not JSON ({error}).") from error


def write_result(path: Path, result: RunResult) -> None:
    """Write all files of a finished run, each of them whole."""
    _write_json(path / METRICS, result.summary())
    _write_history(path / "history.csv", result.fit.history)
    save(result.fit.model, path / "model.safetensors")
    write(result.truth, path / "truth.csv")
    write(result.prediction, path / "prediction.csv")
    case = get_case(result.config.case)
    figure = draw_comparison(
        Comparison(
            title=f"{case.title}: {result.config.model}, recipe {result.config.recipe}, "
            f"seed {result.config.seed}",
            coordinates=case.mechanism.coordinates,
            truth=result.truth,
            prediction=result.prediction,
            train_end_s=case.train_steps * case.dt_s,
            history=[row["loss"] for row in result.fit.history],
        )
    )
    save_figure(figure, path / "figure.png")


def _write_json(path: Path, values: Any) -> None:
    text = json.dumps(_without_nan(values), indent=2, allow_nan=False) + "\n"
    replace_file(path, lambda file: file.write(text.encode()))


def _without_nan(values: Any) -> Any:
    """JSON has no NaN: what is not a number is null."""
    if isinstance(values, dict):
        return {key: _without_nan(value) for key, value in values.items()}
    return None if isinstance(values, float) and not math.isfinite(values) else values


def _write_history(path: Path, history: list[dict[str, Any]]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, ["epoch", "loss", "learning_rate", "seconds"])
    writer.writeheader()
    writer.writerows(history)
    replace_file(path, lambda file: file.write(text.getvalue().encode()))
