"""Ctrl-C as a request to stop at the next good moment.

An interrupt in the middle of an epoch would lose the weights, whose memory the epoch reuses. So
the first one is only noted, and training stops when the running epoch is done; a second one, from
a user who cannot wait, interrupts at once.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Interrupt:
    """Whether the user has asked to stop."""

    def __init__(self) -> None:
        self.requested = False


@contextmanager
def noted_interrupts() -> Iterator[Interrupt]:
    """Note the first Ctrl-C in the returned object; the second acts as usual."""
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        # Only the main thread may set handlers; elsewhere nobody can press Ctrl-C.
        yield interrupt
        return
    before = signal.getsignal(signal.SIGINT)

    def note(number, frame):
        interrupt.requested = True
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, note)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
