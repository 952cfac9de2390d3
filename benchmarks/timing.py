"""Time a call: the first one apart, since it compiles, then a few more."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import jax


@dataclass(frozen=True)
class Timing:
    """Seconds of the first call beyond a later one; of a later one; and its processor time."""

    compile_s: float
    run_s: float
    cpu_s: float


def measure(call: Callable, repeats: int = 5) -> Timing:
    """Call once to compile, then `repeats` times: the clock's median, the processor's minimum."""
    spent = []

    def once() -> float:
        start, before = time.perf_counter(), time.process_time()
        jax.block_until_ready(call())
        spent.append(time.process_time() - before)
        return time.perf_counter() - start

    first = once()
    run = statistics.median(once() for _ in range(repeats))
    return Timing(max(first - run, 0.0), run, min(spent[1:]))
