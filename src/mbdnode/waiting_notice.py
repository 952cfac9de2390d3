"""A word after two seconds of silence: in every command, and in Python within `progress()`.

What takes long is compiling, now and then reading or computing; none of them can say so itself. A
thread looks whether anything was printed of late, and says what goes on and for how long. JAX tells
when it begins and ends to trace, lower or compile something. What counts its epochs, candidates or
steps is said with the count.

In a terminal the word is a line that changes, and is gone before anything else is printed.
Elsewhere it is a line for each kind of activity, and then one after 4, 8, 16 and every 30 seconds,
so that a log of hours stays short.
"""

import functools
import os
import shutil
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar, cast

from mbdnode.progress_text import TrainingRows

# How long nothing may be heard, so that with a look and the start of Python it stays below two
# seconds; and how long at most between two lines of the same.
QUIET_S, LONGEST_S = 1.6, 30.0
# How often the thread looks, and how many looks decide what goes on: where a hundred small programs
# are compiled in turn, every other look would say something else.
_LOOK_S, _LOOKS = 0.2, 5
_ERASE = "\r\x1b[K"

_Function = TypeVar("_Function", bound=Callable)


class Compilations:
    """Whether JAX traces, lowers or compiles at this moment, by what it tells of it."""

    def __init__(self) -> None:
        self._begun: dict[int, int] = {}
        self._monitoring: Any = None

    def under_way(self) -> bool:
        """In any thread."""
        self.listen()
        return any(count > 0 for count in list(self._begun.values()))

    def listen(self) -> None:
        """Hear what JAX tells from now on, if it is loaded."""
        monitoring = getattr(sys.modules.get("jax"), "monitoring", None)
        if self._monitoring is None and monitoring is not None:
            self._monitoring = monitoring
            monitoring.register_scalar_listener(self._begin)
            monitoring.register_event_duration_secs_listener(self._end)

    def leave(self) -> None:
        """Hear nothing more, so that nothing is called where nobody asks."""
        if self._monitoring is not None:
            # A user may have removed all listeners of JAX in the meantime.
            for remove, own in (
                (self._monitoring.unregister_scalar_listener, self._begin),
                (self._monitoring.unregister_event_duration_listener, self._end),
            ):
                with suppress(AssertionError, ValueError):
                    remove(own)
        self._monitoring = None
        self._begun.clear()

    def _begin(self, event: str, value: float, **_: Any) -> None:
        if event.startswith("/jax/core/compile"):
            own = threading.get_ident()
            self._begun[own] = self._begun.get(own, 0) + 1

    def _end(self, event: str, duration_secs: float, **_: Any) -> None:
        if event.startswith("/jax/core/compile"):
            # What is taken from a file has an end alone, and so has what began before we listened.
            own = threading.get_ident()
            self._begun[own] = max(self._begun.get(own, 0) - 1, 0)


class WaitingNotice:
    """What was printed and said last, what goes on, and what to say of it when."""

    def __init__(self) -> None:
        self.heard = time.monotonic()
        self.drawing = 0
        self.summary: Callable[[], str] | None = None
        self.elsewhere = False
        self.compilations = Compilations()
        self._looks: deque[str] = deque(maxlen=_LOOKS)
        self._doing, self._since = "", self.heard
        # By kind of activity: when it was said, and after which time it is said again.
        self._said: dict[str, tuple[float, float]] = {}
        self._counts: list[str] = []
        self.tasks: list[str] = []
        self._counted, self._moved = False, -LONGEST_S

    def begin(self) -> None:
        """Nobody has listened up to now."""
        self._looks.clear()
        self._doing, self._since = "", time.monotonic()
        self.compilations.listen()  # The first program may begin before the first look.
        self.note()

    def note(self) -> None:
        """Something was printed by others."""
        self.heard = time.monotonic()
        self._said.clear()

    def told(self) -> None:
        """A line of progress was printed, which makes later words no more frequent."""
        self.heard = time.monotonic()

    def look(self, now: float) -> None:
        """See what goes on at a time."""
        if self.compilations.under_way():
            seen = "compiling"
        else:
            seen = "computing" if hasattr(sys.modules.get("jax"), "jit") else "loading"
        self._looks.append(seen)
        most = max(self._looks, key=list(self._looks).count)
        if most != self._doing:
            self._doing, self._since = most, now

    def activity(self, now: float) -> str:
        """What goes on at a time, and for how long it has.

        **Arguments:**

        - `now`: on the clock of `time.monotonic`.
        """
        if not self._looks:
            self.look(now)
        lasted = f" {now - self._since:.0f} s" if now - self._since >= 1 else ""
        task = "".join(f"{task}: " for task in self.tasks[-1:])
        return f"{task}{self._doing} ...{lasted}"

    def text(self, now: float) -> str:
        """All that there is to say at a time: how far it is, and what goes on if that stands."""
        if self.summary is not None:
            own = "" if self.elsewhere else f"; {self.activity(now)}"
            return f"{self.summary()}{own}"
        count = self._counts[-1] if self._counts else ""
        if not count:
            return self.activity(now)
        return count if self._counted else f"{count}; {self.activity(now)}"

    def word(self, now: float) -> str | None:
        """A line to say at a time; None if there is no need to.

        **Arguments:**

        - `now`: on the clock of `time.monotonic`.
        """
        if self.drawing or now - self.heard < QUIET_S:
            return None
        kind = "count" if self._counted else f"{self.tasks[-1:]} {self._doing}"
        before, wait = self._said.get(kind, (-LONGEST_S, QUIET_S))
        if now - before < wait:
            return None
        said = self.text(now)
        self.heard, self._counted = now, False
        self._said[kind] = (now, min(2 * wait, LONGEST_S))
        return said

    def live(self, now: float) -> str:
        """What a line that changes shows at a time; empty if there is no need of one."""
        if self.drawing:
            return ""
        if self._counts and self._counts[-1]:
            self._counted = now - self._moved < QUIET_S
            return self.text(now)
        return self.text(now) if now - self.heard >= QUIET_S else ""

    def count(self, place: int, text: str) -> None:
        """How far it is, by the computation that began its count at this place."""
        self._counts[place] = text
        self._counted, self._moved = True, time.monotonic()

    @contextmanager
    def counting(self) -> Iterator[Callable[[str], None]]:
        """A function to call with how far it is; what is around it waits meanwhile."""
        place = len(self._counts)
        self._counts.append("")
        try:
            yield functools.partial(self.count, place)
        finally:
            del self._counts[place:]
            self._counted = False


NOTICE = WaitingNotice()


@contextmanager
def doing(task: str) -> Iterator[None]:
    """Name what is being done, for the word about it while it says nothing itself.

    **Arguments:**

    - `task`: such as "searching for a law".
    """
    NOTICE.tasks.append(task)
    try:
        yield
    finally:
        NOTICE.tasks.remove(task)


def current_activity() -> str:
    """What goes on now, for who draws it."""
    now = time.monotonic()
    NOTICE.look(now)
    return NOTICE.activity(now)


class _Block:
    """What one `with progress()` asks for."""

    def __init__(self, to: Callable[[str], object] | None, enabled: bool):
        self.to, self.enabled = to, enabled


class _Voice:
    """The thread that speaks, for the innermost of the blocks that are open."""

    def __init__(self) -> None:
        self.blocks: list[_Block] = []
        self._lock = threading.RLock()
        self._ended: threading.Event | None = None
        self._thread: threading.Thread | None = None
        self._streams: list[tuple[Any, Any]] = []
        self._speaking = threading.local()
        self._drawn = ""
        self._inside_a_line = False

    def open(self, block: _Block) -> None:
        with self._lock:
            self.blocks.append(block)
            if block.enabled and self._thread is None:
                self._begin()
            NOTICE.note()

    def close(self, block: _Block) -> None:
        with self._lock:
            self.blocks.remove(block)
            self._erase()
            NOTICE.note()  # What was said to this block was not said to the one around it.
            ended = self._thread if not self.blocks else None
            if ended is not None and self._ended is not None:
                self._ended.set()
        if ended is not None:
            ended.join()
            with self._lock:
                if self._thread is ended:
                    self._finish()

    def say(self, line: str) -> None:
        """Print a line of progress on standard error."""
        with self._lock, self._own_words():
            self._erase()
            NOTICE.told()
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()

    def _begin(self) -> None:
        self._ended, self._drawn, self._inside_a_line = threading.Event(), "", False
        NOTICE.begin()
        for stream in {id(s): s for s in (sys.stdout, sys.stderr) if s is not None}.values():
            before = vars(stream).get("write") if hasattr(stream, "__dict__") else None
            try:
                stream.write = self._noting(stream, stream.write)
            except AttributeError:  # One that cannot be listened to: others can.
                continue
            self._streams.append((stream, before))
        self._thread = threading.Thread(
            target=self._watch, args=(self._ended,), name="mbdnode progress", daemon=True
        )
        self._thread.start()

    def _finish(self) -> None:
        for stream, before in self._streams:
            if before is None:
                vars(stream).pop("write", None)
            else:
                stream.write = before
        self._streams, self._thread, self._ended = [], None, None
        NOTICE.compilations.leave()

    def _watch(self, ended: threading.Event) -> None:
        while not ended.wait(_LOOK_S):
            now = time.monotonic()
            NOTICE.look(now)
            with self._lock:
                block = self.blocks[-1] if self.blocks else None
                if block is None or not block.enabled:
                    continue
                stream = sys.stderr
                if block.to is None and _is_terminal(stream):
                    self._draw(NOTICE.live(now))
                    continue
                word = NOTICE.word(now)
            if word is not None and block.to is not None:
                with self._own_words():
                    block.to(word)
            elif word is not None and stream is not None:
                self.say(word)

    def _draw(self, text: str) -> None:
        """Show a line, or none, in place of the one that is shown."""
        text = text[: max(shutil.get_terminal_size().columns - 1, 1)]
        if text == self._drawn:
            return
        with self._own_words():
            # What others have not ended is not ours to erase.
            start = "\n" if self._inside_a_line and not self._drawn else _ERASE
            self._inside_a_line = False
            sys.stderr.write(f"{start}{text}")
            sys.stderr.flush()
        self._drawn = text

    def _erase(self) -> None:
        if self._drawn:
            self._draw("")

    def _noting(self, stream: Any, write: Callable[[str], int]) -> Callable[[str], int]:
        shown = _is_terminal(stream)

        def noted(text: str) -> int:
            if getattr(self._speaking, "now", False):
                return write(text)
            with self._lock:
                self._erase()
                NOTICE.note()
                if shown and text:
                    self._inside_a_line = not text.endswith("\n")
                return write(text)

        return noted

    @contextmanager
    def _own_words(self) -> Iterator[None]:
        """What this thread prints meanwhile ends no silence."""
        before = getattr(self._speaking, "now", False)
        self._speaking.now = True
        try:
            yield
        finally:
            self._speaking.now = before


_VOICE = _Voice()


def _is_terminal(stream: Any) -> bool:
    """Whether a line on it can be drawn anew."""
    try:
        return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"
    except (AttributeError, ValueError):  # Closed, or not made to be asked.
        return False


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
    block = _Block(to, enabled)
    _VOICE.open(block)
    try:
        yield
    finally:
        _VOICE.close(block)


def say(line: str) -> None:
    """Print a line of progress on standard error: later words become no more frequent by it."""
    _VOICE.say(line)


def counts_rows(function: _Function) -> _Function:
    """Let `progress` hear the rows of a training or a search, where `report` is not given.

    **Arguments:**

    - `function`: with an argument `report` by name, which is called as by `fit`.
    """

    @functools.wraps(function)
    def call(*args, report=None, **kwargs):
        if report is not None or not _asked():
            return function(*args, report=report, **kwargs)
        rows = TrainingRows()
        with NOTICE.counting() as count:

            def heard(row: dict[str, Any], total: int) -> None:
                told, text = rows.hear(row, total, time.monotonic())
                count(f"{told}; {text}" if told else text)

            return function(*args, report=heard, **kwargs)

    return cast(_Function, call)


def counts_steps(function: _Function) -> _Function:
    """Let `progress` hear the steps of a loop, where `report` is not given.

    **Arguments:**

    - `function`: with an argument `report` by name, which is called with the number of steps that
        are done and of all.
    """

    @functools.wraps(function)
    def call(*args, report=None, **kwargs):
        if report is not None or not _asked():
            return function(*args, report=report, **kwargs)
        with NOTICE.counting() as count:
            return function(
                *args,
                report=lambda done, total: count(f"step {done:,} of {total:,}"),
                **kwargs,
            )

    return cast(_Function, call)


def _asked() -> bool:
    """Whether somebody wants to hear how far it is."""
    return bool(_VOICE.blocks) and _VOICE.blocks[-1].enabled


@contextmanager
def drawing() -> Iterator[None]:
    """While something moves in the terminal, which says enough."""
    NOTICE.drawing += 1
    try:
        yield
    finally:
        NOTICE.drawing -= 1
        NOTICE.note()


@contextmanager
def summarized(summary: Callable[[], str], *, elsewhere: bool) -> Iterator[None]:
    """While lines tell of several runs: what to say when there have been none for a while.

    **Arguments:**

    - `summary`: gives the words.
    - `elsewhere`: whether other processes do the work, so that what this one does says nothing.
    """
    NOTICE.summary, NOTICE.elsewhere = summary, elsewhere
    try:
        yield
    finally:
        NOTICE.summary = None
        NOTICE.note()
