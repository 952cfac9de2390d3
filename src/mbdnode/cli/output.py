"""Tables and progress on a terminal.

Progress of a training or of a loop is counted for `mbdnode.waiting_notice` to say. The many runs of
a reproduction are a table that changes in a terminal, and lines elsewhere.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mbdnode.progress_text import TrainingRows, counted
from mbdnode.waiting_notice import NOTICE, current_activity, drawing, say, summarized

if TYPE_CHECKING:
    from mbdnode.reproduction.dispatch import RunEvent

# Where there is no terminal: seconds between two lines of one run of many.
_RUN_QUIET_S = 15.0
_REFRESH_S = 0.25


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


@contextmanager
def training_progress() -> Iterator[Callable[[dict[str, Any], int], None]]:
    """A function for `fit` to call after every epoch, candidate or chunk."""
    rows = TrainingRows()
    with NOTICE.counting() as count:

        def report(row: dict[str, Any], total: int) -> None:
            told, text = rows.hear(row, total, time.perf_counter())
            if told:
                say(told)
            count(text)

        yield report


@contextmanager
def counting(what: str, unit: str = "step") -> Iterator[Callable[[int, int | None], None]]:
    """A function to call with the number of steps taken and, where it is known, of all.

    **Arguments:**

    - `what`: is being done.
    - `unit`: what is counted.
    """
    with NOTICE.counting() as count:

        def report(done: int, total: int | None) -> None:
            of_all = "" if total is None else f" of {total:,}"
            count(f"{what}, {unit} {done:,}{of_all}")

        yield report


@dataclass
class _RunState:
    """The last that is known of a run."""

    state: str = "waiting"
    where: str = ""
    note: str = ""
    done: int = 0
    total: int = 0
    stage: str = "epoch"
    attempt: int = 1
    began: float | None = None
    ended: float | None = None

    def hear(self, event: "RunEvent") -> None:
        now = time.monotonic()
        if event.state == "running" and (self.state != "running" or event.attempt != self.attempt):
            self.began, self.done, self.total = now, 0, 0
        if event.state in ("finished", "failed"):
            self.ended = now
        if event.state == "finished" and self.stage == "candidate":
            self.total = self.done  # One of them was good enough.
        elif event.state == "finished":
            self.done = self.total
        self.state, self.note, self.attempt = event.state, event.note, event.attempt
        self.where = event.where or self.where
        if event.total:
            self.done, self.total, self.stage = event.done, event.total, event.stage

    @property
    def seconds(self) -> float | None:
        if self.began is None or self.state == "waiting":
            return None
        return (self.ended or time.monotonic()) - self.began

    @property
    def text(self) -> str:
        again = f", attempt {self.attempt}" if self.attempt > 1 else ""
        note = f": {self.note}" if self.note else ""
        return f"{self.state}{again}{note}"

    @property
    def progress(self) -> str:
        return counted(self.stage, self.done, self.total) if self.total else ""


@contextmanager
def runs_progress(
    names: Sequence[str], *, elsewhere: bool = False
) -> Iterator[Callable[["RunEvent"], None]]:
    """A function to call with every event of a run.

    **Arguments:**

    - `names`: of the runs, in their order.
    - `elsewhere`: whether other processes do the work.
    """
    lines = {name: _RunState() for name in names}
    if not sys.stderr.isatty():
        with summarized(lambda: _counts(lines), elsewhere=elsewhere):
            yield _run_lines(lines)
        return
    from rich.live import Live

    console = Console(stderr=True, highlight=False)

    def draw() -> Table:
        table = _run_table(lines, console.size.height - 4)
        if not elsewhere:
            table.caption = f"{_counts(lines)}; {current_activity()}"
        return table

    live = Live(
        get_renderable=draw,
        console=console,
        refresh_per_second=1 / _REFRESH_S,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    with drawing(), live:
        yield lambda event: lines[event.run].hear(event)
    failed = [f"{name}: {line.note}" for name, line in lines.items() if line.state == "failed"]
    done = sum(line.state == "finished" for line in lines.values())
    typer.echo(
        f"{done} of {len(lines)} runs finished" + "".join(f"\n{f}" for f in failed), err=True
    )


def _run_table(lines: dict[str, _RunState], height: int) -> Table:
    """What runs now, then what comes next, as far as the terminal has room."""
    table = Table(
        box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), caption=_counts(lines)
    )
    for heading in ("run", "where", "state", "progress", "seconds"):
        number = heading == "seconds"
        table.add_column(heading, justify="right" if number else "left", no_wrap=True)
    rank = {"running": 0, "failed": 1, "waiting": 2, "finished": 3}
    ordered = sorted(lines.items(), key=lambda item: rank[item[1].state])
    for name, line in ordered[: max(height, 3)]:
        seconds = "" if line.seconds is None else f"{line.seconds:.0f}"
        table.add_row(escape(name), line.where, escape(line.text), line.progress, seconds)
    return table


def _counts(lines: dict[str, _RunState]) -> str:
    states = [line.state for line in lines.values()]
    return ", ".join(
        f"{states.count(state)} {state}" for state in ("finished", "failed", "running", "waiting")
    )


def _run_lines(lines: dict[str, _RunState]) -> Callable[["RunEvent"], None]:
    last = dict.fromkeys(lines, 0.0)

    def watch(event: "RunEvent") -> None:
        line, now = lines[event.run], time.monotonic()
        before = (line.state, line.attempt)
        line.hear(event)
        changed = (line.state, line.attempt) != before
        if not changed and now - last[event.run] < _RUN_QUIET_S:
            return
        last[event.run] = now
        done = sum(other.state in ("finished", "failed") for other in lines.values())
        count = f"[{done} of {len(lines)}]"
        seconds = f" after {line.seconds:.1f} s" if line.ended and line.seconds is not None else ""
        progress = "" if changed or not line.progress else f", {line.progress}"
        where = f" ({line.where})" if line.where else ""
        say(f"{count} {event.run}: {line.text}{seconds}{progress}{where}")

    return watch
