"""The report's files: tables, figures and the page, each of them whole."""

import io
import re
from collections.abc import Collection
from importlib import resources
from pathlib import Path

from matplotlib.figure import Figure

from mbdnode.data.files import replace_file
from mbdnode.report.html import small_png
from mbdnode.report.style import styled
from mbdnode.report.tables import Table, to_csv, to_markdown
from mbdnode.reproduction.cases.printed import Exhibit
from mbdnode.reproduction.chapters import Chapter, Reproduction
from mbdnode.reproduction.costs import CAPTION, draw_costs
from mbdnode.reproduction.figures import DIAGRAM, draw_exhibit, full_caption, predicted
from mbdnode.reproduction.page import Picture, make_page
from mbdnode.reproduction.plots import read_figure
from mbdnode.reproduction.settings_tables import (
    architecture_table,
    cases_table,
    hyperparameter_table,
    methods_table,
)
from mbdnode.reproduction.tables import (
    COSTS,
    MASS_SPRING,
    cost_table,
    error_tables,
    results_table,
    study_table,
    time_table,
)

PAGE, TABLES, FIGURES = "report.html", "tables", "figures"
# Pixels for each inch of the figures.
DPI = 120


def write_report(reproduction: Reproduction, directory: str | Path) -> Path:
    """Write DIR/report.html, DIR/tables/*.md and *.csv, DIR/figures/*.png, *.pdf and *.svg."""
    directory = Path(directory)
    for name in (TABLES, FIGURES):
        (directory / name).mkdir(parents=True, exist_ok=True)
    shared = shared_tables(reproduction)
    _write_tables([*case_tables(reproduction), *shared], directory / TABLES)
    figures, taken = directory / FIGURES, []
    pictures = {
        chapter.case.name: [
            _write_exhibit(chapter, exhibit, figures, taken) for exhibit in _exhibits(chapter)
        ]
        for chapter in reproduction.chapters
    }
    costs = draw_costs(reproduction.chapters)
    for kind in ("png", "pdf"):  # Older ones would be of other runs.
        (figures / f"{COSTS}.{kind}").unlink(missing_ok=True)
    study = None if costs is None else _write_figure(costs, figures / COSTS, COSTS, CAPTION)
    page = make_page(reproduction, pictures, study, shared)
    _write(directory / PAGE, page.encode())
    return directory / PAGE


def case_tables(reproduction: Reproduction) -> list[Table]:
    """The tables of errors, of costs and studies, and of single cases."""
    found = [*error_tables(reproduction), cost_table(reproduction)]
    studies = study_table(reproduction.chapters)
    found += [] if studies is None else [studies]
    for chapter in reproduction.chapters:
        results, settings = results_table(chapter), hyperparameter_table(chapter)
        found += [results] if results.label == MASS_SPRING else []
        found += [] if settings is None else [settings]
    return found


def shared_tables(reproduction: Reproduction) -> list[Table]:
    """The tables of times and settings."""
    return [
        time_table(reproduction),
        cases_table(reproduction),
        methods_table(),
        architecture_table(reproduction),
    ]


def _exhibits(chapter: Chapter) -> tuple[Exhibit, ...]:
    """The paper's, and the errors behind the numbers."""
    shown = predicted(chapter)
    if not shown:
        return chapter.case.exhibits
    trained = any(run.history for _, run in shown)
    loss = ", and the loss of training" if trained else ""
    caption = f"The squared error over time, its mean over components{loss}."
    errors = Exhibit(f"errors:{chapter.case.name}", "errors", caption)
    return (*chapter.case.exhibits, errors)


def _write_exhibit(
    chapter: Chapter, exhibit: Exhibit, directory: Path, taken: list[str]
) -> Picture:
    taken.append(free_name(exhibit.label, chapter.case.name, taken))
    caption, svg = full_caption(exhibit), diagram(exhibit.label)
    if svg:
        _write(directory / f"{taken[-1]}.svg", svg.encode())
    if exhibit.kind == DIAGRAM:
        return Picture(exhibit.label, caption, svg)
    figure = draw_exhibit(chapter, exhibit)
    return _write_figure(figure, directory / taken[-1], exhibit.label, caption, svg)


def diagram(label: str) -> str:
    """The committed drawing of this label; empty where there is none."""
    file = resources.files("mbdnode.reproduction").joinpath("diagrams", f"{file_name(label)}.svg")
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def _write_figure(figure: Figure, path: Path, label: str, caption: str, svg: str = "") -> Picture:
    """Both files. The second repeats the first one's layout, and has no date: files repeat."""
    contents = {}
    with styled():
        for kind, about in (("png", {}), ("pdf", {"CreationDate": None})):
            file = io.BytesIO()
            figure.savefig(file, format=kind, dpi=DPI, metadata=about)
            figure.set_layout_engine("none")
            contents[kind] = file.getvalue()
            _write(path.with_name(f"{path.name}.{kind}"), contents[kind])
    plot = read_figure(figure)
    png = None if plot is not None else small_png(contents["png"], DPI)
    return Picture(label, caption, svg, plot, png)


def _write_tables(tables: list[Table], directory: Path) -> None:
    taken: list[str] = []
    for table in tables:
        label = table.label or table.name
        taken.append(free_name(label, table.title.partition(":")[0], taken))
        _write(directory / f"{taken[-1]}.md", to_markdown(table).encode())
        _write(directory / f"{taken[-1]}.csv", to_csv(table).encode())


def _write(path: Path, content: bytes) -> None:
    replace_file(path, lambda file: file.write(content))


def free_name(label: str, more: str, taken: Collection[str]) -> str:
    """A label's file name; with more behind it where another case has the same label."""
    name = file_name(label)
    return file_name(f"{label} {more}", taken) if name in taken else file_name(label, taken)


def file_name(label: str, taken: Collection[str] = ()) -> str:
    """A label as a file's name without its ending, with a number behind it where that is taken."""
    # Some file systems do not tell capital letters from small ones.
    used = {name.lower() for name in taken}
    stem = (re.sub(r"[^A-Za-z0-9_-]+", "-", label).strip("-") or "unnamed")[:80]
    name, number = stem, 2
    while name.lower() in used:
        name, number = f"{stem}-{number}", number + 1
    return name
