"""The table of results: a row for each case, model, integrator and recipe, over all seeds.

Terminal, Markdown, CSV, figures and page are made from these rows, each of which knows what the
paper prints of it and the verdict on it.
"""

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from mbdnode.formatting import ROUND_OFF
from mbdnode.models import LAW
from mbdnode.recipes import PAPER
from mbdnode.report.tables import Verdict
from mbdnode.reproduction.cases import CASES, NUMERICAL, Case
from mbdnode.reproduction.cases.case import Trial
from mbdnode.reproduction.cases.control_task import ControlTask
from mbdnode.reproduction.cases.printed import Reference
from mbdnode.reproduction.config import RunConfig
from mbdnode.reproduction.folder import StoredRun
from mbdnode.reproduction.titles import model_title, structure_text, with_integrator
from mbdnode.reproduction.verdicts import (
    judge_printed,
    judge_unprinted,
    median_of_all,
    printed_error,
    printed_time,
)

# In the place of a recipe, where nothing is trained.
UNTRAINED = "-"
Key = tuple[str, str, str, str]


@dataclass(frozen=True)
class Study:
    """A result's answer to what its model was asked besides: another motion, or control.

    Errors are medians over the seeds, None where half of them or more failed.
    """

    trial: Trial | ControlTask
    mse: float | None
    nrmse: float | None
    verdict: Verdict


@dataclass(frozen=True)
class Result:
    """One model, integrator and recipe on one case, over all seeds.

    **Arguments:**

    - `case`: what was run.
    - `model`, `integrator`, `recipe`: by name; "-" for a model without an integrator, and for the
        recipe of one that is not trained.
    - `rows`: the metrics of every seed, as in metrics.json; a failed run has "outcome" "failed"
        and the reason as "status".
    - `several`: whether the case was run by several recipes, so that names tell them apart.
    - `on_front`: whether no other result of the case is as quick and as accurate, and better in one
        of the two.
    - `config`: of the first run.
    - `finished`: the error and the folder of every run that came to its end, the smallest first.
    - `shown`: the run whose error is the median; None if every run failed.
    """

    case: Case
    model: str
    integrator: str
    recipe: str
    rows: tuple[Mapping[str, Any], ...]
    several: bool = False
    on_front: bool = False
    config: RunConfig | None = None
    finished: tuple[tuple[float, Path], ...] = ()
    shown: StoredRun | None = None

    @property
    def key(self) -> Key:
        """What it is of, as `key_of` says it of a row."""
        return self.case.name, self.model, self.integrator, self.recipe

    @property
    def title(self) -> str:
        """The model's name, with what its runs say of its structure."""
        return model_title(self.model) + structure_text(self.rows)

    @property
    def full_title(self) -> str:
        """Model and integrator, and the recipe where the case has several: "law RK4, best"."""
        title = with_integrator(self.title, self.integrator)
        return f"{title}, {self.recipe}" if self.several and self.recipe != UNTRAINED else title

    @property
    def method(self) -> tuple[str, str]:
        """Model and recipe, whatever the integrator."""
        return self.model, self.recipe

    @property
    def is_law(self) -> bool:
        """Whether it was found by regression."""
        return self.model == LAW

    @cached_property
    def printed(self) -> Reference | None:
        """The paper's error that it answers."""
        return printed_error(self.case.references, self.model, self.integrator, self.recipe)

    @cached_property
    def printed_time(self) -> Reference | None:
        """The paper's time beside which its own stands."""
        return printed_time(self.case.references, self.model, self.integrator, self.recipe)

    @cached_property
    def verdict(self) -> Verdict:
        """On its error: beside the paper's, or by itself."""
        if self.printed is None:
            return judge_unprinted(self.every("nrmse"))
        return judge_printed(self.every(), self.printed)

    @cached_property
    def studies(self) -> tuple[Study, ...]:
        """Its answers to the trials of the case; a model that cannot be asked has none."""
        found = []
        for trial in self.case.trials:
            asked = [row.get("probes", {}).get(trial.name) for row in self.rows]
            if any(errors is not None for errors in asked):
                mse, nrmse = ([(e or {}).get(name) for e in asked] for name in ("mse", "nrmse"))
                verdict = judge_unprinted(nrmse)
                found.append(Study(trial, median_of_all(mse), median_of_all(nrmse), verdict))
        return tuple(found)

    def every(self, quantity: str = "mse") -> list[float | None]:
        """A quantity of every seed, None where a run failed to have it."""
        found = [row.get(quantity) for row in self.rows]
        return [None if value is None else float(value) for value in found]

    def values(self, quantity: str = "mse") -> list[float]:
        """A quantity of every seed that has it."""
        return [value for value in self.every(quantity) if value is not None]

    def median(self, quantity: str = "mse") -> float | None:
        """Its median over the seeds; None if there is none.

        A seed without an error counts as worse than any other, so that failures do not flatter;
        a seed without a time does not count.
        """
        if quantity.startswith(("mse", "nrmse")):
            return median_of_all(self.every(quantity))
        found = self.values(quantity)
        return statistics.median(found) if found else None

    @property
    def compile_seconds(self) -> float | None:
        """The maximum over the seeds: later seeds of a process use what the first has compiled."""
        return max(self.values("compile_seconds"), default=None)

    @property
    def seeds(self) -> str:
        """How many seeds have an error, of how many."""
        found, count = len(self.values()), len(self.rows)
        return str(count) if found == count else f"{found} of {count}"

    @property
    def cost(self) -> tuple[float, float] | None:
        """Median seconds of training and error; None where half of the seeds or more have none."""
        seconds, error = self.median("train_seconds"), self.median()
        if self.recipe == UNTRAINED or seconds is None or error is None:
            return None
        return seconds, error

    @property
    def failures(self) -> list[str]:
        """What the runs that have no error say, a sentence for each reason."""
        seeds: dict[str, list[str]] = {}
        for row, error in zip(self.rows, self.every(), strict=True):
            if error is None:
                seeds.setdefault(_reason(row), []).append(str(row.get("seed", "?")))
        return [
            f"{self.full_title}, seed{'s' if len(found) > 1 else ''} {', '.join(found)}: {reason}"
            for reason, found in seeds.items()
        ]


def _reason(row: Mapping[str, Any]) -> str:
    """Why a run has no error: training failed, or it went well and the rollout did not."""
    failed = row.get("outcome") == "failed"
    return str((None if failed else row.get("rollout")) or row.get("status") or "failed")


def key_of(row: Mapping[str, Any]) -> Key:
    """Case, model, integrator and recipe of a run's metrics."""
    recipe = UNTRAINED if row["model"] == NUMERICAL else row["recipe"]
    return row["case"], row["model"], row["integrator"], recipe


def tidy(
    rows: Iterable[Mapping[str, Any]], cases: Mapping[str, Case] | None = None
) -> tuple[Result, ...]:
    """The table of results: one for all runs that differ by their seed alone.

    `rows` are of all runs, as results.json has them.
    """
    cases = CASES if cases is None else cases
    groups: dict[Key, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(key_of(row), []).append(row)
    recipes: dict[str, set[str]] = {}
    for case, _, _, recipe in groups:
        recipes.setdefault(case, set()).update({recipe} - {UNTRAINED})
    made = [
        Result(cases[case], model, integrator, recipe, tuple(mine), several=len(recipes[case]) > 1)
        for (case, model, integrator, recipe), mine in groups.items()
    ]
    costs: dict[str, list[tuple[float, float] | None]] = {}
    for result in made:
        costs.setdefault(result.case.name, []).append(result.cost)
    return tuple(
        replace(result, on_front=is_on_front(result.cost, costs[result.case.name]))
        for result in made
    )


def is_on_front(
    cost: tuple[float, float] | None, others: Iterable[tuple[float, float] | None]
) -> bool:
    """Whether none of the others is as quick and as accurate, and better in one of the two.

    No round-off is smaller than another.
    """
    if cost is None:
        return False
    mine = cost[0], max(cost[1], ROUND_OFF)
    every = [(other[0], max(other[1], ROUND_OFF)) for other in others if other is not None]
    return not any(a <= mine[0] and b <= mine[1] and (a, b) != mine for a, b in every)


def is_good(row: Mapping[str, Any]) -> bool:
    """Whether a run ended as it should: trained to its end, and its rollout finite."""
    return row["outcome"] in ("completed", "stopped") and row["mse"] is not None


def is_papers(result: Result) -> bool:
    """Whether it is of the paper's own making: its recipe, or nothing to train."""
    return result.recipe in (PAPER, UNTRAINED)
