"""Time a call: the first one apart, since it compiles, then the median of a few."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import jax


@dataclass(frozen=True)
class Timing:
    """Seconds of the first call beyond a later one, and of a later one."""

    compile_s: float
    run_s: float


def measure(call: Callable, repeats: int = 5) -> Timing:
    """Call once to compile, then `repeats` times; the median counts."""

    def once() -> float:
        start = time.perf_counter()
        jax.block_until_ready(call())
        return time.perf_counter() - start

    first = once()
    run = statistics.median(once() for _ in range(repeats))
    return Timing(max(first - run, 0.0), run)
