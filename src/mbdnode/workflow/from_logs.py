"""From logs to a folder, in one call: what `mbdnode fit` does, in Python."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mbdnode.data.files import check_apart
from mbdnode.data.folders import check_folder
from mbdnode.data.logs import Columns, as_columns
from mbdnode.waiting_notice import counts_rows
from mbdnode.workflow.config import FitConfig
from mbdnode.workflow.fit import Fitted, fit_and_score, read_and_check
from mbdnode.workflow.folder import KIND, write_folder
from mbdnode.workflow.resume_fit import check_resume, keeping

Files = str | Path | Sequence[str | Path]


@counts_rows
def fit_logs(
    logs: Files,
    out: str | Path,
    *,
    columns: Columns | Mapping[str, Any] | str | Path,
    mechanism: str = "",
    model: str = "auto",
    unknown: Mapping[str, Any] | Sequence[str] = (),
    recipe: str = "fast",
    holdout: float | Files = 0.2,
    seed: int = 0,
    epochs: int | None = None,
    structure: str = "",
    bootstrap: int = 0,
    resume: bool = False,
    report: Callable[[dict[str, Any], int], None] | None = None,
    cluster: str | None = None,
) -> Fitted:
    """Fit a model to logs, score it on held-out runs, and write a folder with a report.

    The folder is that of `mbdnode fit` with the same settings, so `mbdnode predict` takes it. All
    is checked before anything is trained. Until the fit is finished, its folder keeps every
    candidate and stage that is, so that a killed process loses the one under way and no more.

    **Arguments:**

    - `logs`: files and patterns.
    - `out`: the folder, which is new, empty, or that of an earlier fit.
    - `columns`: what the logs' columns are: a `Columns`, its arguments by name, or a TOML file of
        them, such as `mbdnode inspect LOG --write FILE` makes.
    - `mechanism`: a TOML file, `module:name` of one in Python, or a name of the catalog; empty
        for a system that is known by its logs alone.
    - `model`: by name; "auto" tries parameters (if some are unknown), law, law plus network and
        network, and takes the simplest that the training data asks for.
    - `unknown`: names of the mechanism's parameters that are to be found, or bounds `(low, high)`
        of each by name, either of them None.
    - `recipe`: by name.
    - `holdout`: the fraction of the runs that is held out (of a single run, of its end), or files.
    - `seed`: of initial weights, random features and the order of samples.
    - `epochs`: of a recipe that has them; None for its own.
    - `structure`: of an MBD-NODE, "free", "mechanical" or "lagrangian"; empty for what the recipe
        says.
    - `bootstrap`: so many times unknown parameters are fitted again, to resampled runs, for
        standard errors that do not assume that the model is right.
    - `resume`: go on with the fit that was begun in the folder, from the same logs with the same
        settings; it ends with the bits that it would have ended with.
    - `report`: called with a row of the history and the number of all rows as training goes on.
    - `cluster`: the address of a Dask scheduler whose workers share the search for a law or for
        unknown parameters, with the same bits as in this process. For a law they read the logs and
        fit it to them.

    **Returns:**

    A `Fitted`: the model, where the training data lies, held-out predictions and their scores.
    Raises `UserError` for what cannot be done.
    """
    path = Path(out)
    check_folder(path, KIND)
    given = {
        "mechanism": str(mechanism),
        "model": model,
        "recipe": recipe,
        "seed": seed,
        "epochs": epochs,
        "structure": structure,
        "bootstrap": bootstrap,
        "unknown": dict(unknown) if isinstance(unknown, Mapping) else dict.fromkeys(unknown),
        **_held_out(holdout),
    }
    config = FitConfig(logs=_names(logs), columns=as_columns(columns), **given)
    file = columns if isinstance(columns, (str, Path)) else None
    check_apart(path, *config.sources, file)
    if resume:
        check_resume(path, config)
    prepared = read_and_check(config, cluster=cluster)
    with prepared, keeping(path, prepared, resume=resume) as kept:
        fitted = fit_and_score(prepared, report=report, kept=kept)
    write_folder(path, fitted, _call(config, path))
    return fitted


def _names(files: Files) -> tuple[str, ...]:
    return (str(files),) if isinstance(files, (str, Path)) else tuple(map(str, files))


def _held_out(holdout: float | Files) -> dict[str, Any]:
    if isinstance(holdout, (int, float)):
        return {"holdout": float(holdout)}
    return {"holdout": 0.0, "holdout_logs": _names(holdout)}


def _call(config: FitConfig, out: Path) -> str:
    """The call as one would write it, for the report."""
    default = FitConfig(logs=(), recipe=config.recipe)
    words = [repr(list(config.logs)), repr(str(out)), f"columns={config.columns.given()!r}"]
    for name in ("mechanism", "model", "unknown", "seed", "epochs", "structure", "bootstrap"):
        if (value := getattr(config, name)) != getattr(default, name):
            words.append(f"{name}={value!r}")
    words.append(f"recipe={config.recipe!r}")
    words.append(f"holdout={list(config.holdout_logs) or config.holdout!r}")
    return f"mbdnode.workflow.fit_logs({', '.join(words)})"
