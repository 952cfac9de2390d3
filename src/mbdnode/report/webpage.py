"""The page: one HTML file that needs no network.

What it is made of (template, style, scripts) lies beside this file in `page/`. Every text from
outside goes through the template's escaping; the data of films and plots is JSON in which no tag
can begin.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import jinja2
from markupsafe import Markup

from mbdnode.evaluation.verdict import VERDICTS, Verdict
from mbdnode.models import LAW
from mbdnode.report.chapters import NUMERICAL, Chapter, Reproduction
from mbdnode.report.cost_figure import CAPTION as COSTS_CAPTION
from mbdnode.report.cost_plots import make_cost_plots
from mbdnode.report.cost_quality import NAME as COSTS
from mbdnode.report.cost_quality import gather_costs, sum_up
from mbdnode.report.curves import make_curves
from mbdnode.report.embedding import asset, script_data, small_png
from mbdnode.report.exhibits import full_caption
from mbdnode.report.film import make_film
from mbdnode.report.palette import Palette, make_palette
from mbdnode.report.panels import predicted, shown_entries
from mbdnode.report.paper_tables import (
    ERRORS,
    OVER_SEEDS,
    error_table,
    failure_notes,
    judged,
    judged_studies,
)
from mbdnode.report.tables import Cell, Table, cell_text, without_columns
from mbdnode.report.titles import file_name, model_title, seconds_text

# A sign beside each word, for whoever does not see its colour.
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
    LAW: "equations of motion found by regression, without a network; compared with MBD-NODE",
    "mbd-node": "a network for the accelerations of the minimal coordinates, the paper's method",
    "sonode": "the same without inputs",
    "node": "a network for all rates, velocities included, without inputs",
    "hnn": "a network for the Hamiltonian",
    "lnn": "a network for the Lagrangian",
    "lstm": "a recurrent network for the next state",
    "fcnn": "a network for the state as a function of time",
    NUMERICAL: "the equations of motion themselves, by an integrator; nothing is learned",
}
_SCRIPTS = ("look.js", "film.js", "plots.js", "costs.js")
_NUMBERS = re.compile(r"[-+]?[\d.,]+(e-?\d+)?( of \d+)?|-")


@dataclass(frozen=True)
class Material:
    """What the page shows besides the numbers.

    **Arguments:**

    - `figures`: PNG by the chapter's name and the label.
    - `chapter_tables`: the table of results and, where there are such, of studies and of
        hyper-parameters, by chapter's name.
    - `tables`: those of the whole.
    - `costs`, `costs_figure`: table and PNG of the cost-quality study; no PNG where nothing could
        be drawn.
    """

    figures: Mapping[tuple[str, str], bytes]
    chapter_tables: Mapping[str, tuple[Table, Table | None, Table | None]]
    tables: tuple[Table, ...]
    costs: Table
    costs_figure: bytes | None


def make_page(reproduction: Reproduction, material: Material) -> str:
    """The whole page as text.

    **Arguments:**

    - `reproduction`: what was run.
    - `material`: figures and tables, already made.

    **Returns:**

    HTML.
    """
    from plotly.offline import get_plotlyjs

    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined
    )
    template = environment.from_string(asset("page.html.j2"))
    palette = make_palette(reproduction.chapters)
    names: list[str] = []
    chapters = []
    for chapter in reproduction.chapters:
        names.append(file_name(chapter.name, names))
        chapters.append(_chapter(chapter, f"case-{names[-1]}", material, palette, reproduction))
    return template.render(
        css=Markup(asset("page.css")),
        scripts=[Markup(asset(name)) for name in _SCRIPTS],
        plotly=Markup(get_plotlyjs()),
        data=Markup(script_data([{key: c[key] for key in ("film", "curves")} for c in chapters])),
        signs=_SIGNS,
        quick=reproduction.quick,
        tally=_tally(reproduction),
        facts=_facts(reproduction),
        words=_words(reproduction),
        errors=_table(_short(error_table(reproduction), reproduction)),
        chapters=chapters,
        costs=_costs(reproduction, material, palette),
        tables=[_table(table) for table in material.tables],
        command=reproduction.command,
        versions=_table(_versions(reproduction)),
    )


def results_table(chapter: Chapter, reproduction: Reproduction) -> Table:
    """The part of the error table that is about one chapter."""
    whole = error_table(replace(reproduction, chapters=(chapter,)))
    return Table(
        ERRORS,
        f"{chapter.title}: errors",
        whole.headings[1:],
        tuple(row[1:] for row in whole.rows),
    )


def _costs(
    reproduction: Reproduction, material: Material, palette: Palette
) -> dict[str, Any] | None:
    """The chapter of the cost-quality study; None where nothing was trained."""
    cases = gather_costs(reproduction)
    if not cases:
        return None
    drawn = [case for case in cases if case.placed]
    figure = None
    if material.costs_figure is not None:
        figure = _picture(COSTS, COSTS_CAPTION, material.costs_figure)
    return {
        "title": material.costs.title,
        "found": [sum_up(case) for case in cases],
        "cases": [case.title for case in drawn],
        "data": Markup(script_data(make_cost_plots(drawn, palette))) if drawn else "",
        "table": _table(material.costs),
        "figure": figure,
    }


def _short(table: Table, reproduction: Reproduction) -> Table:
    """Without what one seed cannot tell."""
    return without_columns(table, OVER_SEEDS) if reproduction.seeds == 1 else table


def _words(reproduction: Reproduction) -> list[tuple[str, str]]:
    """What the models and recipes of this page are, in a line each."""
    models = {entry.model for chapter in reproduction.chapters for entry in chapter.entries}
    said = [(model_title(model), text) for model, text in _MODEL_LINES.items() if model in models]
    return [*said, *((f"recipe {name}", text) for name, text in reproduction.recipes.items())]


def _chapter(
    chapter: Chapter, name: str, material: Material, palette: Palette, reproduction: Reproduction
) -> dict[str, Any]:
    first = shown_entries(chapter)
    titles = {one.title for one in first}
    shown = [*first, *(one for one in predicted(chapter) if one.title not in titles)]
    results, studies, hyperparameters = material.chapter_tables[chapter.name]
    curves = make_curves(chapter, shown, palette)
    return {
        "id": name,
        "title": chapter.title,
        "source": chapter.source,
        "notes": chapter.notes,
        "failures": failure_notes(chapter),
        "film": make_film(chapter, shown),
        "curves": curves,
        "has_losses": curves is not None
        and any(entry["losses"]["epochs"] for entry in curves["entries"]),
        "results": _table(_short(results, reproduction)),
        "studies": None if studies is None else _table(studies),
        "hyperparameters": None if hyperparameters is None else _table(hyperparameters),
        "figures": [
            _picture(e.label, full_caption(e), material.figures[chapter.name, e.label])
            for e in chapter.exhibits
        ],
    }


def _picture(label: str, caption: str, png: bytes) -> dict[str, Any]:
    data, width, height = small_png(png)
    # The figure's own size on a screen; its pixels are finer.
    size = {"width": round(width * 0.8), "height": round(height * 0.8)}
    return {"label": label, "caption": caption, "data": data, **size}


def _tally(reproduction: Reproduction) -> list[tuple[str, int]]:
    kinds = [verdict.kind for *_, verdict in judged(reproduction)]
    kinds += [verdict.kind for *_, verdict in judged_studies(reproduction.chapters)]
    return [(kind, kinds.count(kind)) for kind in VERDICTS]


def _facts(reproduction: Reproduction) -> list[tuple[str, str]]:
    runs = sum(len(entry.rows) for chapter in reproduction.chapters for entry in chapter.entries)
    facts = [
        ("cases", str(len(reproduction.chapters))),
        ("runs", str(runs)),
        ("seeds", str(reproduction.seeds)),
        ("time of all runs", seconds_text(reproduction.seconds)),
        ("machine", reproduction.machine),
        ("date", reproduction.date),
    ]
    return [(name, value) for name, value in facts if value]


def _versions(reproduction: Reproduction) -> Table:
    rows: list[tuple[Cell, ...]] = [*reproduction.versions.items()]
    rows += [
        (name, value)
        for name, value in _facts(reproduction)
        if name in ("seeds", "machine", "date", "time of all runs")
    ]
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
