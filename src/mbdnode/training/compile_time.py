"""How long JAX spent on tracing and compiling, apart from the work itself."""

from collections.abc import Iterator
from contextlib import contextmanager

import jax


class Compilation:
    """Seconds so far."""

    def __init__(self) -> None:
        self.seconds = 0.0


@contextmanager
def counted_compilation() -> Iterator[Compilation]:
    """Add up what JAX reports of its own compilations inside the `with`."""
    total = Compilation()

    def listen(event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event.startswith("/jax/core/compile"):
            total.seconds += duration_secs

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield total
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
