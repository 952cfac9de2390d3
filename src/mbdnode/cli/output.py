"""The look of printed tables.

Progress of a training or a loop: a bar in a terminal, a line now and then elsewhere.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table


def new_console() -> Console:
    """A console as wide as the terminal; as wide as a table needs where there is no terminal."""
    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(width=None if known else 100, highlight=False)


def new_table(console: Console, *headings: str, numbers: tuple[str, ...], folding: str) -> Table:
    """An empty table.

    **Arguments:**

    - `console`: where it will be printed; a narrow one gets narrow gaps.
    - `headings`: of the columns; the first is the rows' name.
    - `numbers`: those to align on the right.
    - `folding`: the one that takes several lines when the table would be too wide.

    **Returns:**

    A table, for `add_row`.
    """
    gap = 1 if console.width >= 96 else 0
    table = Table(box=box.SIMPLE_HEAD, padding=(0, gap, 0, 0), show_edge=False)
    for number, heading in enumerate(headings):
        table.add_column(
            escape(heading),
            style="bold" if number == 0 else "",
            justify="right" if heading in numbers else "left",
            no_wrap=heading != folding,
            min_width=6 if heading == folding else None,
            overflow="fold",
        )
    return table


_QUIET_S = 5.0


@contextmanager
def training_progress(epochs: int) -> Iterator[Callable[[dict[str, Any], int], None]]:
    """A function for `fit` to call after every epoch, form or chunk.

    **Arguments:**

    - `epochs`: how many there will be.
    """
    if not sys.stderr.isatty():
        yield _plain()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]:.2e}  rate {task.fields[rate]:.1e}"),
        Remaining(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("training", total=epochs, loss=float("nan"), rate=float("nan"))

        def report(row: dict[str, Any], total: int) -> None:
            done = int(row["epoch"]) + 1
            shown = {"loss": row["loss"], "rate": row["learning_rate"]}
            stage = row.get("stage", "training")
            bar.update(task, completed=done, total=total, description=stage, **shown)

        yield report


def _plain() -> Callable[[dict[str, Any], int], None]:
    last = time.perf_counter()
    start: tuple[float, int] | None = None

    def report(row: dict[str, Any], total: int) -> None:
        nonlocal last, start
        now, done = time.perf_counter(), int(row["epoch"]) + 1
        if start is None:  # The first epoch took the compilation, which says nothing of the rest.
            start = (now, done)
        if now - last < _QUIET_S and done < total:
            return
        last = now
        if "stage" in row:  # Of a closed form: what follows takes another time each.
            typer.echo(f"{row['stage']} {done:,} of {total:,}, error {row['loss']:.1e}", err=True)
            return
        left = (now - start[0]) / max(done - start[1], 1) * (total - done)
        typer.echo(
            f"epoch {done:,} of {total:,}, loss {row['loss']:.3e}, rate "
            f"{row['learning_rate']:.2e}, {left:.0f} s left",
            err=True,
        )

    return report


@contextmanager
def counting(what: str, unit: str = "step") -> Iterator[Callable[[int, int | None], None]]:
    """A function to call with the number of steps taken and, where it is known, of all.

    **Arguments:**

    - `what`: is being done.
    - `unit`: what is counted.
    """
    last = time.perf_counter()

    def plain(done: int, total: int | None) -> None:
        nonlocal last
        now = time.perf_counter()
        if now - last > _QUIET_S:
            last = now
            of_all = "" if total is None else f" of {total:,}"
            typer.echo(f"{what}, {unit} {done:,}{of_all}", err=True)

    if not sys.stderr.isatty():
        yield plain
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
