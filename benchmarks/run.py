"""`make bench`: every benchmark, one after the other.

Each runs in a process of its own, so that none inherits another's compiled programs, memory or
pinned core.
"""

import platform
import subprocess
import sys

BENCHMARKS = (
    "waiting",
    "slider_crank_speed",
    "mechanism_speed",
    "step_error",
    "chain_speed",
    "training_speed",
    "memory",
    "constraint_study",
    "recipes",
    "other_laws",
    "ensembles",
    "control_speed",
    "control_region",
    "large_logs",
    "signals",
    "export_speed",
    "robots",
    "robot_speed",
    "loops",
    "exudyn_motion",
    "spatial_learning",
)

if __name__ == "__main__":
    print(f"Python {platform.python_version()} on {platform.machine()}", flush=True)
    wanted = sys.argv[1:] or BENCHMARKS
    for name in wanted:
        if name not in BENCHMARKS:
            sys.exit(f"error: no benchmark {name!r}; there are {', '.join(BENCHMARKS)}")
    failed = []
    for name in wanted:
        print(f"\n{name}", flush=True)
        # One that misses its goal must not hide the others.
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}"]).returncode:
            failed.append(name)
    if failed:
        sys.exit(f"error: {', '.join(failed)} failed or missed a goal")
