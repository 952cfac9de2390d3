"""From the folders of finished runs to what the report is made of."""

import datetime
import importlib.metadata
import math
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mbdnode.data.files import read_json
from mbdnode.data.folders import METRICS
from mbdnode.models import KINDS, MBDNODE, MODELS, Capability, MBDNODEConfig
from mbdnode.multibody import AbstractSystem
from mbdnode.recipes import PAPER, RECIPES
from mbdnode.report.playground import Play
from mbdnode.reproduction.cases import CASES, Case
from mbdnode.reproduction.cases.case import Trial
from mbdnode.reproduction.cases.control_task import ControlTask, control_sentence
from mbdnode.reproduction.config import (
    NUMERICAL,
    RunConfig,
    configure,
    integrator_of,
    table_column,
    uses_integrator,
)
from mbdnode.reproduction.folder import read_run
from mbdnode.reproduction.plan import Plan, PlannedRun, shortened
from mbdnode.reproduction.play import play_case, play_run
from mbdnode.reproduction.report.chapters import (
    NOT_RUN,
    PAPER_MARKS,
    Chapter,
    Entry,
    Reproduction,
    Study,
    model_title,
    row_title,
)

_PACKAGES = ("mbdnode", "jax", "jaxlib", "equinox", "diffrax", "optax", "numpy", "scipy")

# The runs of each model, integrator and recipe.
Groups = dict[tuple[str, str, str], list[PlannedRun]]

_NEEDED = row_title(Capability.NO_ACCELERATIONS)
_REASONS = {
    f"lnn: {_NEEDED}": "It is trained on accelerations, here differences of the data's velocities.",
    f"lstm: {_NEEDED}": "It is trained on positions and velocities alone.",
    f"fcnn: {_NEEDED}": "It is trained on positions and velocities alone.",
}


def gather(
    plan: Plan, failed: Mapping[str, Mapping[str, Any]], folder: Path, *, command: str
) -> Reproduction:
    """Read every run of a plan.

    **Arguments:**

    - `plan`: what was to be run.
    - `failed`: the rows of the runs that have no result, by name.
    - `folder`: the folder of the runs' folders.
    - `command`: what made them.

    **Returns:**

    A `Reproduction`, with a row for each run of the plan.
    """
    rows = {run.name: {**_row(run, failed, folder), "quick": run.shortened} for run in plan.runs}
    chapters = [_chapter(CASES[name], plan, rows, folder) for name in plan.request.cases]
    return Reproduction(
        chapters=tuple(chapter for chapter in chapters if chapter.entries),
        command=command,
        quick=any(run.shortened for run in plan.runs),
        seeds=plan.request.seeds,
        seconds=sum(map(_seconds, rows.values()), 0.0),
        versions={name: importlib.metadata.version(name) for name in _PACKAGES},
        machine=describe_machine(),
        date=datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        capabilities=capability_marks(),
        capability_notes=_REASONS,
        recipes=_recipes(plan),
    )


def _recipes(plan: Plan) -> dict[str, str]:
    """What the recipes of the runs are, in the catalog's order, and how they were shortened."""
    found = {run.config.recipe for run in plan.runs}
    lines = {name: recipe.description for name, recipe in RECIPES.items() if name in found}
    cut = {run.config.recipe for run in plan.runs if run.shortened}
    return {
        name: f"{line}; here with {shortened(name)}" if name in cut else line
        for name, line in lines.items()
    }


def _row(run: PlannedRun, failed: Mapping[str, Mapping[str, Any]], folder: Path) -> dict[str, Any]:
    if run.name in failed:
        return dict(failed[run.name])
    return read_json(folder / run.name / METRICS)


def _seconds(row: Mapping[str, Any]) -> float:
    """What a run took; a failed one has no times."""
    return float((row.get("train_seconds") or 0) + (row.get("compile_seconds") or 0))


def _chapter(case: Case, plan: Plan, rows: Mapping[str, dict], folder: Path) -> Chapter:
    groups: Groups = {}
    for run in plan.runs:
        if run.config.case == case.name:
            names = (run.config.model, integrator_of(run.config), run.config.recipe)
            groups.setdefault(names, []).append(run)
    tried = any(run.config.control_trials for runs in groups.values() for run in runs)
    left_out = () if tried else case.control_trials
    return Chapter(
        name=case.name,
        title=case.title,
        source=case.source,
        mechanism=case.mechanism,
        parameters=case.parameters,
        train_end_s=case.train_steps * case.dt_s,
        references=case.references,
        hyperparameters=_hyperparameters(case, groups),
        hyperparameter_label=case.hyperparameters[0].source,
        exhibits=tuple(e for e in case.exhibits if e.label not in {one.figure for one in left_out}),
        entries=tuple(_entry(*names, runs, rows, folder) for names, runs in groups.items()),
        studies=_studies(trial for trial in case.trials if trial not in left_out),
        notes=(
            *_notes(case, groups),
            *_control_notes(groups, rows),
            *(f"Left out of a quick run: {one.title}." for one in left_out),
        ),
        play=_play(case, groups, rows, folder),
    )


def _play(case: Case, groups: Groups, rows: Mapping[str, dict], folder: Path) -> Play:
    """The mechanism beside what was learned of it, or alone.

    Of the models that give accelerations it is the paper's, MBD-NODE, if one was trained, and of
    several the run with the smallest error.
    """
    found = [
        run
        for (model, _, _), runs in groups.items()
        if model in MODELS and issubclass(KINDS[MODELS[model][0]], AbstractSystem)
        for run in runs
        if rows[run.name]["outcome"] != "failed"
    ]
    if not found:
        return play_case(case.name, {})
    order = lambda run: (run.config.model != MBDNODE.kind, _error(rows[run.name]))  # noqa: E731
    return play_run(folder / min(found, key=order).name, {})


def _entry(
    model: str,
    integrator: str,
    recipe: str,
    runs: Sequence[PlannedRun],
    rows: Mapping[str, dict],
    folder: Path,
) -> Entry:
    mine = tuple(rows[run.name] for run in runs)
    network = _network(runs[0].config)
    recipe = "-" if model == NUMERICAL else recipe
    finished = [run for run in runs if rows[run.name]["outcome"] != "failed"]
    if not finished:
        return Entry(model, integrator, recipe, mine, network=network)
    by_error = sorted(finished, key=lambda run: _error(rows[run.name]))
    shown = read_run(folder / by_error[(len(by_error) - 1) // 2].name)
    return Entry(
        model=model,
        integrator=integrator,
        recipe=recipe,
        rows=mine,
        truth=shown.truth,
        prediction=shown.prediction,
        history=shown.history,
        probes=shown.probes,
        network=network,
    )


def _error(row: Mapping[str, Any]) -> float:
    return math.inf if row.get("mse") is None else row["mse"]


def _hyperparameters(case: Case, groups: Groups) -> tuple[dict[str, str], ...]:
    """The columns of the case's table: the paper's networks, then those of other recipes.

    What was run is shown with its own numbers, the rest as it would be. What differs in its
    integrator alone is one column; a regression chooses its own numbers and has none.
    """
    ran = {key: runs[0].config for key, runs in groups.items()}
    shown = []
    for column in case.hyperparameters:
        if column.model == NUMERICAL:
            continue
        config = ran.get((column.model, column.integrator, PAPER))
        if config is None:
            integrator = column.integrator if uses_integrator(column.model) else None
            usual = configure(case.name, model=column.model, integrator=integrator)
            shown.append({**table_column(usual), "recipe": NOT_RUN})
        else:
            shown.append(table_column(config))
    for (_, _, recipe), config in ran.items():
        if recipe != PAPER and not config.finds_law:
            shown.append({**table_column(config), "recipe": recipe})
    merged: dict[tuple, list[str]] = {}
    for values in shown:
        name = values.pop("integrator")
        merged.setdefault(tuple(values.items()), []).append(name)
    return tuple(
        {"model": dict(values)["model"], "integrator": ", ".join(names), **dict(values)}
        for values, names in merged.items()
    )


def _network(config: RunConfig) -> dict[str, str]:
    """What an MBD-NODE is made of, beside the sizes of its layers."""
    if not isinstance(config.settings, MBDNODEConfig):
        return {}
    return {
        "activation": config.settings.activation,
        "initialization": config.settings.initialization,
    }


def _studies(trials: Iterable[Trial | ControlTask]) -> tuple[Study, ...]:
    return tuple(
        Study(
            trial.name,
            trial.title,
            trial.figure,
            trial.setting if isinstance(trial, ControlTask) else "",
        )
        for trial in trials
    )


def _notes(case: Case, groups: Groups) -> tuple[str, ...]:
    networks = any(not runs[0].config.finds_law for runs in groups.values())
    notes = (*case.notes, *(case.network_notes if networks else ()))
    if not case.bounds:
        return notes
    sizes: dict[int, list[str]] = {}
    for (_, _, recipe), runs in groups.items():
        for run in runs:
            sizes.setdefault(run.config.samples, []).append(recipe)
    taken = " and on ".join(
        f"{size:,} ({', '.join(dict.fromkeys(recipes))})" for size, recipes in sizes.items()
    )
    return (
        *notes,
        f"Learned from samples of the state space, {taken}; the paper used "
        f"{case.printed_samples:,}.",
    )


def _control_notes(groups: Groups, rows: Mapping[str, dict]) -> tuple[str, ...]:
    """What control with each learned model was worth, a sentence for the first of its seeds."""
    return tuple(
        control_sentence(
            f"Planned with {model_title(model)}, recipe {recipe}", rows[runs[0].name]["control"]
        )
        for (model, _, recipe), runs in groups.items()
        if rows[runs[0].name].get("control")
    )


def capability_marks() -> dict[str, dict[str, bool]]:
    """What each model of the paper's table of methods can do, as the code declares it."""
    return {
        model: {row_title(row): row in KINDS[model].capabilities for row in Capability}
        for model in PAPER_MARKS
    }


def describe_machine() -> str:
    """Processor, cores and system, without the machine's name."""
    processor = platform.processor() or platform.machine()
    listing = Path("/proc/cpuinfo")
    if listing.is_file():
        lines = listing.read_text().splitlines()
        models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        processor = models[0] if models else processor
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    python = platform.python_version()
    return f"{processor}, {cores} cores, {platform.system()}, Python {python}"
