"""Tables, and the progress of many runs: a table that changes in a terminal, lines elsewhere."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mbdnode.progress_text import counted
from mbdnode.waiting_notice import NOTICE, clear, progress, say

if TYPE_CHECKING:
    from mbdnode.reproduction.dispatch import RunEvent

# Where there is no terminal: seconds between two lines of one run of many.
_RUN_QUIET_S = 15.0


def echo(text: str = "", *, err: bool = False) -> None:
    """Print a line of a result, past the line that shows what is being done."""
    clear()
    typer.echo(text, err=err)


def new_console() -> Console:
    """A console as wide as the terminal; as wide as a table needs where there is no terminal."""
    clear()
    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(width=None if known else 100, highlight=False)


def new_table(console: Console, *headings: str, numbers: tuple[str, ...], folding: str) -> Table:
    """An empty table for `add_row`; the first heading is that of the rows' names.

    `numbers` are aligned on the right, `folding` takes several lines when the table would be too
    wide. A narrow console gets narrow gaps.
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
    """A function to call with every event of the runs of these names.

    `elsewhere` says that other processes do the work.
    """
    runs = {name: _RunState() for name in names}
    if not sys.stderr.isatty():
        with NOTICE.counting(elsewhere=elsewhere) as count:
            yield _run_lines(runs, count)
        return
    from rich.live import Live

    console = Console(stderr=True, highlight=False)

    def draw() -> Table:
        activity = "" if elsewhere else f"; {NOTICE.activity(time.monotonic())}"
        return _run_table(runs, f"{_counts(runs)}{activity}", console.size.height - 4)

    given = {"console": console, "transient": True, "redirect_stdout": False}
    with progress(enabled=False), Live(get_renderable=draw, **given):
        yield lambda event: runs[event.run].hear(event)
    failed = [f"\n{name}: {run.note}" for name, run in runs.items() if run.state == "failed"]
    done = sum(run.state == "finished" for run in runs.values())
    echo(f"{done} of {len(runs)} runs finished{''.join(failed)}", err=True)


def _run_table(runs: dict[str, _RunState], caption: str, height: int) -> Table:
    """What runs now, then what comes next, as far as the terminal has room."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), caption=caption)
    for heading in ("run", "where", "state", "progress", "seconds"):
        table.add_column(heading, justify="right" if heading == "seconds" else "left", no_wrap=True)
    rank = ("running", "failed", "waiting", "finished")
    ordered = sorted(runs.items(), key=lambda item: rank.index(item[1].state))
    for name, run in ordered[: max(height, 3)]:
        seconds = "" if run.seconds is None else f"{run.seconds:.0f}"
        table.add_row(escape(name), run.where, escape(run.text), run.progress, seconds)
    return table


def _counts(runs: dict[str, _RunState]) -> str:
    states = [run.state for run in runs.values()]
    return ", ".join(
        f"{states.count(state)} {state}" for state in ("finished", "failed", "running", "waiting")
    )


def _run_lines(
    runs: dict[str, _RunState], count: Callable[[str], None]
) -> Callable[["RunEvent"], None]:
    last = dict.fromkeys(runs, 0.0)

    def watch(event: "RunEvent") -> None:
        run, now = runs[event.run], time.monotonic()
        before = (run.state, run.attempt)
        run.hear(event)
        count(_counts(runs))
        changed = (run.state, run.attempt) != before
        if not changed and now - last[event.run] < _RUN_QUIET_S:
            return
        last[event.run] = now
        done = sum(other.state in ("finished", "failed") for other in runs.values())
        seconds = f" after {run.seconds:.1f} s" if run.ended and run.seconds is not None else ""
        so_far = "" if changed or not run.progress else f", {run.progress}"
        where = f" ({run.where})" if run.where else ""
        say(f"[{done} of {len(runs)}] {event.run}: {run.text}{seconds}{so_far}{where}")

    return watch
