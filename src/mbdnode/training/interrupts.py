"""Ctrl-C as a request to stop at the next good moment.

An interrupt in the middle of an epoch would lose the weights, whose memory the epoch reuses. So
the first one is only noted, and training stops when the running epoch is done; a second one, from
a user who cannot wait, interrupts at once.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Interrupt:
    """Whether the user has asked to stop; as a handler it notes the first time that he does."""

    def __init__(self, before: Any = None) -> None:
        self.requested, self.before = False, before

    def __call__(self, number: int, frame: Any) -> None:
        """Note it, and leave what follows to the handler before."""
        self.requested = True
        signal.signal(signal.SIGINT, self.before)


@contextmanager
def noted_interrupts() -> Iterator[Interrupt]:
    """Note the first Ctrl-C in the returned object, and around it; the second acts as usual."""
    if threading.current_thread() is not threading.main_thread():
        # Only the main thread may set handlers; elsewhere nobody can press Ctrl-C.
        yield Interrupt()
        return
    before = signal.getsignal(signal.SIGINT)
    interrupt = Interrupt(before)
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
        # What is inside may have come to its own end in the same moment.
        if interrupt.requested and isinstance(before, Interrupt):
            before(signal.SIGINT, None)
