"""What `mbdnode reproduce` prints: the results in a few columns, and notes on them."""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence

from mbdnode.formatting import as_printed
from mbdnode.recipes import RECIPES
from mbdnode.report.tables import Table
from mbdnode.reproduction.plan import shortened
from mbdnode.reproduction.results import Result
from mbdnode.reproduction.tables import ABOUT_LAWS
from mbdnode.reproduction.titles import structure_text


def _printed(result: Result) -> str:
    """The paper's error; with its integrator where ours is another one."""
    if result.printed is None:
        return "-"
    other = result.printed.integrator
    of = "" if other == result.integrator else f" ({other})"
    return f"{as_printed(result.printed.value)}{of}"


def _median_and_range(result: Result) -> str:
    """The median; with several seeds also min and max."""
    median, found = result.median(), result.values()
    text = "failed" if median is None else as_printed(median)
    if len(result.rows) == 1 or not found:
        return text
    largest = as_printed(max(found)) if len(found) == len(result.rows) else "failed"
    return f"{text} [{as_printed(min(found))}, {largest}]"


def _times(result: Result) -> str:
    """The median time to train, and the longest to compile, which later seeds need not do."""
    training, compiling = result.median("train_seconds"), result.compile_seconds
    if training is None or compiling is None:
        return "-"
    return f"{training:.1f}+{compiling:.1f}"


COLUMNS: Mapping[str, Callable[[Result], str]] = {
    "case": lambda r: r.case.name,
    "model": lambda r: r.model + structure_text(r.rows),
    "by": lambda r: r.integrator,
    "recipe": lambda r: r.recipe,
    "paper": _printed,
    "ours": _median_and_range,
    "verdict": lambda r: r.verdict.kind,
    "time [s]": _times,
}


def tables(results: Sequence[Result]) -> Iterator[Table]:
    """A table of networks, and one of laws apart where there are both."""
    networks = [result for result in results if not result.is_law]
    laws = [result for result in results if result.is_law]
    both = [("The paper's networks", networks), (ABOUT_LAWS, laws)]
    for title, some in both if networks and laws else [("", results)]:
        rows = tuple(tuple(cell(result) for cell in COLUMNS.values()) for result in some)
        yield Table("", title, tuple(COLUMNS), rows)


def notes(results: Sequence[Result]) -> Iterator[str]:
    """What is to be known of the numbers of these results, line by line."""
    yield "Errors are MSE over all components and steps; 'by' is the integrator."
    yield "The paper's are of MBD-NODE for a law, and by its own integrator where one is named."
    yield from _studies(results)
    for result in results:
        if "affine" in structure_text(result.rows):
            without = statistics.median(result.values("mse_without_layers"))
            yield (
                f"The affine part of {result.model} says nearly all of {result.case.name}: mse "
                f"{as_printed(without)} without its layers"
            )
    recipes = dict.fromkeys(row["recipe"] for result in results for row in result.rows)
    for recipe in recipes:
        yield f"Recipe {recipe}: {RECIPES[recipe].description}."
    yield "The time is that of training (median) + compiling (max)."
    cut = {row["recipe"] for result in results for row in result.rows if row.get("quick")}
    for recipe in recipes:
        if recipe in cut:
            yield f"Quick: recipe {recipe} with {shortened(recipe)}; its own numbers differ."


def _studies(results: Sequence[Result]) -> Iterator[str]:
    """How many studies are accurate, and which are not."""
    kinds: dict[str, list[str]] = {}
    for result in results:
        who = f"{result.case.name} ({result.model} {result.integrator}, {result.recipe})"
        for study in result.studies:
            kinds.setdefault(study.verdict.kind, []).append(f"{study.trial.name} of {who}")
    for kind, found in kinds.items():
        named = "" if kind == "accurate" else f": {', '.join(found)}"
        yield f"Studies without a printed number: {len(found)} {kind}{named}"
