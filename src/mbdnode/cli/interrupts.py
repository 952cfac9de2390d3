"""Ctrl-C and SIGTERM while JAX is at work.

Python answers an interrupt with an exception at whatever line it has reached. If that line is one
that JAX called from its own compiled parts, the exception is lost or the process crashes; and while
XLA compiles or runs a program, no line is reached at all, for seconds or minutes. What is being
written then can be removed, so the process can simply end. A thread of its own sees to that: Python
tells it of the interrupt, whatever is running, by a byte in a socket (`signal.set_wakeup_fd`).

SIGTERM, which `kill` and batch systems send, does what Ctrl-C does, with an exit code of its own.
"""

import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mbdnode.data.files import remove_parts

# The exit code of an interrupted command, as shells have it: 128 + SIGINT.
INTERRUPTED = 130
# For a training to come to the end of its epoch, and to keep what it has learned.
GRACE_S = 3.0
# For Python's own handler, which is called as soon as any line of Python is reached.
_HANDLER_S = 0.2
# A line that changes hides the cursor, and is still there.
_END_OF_LINE = "\r\x1b[2K\x1b[?25h"

# By which signal this process is ended.
_ended_by: int = signal.SIGINT


def exit_code() -> int:
    """Of an interrupted command: 130 after Ctrl-C, 143 after SIGTERM."""
    return 128 + _ended_by


def hear_termination() -> None:
    """Take SIGTERM for Ctrl-C, in a process that is all ours."""
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)


def _terminate(number: int, frame: Any) -> None:
    global _ended_by
    _ended_by = number
    answer = signal.getsignal(signal.SIGINT)
    if callable(answer):
        answer(signal.SIGINT, frame)
    elif answer == signal.SIG_IGN:  # As in a job in the background, which still can be ended.
        raise KeyboardInterrupt


@contextmanager
def leaving_at_once(grace_s: float | None = 0.0, farewell: str = "") -> Iterator[None]:
    """End the process with exit code 130 on Ctrl-C, or 143 on SIGTERM, and with a farewell.

    What is being written is removed. Code that changes several files in turn is not for this. Code
    that has its own answer to Ctrl-C, as training has, is waited for so long; a second Ctrl-C, for
    which None waits, ends the process at once.
    """
    before = signal.getsignal(signal.SIGINT)
    in_background = before == signal.SIG_IGN and signal.getsignal(signal.SIGTERM) is _terminate
    is_ours = before is signal.default_int_handler or in_background
    if threading.current_thread() is not threading.main_thread() or not is_ours:
        yield  # Somebody else decides what an interrupt means.
        return
    hear, tell = socket.socketpair()
    tell.setblocking(False)
    wakeup = signal.set_wakeup_fd(tell.fileno(), warn_on_full_buffer=False)
    watcher = threading.Thread(target=_watch, args=(hear, grace_s, farewell), daemon=True)
    watcher.start()
    if not in_background:
        signal.signal(signal.SIGINT, lambda *_: _leave(farewell))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        tell.close()  # The watcher reads an end, and ends.
        watcher.join()
        hear.close()


@contextmanager
def saying(farewell: str) -> Iterator[None]:
    """Say how to go on where an interrupt, or a disk that is full, ends what is inside."""
    try:
        yield
    except KeyboardInterrupt:
        sys.stderr.write(farewell)
        raise
    except OSError as error:
        raise OSError(f"{error} {farewell.rstrip()}") from error


def _watch(hear: socket.socket, grace_s: float | None, farewell: str) -> None:
    global _ended_by
    while read := hear.recv(1):
        if read[0] in (signal.SIGINT, signal.SIGTERM):
            _ended_by = read[0]
            # Until a second byte, the other side's end, or the end of patience.
            patience_s = None if grace_s is None else max(grace_s, _HANDLER_S)
            ready = select.select([hear], [], [], patience_s)[0]
            if not ready or hear.recv(1):
                _leave(farewell)
            return


def _leave(farewell: str) -> None:
    remove_parts()
    # Past whoever stands in for the stream, as the line that changes does.
    stream = sys.__stderr__ or sys.stderr
    stream.write(f"{_END_OF_LINE if stream.isatty() else ''}\n{farewell}interrupted\n")
    stream.flush()
    os._exit(exit_code())
