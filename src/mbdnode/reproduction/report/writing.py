"""The report's files: tables, figures and the page, each of them whole."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mbdnode.data.files import replace_file
from mbdnode.report.tables import Table, to_csv, to_markdown
from mbdnode.reproduction.report.chapters import Chapter, Reproduction
from mbdnode.reproduction.report.cost_figures import draw_costs
from mbdnode.reproduction.report.cost_table import NAME, cost_table
from mbdnode.reproduction.report.figure_files import drawn_figures, free_name, write_figure
from mbdnode.reproduction.report.page import Material, make_page, results_table
from mbdnode.reproduction.report.paper_tables import (
    MASS_SPRING,
    error_tables,
    mass_spring_table,
    study_table,
    time_table,
)
from mbdnode.reproduction.report.setting_tables import (
    architecture_table,
    cases_table,
    hyperparameter_table,
    methods_table,
)

PAGE, TABLES, FIGURES = "report.html", "tables", "figures"
_MASS_SPRING_CASE = "single-mass-spring"


def write_report(
    reproduction: Reproduction, directory: str | Path, *, figures_elsewhere: bool = False
) -> Path:
    """Write DIR/report.html, DIR/tables/*.md and *.csv, DIR/figures/*.png and *.pdf.

    **Arguments:**

    - `reproduction`: what was run and how.
    - `directory`: where; made if it does not exist. Files of the same names are replaced.
    - `figures_elsewhere`: whether another process draws the figures while this one makes the rest.

    **Returns:**

    The path of the page.
    """
    directory = Path(directory)
    for name in (TABLES, FIGURES):
        (directory / name).mkdir(parents=True, exist_ok=True)
    tables = make_tables(reproduction)
    _write_tables(tables.all(), directory / TABLES)
    folder = directory / FIGURES
    with drawn_figures(reproduction, folder, elsewhere=figures_elsewhere) as figures:
        costs_png = _write_costs(reproduction, folder)
        material = Material(figures, tables.chapters, tables.shared, tables.costs, costs_png)
        page = make_page(reproduction, material)
    _write(directory / PAGE, page.encode())
    return directory / PAGE


@dataclass(frozen=True)
class Tables:
    """Every table of a report.

    **Arguments:**

    - `errors`, `studies`, `costs`: of all chapters; errors of networks, then of laws; no studies
        where nothing was asked.
    - `chapters`: results, studies and hyper-parameters of each chapter, by its name.
    - `shared`: of times and settings.
    """

    errors: tuple[Table, ...]
    studies: Table | None
    costs: Table
    chapters: Mapping[str, tuple[Table, Table | None, Table | None]]
    shared: tuple[Table, ...]

    def all(self) -> list[Table]:
        """Those that become files: not the parts of others that chapters show."""
        found = [*self.errors]
        for results, _, hyperparameters in self.chapters.values():
            found += [results] if results.label == MASS_SPRING else []
            found += [] if hyperparameters is None else [hyperparameters]
        found += [*self.shared, self.costs]
        return found if self.studies is None else [*found, self.studies]


def make_tables(reproduction: Reproduction) -> Tables:
    """Fill every table of the paper, and ours.

    **Arguments:**

    - `reproduction`: what was run and how.

    **Returns:**

    `Tables`.
    """
    return Tables(
        errors=error_tables(reproduction),
        studies=study_table(reproduction.chapters),
        costs=cost_table(reproduction),
        chapters={
            chapter.name: (
                _results(chapter, reproduction),
                study_table([chapter]),
                hyperparameter_table(chapter),
            )
            for chapter in reproduction.chapters
        },
        shared=(
            time_table(reproduction),
            cases_table(reproduction),
            methods_table(reproduction),
            architecture_table(reproduction),
        ),
    )


def _results(chapter: Chapter, reproduction: Reproduction) -> Table:
    own = mass_spring_table(chapter) if chapter.name == _MASS_SPRING_CASE else None
    return own if own is not None and own.rows else results_table(chapter, reproduction)


def _write_tables(tables: list[Table], directory: Path) -> None:
    taken: list[str] = []
    for table in tables:
        label = table.label or table.name
        taken.append(free_name(label, table.title.partition(":")[0], taken))
        _write(directory / f"{taken[-1]}.md", to_markdown(table).encode())
        _write(directory / f"{taken[-1]}.csv", to_csv(table).encode())


def _write_costs(reproduction: Reproduction, directory: Path) -> bytes | None:
    figure = draw_costs(reproduction)
    if figure is None:
        for kind in ("png", "pdf"):  # An older one would be of other runs.
            (directory / f"{NAME}.{kind}").unlink(missing_ok=True)
        return None
    return write_figure(figure, directory / NAME)


def _write(path: Path, content: bytes) -> None:
    replace_file(path, lambda file: file.write(content))
