"""A command's time in parts: importing, tracing and compiling, and the rest, which computes.

`python benchmarks/compile_share.py OUT.json fit ...` runs `mbdnode fit ...` in this process, and
writes the seconds to a file. JAX reports how long it traced, lowered and compiled (or read from its
cache) each program, one inside another: the time that any of them covers is counted once.
"""

import json
import sys
import time
from pathlib import Path


def covered(intervals: list[tuple[float, float]]) -> float:
    """How long at least one of the intervals lasts."""
    total, reached = 0.0, float("-inf")
    for begin, end in sorted(intervals):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total


def main(place: Path, arguments: list[str]) -> int:
    """Run the command and write what it took; its exit code."""
    began = time.perf_counter()
    import jax

    from mbdnode.cli import main as run

    compiling: list[tuple[float, float]] = []

    def hear(event: str, duration_secs: float, **_: object) -> None:
        if event.startswith("/jax/core/compile"):
            now = time.perf_counter()
            compiling.append((now - duration_secs, now))

    jax.monitoring.register_event_duration_secs_listener(hear)
    imported = time.perf_counter()
    code = run(arguments)
    whole, compile_s = time.perf_counter() - imported, covered(compiling)
    seconds = {
        "import": imported - began,
        "compile": compile_s,
        "compute": whole - compile_s,
        "programs": sum(1 for _ in compiling),
    }
    place.write_text(json.dumps(seconds))
    return code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
