"""The recipes `fast` and `best` on every case, against what they must reach.

    python -m benchmarks.recipes [CASE ...]

Each fit is made twice: the first time is mostly compilation, the second is the time of training
alone, on one core. A row that misses its goal says so, and the exit code is 1.
"""

import os
import sys

import jax
from rich.console import Console
from rich.table import Table

from mbdnode.evaluation import evaluate, predict
from mbdnode.identification import learn
from mbdnode.reproduction.cases import CASES
from mbdnode.reproduction.config import configure
from mbdnode.reproduction.run import check, simulate_truth, training_data

# Errors of the whole rollout: `fast` must reach the paper's, `best` these.
BEST = {
    "single-mass-spring": 1e-13,
    "single-mass-spring-damper": 1e-14,
    "triple-mass-spring-damper": 1e-11,
    "single-pendulum": 1e-10,
    "double-pendulum": 1e-6,
    "double-pendulum:released-low": 1e-8,
    "cart-pole": 1e-8,
    "slider-crank": 1e-13,
}
FAST_SECONDS = 1.0


def printed_error(name: str) -> float | None:
    """The paper's error of MBD-NODE; None for the double pendulum, whose start is another."""
    if name == "double-pendulum":
        return None
    case = CASES[name]
    found = [r for r in case.references if r.model == "mbd-node" and r.quantity == "mse"]
    return found[0].value


def measured(name: str, recipe: str) -> tuple[float, float, float, str]:
    """Error, seconds of training, seconds of compilation, and what was chosen."""
    config = configure(name, recipe=recipe)
    case, subject = CASES[name], check(config)
    truth = simulate_truth(case)
    data = training_data(case, truth, config)
    first = learn(subject, data, config.training)
    again = learn(subject, data, config.training)
    found = predict(again.model, truth, config.training.integrator, case.parameters)
    error = evaluate(truth, found).mse
    jax.clear_caches()
    return error, again.train_seconds, first.compile_seconds, again.status.split(",")[0]


def main(console: Console, names: list[str]) -> bool:
    """Measure, print, and say whether every goal was reached."""
    table = Table(title="Closed forms: mse of the whole rollout, one seed, one core")
    for column in ("case", "recipe", "mse", "goal", "training \\[s]", "compile \\[s]", "", "how"):
        table.add_column(column, justify="left" if column in ("case", "how") else "right")
    reached = True
    for name in names:
        for recipe, goal in (("fast", printed_error(name)), ("best", BEST[name])):
            error, seconds, compiling, how = measured(name, recipe)
            late = recipe == "fast" and goal is not None and seconds > FAST_SECONDS
            missed = (goal is not None and not error <= goal) or late
            reached = reached and not missed
            limit = "-" if goal is None else f"{goal:.1e}"
            verdict = "missed" if missed else ""
            cells = (f"{error:.1e}", limit, f"{seconds:.2f}", f"{compiling:.1f}", verdict, how)
            table.add_row(name, recipe, *cells)
            console.print(f"[dim]{name}, {recipe}: {error:.1e} in {seconds:.2f} s")
    console.print(table)
    return reached


if __name__ == "__main__":
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    chosen = sys.argv[1:] or list(CASES)
    sys.exit(0 if main(Console(width=130), chosen) else 1)
