"""From logs to a folder, in one call: the work of `mbdnode fit`."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from mbdnode.data.files import check_apart
from mbdnode.data.folders import check_folder
from mbdnode.data.logs.columns import Given, as_columns
from mbdnode.models.registry import register_model
from mbdnode.naming import is_own
from mbdnode.waiting_notice import counts_rows
from mbdnode.workflow.config import KIND, FitConfig
from mbdnode.workflow.fit import fit_and_score, read_and_check
from mbdnode.workflow.fitted import Fitted, Prepared
from mbdnode.workflow.resume_fit import check_resume, keeping

Files = str | Path | Sequence[str | Path]
# A context around a part of a fit: "reading", "training" (with scoring) or "writing". It gives what
# is called as that part goes on, or None.
Around = Callable[[str, Prepared | None], AbstractContextManager[Any]]


@counts_rows
def fit_logs(
    logs: Files,
    out: str | Path,
    *,
    columns: Given,
    holdout: float | Files = 0.2,
    unknown: Mapping[str, Any] | Sequence[str] = (),
    resume: bool = False,
    report: Callable[[dict[str, Any], int], None] | None = None,
    cluster: str | None = None,
    around: Around | None = None,
    command: str = "",
    **settings: Any,
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
    - `holdout`: the fraction of the runs that is held out (of a single run, of its end), or files.
    - `unknown`: names of the mechanism's parameters that are to be found, or bounds `(low, high)`
        of each by name, either of them None.
    - `resume`: go on with the fit that was begun in the folder, from the same logs with the same
        settings; it ends with the bits that it would have ended with.
    - `report`: called with a row of the history and the number of all rows as training goes on.
    - `cluster`: the address of a Dask scheduler whose workers share the search for a law or for
        unknown parameters, with the same bits as in this process. For a law they read the logs and
        fit it to them.
    - `around`: gives a context around each part, in place of `report`.
    - `command`: what made the fit, for its report; this call if not given.
    - `settings`: the other fields of `FitConfig`: `mechanism`, `model`, `recipe`, `seed`, `epochs`,
        `structure`, `bootstrap`.

    **Returns:**

    A `Fitted`: the model, where the training data lies, held-out predictions and their scores.
    Raises `UserError` for what cannot be done.
    """
    start, path = time.perf_counter(), Path(out)
    check_folder(path, KIND)
    if is_own(settings.get("model", "")):
        register_model(settings["model"])
    config = FitConfig(
        logs=_names(logs),
        columns=as_columns(columns),
        unknown=dict(unknown) if isinstance(unknown, Mapping) else dict.fromkeys(unknown),
        **_held_out(holdout),
        **settings,
    )
    check_apart(path, *config.sources, columns if isinstance(columns, (str, Path)) else None)
    if resume:
        check_resume(path, config)
    around = around or (lambda part, _: nullcontext(report if part == "training" else None))
    with around("reading", None) as counted:
        prepared = read_and_check(config, report=counted, cluster=cluster)
    prepared = replace(prepared, prepare_seconds=time.perf_counter() - start)
    kept_in = keeping(path, prepared, resume=resume)
    with prepared, kept_in as kept, around("training", prepared) as heard:
        fitted = fit_and_score(prepared, report=heard, kept=kept)
    begun = time.perf_counter()
    with around("writing", prepared):
        # Here, as it loads Matplotlib, which takes a quarter of the time of a refusal.
        from mbdnode.workflow.folder import write_folder

        write_folder(path, fitted, command or _call(config, path))
    seconds = {**fitted.seconds, "writing": time.perf_counter() - begun}
    return replace(fitted, seconds=seconds)


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
