"""Mechanisms of the catalog and from files: time a step, and the first call with its compilation.

RK4 with steps of 1 ms, one trajectory. Times are the processor's, since a machine is shared, the
shortest of several runs. Nothing is taken from the cache of compiled programs.
"""

import os
import time
from pathlib import Path

os.environ["MBDNODE_CACHE"] = "off"

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

import mbdnode as mbd
from mbdnode.mechanisms import read_mechanism

STEPS, REPEATS, DT_S = 5_000, 5, 1e-3
FILES = Path(__file__).parents[1] / "examples" / "mechanisms"
CATALOG = {
    "double pendulum": (mbd.mechanisms.DoublePendulum(), {"theta1": 1.0}),
    "cart-pole": (mbd.mechanisms.CartPole(), {"theta": 1.0}),
    "slider-crank": (mbd.mechanisms.SliderCrank(), {"theta1": 1.0, "theta1_dot": 1.0}),
}


def measured(mechanism, initial: dict[str, float]) -> tuple[float, float]:
    """Seconds of the first call, and of a step in later ones."""
    t, times = DT_S * np.arange(STEPS + 1), []
    for _ in range(REPEATS + 1):
        begin = time.process_time()
        run = mbd.simulate(mechanism, t, initial, check_step=False)
        jax.block_until_ready(run.q)
        times.append(time.process_time() - begin)
    assert run.status.ok, run.status
    return times[0], min(times[1:]) / STEPS


def main() -> None:
    """Print a row for each mechanism."""
    table = Table("mechanism", "coordinates", "first call [s]", "us a step")
    files = {path.name: (read_mechanism(path), {}) for path in sorted(FILES.glob("*.toml"))}
    for name, (mechanism, initial) in (CATALOG | files).items():
        first, step = measured(mechanism, initial)
        table.add_row(name, str(len(mechanism.coordinates)), f"{first:.2f}", f"{1e6 * step:.3g}")
    Console().print(table)


if __name__ == "__main__":
    main()
