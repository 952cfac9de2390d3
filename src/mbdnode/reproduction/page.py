"""The page of a reproduction: one HTML file that needs no network.

What it is made of (template, style, scripts) lies in `mbdnode/report/page/`. Every text from
outside goes through the template's escaping; films and figures are JSON in which no tag can begin.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from mbdnode.data.folders import folder_name
from mbdnode.formatting import seconds_text
from mbdnode.models import LAW
from mbdnode.report.html import asset, make_film, render, script_data, small_png
from mbdnode.report.playground_html import make_try_it, playground_css, playground_scripts
from mbdnode.report.tables import Cell, Table, Verdict, cell_text, without_columns
from mbdnode.reproduction.cases import NUMERICAL
from mbdnode.reproduction.chapters import Chapter, Reproduction
from mbdnode.reproduction.costs import has_trained, sum_up
from mbdnode.reproduction.figures import predicted
from mbdnode.reproduction.tables import (
    ABOUT_COSTS,
    OVER_SEEDS,
    cost_table,
    error_tables,
    hyperparameter_table,
    judged,
    results_table,
    study_table,
)
from mbdnode.reproduction.titles import model_title
from mbdnode.reproduction.verdicts import VERDICTS

# A sign beside each word, for whoever does not see its color.
_SIGNS = {
    "reproduced": "\N{CHECK MARK}",
    "better": "\N{BLACK UP-POINTING TRIANGLE}",
    "worse": "\N{BLACK DOWN-POINTING TRIANGLE}",
    "accurate": "\N{CHECK MARK}",
    "inaccurate": "\N{BLACK DOWN-POINTING TRIANGLE}",
    "not comparable": "\N{WHITE CIRCLE}",
    "failed": "\N{MULTIPLICATION X}",
}
# What stands in the column of models.
_MODEL_LINES = {
    "mbd-node": "a network for the accelerations of the minimal coordinates, the paper's method",
    "sonode": "the same without inputs",
    "node": "a network for all rates, velocities included, without inputs",
    "hnn": "a network for the Hamiltonian",
    "lnn": "a network for the Lagrangian",
    "lstm": "a recurrent network for the next state",
    "fcnn": "a network for the state as a function of time",
    LAW: "equations of motion found by regression, without a network; compared with MBD-NODE",
    NUMERICAL: "the equations of motion themselves, by an integrator; nothing is learned",
}
# Pixels for each inch of the figures.
DPI = 120
_SCRIPTS = ("drawing_parts.js", "film.js", "plots.js")
_NUMBERS = re.compile(r"[-+]?[\d.,]+(e-?\d+)?( of \d+)?|-")


@dataclass(frozen=True)
class Picture:
    """A figure of the page.

    **Arguments:**

    - `label`, `caption`: of the figure.
    - `svg`: a committed drawing.
    - `plot`: what `read_figure` gives.
    - `png`: a picture of it, where that gives nothing.
    """

    label: str
    caption: str
    svg: str = ""
    plot: Mapping[str, Any] | None = None
    png: bytes = b""


def make_page(
    reproduction: Reproduction,
    pictures: Mapping[str, Sequence[Picture]],
    costs: Picture | None,
    tables: Sequence[Table],
) -> str:
    """The whole page as text."""
    from plotly.offline import get_plotlyjs

    plots: list[Mapping[str, Any]] = []
    chapters = [
        _chapter(chapter, pictures[chapter.case.name], plots, reproduction)
        for chapter in reproduction.chapters
    ]
    study = None
    if any(map(has_trained, reproduction.chapters)):
        study = {
            "title": ABOUT_COSTS,
            "found": [sum_up(c) for c in reproduction.chapters if has_trained(c)],
            "table": _table(cost_table(reproduction)),
            "figure": None if costs is None else _picture(costs, plots),
        }
    tried = [chapter["tried"] for chapter in chapters if chapter["tried"] is not None]
    return render(
        "page.html.j2",
        title="The MBD-NODE paper, reproduced",
        css=Markup(asset("page.css") + playground_css(tried)),
        scripts=[Markup(asset(name)) for name in _SCRIPTS],
        playground_scripts=playground_scripts(tried, _SCRIPTS),
        plotly=Markup(get_plotlyjs()),
        films=Markup(script_data([{"film": chapter["film"]} for chapter in chapters])),
        plots=Markup(script_data(plots)),
        signs=_SIGNS,
        quick=reproduction.quick,
        tally=_tally(reproduction),
        facts=_facts(reproduction),
        words=_words(reproduction),
        errors=[_table(_short(one, reproduction)) for one in error_tables(reproduction)],
        chapters=chapters,
        costs=study,
        tables=[_table(table) for table in tables],
        command=reproduction.command,
        versions=_table(_versions(reproduction)),
    )


def _chapter(
    chapter: Chapter,
    pictures: Sequence[Picture],
    plots: list[Mapping[str, Any]],
    reproduction: Reproduction,
) -> dict[str, Any]:
    case, shown = chapter.case, predicted(chapter)
    name = f"case-{folder_name(case.name)}"
    studies, hyperparameters = study_table([chapter]), hyperparameter_table(chapter)
    film = None
    if shown:
        predictions = {result.full_title: run.prediction for result, run in shown}
        truth = shown[0][1].truth
        film = make_film(case.mechanism, case.parameters, truth, predictions, chapter.train_end_s)
    return {
        "id": name,
        "title": case.title,
        "source": case.source,
        "notes": case.notes,
        "failures": chapter.failures,
        "film": film,
        "tried": None if chapter.play is None else make_try_it(chapter.play, name),
        "results": _table(_short(results_table(chapter), reproduction)),
        "studies": None if studies is None else _table(studies),
        "hyperparameters": None if hyperparameters is None else _table(hyperparameters),
        "figures": [_picture(picture, plots) for picture in pictures],
    }


def _picture(picture: Picture, plots: list[Mapping[str, Any]]) -> dict[str, Any]:
    """What the template shows; the data of a plot goes to the others."""
    made: dict[str, Any] = {"label": picture.label, "caption": picture.caption}
    made |= {"svg": Markup(picture.svg), "plot": None, "png": None}
    if picture.plot is not None:
        plots.append(picture.plot)
        made |= {"plot": len(plots) - 1}
    elif picture.png:
        made["png"] = small_png(picture.png, DPI)
    return made


def _short(table: Table, reproduction: Reproduction) -> Table:
    """Without what one seed cannot tell."""
    return without_columns(table, OVER_SEEDS) if reproduction.seeds == 1 else table


def _words(reproduction: Reproduction) -> list[tuple[str, str]]:
    """What the models and recipes of this page are, in a line each."""
    models = {result.model for result in reproduction.results}
    said = [(model_title(model), text) for model, text in _MODEL_LINES.items() if model in models]
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


def _versions(reproduction: Reproduction) -> Table:
    rows: list[tuple[Cell, ...]] = [*reproduction.versions.items()]
    rows += _facts(reproduction)[2:]
    return Table("", "Versions, machine and time", ("what", "value"), tuple(rows))


def _table(table: Table) -> dict[str, Any]:
    """A table as the template wants it: groups of rows that share their first cell."""
    numeric = [_is_numeric(table, place) for place in range(len(table.headings))]
    groups: list[list[list[dict[str, Any]]]] = []
    last: Cell = None
    for row in table.rows:
        cells = [
            {**_cell(cell, number), "heading": heading}
            for cell, number, heading in zip(row, numeric, table.headings, strict=True)
        ]
        if groups and row[0] == last:
            groups[-1][0][0]["span"] += 1
            groups[-1].append(cells[1:])
        else:
            cells[0] |= {"head": True, "span": 1}
            groups.append([cells])
        last = row[0]
    return {
        "title": table.title,
        "label": table.label,
        "headings": [
            {"text": text, "number": number}
            for text, number in zip(table.headings, numeric, strict=True)
        ],
        "groups": groups,
        "judged": any(isinstance(cell, Verdict) for row in table.rows for cell in row),
        "notes": table.notes,
    }


def _is_numeric(table: Table, place: int) -> bool:
    column = [cell_text(row[place]) for row in table.rows]
    found = [text for text in column if text != "-"]
    return place > 0 and bool(found) and all(_NUMBERS.fullmatch(text) for text in found)


def _cell(cell: Cell, number: bool) -> dict[str, Any]:
    plain: dict[str, Any] = {"text": cell_text(cell), "kind": "text", "number": number}
    plain |= {"head": False, "span": 1}
    if isinstance(cell, Verdict):
        return {**plain, "kind": "verdict", "verdict": cell.kind, "text": cell.sentence}
    if re.fullmatch(r"(yes|no)( \[\d+\])?", plain["text"]):
        return {**plain, "kind": plain["text"].split()[0]}
    return plain
