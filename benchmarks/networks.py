"""Networks by the recipes `paper-shuffled` and `adam-lm`: errors, and the time to the paper's.

    python -m benchmarks.networks run CASE RECIPE SEED [SEED ...] [key=value ...]
    python -m benchmarks.networks table

`run` trains one network a seed, on one core, and appends a line to runs/networks.jsonl for each; so
the table can be filled piece by piece. `table` prints the medians of what is there. After every
epoch (every tenth of a recipe that has hundreds) and every iteration of Levenberg-Marquardt the
whole motion is predicted; the training seconds until that error is at most the paper's, compilation
and the choice of the network apart, are the time to the paper's error. On a machine that is shared
these are too long: the table multiplies them with `core`, the part of one core that the process
had. Beside it stands how many times that goes into the time that the paper's published code takes
for all of its updates there. Changed settings (`integrator` among them) make another row.
"""

import json
import math
import os
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

from mbdnode.evaluation import Metrics, evaluate, predict
from mbdnode.reproduction.cases import CASES
from mbdnode.reproduction.config import RunConfig, configure, with_changes
from mbdnode.reproduction.run import check, simulate_truth, training_data
from mbdnode.training import fit
from mbdnode.trajectory import Dataset, Trajectory

RESULTS = Path("runs/networks.jsonl")
# Milliseconds of an update of the paper's published code on one thread, the least that was
# measured. It has no pendulum, no cart-pole and another slider-crank.
PUBLISHED_MS = {"rk4": 3.2, "lf2": 2.4}
UNPUBLISHED = ("single-pendulum", "cart-pole", "slider-crank")


def printed_error(name: str) -> float | None:
    """The paper's error of MBD-NODE; None where the start or the task is another."""
    if name == "double-pendulum":
        return None
    found = [r for r in CASES[name].references if (r.model, r.quantity) == ("mbd-node", "mse")]
    return found[0].value if found else None


def published_seconds(name: str) -> float | None:
    """What the paper's published code takes for all updates; None where it has no such case."""
    training = configure(name, recipe="paper").training
    if name in UNPUBLISHED or printed_error(name) is None:
        return None
    return training.epochs * CASES[name].train_steps * PUBLISHED_MS[training.integrator] / 1000


class Watch:
    """Predicts the whole motion now and then, until the error is the paper's."""

    def __init__(self, truth: Trajectory, config: RunConfig):
        self.truth, self.config, self.goal = truth, config, printed_error(config.case)
        self.every = max(1, config.training.epochs // 50)
        self.reached: float | None = None

    def __call__(self, model: Any, history: list[dict[str, Any]]) -> None:
        """After every epoch and iteration."""
        if self.goal is None or self.reached is not None:
            return
        if history[-1]["learning_rate"] and len(history) % self.every:
            return
        if error_of(model, self.truth, self.config).mse <= self.goal:
            self.reached = sum(row["seconds"] for row in history)


def error_of(model: Any, truth: Trajectory, config: RunConfig) -> Metrics:
    """Of the whole motion."""
    case = CASES[config.case]
    found = predict(model, truth, config.training.integrator, case.parameters)
    return evaluate(truth, found, train_steps=case.train_steps)


def with_noise(data: Any, part: float, seed: int) -> Any:
    """Motions with normal noise in every column, in parts of its standard deviation."""
    random = np.random.default_rng(seed)

    def noisy(values):
        rows = np.asarray(values)
        return jnp.asarray(rows + part * np.std(rows, axis=-2) * random.normal(size=rows.shape))

    runs = [replace(run, q=noisy(run.q), v=noisy(run.v)) for run in data.trajectories]
    return Dataset(runs, data.parameters)


def measure(
    name: str, recipe: str, seed: int, changes: dict[str, str], noise: float = 0.0
) -> dict[str, Any]:
    """One line of the results, with noise in the training data if asked for."""
    changes = dict(changes)
    integrator = changes.pop("integrator", None)
    config = configure(name, recipe=recipe, seed=seed, integrator=integrator)
    config = with_changes(config, changes)
    case, subject = CASES[name], check(config)
    truth = simulate_truth(case, seed)
    watch = Watch(truth, config)
    data = training_data(case, truth, config)
    data = with_noise(data, noise, seed) if noise else data
    start = time.perf_counter(), time.process_time()
    found = fit(subject, data, config.training, seed=seed, callback=watch)
    wall, own = time.perf_counter() - start[0], time.process_time() - start[1]
    error = error_of(found.model, truth, config)
    return {
        "case": name,
        "recipe": recipe,
        "seed": seed,
        "integrator": config.training.integrator,
        "changes": changes,
        "structure": found.model.settings.structure,
        "mse": error.mse,
        "mse_id": error.mse_id,
        "train_seconds": found.train_seconds,
        "selection_seconds": found.diagnostics.get("selection_seconds", 0.0),
        "compile_seconds": found.compile_seconds,
        "seconds_to_paper": watch.reached,
        "core_share": own / wall,
        "updates": found.updates,
        "status": found.status,
    }


def print_table(console: Console, lines: list[dict[str, Any]]) -> None:
    """Medians over the seeds of each case, recipe, integrator and change."""
    table = Table(title="mse of the whole motion, one core")
    columns = ("case", "recipe", "by", "structure", "paper", "seeds", "median", "min", "max")
    last = (
        "to paper \\[s]",
        "published / that",
        "training \\[s]",
        "comparing \\[s]",
        "compile \\[s]",
    )
    for column in (*columns, *last, "core"):
        table.add_column(column, justify="left" if column in columns[:4] else "right")
    groups: dict[tuple, dict[int, dict[str, Any]]] = {}
    for line in lines:
        key = (line["case"], line["recipe"], line["integrator"], json.dumps(line["changes"]))
        groups.setdefault(key, {})[line["seed"]] = line
    for (case, recipe, integrator, changes), rows in groups.items():
        own = list(rows.values())
        errors = [math.inf if row["mse"] is None else row["mse"] for row in own]
        # The median of all seeds; one that never got there took for ever.
        reached = [row["seconds_to_paper"] for row in own]
        times = [
            math.inf if found is None else found * row["core_share"]
            for found, row in zip(reached, own, strict=True)
        ]
        typical, published = statistics.median(times), published_seconds(case)
        ratio = None if published is None or math.isinf(typical) else published / typical
        goal = printed_error(case)
        middle = lambda name: f"{statistics.median(row[name] for row in own):.0f}"  # noqa: B023, E731
        table.add_row(
            case,
            recipe + ("" if changes == "{}" else " " + changes),
            integrator,
            ", ".join(sorted({row["structure"] for row in own})),
            "-" if goal is None else f"{goal:.1e}",
            str(len(own)),
            *(f"{x:.1e}" for x in (statistics.median(errors), min(errors), max(errors))),
            "-" if math.isinf(typical) else f"{typical:.1f}",
            "-" if ratio is None else f"{ratio:,.0f}",
            middle("train_seconds"),
            middle("selection_seconds"),
            middle("compile_seconds"),
            f"{statistics.median(row['core_share'] for row in own):.0%}",
        )
    console.print(table)


def main(arguments: list[str]) -> None:
    """Run or print."""
    if arguments[:1] == ["table"]:
        lines = [json.loads(line) for line in RESULTS.read_text().splitlines()]
        print_table(Console(width=190), lines)
        return
    _, name, recipe, *rest = arguments
    changes = dict(one.split("=", 1) for one in rest if "=" in one)
    RESULTS.parent.mkdir(exist_ok=True)
    for seed in (int(one) for one in rest if "=" not in one):
        line = measure(name, recipe, seed, changes)
        with RESULTS.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print({key: line[key] for key in ("case", "seed", "mse", "seconds_to_paper", "status")})


if __name__ == "__main__":
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    if sys.argv[1:2] not in (["run"], ["table"]):
        sys.exit(__doc__)
    main(sys.argv[1:])
