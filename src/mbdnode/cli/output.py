"""Tables, and the progress of many runs: a table that changes in a terminal, lines elsewhere."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
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
    """The last event of a run, and when it began and ended."""

    event: "RunEvent"
    began: float = 0.0
    ended: float | None = None

    def hear(self, event: "RunEvent") -> None:
        """An event; the count of the one before stands where it has none."""
        before, now = self.event, time.monotonic()
        is_new = (event.state, event.attempt) != (before.state, before.attempt)
        if is_new and event.state == "running":
            self.began, self.ended, before = now, None, replace(before, done=0, total=0)
        if event.state in ("finished", "failed"):
            self.ended = now
        done, total = before.done, before.total
        if event.state == "finished":  # A search may end before its last candidate.
            done = total = done if before.stage == "candidate" else total
        count = {} if event.total else {"done": done, "total": total, "stage": before.stage}
        self.event = replace(event, where=event.where or before.where, **count)

    @property
    def seconds(self) -> float:
        return (self.ended or time.monotonic()) - self.began

    @property
    def text(self) -> str:
        again = f", attempt {self.event.attempt}" if self.event.attempt > 1 else ""
        note = f": {self.event.note}" if self.event.note else ""
        return f"{self.event.state}{again}{note}"

    @property
    def progress(self) -> str:
        event = self.event
        return counted(event.stage, event.done, event.total) if event.total else ""


@contextmanager
def runs_progress(
    names: Sequence[str], *, elsewhere: bool = False
) -> Iterator[Callable[["RunEvent"], None]]:
    """A function to call with every event of the runs of these names.

    `elsewhere` says that other processes do the work.
    """
    from mbdnode.reproduction.dispatch import RunEvent

    runs = {name: _RunState(RunEvent(name, "waiting")) for name in names}
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
    events = [run.event for run in runs.values()]
    failed = [f"\n{event.run}: {event.note}" for event in events if event.state == "failed"]
    done = sum(event.state == "finished" for event in events)
    echo(f"{done} of {len(runs)} runs finished{''.join(failed)}", err=True)


def _run_table(runs: dict[str, _RunState], caption: str, height: int) -> Table:
    """What runs now, then what comes next, as far as the terminal has room."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), caption=caption)
    for heading in ("run", "where", "state", "progress", "seconds"):
        table.add_column(heading, justify="right" if heading == "seconds" else "left", no_wrap=True)
    rank = ("running", "failed", "waiting", "finished")
    ordered = sorted(runs.items(), key=lambda item: rank.index(item[1].event.state))
    for name, run in ordered[: max(height, 3)]:
        seconds = f"{run.seconds:.0f}" if run.began else ""
        table.add_row(escape(name), run.event.where, escape(run.text), run.progress, seconds)
    return table


def _counts(runs: dict[str, _RunState]) -> str:
    states = [run.event.state for run in runs.values()]
    return ", ".join(
        f"{states.count(state)} {state}" for state in ("finished", "failed", "running", "waiting")
    )


def _run_lines(
    runs: dict[str, _RunState], count: Callable[[str], None]
) -> Callable[["RunEvent"], None]:
    last = dict.fromkeys(runs, 0.0)

    def watch(event: "RunEvent") -> None:
        run, now = runs[event.run], time.monotonic()
        before = (run.event.state, run.event.attempt)
        run.hear(event)
        count(_counts(runs))
        changed = (event.state, event.attempt) != before
        if not changed and now - last[event.run] < _RUN_QUIET_S:
            return
        last[event.run] = now
        done = sum(other.event.state in ("finished", "failed") for other in runs.values())
        seconds = f" after {run.seconds:.1f} s" if run.ended and run.began else ""
        so_far = "" if changed or not run.progress else f", {run.progress}"
        where = f" ({run.event.where})" if run.event.where else ""
        say(f"[{done} of {len(runs)}] {event.run}: {run.text}{seconds}{so_far}{where}")

    return watch
