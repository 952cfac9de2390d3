"""Ctrl-C while JAX is at work.

Python answers an interrupt with an exception at whatever line it has reached. If that line is one
that JAX called from its own compiled parts, the exception is lost or the process crashes. While
nothing is being written there is nothing to clean up either, so the process can simply end.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def leaving_at_once() -> Iterator[None]:
    """End the process with exit code 130 on Ctrl-C; not for code that writes files."""
    listening = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not listening or threading.current_thread() is not threading.main_thread():
        yield  # Somebody else decides what an interrupt means.
        return
    signal.signal(signal.SIGINT, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(*_) -> None:
    sys.stderr.write("\ninterrupted\n")
    sys.stderr.flush()
    os._exit(130)
