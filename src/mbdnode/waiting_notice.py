"""A word after two seconds of silence: in every command, and in Python within `progress()`.

What takes long is compiling, now and then reading or computing; none of them can say so itself. JAX
tells when it begins and ends to trace, lower or compile something. What counts its epochs,
candidates or steps is shown with the count.

In a terminal the word is a line that changes, which Rich draws below all that is printed. Elsewhere
it is a line for each kind of activity, and then one after 4, 8, 16 and every 30 seconds, so that a
log of hours stays short.
"""

import functools
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from mbdnode.progress_text import TrainingRows

# How long nothing may be said, so that with a look and the start of Python it stays below two
# seconds; and how long at most between two lines of the same.
QUIET_S, LONGEST_S = 1.6, 30.0
_LOOK_S = 0.2
# Small programs that are compiled in turn, with less between them, are one compilation.
_PAUSE_S = 1.0

_Function = TypeVar("_Function", bound=Callable)


class Compilations:
    """Whether JAX traces, lowers or compiles, by what it tells of it."""

    def __init__(self) -> None:
        self._begun: Counter[int] = Counter()  # By thread, each of which counts its own.
        self._is_listening, self._last = False, -LONGEST_S

    def under_way(self, now: float) -> bool:
        """At this moment, or a moment before."""
        monitoring = getattr(sys.modules.get("jax"), "monitoring", None)
        if not self._is_listening and monitoring is not None:
            self._is_listening = True
            monitoring.register_scalar_listener(self._begin)
            monitoring.register_event_duration_secs_listener(self._end)
        self._last = now if any(list(self._begun.values())) else self._last
        return now - self._last < _PAUSE_S

    def _begin(self, event: str, value: float, **_: Any) -> None:
        self._count(event, 1)

    def _end(self, event: str, duration_secs: float, **_: Any) -> None:
        self._count(event, -1)

    def _count(self, event: str, change: int) -> None:
        if event.startswith("/jax/core/compile"):
            # What is taken from a file has an end alone, and so has what began before we listened.
            thread = threading.get_ident()
            self._begun[thread] = max(self._begun[thread] + change, 0)


@dataclass
class _Count:
    """How far a computation is, when that was last heard of, and whether it was said since."""

    text: str = ""
    moved: float = -LONGEST_S
    is_told: bool = True
    elsewhere: bool = False


class WaitingNotice:
    """What was said last, what goes on, and what to say of it when.

    All times are those of `time.monotonic`.
    """

    def __init__(self) -> None:
        self.tasks: list[str] = []
        self.compilations = Compilations()
        self._counts: list[_Count] = []
        self.begin()

    def begin(self) -> None:
        """Something was printed, so that silence begins now."""
        self.heard = time.monotonic()
        self._doing, self._since = "", self.heard
        # By kind of activity: when it was said, and after which time it is said again.
        self._said: dict[str, tuple[float, float]] = {}
        self.compilations.under_way(self.heard)  # The first program may begin before a look.

    def activity(self, now: float) -> str:
        """What goes on at a time, and for how long it has."""
        if self.compilations.under_way(now):
            doing = "compiling"
        else:
            doing = "computing" if hasattr(sys.modules.get("jax"), "jit") else "loading"
        if doing != self._doing:
            self._since = now if self._doing else self._since
            self._doing = doing
        lasted = f" {now - self._since:.0f} s" if now - self._since >= 1 else ""
        task = "".join(f"{task}: " for task in self.tasks[-1:])
        return f"{task}{doing} ...{lasted}"

    def _text(self, is_new: bool, activity: str) -> str:
        """How far it is, and what goes on if that stands."""
        if not self._counts or not self._counts[-1].text:
            return activity
        count = self._counts[-1]
        return count.text if is_new or count.elsewhere else f"{count.text}; {activity}"

    def word(self, now: float) -> str | None:
        """A line to say at a time; None if there is no need to."""
        activity, count = self.activity(now), self._counts[-1] if self._counts else _Count()
        if now - self.heard < QUIET_S:
            return None
        kind = f"{self.tasks[-1:]} {self._doing}" if count.is_told else "count"
        before, wait = self._said.get(kind, (-LONGEST_S, QUIET_S))
        if now - before < wait:
            return None
        said = self._text(not count.is_told, activity)
        self.heard, count.is_told = now, True
        self._said[kind] = (now, min(2 * wait, LONGEST_S))
        return said

    def line(self, now: float) -> str:
        """What a line that changes shows at a time; empty if there is no need of one."""
        activity = self.activity(now)
        if self._counts and self._counts[-1].text:
            return self._text(now - self._counts[-1].moved < QUIET_S, activity)
        return activity if now - self.heard >= QUIET_S else ""

    @contextmanager
    def counting(self, *, elsewhere: bool = False) -> Iterator[Callable[[str], None]]:
        """A function to call with how far it is; what is around it waits meanwhile.

        `elsewhere` says that other processes do the work, of which this one knows nothing more.
        """
        count = _Count(elsewhere=elsewhere)

        def heard(text: str) -> None:
            count.text, count.moved, count.is_told = text, time.monotonic(), False

        self._counts.append(count)
        try:
            yield heard
        finally:
            self._counts.remove(count)


NOTICE = WaitingNotice()


@contextmanager
def doing(task: str) -> Iterator[None]:
    """Name what is being done, such as "searching for a law", while it says nothing itself."""
    NOTICE.tasks.append(task)
    try:
        yield
    finally:
        NOTICE.tasks.remove(task)


def say(line: str) -> None:
    """A line of progress: on standard error, or where the innermost `progress` sends it."""
    NOTICE.heard = time.monotonic()
    to = _BLOCKS[-1].to if _BLOCKS else None
    if to is not None:
        to(line)
    elif sys.stderr is not None:
        print(line, file=sys.stderr, flush=True)


def clear() -> None:
    """Take the line that changes away, for who prints past it."""
    NOTICE.begin()
    for block in _BLOCKS[-1:]:
        block.clear()


class _Block:
    """What one `with progress()` asks for: a line that changes, or lines from a thread."""

    def __init__(self, to: Callable[[str], object] | None, enabled: bool):
        self.to, self.enabled = to, enabled
        self._live: Any = None
        self._ended, self._thread = threading.Event(), threading.Thread()

    def start(self) -> None:
        NOTICE.begin()
        if not self.enabled:
            return
        if self.to is None and _is_terminal(sys.stderr):
            self._live = _new_live()
            self._live.start()
            return
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="mbdnode progress", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        if self._live is not None:
            for stream in filter(_is_terminal, (sys.stdout, sys.stderr)):
                stream.flush()  # Of a line that has no end yet.
            clear()
            self._live.stop()
            self._live = None
        elif self._thread.is_alive():
            self._ended.set()
            self._thread.join()

    def clear(self) -> None:
        if self._live is not None:
            self._live.refresh()

    def _watch(self) -> None:
        while not self._ended.wait(_LOOK_S):
            if word := NOTICE.word(time.monotonic()):
                say(word)


def _new_live() -> Any:
    """Rich's, which takes what others print to the lines above its own."""
    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

    console = Console(stderr=True, force_terminal=True, force_jupyter=False, soft_wrap=True)

    def shown() -> Any:
        line = NOTICE.line(time.monotonic())
        return Text(line[: max(console.width - 1, 1)]) if line else Group()

    return Live(
        get_renderable=shown,
        console=console,
        refresh_per_second=1 / _LOOK_S,
        transient=True,
        redirect_stdout=_is_terminal(sys.stdout),
    )


def _is_terminal(stream: Any) -> bool:
    """Whether a line on it can be drawn anew."""
    try:
        return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"
    except (AttributeError, ValueError):  # Closed, or not made to be asked.
        return False


_BLOCKS: list[_Block] = []


@contextmanager
def progress(to: Callable[[str], object] | None = None, *, enabled: bool = True) -> Iterator[None]:
    """Say what goes on after two seconds of silence: compiling or computing, and for how long.

    ```python
    with mbd.progress():
        found = mbd.identify(system, data)
    ```

    `fit`, `identify`, `fit_logs` and `closed_loop` tell inside of it how far they are, unless they
    were given a `report`. Without the block nothing is watched, and nothing is said.

    **Arguments:**

    - `to`: called with every text, from another thread, as `logger.info` can be; None for standard
        error: a line that changes in a terminal, lines at growing intervals in a notebook or a
        file.
    - `enabled`: whether anything is said, also by a block around this one.

    **Returns:**

    A context. Of nested ones the innermost decides; with the outermost its thread ends.
    """
    block, outer = _Block(to, enabled), _BLOCKS[-1] if _BLOCKS else None
    if outer is not None:
        outer.stop()
    _BLOCKS.append(block)
    block.start()
    try:
        yield
    finally:
        block.stop()
        _BLOCKS.remove(block)
        if outer in _BLOCKS:
            outer.start()


@contextmanager
def counting_rows() -> Iterator[Callable[[dict[str, Any], int], None]]:
    """A function for `fit` and `identify` to call with every row of a training or a search."""
    rows = TrainingRows()
    with NOTICE.counting() as count:

        def heard(row: dict[str, Any], total: int) -> None:
            told, text = rows.hear(row, total, time.monotonic())
            if told:
                say(told)
            count(text)

        yield heard


@contextmanager
def counting_steps(
    what: str = "", unit: str = "step"
) -> Iterator[Callable[[int, int | None], None]]:
    """A function to call with the number of steps that are done and, if it is known, of all."""
    with NOTICE.counting() as count:

        def heard(done: int, total: int | None) -> None:
            of_all = "" if total is None else f" of {total:,}"
            count(f"{what}{', ' if what else ''}{unit} {done:,}{of_all}")

        yield heard


def counts_rows(function: _Function) -> _Function:
    """Let `progress` hear the rows of a training or a search, if no argument `report` is given."""
    return _reporting(function, counting_rows)


def counts_steps(function: _Function) -> _Function:
    """Let `progress` hear the steps of a loop, if no argument `report` is given."""
    return _reporting(function, counting_steps)


def _reporting(function: _Function, counting: Callable[[], Any]) -> _Function:
    @functools.wraps(function)
    def call(*args, report=None, **kwargs):
        if report is not None or not (_BLOCKS and _BLOCKS[-1].enabled):
            return function(*args, report=report, **kwargs)
        with counting() as heard:
            return function(*args, report=heard, **kwargs)

    return cast(_Function, call)
