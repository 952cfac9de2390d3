"""Ctrl-C while JAX is at work.

Python answers an interrupt with an exception at whatever line it has reached. If that line is one
that JAX called from its own compiled parts, the exception is lost or the process crashes; and while
XLA compiles or runs a program, no line is reached at all, for seconds or minutes. While nothing is
being written there is nothing to clean up either, so the process can simply end. A thread of its
own sees to that: Python tells it of the interrupt, whatever is running, by a byte in a socket.
"""

import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# The exit code of an interrupted command, as shells have it: 128 + SIGINT.
INTERRUPTED = 130
# For a training to come to the end of its epoch, and to keep what it has learned.
GRACE_S = 3.0
# For Python's own handler, which is called as soon as any line of Python is reached.
_HANDLER_S = 0.2
_SHOW_CURSOR = "\x1b[?25h"


@contextmanager
def leaving_at_once(grace_s: float | None = 0.0, farewell: str = "") -> Iterator[None]:
    """End the process with exit code 130 on Ctrl-C; not for code that writes files.

    **Arguments:**

    - `grace_s`: how long to wait for code that has its own answer to Ctrl-C, as training has; a
        second Ctrl-C, for which None waits, ends the process at once.
    - `farewell`: what to say at the end.
    """
    listening = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not listening or threading.current_thread() is not threading.main_thread():
        yield  # Somebody else decides what an interrupt means.
        return
    hear, tell = socket.socketpair()
    tell.setblocking(False)
    before = signal.set_wakeup_fd(tell.fileno(), warn_on_full_buffer=False)
    watcher = threading.Thread(target=_watch, args=(hear, grace_s, farewell), daemon=True)
    watcher.start()
    signal.signal(signal.SIGINT, lambda *_: _leave(farewell))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.set_wakeup_fd(before, warn_on_full_buffer=False)
        tell.close()  # The watcher reads an end, and ends.
        watcher.join()
        hear.close()


def _watch(hear: socket.socket, grace_s: float | None, farewell: str) -> None:
    while read := hear.recv(1):
        if read[0] == signal.SIGINT:
            # Until a second byte, the other side's end, or the end of patience.
            patience_s = None if grace_s is None else max(grace_s, _HANDLER_S)
            ready = select.select([hear], [], [], patience_s)[0]
            if not ready or hear.recv(1):
                _leave(farewell)
            return


def _leave(farewell: str) -> None:
    shown = _SHOW_CURSOR if sys.stderr.isatty() else ""  # A progress bar hides it.
    sys.stderr.write(f"{shown}\n{farewell}interrupted\n")
    sys.stderr.flush()
    os._exit(INTERRUPTED)
