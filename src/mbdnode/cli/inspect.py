"""`mbdnode inspect`: what is in logs, and what can be done with them."""

import math
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from mbdnode.cli.arguments import typed_roles
from mbdnode.cli.output import echo, new_console, new_table
from mbdnode.data.files import check_new_file, find_files
from mbdnode.errors import UserError

if TYPE_CHECKING:
    from mbdnode.data.logs.column_statistics import ColumnSummary, LogSummary, Sampling
    from mbdnode.data.logs.columns import Columns

# The width of the labels.
_LABEL = 9


def inspect(
    logs: Annotated[
        list[str],
        typer.Argument(
            help="Files or patterns: delimited text such as CSV, Parquet, MAT, HDF5, NPZ.",
            metavar="LOG...",
            show_default=False,
        ),
    ],
    write: Annotated[
        Path | None,
        typer.Option(help="Write the suggested roles to this new TOML file.", metavar="FILE"),
    ] = None,
) -> None:
    """Show what is in logs: columns, likely roles, units, sampling, gaps, noise and ranges.

    Nothing is changed. Roles are only suggested: confirm them with --columns or --role of fit.
    """
    found_files = find_files(logs)
    if write is not None:
        check_new_file(write)

    from mbdnode.data.logs import open_logs
    from mbdnode.data.logs.column_statistics import check_enough_rows, summarize

    views, failed, good = [], 0, []
    for path in found_files:
        # One bad file must not hide the others.
        try:
            found = [summarize(log) for log in open_logs(path)]
        except UserError as error:
            _print_failure(path, error)
            failed += 1
            continue
        for view in found:
            _print_view(view)
        views += found
        good.append(path)
    if len(views) + failed > 1:
        _print_total(views, failed)
    if views:
        needs = _needs(views[0], good)
        if write is not None:
            check_enough_rows(views)
            needs.columns.write(write)
        _print_advice(views[0], needs, logs if not failed else map(str, good), write)
        if write is not None:
            echo(f"Wrote {write}")
    if failed:
        raise typer.Exit(2)


def _print_view(view: "LogSummary") -> None:
    """Print a log: its columns as a table, its sampling and what is odd as lines."""
    console = new_console()
    console.print(f"[bold]{escape(view.name)}[/]", soft_wrap=True)
    count = f"{view.rows:,}" if view.is_all else f"first {view.rows:,}"
    columns = "1 column" if len(view.columns) == 1 else f"{len(view.columns)} columns"
    _line("content", f"{count} rows, {columns}, {view.described}")
    if view.guess.run is not None:
        _line("runs", f"{view.runs:,} by {view.guess.run}")
    if view.sampling is None:
        _line("time", "no column was recognized as the time")
    else:
        for label, text in _sampling_lines(view.sampling):
            _line(label, text)
    table = new_table(
        console,
        *("column", "unit", "role", "min", "max", "noise", "remarks"),
        numbers=("min", "max", "noise"),
        folding="remarks",
    )
    for column in view.columns:
        table.add_row(
            escape(_short(column.name, 22)),
            escape(_short(column.unit, 8)) or "-",
            f"{column.role}?" if column.role != "-" else "-",
            _number(column.minimum),
            _number(column.maximum),
            _noise(column),
            escape(", ".join([*_reason(column), *column.remarks])) or "-",
        )
    console.print()
    console.print(table)
    console.print()
    for warning in view.warnings:
        _line("warning", warning, style="yellow")
    if view.warnings:
        console.print()


def _print_failure(path: Path, error: Exception) -> None:
    """Print why a file cannot be read."""
    console = new_console()
    console.print(f"[bold]{escape(str(path))}[/]", soft_wrap=True)
    _line("error", str(error), style="red")
    console.print()


def _print_total(views: "Sequence[LogSummary]", failed: int) -> None:
    """Print what several logs are together."""
    console = new_console()
    console.print("[bold]In all[/]")
    rows = sum(view.rows for view in views)
    runs = sum(view.runs for view in views)
    bad = f", {failed:,} that cannot be read" if failed else ""
    _line("content", f"{len(views):,} logs, {runs:,} runs, {rows:,} rows{bad}")
    steps = [view.sampling.step_s for view in views if view.sampling is not None]
    steps = [step for step in steps if math.isfinite(step)]
    if steps:
        shortest, longest = min(steps), max(steps)
        text = f"{shortest:.4g}"
        text += "" if longest <= 1.01 * shortest else f" to {longest:.4g}"
        _line("steps", f"median {text} s")
    kinds = {tuple(column.name for column in view.columns) for view in views}
    if len(kinds) > 1:
        _line(
            "warning",
            f"the logs have {len(kinds)} different sets of columns: fit them apart",
            style="yellow",
        )
    console.print()


@dataclass(frozen=True)
class _Needs:
    """What a fit of the logs needs.

    A `problem` stands in the way, unless it is empty; `gaps="split"`, which is in the columns then,
    solves it where `is_cut`. `outliers` is what would be said of them.
    """

    columns: "Columns"
    problem: str
    is_cut: bool = False
    outliers: Sequence[str] = ()


def _print_advice(
    view: "LogSummary", needs: _Needs, typed: Iterable[str], written: Path | None
) -> None:
    """Print the guess in full, and what to type to use it, if that can be done.

    The files that can be read are `typed` as the user named them; `written` is the file with the
    roles.
    """
    console, guess = new_console(), view.guess
    if guess.is_complete:
        console.print("[bold]What fit would do[/]")
        missing = [name for name in guess.coordinates if name not in guess.rates]
        _line("learn", f"the motion of {', '.join(guess.coordinates)}{_drive(guess.inputs)}")
        if missing:
            _line("estimate", f"the rates of {', '.join(missing)}")
        if needs.is_cut:
            _line("cut", f"the runs where they cannot be followed: {needs.problem}", "yellow")
        for said in needs.outliers:
            label, _, text = said.partition(": ")
            _line("replace" if label == "replaced" else label, text, "yellow")
        console.print()
    file = str(written) if written is not None else "columns.toml"
    how = "" if written is not None else f" (--write {escape(file)} does it)"
    console.print(f"If these roles are right, put them in {escape(file)}{how}:")
    for line in needs.columns.to_toml().splitlines():
        console.print(f"  {escape(line)}", soft_wrap=True)
    if needs.problem and not needs.is_cut:
        console.print("but fit would refuse:")
        console.print(f"  {escape(needs.problem)}", soft_wrap=True)
        return
    # The file is not there yet if it was not asked for, but most roles can be typed.
    options = typed_roles(needs.columns) if written is None else ""
    columns = options or f"--columns {shlex.quote(file)}"
    names = list(typed)
    logs = " ".join(names if any("*" in name for name in names) else map(shlex.quote, names))
    command = f"mbdnode fit {logs} {columns} --out {_free_folder()}"
    console.print("or type:" if options else "and type:")
    console.print(escape(f"  {command}"), soft_wrap=True)


def _drive(inputs: Sequence[str]) -> str:
    return f" under {', '.join(inputs)}" if inputs else ", with no inputs"


def _needs(view: "LogSummary", files: Sequence[Path]) -> _Needs:
    """What must be added to the guess, and what stands in its way."""
    from mbdnode.data.logs.column_statistics import FEWEST_ROWS, too_few, try_reading
    from mbdnode.data.logs.reading_summary import gathered

    guess, columns = view.guess, view.guess.columns
    if not guess.is_complete:
        if view.rows < FEWEST_ROWS:
            return _Needs(columns, too_few(view.rows, f"'{view.name}'"))
        return _Needs(columns, _lacking(view))
    trial, cut = try_reading(files, columns), replace(columns, gaps="split")
    if trial.problem and not (again := try_reading(files, cut)).problem:
        return _Needs(cut, trial.problem, True, gathered(again.outliers))
    return _Needs(columns, trial.problem, outliers=gathered(trial.outliers))


def _lacking(view: "LogSummary") -> str:
    """What was not recognized, and what to do about it."""
    from mbdnode.data.logs.column_statistics import UNREAD

    lacking = "time" if view.guess.time is None else "coordinate"
    unread = [column.name for column in view.columns if column.remarks in UNREAD]
    free = [column.name for column in view.columns if column.role == "-"]
    free = [name for name in free if name not in unread]
    if unread and not free:
        return (
            f"No {lacking} was recognized, and {', '.join(unread)} cannot be read. Fix what stands "
            "there in place of numbers, and inspect the log again."
        )
    name = free[0] if free else "column1"
    example = f'time = "{name}"' if view.guess.time is None else f'coordinates = ["{name}"]'
    return f"No {lacking} was recognized. Add a line such as {example} to that file."


def _free_folder() -> str:
    """A name that a fit may be written to."""
    names = ("fit", *(f"fit-{number}" for number in range(2, 1000)))
    return next(name for name in names if not Path(name).exists())


def _sampling_lines(sampling: "Sampling") -> list[tuple[str, str]]:
    if not math.isfinite(sampling.step_s):
        return [("time", "never increases")]
    lines = [
        (
            "sampling",
            f"median step {sampling.step_s:.4g} s, {_jitter(sampling)}, from "
            f"{sampling.begin_s:g} s to {sampling.end_s:g} s",
        )
    ]
    breaks = []
    if sampling.gaps:
        breaks.append(f"{sampling.gaps:,} longer than 5 steps, up to {sampling.longest_s:.4g} s")
    if sampling.repeated:
        breaks.append(f"{sampling.repeated:,} times repeated")
    if sampling.back:
        breaks.append(f"{sampling.back:,} times back")
    longest = f"none, the longest step is {sampling.longest_s:.4g} s"
    return [*lines, ("gaps", ", ".join(breaks) or longest)]


def _jitter(sampling: "Sampling") -> str:
    return "no jitter" if sampling.jitter < 1e-5 else f"jitter {100 * sampling.jitter:.2g} %"


def _line(label: str, text: str, style: str = "dim") -> None:
    """A label and its text, which goes on below itself on a narrow terminal."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(min_width=_LABEL, style=style, no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(label, escape(text))
    new_console().print(Padding(grid, (0, 0, 0, 2)))


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 3]}..."


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4g}"


def _noise(column: "ColumnSummary") -> str:
    """Relative to the standard deviation of the motion, which is how it matters."""
    if math.isnan(column.noise) or not column.std:
        return "-"
    part = column.noise / column.std
    return "none" if part < 1e-6 else f"{100 * part:.2g} %"


def _reason(column: "ColumnSummary") -> list[str]:
    return [column.reason] if column.reason and column.reason != "constant" else []
