"""The page of a reproduction: one HTML file that needs no network.

What it is made of (template, style, scripts) lies in `mbdnode/report/page/`. Every text from
outside goes through the template's escaping; films and the curves of a chapter are JSON in which no
tag can begin.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

from mbdnode.formatting import ROUND_OFF, error_text, seconds_text
from mbdnode.models import LAW
from mbdnode.report.html import asset, make_film, script_data, small_png
from mbdnode.report.panels import moving, squared_error, thinned
from mbdnode.report.playground_html import make_try_it, playground_css, playground_scripts
from mbdnode.report.tables import Cell, Table, Verdict, cell_text, without_columns
from mbdnode.reproduction.cases import NUMERICAL
from mbdnode.reproduction.reference import VERDICTS
from mbdnode.reproduction.report.chapters import (
    Chapter,
    Entry,
    Palette,
    Reproduction,
    file_name,
    letters,
    make_palette,
    method_of,
    model_title,
)
from mbdnode.reproduction.report.cost_figures import CAPTION as COSTS_CAPTION
from mbdnode.reproduction.report.cost_figures import make_cost_plots
from mbdnode.reproduction.report.cost_table import NAME as COSTS
from mbdnode.reproduction.report.cost_table import gather_costs, sum_up
from mbdnode.reproduction.report.figures import full_caption
from mbdnode.reproduction.report.motion_figures import Predicted, predicted, shown_entries
from mbdnode.reproduction.report.paper_tables import (
    ERRORS,
    OVER_SEEDS,
    error_table,
    error_tables,
    failure_notes,
    is_law,
    judged,
    judged_studies,
)
from mbdnode.trajectory import Trajectory

_MOST_POINTS = 800
_MOST_LOSSES = 200
_DIGITS = 5


def make_curves(
    chapter: Chapter, shown: Sequence[Predicted], palette: Palette
) -> dict[str, Any] | None:
    """What the plots of a chapter show.

    **Arguments:**

    - `chapter`: of the case.
    - `shown`: whose predictions to show.
    - `palette`: the report's.

    **Returns:**

    Plain data, or None where nothing was predicted.
    """
    if not shown:
        return None
    truth = shown[0].truth
    # What the mechanism is steered by comes first.
    independent = chapter.mechanism.independent or ()
    coordinates = sorted(moving(chapter.mechanism, truth), key=lambda c: c.name not in independent)
    rows = thinned(len(truth), _MOST_POINTS)
    first = {one.title for one in shown_entries(chapter)}
    names = [name for c in coordinates for name in (c.name, c.rate)]
    return {
        "t": _numbers(np.asarray(truth.t)[rows]),
        "trainEnd": chapter.train_end_s,
        "roundOff": ROUND_OFF,
        "columns": {
            key: {"title": letters(key), "unit": unit}
            for c in coordinates
            for key, unit in ((c.name, c.unit), (c.rate, f"{c.unit}/s"))
        },
        "pairs": [
            {"position": c.name, "velocity": c.rate, "isAngle": c.is_angle} for c in coordinates
        ],
        "truth": _columns(truth, names, rows),
        "entries": [
            {
                "title": one.title,
                "shown": one.title in first,
                "place": palette.methods[method_of(one.entry)],
                "variant": variant,
                "error": _error_text(one.entry),
                "columns": _columns(one.prediction, names, rows),
                "squares": _numbers(squared_error(one.truth, one.prediction)[rows], digits=3),
                "losses": _losses(one.entry),
            }
            for one, variant in zip(shown, _variants(shown), strict=True)
        ],
    }


def _variants(shown: Sequence[Predicted]) -> list[int]:
    """Zero for a method's first integrator, then one, and so on."""
    methods = [method_of(one.entry) for one in shown]
    return [methods[:place].count(method) for place, method in enumerate(methods)]


def _columns(trajectory: Trajectory, names: Sequence[str], rows: np.ndarray) -> dict[str, list]:
    return {name: _numbers(np.asarray(trajectory[name])[rows]) for name in names}


def _losses(entry: Entry) -> dict[str, list]:
    """The loss over epochs, counted from one."""
    history = np.asarray(entry.history, float)
    rows = thinned(len(history), _MOST_LOSSES) if len(history) else np.zeros(0, int)
    losses = np.where(history > 0, history, np.nan)
    return {"epochs": (rows + 1).tolist(), "values": _numbers(losses[rows], digits=3)}


def _numbers(values: np.ndarray, digits: int = _DIGITS) -> list[float | None]:
    """Short numbers; JSON has no other word than null for what is not a number."""
    return [float(f"{v:.{digits}g}") if math.isfinite(v) else None for v in values.tolist()]


def _error_text(entry: Entry) -> str:
    return error_text(entry.median())


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
_SCRIPTS = ("plot_theme.js", "drawing_parts.js", "film.js", "plots.js", "costs.js")
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
    tried = [chapter["tried"] for chapter in chapters if chapter["tried"] is not None]
    return template.render(
        css=Markup(asset("page.css") + playground_css(tried)),
        scripts=[Markup(asset(name)) for name in _SCRIPTS],
        playground_scripts=playground_scripts(tried, _SCRIPTS),
        plotly=Markup(get_plotlyjs()),
        data=Markup(script_data([{key: c[key] for key in ("film", "curves")} for c in chapters])),
        signs=_SIGNS,
        quick=reproduction.quick,
        tally=_tally(reproduction),
        facts=_facts(reproduction),
        words=_words(reproduction),
        errors=[_table(_short(one, reproduction)) for one in error_tables(reproduction)],
        chapters=chapters,
        costs=_costs(reproduction, material, palette),
        tables=[_table(table) for table in material.tables],
        command=reproduction.command,
        versions=_table(_versions(reproduction)),
    )


def results_table(chapter: Chapter, reproduction: Reproduction) -> Table:
    """The part of the error table that is about one chapter."""
    ordered = replace(chapter, entries=tuple(sorted(chapter.entries, key=is_law)))
    whole = error_table(replace(reproduction, chapters=(ordered,)))
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
        "film": _film(chapter, shown),
        "tried": None if chapter.play is None else make_try_it(chapter.play, name),
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


def _film(chapter: Chapter, shown: Sequence[Predicted]) -> dict[str, Any] | None:
    if not shown:
        return None
    predictions = {one.title: one.prediction for one in shown}
    return make_film(
        chapter.mechanism, chapter.parameters, shown[0].truth, predictions, chapter.train_end_s
    )


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
