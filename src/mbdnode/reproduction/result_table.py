"""The table of a reproduction: for each case, model, integrator and recipe one row over its seeds.

`mbdnode reproduce` prints it; the page of the report has larger ones.
"""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mbdnode.formatting import as_printed
from mbdnode.recipes import RECIPES
from mbdnode.report.tables import Verdict
from mbdnode.reproduction.cases import CASES
from mbdnode.reproduction.reference import (
    Reference,
    is_answered_by,
    judge_printed,
    judge_unprinted,
    median_of_all,
)

HEADINGS = ("case", "model", "by", "recipe", "paper", "ours", "verdict", "time [s]")
NUMBERS = ("paper", "time [s]")


def is_good(row: Mapping[str, Any]) -> bool:
    """Whether the run ended as it should: trained to its end, and its rollout finite."""
    return row["outcome"] in ("completed", "stopped") and row["mse"] is not None


def table_rows(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    """The table's rows.

    **Arguments:**

    - `rows`: of the runs, as results.json has them.

    **Returns:**

    The texts below `HEADINGS`, row by row.
    """
    last = ""
    for (case, model, integrator, recipe), mine in _groups(rows).items():
        reference = _reference(case, model, integrator, recipe)
        yield (
            case if case != last else "",
            model,
            integrator,
            recipe,
            _printed(reference, integrator),
            _median_and_range([row["mse"] for row in mine]),
            _verdict(mine, reference).kind,
            _times(mine),
        )
        last = case


def table_notes(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What is to be known of the table's numbers, line by line.

    **Arguments:**

    - `rows`: as for `table_rows`.

    **Returns:**

    The lines to print below the table.
    """
    yield "Errors are MSE over all components and steps; 'by' is the integrator."
    yield "The paper's are of MBD-NODE for a law, and by its own integrator where one is named."
    yield from _studies(_groups(rows))
    for recipe in dict.fromkeys(row["recipe"] for row in rows):
        yield f"Recipe {recipe}: {RECIPES[recipe].description}."
    yield "The time is that of training (median) + compiling (max)."
    for recipe in dict.fromkeys(row["recipe"] for row in rows if row.get("quick")):
        yield f"Quick: recipe {recipe} was cut to a tenth of its epochs; its own numbers differ."


def _groups(
    rows: Sequence[Mapping[str, Any]],
) -> dict[tuple[str, ...], list[Mapping[str, Any]]]:
    """The runs that differ by their seed alone."""
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        names = tuple(row[name] for name in ("case", "model", "integrator", "recipe"))
        groups.setdefault(names, []).append(row)
    return groups


def _printed(reference: Reference | None, integrator: str) -> str:
    """The paper's error; with its integrator where ours is another one."""
    if reference is None:
        return "-"
    of = "" if reference.integrator == integrator else f" ({reference.integrator})"
    return f"{as_printed(reference.value)}{of}"


def _verdict(rows: Sequence[Mapping[str, Any]], printed: Reference | None) -> Verdict:
    if printed is None:
        return judge_unprinted([row.get("nrmse") for row in rows])
    return judge_printed([row["mse"] for row in rows], printed)


def _studies(groups: Mapping[tuple[str, ...], Sequence[Mapping[str, Any]]]) -> Iterator[str]:
    """How many studies are accurate, and which are not."""
    kinds: dict[str, list[str]] = {}
    for (case, model, integrator, recipe), rows in groups.items():
        for name in dict.fromkeys(name for row in rows for name in row.get("probes", {})):
            errors = [row.get("probes", {}).get(name, {}).get("nrmse") for row in rows]
            who = f"{name} of {case} ({model} {integrator}, {recipe})"
            kinds.setdefault(judge_unprinted(errors).kind, []).append(who)
    for kind, found in kinds.items():
        named = "" if kind == "accurate" else f": {', '.join(found)}"
        yield f"Studies without a printed number: {len(found)} {kind}{named}"


def _reference(case: str, model: str, integrator: str, recipe: str) -> Reference | None:
    """The paper's error for this row, if it prints one."""
    references = CASES[case].references
    for reference in references:
        if reference.quantity == "mse" and is_answered_by(
            reference, references, model, integrator, recipe
        ):
            return reference
    return None


def _median_and_range(errors: Sequence[float | None]) -> str:
    """The median; with several seeds also min and max."""
    median = median_of_all(errors)
    found = [error for error in errors if error is not None]
    text = "failed" if median is None else as_printed(median)
    if len(errors) == 1 or not found:
        return text
    largest = as_printed(max(found)) if len(found) == len(errors) else "failed"
    return f"{text} [{as_printed(min(found))}, {largest}]"


def _times(rows: Sequence[Mapping[str, Any]]) -> str:
    """The median time to train, and the longest to compile, which later seeds need not do."""
    both = [
        [row[quantity] for row in rows if row.get(quantity) is not None]
        for quantity in ("train_seconds", "compile_seconds")
    ]
    if not all(both):
        return "-"
    return f"{statistics.median(both[0]):.1f}+{max(both[1]):.1f}"
