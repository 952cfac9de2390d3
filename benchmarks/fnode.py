"""MBD-NODE by `paper`, `paper-shuffled` and `adam-lm`, and by `fnode`, on the same noisy data.

    python -m benchmarks.fnode [--seeds 1] [--noise 0,0.01] [--recipes fnode] [CASE ...]

Each run is a line of runs/fnode.jsonl, and what is there is not run again: the table can be filled
piece by piece.

Noise is normal, of every column its own, in parts of that column's standard deviation; the training
range alone has it, and every recipe sees the same. Errors are those of the whole motion against the
truth without noise. "To the paper" is the training time, compilation apart, until that error is at
most the paper's for MBD-NODE. All recipes smooth data whose noise can be told from its motion.
"""

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.networks import measure, printed_error

RECIPES = ("paper", "paper-shuffled", "adam-lm", "fnode")
RESULTS = Path("runs/fnode.jsonl")
CASES = ("single-mass-spring-damper", "double-pendulum:released-low")


def middle(values: list[Any]) -> str:
    """The median over the seeds; of those that never got there it is none."""
    numbers = [np.inf if value is None else value for value in values]
    found = statistics.median(numbers)
    return f"{found:.1e}" if np.isfinite(found) else "-"


def measured(case: str, recipe: str, seed: int, noise: float) -> dict[str, Any]:
    """The line of a run, from the file if it is there."""
    run = {"case": case, "recipe": recipe, "seed": seed, "noise": noise}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.touch()
    for text in RESULTS.read_text().splitlines():
        if (line := json.loads(text)).items() >= run.items():
            return line
    line = {**measure(case, recipe, seed, {}, noise), **run}
    with RESULTS.open("a") as file:
        file.write(json.dumps(line) + "\n")
    return line


def main() -> None:
    """Print a row as soon as it is measured, and the table at the end."""
    parser = argparse.ArgumentParser(description="MBD-NODE by four recipes")
    parser.add_argument("cases", nargs="*", default=CASES)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--noise", default="0,0.001,0.01,0.05")
    parser.add_argument("--recipes", default=",".join(RECIPES))
    given = parser.parse_args()
    table = Table(title=f"mse of the whole motion, median of {given.seeds} seeds")
    names = ("case", "noise", "recipe", "paper", "mse", "training [s]", "to paper [s]", "core")
    for name in names:
        table.add_column(name.replace("[", "\\["))
    for case in given.cases:
        for noise in (float(part) for part in given.noise.split(",")):
            for recipe in given.recipes.split(","):
                lines = [measured(case, recipe, seed, noise) for seed in range(given.seeds)]
                column = {name: [line[name] for line in lines] for name in lines[0]}
                shown = ("mse", "train_seconds", "seconds_to_paper", "core_share")
                goal = printed_error(case)
                row = (case, f"{noise:.1%}", recipe, "-" if goal is None else f"{goal:.1e}")
                row += tuple(middle(column[name]) for name in shown)
                print(*row, flush=True)
                table.add_row(*row)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
