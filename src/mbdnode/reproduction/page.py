"""The page of a reproduction: one HTML file that needs no network.

What it is made of (template, style, scripts) lies in `mbdnode/report/page/`. Every text from
outside goes through the template's escaping; films and figures are JSON in which no tag can begin.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from markupsafe import Markup

from mbdnode.data.folders import folder_name
from mbdnode.formatting import seconds_text
from mbdnode.report.html import asset, make_film, render
from mbdnode.report.playground_html import make_try_it, playground_css, playground_scripts
from mbdnode.report.tables import Table, cell_text, without_columns
from mbdnode.reproduction.chapters import Chapter, Reproduction
from mbdnode.reproduction.costs import has_trained, sum_up
from mbdnode.reproduction.figures import predicted
from mbdnode.reproduction.settings_tables import hyperparameter_table
from mbdnode.reproduction.tables import (
    ABOUT_COSTS,
    OVER_SEEDS,
    cost_table,
    error_tables,
    judged,
    results_table,
    study_table,
)
from mbdnode.reproduction.titles import MODELS
from mbdnode.reproduction.verdicts import VERDICTS

_SCRIPTS = ("drawing_parts.js", "film.js", "plots.js")
_NUMBERS = re.compile(r"[-+]?[\d.,]+(e-?\d+)?( of \d+)?|-")


@dataclass(frozen=True)
class Picture:
    """A figure of the page: a committed drawing, and a plot, or a picture if there is none."""

    label: str
    caption: str
    svg: str = ""
    plot: Mapping[str, Any] | None = None
    png: Mapping[str, Any] | None = None


def make_page(
    reproduction: Reproduction,
    pictures: Mapping[str, Sequence[Picture]],
    costs: Picture | None,
    tables: Sequence[Table],
) -> str:
    """The whole page as text."""
    from plotly.offline import get_plotlyjs

    chapters = [_chapter(c, pictures[c.case.name], reproduction) for c in reproduction.chapters]
    trained = [chapter for chapter in reproduction.chapters if has_trained(chapter)]
    tried = [chapter["tried"] for chapter in chapters if chapter["tried"] is not None]
    facts = _facts(reproduction)
    return render(
        "page.html.j2",
        cell_text=cell_text,
        numeric_columns=_numeric_columns,
        groups=lambda table: groupby(table.rows, key=lambda row: row[0]),
        title="The MBD-NODE paper, reproduced",
        css=Markup(asset("page.css") + playground_css(tried)),
        scripts=[Markup(text) for text in (get_plotlyjs(), *map(asset, _SCRIPTS))],
        playground_scripts=playground_scripts(tried, _SCRIPTS),
        signs=VERDICTS,
        quick=reproduction.quick,
        tally=_tally(reproduction),
        facts=facts,
        words=_words(reproduction),
        errors=[_short(table, reproduction) for table in error_tables(reproduction)],
        chapters=chapters,
        about_costs=ABOUT_COSTS,
        found=[sum_up(chapter) for chapter in trained],
        costs=costs,
        cost_table=cost_table(reproduction),
        tables=tables,
        command=reproduction.command,
        versions=Table(
            "",
            "Versions, machine and time",
            ("what", "value"),
            (*reproduction.versions.items(), *facts[2:]),
        ),
    )


def _chapter(
    chapter: Chapter, pictures: Sequence[Picture], reproduction: Reproduction
) -> dict[str, Any]:
    case, name = chapter.case, f"case-{folder_name(chapter.case.name)}"
    film = None
    if shown := predicted(chapter):
        predictions = {result.full_title: run.prediction for result, run in shown}
        truth = shown[0][1].truth
        film = make_film(case.mechanism, case.parameters, truth, predictions, chapter.train_end_s)
    return {
        "id": name,
        "case": case,
        "failures": chapter.failures,
        "film": film,
        "tried": None if chapter.play is None else make_try_it(chapter.play, name),
        "results": _short(results_table(chapter), reproduction),
        "studies": study_table([chapter]),
        "hyperparameters": hyperparameter_table(chapter),
        "figures": pictures,
    }


def _short(table: Table, reproduction: Reproduction) -> Table:
    """Without what one seed cannot tell."""
    return without_columns(table, OVER_SEEDS) if reproduction.seeds == 1 else table


def _words(reproduction: Reproduction) -> list[tuple[str, str]]:
    """What the models and recipes of this page are, in a line each."""
    models = {result.model for result in reproduction.results}
    said = [about for model, about in MODELS.items() if model in models]
    return [*said, *((f"recipe {name}", text) for name, text in reproduction.recipes.items())]


def _tally(reproduction: Reproduction) -> list[tuple[str, int]]:
    kinds = [result.verdict.kind for result in judged(reproduction.results)]
    kinds += [study.verdict.kind for result in reproduction.results for study in result.studies]
    return [(kind, kinds.count(kind)) for kind in VERDICTS]


def _facts(reproduction: Reproduction) -> list[tuple[str, str]]:
    facts = [
        ("cases", str(len(reproduction.chapters))),
        ("runs", str(sum(len(result.rows) for result in reproduction.results))),
        ("seeds", str(reproduction.seeds)),
        ("time of all runs", seconds_text(reproduction.seconds)),
        ("machine", reproduction.machine),
        ("date", reproduction.date),
    ]
    return [(name, value) for name, value in facts if value]


def _numeric_columns(table: Table) -> list[int]:
    """The places of columns in which all that is known are numbers."""
    columns = list(zip(*table.rows, strict=True))
    found = [{cell_text(cell) for cell in column} - {"-"} for column in columns]
    return [
        place
        for place, texts in enumerate(found)
        if place and texts and all(map(_NUMBERS.fullmatch, texts))
    ]
