"""What runs where: a table that changes in a terminal, lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from mbdnode.reproduction.workers import Sign

_REFRESH_S = 0.25
_QUIET_S = 15.0


@dataclass
class _Line:
    """The last that is known of a run."""

    state: str = "waiting"
    where: str = ""
    note: str = ""
    epoch: int = 0
    epochs: int = 0
    attempt: int = 1
    began: float | None = None
    ended: float | None = None

    def hear(self, sign: "Sign") -> None:
        now = time.monotonic()
        if sign.state == "running" and (self.state != "running" or sign.attempt != self.attempt):
            self.began, self.epoch, self.epochs = now, 0, 0
        if sign.state in ("finished", "failed"):
            self.ended = now
        if sign.state == "finished":
            self.epoch = self.epochs
        self.state, self.note, self.attempt = sign.state, sign.note, sign.attempt
        self.where = sign.where or self.where
        if sign.epochs:
            self.epoch, self.epochs = sign.epoch, sign.epochs

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


@contextmanager
def campaign_progress(names: Sequence[str]) -> Iterator[Callable[["Sign"], None]]:
    """A function to call with every sign of life.

    **Arguments:**

    - `names`: of the runs, in their order.
    """
    lines = {name: _Line() for name in names}
    if not sys.stderr.isatty():
        yield _plain(lines)
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True, highlight=False)

    def draw() -> "Table":
        return _table(lines, console.size.height - 4)

    live = Live(
        get_renderable=draw,
        console=console,
        refresh_per_second=1 / _REFRESH_S,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    with live:
        yield lambda sign: lines[sign.run].hear(sign)
    failed = [f"{name}: {line.note}" for name, line in lines.items() if line.state == "failed"]
    done = sum(line.state == "finished" for line in lines.values())
    typer.echo(
        f"{done} of {len(lines)} runs finished" + "".join(f"\n{f}" for f in failed), err=True
    )


def _table(lines: dict[str, _Line], height: int) -> "Table":
    """What runs now, then what comes next, as far as the terminal has room."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    states = [line.state for line in lines.values()]
    counts = ", ".join(
        f"{states.count(state)} {state}" for state in ("finished", "failed", "running", "waiting")
    )
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), caption=counts)
    for heading in ("run", "where", "state", "epochs", "seconds"):
        number = heading in ("epochs", "seconds")
        table.add_column(heading, justify="right" if number else "left", no_wrap=True)
    rank = {"running": 0, "failed": 1, "waiting": 2, "finished": 3}
    ordered = sorted(lines.items(), key=lambda item: rank[item[1].state])
    for name, line in ordered[: max(height, 3)]:
        epochs = f"{line.epoch:,} of {line.epochs:,}" if line.epochs else ""
        seconds = "" if line.seconds is None else f"{line.seconds:.0f}"
        table.add_row(escape(name), line.where, escape(line.text), epochs, seconds)
    return table


def _plain(lines: dict[str, _Line]) -> Callable[["Sign"], None]:
    last = dict.fromkeys(lines, 0.0)

    def watch(sign: "Sign") -> None:
        line, now = lines[sign.run], time.monotonic()
        before = (line.state, line.attempt)
        line.hear(sign)
        changed = (line.state, line.attempt) != before
        if not changed and now - last[sign.run] < _QUIET_S:
            return
        last[sign.run] = now
        done = sum(other.state in ("finished", "failed") for other in lines.values())
        count = f"[{done} of {len(lines)}]"
        seconds = f" after {line.seconds:.1f} s" if line.ended and line.seconds is not None else ""
        epochs = "" if changed or not line.epochs else f", epoch {line.epoch:,} of {line.epochs:,}"
        where = f" ({line.where})" if line.where else ""
        typer.echo(f"{count} {sign.run}: {line.text}{seconds}{epochs}{where}", err=True)

    return watch
