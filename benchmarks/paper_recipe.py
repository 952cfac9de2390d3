"""The recipe `paper` on every trajectory case: the median of some seeds beside the paper's error.

    python -m benchmarks.paper_recipe [SEEDS] [FOLDER]

Runs are kept in FOLDER (runs/paper by default), and those that are finished are not run again.
"""

import json
import statistics
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from mbdnode.data.folders import METRICS
from mbdnode.reproduction.config import configure
from mbdnode.reproduction.folder import open_run_folder, write_result
from mbdnode.reproduction.run import run_case

# The paper's error table, model A. How the metric is read: docs/theory.md.
PRINTED = {
    "single-mass-spring": 1.3e-6,
    "single-mass-spring-damper": 8.6e-4,
    "triple-mass-spring-damper": 8.2e-3,
    "single-pendulum": 2.0e-3,
    "double-pendulum:released-low": 2.0e-1,
    "cart-pole": 6.0e-5,
}


def metrics_of(case: str, seed: int, folder: Path) -> dict:
    """The metrics of one run, made now if they are not there."""
    place = folder / f"{case}-{seed}"
    if not (place / METRICS).is_file():
        config = configure(case, seed=seed)
        open_run_folder(place, config, resume=False)
        write_result(place, run_case(config))
    return json.loads((place / METRICS).read_text())


def main(console: Console, seeds: int, folder: Path) -> None:
    """Run what is missing, and print."""
    table = Table(title=f"Recipe paper, {seeds} seeds: mse of the whole rollout")
    for column in ("case", "paper", "median", "min", "max", "ratio", "training [s]"):
        table.add_column(column, justify="left" if column == "case" else "right")
    for case, printed in PRINTED.items():
        found = [metrics_of(case, seed, folder) for seed in range(seeds)]
        errors = [row["mse"] for row in found]
        median = statistics.median(errors)
        table.add_row(
            case,
            f"{printed:.1e}",
            *(f"{x:.1e}" for x in (median, min(errors), max(errors))),
            f"{median / printed:.2g}",
            f"{statistics.median(row['train_seconds'] for row in found):.0f}",
        )
    console.print(table)


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    main(Console(width=110), count, Path(sys.argv[2] if len(sys.argv) > 2 else "runs/paper"))
