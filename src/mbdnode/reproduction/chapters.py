"""What the report is made of: the results of each case, read from the folders of finished runs.

The report can be made again from these folders without running anything.
"""

import datetime
import importlib.metadata
import math
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mbdnode.data.files import read_json
from mbdnode.data.folders import METRICS
from mbdnode.models import KINDS, MBDNODE, MODELS
from mbdnode.multibody import AbstractSystem
from mbdnode.recipes import RECIPES
from mbdnode.report.playground import Play
from mbdnode.reproduction.cases import CASES, Case
from mbdnode.reproduction.cases.control_task import control_sentence
from mbdnode.reproduction.folder import read_run
from mbdnode.reproduction.plan import Plan, PlannedRun, shortened
from mbdnode.reproduction.play import play_case, play_run
from mbdnode.reproduction.results import Key, Result, key_of, tidy
from mbdnode.reproduction.titles import model_title

_PACKAGES = ("mbdnode", "jax", "jaxlib", "equinox", "diffrax", "optax", "numpy", "scipy")


@dataclass(frozen=True)
class Chapter:
    """A case, with the notes and figures that belong to what was run, and its results.

    `play` is what its section "Try it" plays with.
    """

    case: Case
    results: tuple[Result, ...]
    play: Play | None = None

    @property
    def train_end_s(self) -> float:
        """Where the training range ends; zero if there is none."""
        return self.case.train_steps * self.case.dt_s

    @property
    def failures(self) -> list[str]:
        """A sentence for every run that has no error."""
        return [failure for result in self.results for failure in result.failures]


@dataclass(frozen=True)
class Reproduction:
    """All chapters in the paper's order, and how they came about.

    It is `quick` where settings were shortened, so that numbers are not the recipe's. `seconds` is
    the sum over all runs; `recipes` has a line on each recipe that was run.
    """

    chapters: tuple[Chapter, ...]
    command: str
    quick: bool
    seeds: int
    seconds: float
    versions: Mapping[str, str] = field(default_factory=dict)
    machine: str = ""
    date: str = ""
    recipes: Mapping[str, str] = field(default_factory=dict)

    @property
    def results(self) -> list[Result]:
        """The whole table."""
        return [result for chapter in self.chapters for result in chapter.results]


def gather(
    plan: Plan, failed: Mapping[str, Mapping[str, Any]], folder: Path, *, command: str
) -> Reproduction:
    """Read every run of a plan; `failed` has the rows of those without a result, by name."""
    rows = [
        {**(failed.get(run.name) or read_json(folder / run.name / METRICS)), "quick": run.shortened}
        for run in plan.runs
    ]
    runs: dict[Key, list[PlannedRun]] = {}
    for run, row in zip(plan.runs, rows, strict=True):
        runs.setdefault(key_of(row), []).append(run)
    results = [_with_runs(result, runs[result.key], folder) for result in tidy(rows)]
    names = dict.fromkeys(result.case.name for result in results)
    cut = {run.config.recipe for run in plan.runs if run.shortened}
    return Reproduction(
        chapters=tuple(
            _chapter(CASES[name], [result for result in results if result.case.name == name])
            for name in names
        ),
        command=command,
        quick=bool(cut),
        seeds=plan.request.seeds,
        seconds=sum(
            float(row.get(name) or 0)
            for row in rows
            for name in ("train_seconds", "compile_seconds")
        ),
        versions={name: importlib.metadata.version(name) for name in _PACKAGES},
        machine=describe_machine(),
        date=datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        recipes={
            name: recipe.description + (f"; here with {shortened(name)}" if name in cut else "")
            for name, recipe in RECIPES.items()
            if any(run.config.recipe == name for run in plan.runs)
        },
    )


def _with_runs(result: Result, runs: Sequence[PlannedRun], folder: Path) -> Result:
    """The result with its runs, the one whose error is the median among them."""
    errors = (
        (math.inf if row.get("mse") is None else float(row["mse"]), folder / run.name)
        for row, run in zip(result.rows, runs, strict=True)
        if row["outcome"] != "failed"
    )
    finished = tuple(sorted(errors, key=lambda one: one[0]))
    shown = read_run(finished[(len(finished) - 1) // 2][1]) if finished else None
    return replace(result, config=runs[0].config, finished=finished, shown=shown)


def _chapter(case: Case, results: Sequence[Result]) -> Chapter:
    configs = [result.config for result in results if result.config is not None]
    tried = any(config.control_trials for config in configs)
    left_out = () if tried else case.control_trials
    hidden = {trial.figure for trial in left_out}
    case = replace(
        case,
        exhibits=tuple(exhibit for exhibit in case.exhibits if exhibit.label not in hidden),
        trials=tuple(trial for trial in case.trials if trial not in left_out),
        notes=(
            *case.notes,
            *(() if all(config.finds_law for config in configs) else case.network_notes),
            *_sample_notes(case, results),
            *_control_notes(results),
            *(f"Left out of a quick run: {trial.title}." for trial in left_out),
        ),
    )
    return Chapter(
        case, tuple(replace(result, case=case) for result in results), _play(case, results)
    )


def _play(case: Case, results: Sequence[Result]) -> Play:
    """The mechanism beside what was learned of it, or alone.

    Of the models that give accelerations it is the paper's, MBD-NODE, if one was trained, and of
    several the run with the smallest error.
    """
    found = [
        (result.model != MBDNODE.kind, error, folder)
        for result in results
        if result.model in MODELS and issubclass(KINDS[MODELS[result.model][0]], AbstractSystem)
        for error, folder in result.finished
    ]
    if not found:
        return play_case(case.name, {})
    return play_run(min(found, key=lambda one: one[:2])[-1], {})


def _sample_notes(case: Case, results: Sequence[Result]) -> Iterator[str]:
    if not case.bounds:
        return
    sizes: dict[int, dict[str, None]] = {}
    for result in results:
        if result.config is not None:
            sizes.setdefault(result.config.samples, {})[result.recipe] = None
    taken = " and on ".join(f"{size:,} ({', '.join(names)})" for size, names in sizes.items())
    yield (
        f"Learned from samples of the state space, {taken}; the paper used "
        f"{case.printed_samples:,}."
    )


def _control_notes(results: Sequence[Result]) -> Iterator[str]:
    """What control with each learned model was worth, a sentence for the first of its seeds."""
    for result in results:
        if found := result.rows[0].get("control"):
            who = f"Planned with {model_title(result.model)}, recipe {result.recipe}"
            yield control_sentence(who, found)


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
