"""The folder of a fit.

config.json         all that decides the fit: logs, columns, mechanism, model, recipe, seed
read.txt            what was read, cut, unwrapped, estimated and completed
history.csv         loss and learning rate of every epoch, where there are epochs
model.safetensors   the trained model, with its mechanism
domain.npz          where the training data lies, for who asks whether a state is outside it
held-out-*.csv      the runs that were held out, and what the model says of them
mechanism.toml      the mechanism file with the parameters that were found, if they were sought
report.html         how well, how far ahead, where
metrics.json        the numbers
mbdnode.json        that this is a fit, and which files are its own
unfinished          only while it is not finished: what is done of it (`unfinished.py`)
"""

import datetime
import importlib.metadata
import io
import shutil
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from mbdnode.config import from_dict, to_dict
from mbdnode.data import write
from mbdnode.data.files import read_json, replace_file, write_json
from mbdnode.data.folders import (
    CONFIG,
    METRICS,
    MODEL,
    UNFINISHED,
    find_result,
    replace_folder,
    write_history,
)
from mbdnode.data.logs import Columns
from mbdnode.errors import UserError
from mbdnode.formatting import plural
from mbdnode.identification import Identified
from mbdnode.identification.parameters import IdentifiedParameters
from mbdnode.mechanisms.described import AbstractDescribed
from mbdnode.models import AbstractModel, Ensemble, load, save
from mbdnode.models.law_equations import features_name
from mbdnode.recipes import RECIPES
from mbdnode.report.playground import Play
from mbdnode.report.tables import Table
from mbdnode.simulation import Domain
from mbdnode.training import Fit
from mbdnode.waiting_notice import doing
from mbdnode.workflow.config import KIND, FitConfig
from mbdnode.workflow.fitted import Fitted
from mbdnode.workflow.hybrid import is_hybrid
from mbdnode.workflow.model_choice import ALL_FORMS, NETWORK_RECIPE
from mbdnode.workflow.play import make_fit_play
from mbdnode.workflow.report.page import write_fit_page
from mbdnode.workflow.results import ReportData, parameter_tables, verdict

DOMAIN, PAGE, READ, MECHANISM = "domain.npz", "report.html", "read.txt", "mechanism.toml"
# Without which it is not finished.
FILES = (CONFIG, METRICS, MODEL, DOMAIN)
_PACKAGES = ("mbdnode", "jax", "equinox", "diffrax", "numpy", "scipy", "pyarrow")
_MOST_KNOWN = 4_000


def write_folder(path: Path, fitted: Fitted, command: str) -> None:
    """Write everything, in place of an earlier fit in the same folder, whole or not at all."""
    left = path.resolve() / UNFINISHED

    def fill(part: Path) -> None:
        _fill(part, fitted, command)
        if fitted.fit.outcome == "interrupted" and left.is_dir():
            shutil.copytree(left, part / UNFINISHED)

    with doing("writing the report"):
        replace_folder(path, KIND, fill)


def _fill(path: Path, fitted: Fitted, command: str) -> None:
    prepared = fitted.prepared
    write_json(path / CONFIG, to_dict(prepared.config))
    text = "\n".join(prepared.notes) + "\n"
    replace_file(path / READ, lambda file: file.write(text.encode(errors="backslashreplace")))
    write_history(path / "history.csv", fitted.fit.history)
    save(fitted.fit.model, path / MODEL)
    _write_domain(path / DOMAIN, fitted.domain)
    for number, one in enumerate(fitted.held_out):
        write(one.truth, path / f"held-out-{number}-truth.csv")
        write(one.prediction, path / f"held-out-{number}-prediction.csv")
    if isinstance(fitted.fit, IdentifiedParameters) and isinstance(
        fitted.fit.system, AbstractDescribed
    ):
        fitted.fit.write(path / MECHANISM)
    report = make_report_data(fitted, command)
    write_fit_page(report, path / PAGE)
    write_json(path / METRICS, {**fitted.metrics(), "verdict": verdict(report)})


def make_report_data(fitted: Fitted, command: str) -> ReportData:
    """What the page says of a fit."""
    prepared, fit = fitted.prepared, fitted.fit
    config, training = prepared.config, prepared.data.training
    told = fitted.choice_summary
    white = fitted.residual_summary
    facts = (
        ("mechanism", config.mechanism or "none: known by its logs alone"),
        ("model", fitted.model_name),
        *([("network", fitted.network_summary)] if fitted.network_summary else []),
        ("recipe", _recipe(config, fit, fitted.model_name)),
        ("trained on", f"{plural(len(training.trajectories), 'run')}, {prepared.rows:,} rows"),
        ("held out", plural(len(fitted.held_out), "run")),
        ("training", fitted.status),
        *([("choice", told)] if told else []),
        *([("held-out residuals", white)] if white else []),
        ("seed", str(config.seed)),
        ("date", datetime.datetime.now().astimezone().isoformat(timespec="seconds")),
    )
    return ReportData(
        title=config.title,
        command=command,
        system=prepared.system,
        parameters={**_common(training.parameters), **_values_of(fit)},
        facts=facts,
        read=prepared.notes,
        held_out=fitted.held_out,
        scores=fitted.scores,
        horizon=fitted.horizon,
        known=_known(fitted),
        warnings=_warnings(fitted),
        found=_found(fit),
        versions={name: importlib.metadata.version(name) for name in _PACKAGES},
        play=_play(fitted),
        seconds=fitted.seconds,
    )


def _play(fitted: Fitted) -> Play:
    """The model from the start of a run that it has not seen, or of one that it has."""
    config, runs = fitted.prepared.config, [one.truth for one in fitted.held_out]
    return make_fit_play(
        fitted.fit.model,
        title=config.title,
        label=fitted.model_name,
        integrator=config.integrator,
        domain=fitted.domain,
        motions=[run.kept for run in (*runs, *fitted.prepared.data.training.trajectories)],
        parameters=config.given_parameters,
    )


def _recipe(config: FitConfig, fit: Any, name: str) -> str:
    """The recipe by which the model was found, which the data may have asked for."""
    if isinstance(fit, IdentifiedParameters):
        return "output error: the simulation is fitted to what was recorded"
    first, recipe = "", config.recipe
    if isinstance(fit, Fit) and RECIPES[recipe].finds_law:
        first = f"{recipe} for the law, then " if is_hybrid(fit.model) else ""
        recipe = NETWORK_RECIPE
    elif name.startswith("refined"):
        recipe = ALL_FORMS
    return f"{first}{recipe}: {RECIPES[recipe].description}"


def _values_of(fit: Any) -> dict[str, float]:
    return fit.parameters if isinstance(fit, IdentifiedParameters) else {}


def _found(fit: Any) -> tuple[Table, ...] | str:
    """The parameters that were found, or the law; nothing of a network."""
    if isinstance(fit, IdentifiedParameters):
        return parameter_tables(fit)
    is_law = isinstance(fit, Identified) and features_name(fit.model) is None
    return str(fit.equations) if is_law else ""


def _common(parameters: Any) -> dict[str, float]:
    """The parameters that all runs share."""
    return {
        name: float(value)
        for name, value in parameters[0].items()
        if all(float(values[name]) == float(value) for values in parameters)
    }


def _known(fitted: Fitted) -> dict[str, np.ndarray]:
    runs = fitted.prepared.data.training.trajectories
    columns = {
        name: np.concatenate([np.asarray(run[name]) for run in runs])
        for name in runs[0].columns[1:]
    }
    count = len(next(iter(columns.values())))
    rows = np.unique(np.linspace(0, count - 1, min(count, _MOST_KNOWN)).astype(int))
    return {name: values[rows] for name, values in columns.items()}


def _warnings(fitted: Fitted) -> tuple[str, ...]:
    found = [line.strip() for line in fitted.prepared.notes if line.strip().startswith("warning")]
    if not fitted.held_out:
        found.append("Nothing was held out, so nothing here says how well the model predicts.")
    ended = [run.name for run in fitted.scores.ended]  # The doubts say so.
    for one in fitted.held_out:
        early = not bool(one.prediction.status.ok) and one.name not in ended
        if early or one.prediction.status.too_long:
            found.append(f"{one.name}: {one.prediction.status}")
    found += [f"{doubt[0].upper()}{doubt[1:]}." for doubt in fitted.doubts()]
    return tuple(found)


def _write_domain(path: Path, domain: Domain) -> None:
    content = io.BytesIO()
    np.savez(content, **{one.name: getattr(domain, one.name) for one in fields(domain)})
    replace_file(path, lambda file: file.write(content.getvalue()))


@dataclass(frozen=True)
class StoredFit:
    """A fit as its folder holds it: `config`, `model`, `domain` and `metrics`."""

    config: FitConfig
    model: AbstractModel | Ensemble
    domain: Domain
    metrics: Mapping[str, Any]

    def with_columns(self, columns: Columns) -> "StoredFit":
        """The same fit, for logs with these columns in place of its own."""
        return replace(self, config=replace(self.config, columns=columns))

    @property
    def verdict(self) -> str:
        """How well it predicts, as its report says; empty for a fit that was stored without."""
        return str(self.metrics.get("verdict") or "")

    @property
    def biased(self) -> tuple[str, ...]:
        """Recorded velocities that contradict their positions, as the fit has found."""
        columns = self.metrics.get("columns", {})
        return tuple(n for n, one in columns.items() if one.get("contradicts_its_position"))


def read_folder(path: Path, system: Any = None) -> StoredFit:
    """Read a finished fit.

    **Arguments:**

    - `path`: the folder that `mbdnode fit` wrote.
    - `system`: the mechanism, if it is one of the user's own in Python.

    **Returns:**

    A `StoredFit`.
    """
    find_result(path, KIND, FILES)
    config = from_dict(FitConfig, read_json(path / CONFIG))
    return StoredFit(
        config, load(path / MODEL, system), _read_domain(path / DOMAIN), read_json(path / METRICS)
    )


def _read_domain(path: Path) -> Domain:
    try:
        with zipfile.ZipFile(path) as archive:
            # As `_write_domain` leaves it, so that no more is read than the file is long.
            if any(part.compress_type != zipfile.ZIP_STORED for part in archive.infolist()):
                raise _damaged(path, "its arrays are compressed")
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        domain = Domain(
            np.asarray(arrays["points"], float),
            np.asarray(arrays["center"], float),
            np.asarray(arrays["std"], float),
            float(arrays["threshold"]),
            tuple(map(int, arrays["positions"])),
            tuple(map(int, arrays["velocities"])),
            tuple(map(bool, arrays["angles"])),
        )
    except UserError:
        raise
    except KeyError as error:
        raise _damaged(path, f"it has no array {error.args[0]!r}") from error
    except (ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise _damaged(path, "it does not hold plain arrays of numbers") from error
    if domain.points.ndim != 2 or domain.points.shape[1:] != domain.center.shape:
        raise _damaged(path, f"its points have shape {domain.points.shape}")
    return domain


def _damaged(path: Path, why: str) -> UserError:
    return UserError(
        f"'{path}' is not as `mbdnode fit` wrote it: {why}. Copy the folder again, or fit again."
    )
