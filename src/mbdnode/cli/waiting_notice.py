"""A word after two seconds of silence, in every command.

What takes long is compiling, now and then reading or computing; none of them can say so itself. A
thread looks whether anything was printed of late, and says what seems to go on: JAX tells when it
has traced, lowered or compiled something, and `mbdnode.program_cache` when it begins to.
"""

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# How long nothing may be heard; then how long nothing may be heard after that.
QUIET_S, AGAIN_S = 2.0, 20.0


class WaitingNotice:
    """When something was printed last, and when JAX was last seen compiling."""

    def __init__(self) -> None:
        self.heard, self.compiled = time.monotonic(), -math.inf
        self.drawing = False
        self.summary: Callable[[], str] | None = None
        self._listening = False
        self._wait = QUIET_S

    def note(self) -> None:
        """Something was printed."""
        self.heard = time.monotonic()
        self._wait = QUIET_S if self.summary is None else AGAIN_S

    def word(self, now: float) -> str | None:
        """What to say at a time; None if there is no need to.

        **Arguments:**

        - `now`: on the clock of `time.monotonic`.
        """
        self._listen()
        if self.drawing or now - self.heard < self._wait:
            return None
        self.heard, self._wait = now, AGAIN_S
        return self.activity(now) if self.summary is None else self.summary()

    def activity(self, now: float) -> str:
        """What seems to go on at a time."""
        self._listen()
        programs = sys.modules.get("mbdnode.program_cache")
        # Of a module that is being imported only a part may be there.
        under_way = getattr(programs, "compiling", lambda: False)()
        if under_way or now - self.compiled < QUIET_S:
            return "compiling ..."
        bridge = sys.modules.get("jax._src.xla_bridge")  # JAX has no public name for it.
        started = getattr(bridge, "backends_are_initialized", lambda: False)()
        return "compiling or computing ..." if started else "loading ..."

    def _listen(self) -> None:
        monitoring = getattr(sys.modules.get("jax"), "monitoring", None)
        if self._listening or monitoring is None:
            return
        self._listening = True
        monitoring.register_event_duration_secs_listener(self._hear)

    def _hear(self, event: str, duration_secs: float, **_: Any) -> None:
        if event.startswith("/jax/core/compile"):
            self.compiled = time.monotonic()


NOTICE = WaitingNotice()


def current_activity() -> str:
    """What seems to go on now, for who draws it."""
    return NOTICE.activity(time.monotonic())


@contextmanager
def notice_when_waiting() -> Iterator[None]:
    """Say something on standard error after two seconds without output."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.2):
            word = NOTICE.word(time.monotonic())
            if word is not None:
                said(f"{word}\n")
                sys.stderr.flush()

    streams = [(stream, stream.write) for stream in (sys.stdout, sys.stderr)]
    said = sys.stderr.write  # A word of our own ends no silence.
    for stream, write in streams:
        stream.write = _noting(write)
    NOTICE.note()
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
        for stream, write in streams:
            stream.write = write


@contextmanager
def drawing() -> Iterator[None]:
    """While something moves in the terminal, which says enough."""
    NOTICE.drawing = True
    try:
        yield
    finally:
        NOTICE.drawing = False
        NOTICE.note()


@contextmanager
def summarized(summary: Callable[[], str]) -> Iterator[None]:
    """While others work, and lines tell of it: what to say when there have been none for long.

    **Arguments:**

    - `summary`: gives the words.
    """
    NOTICE.summary = summary
    try:
        yield
    finally:
        NOTICE.summary = None
        NOTICE.note()


def _noting(write):
    def noted(text: str) -> int:
        NOTICE.note()
        return write(text)

    return noted
