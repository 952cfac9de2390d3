"""The recipe `paper` from several seeds: the mean's error, what the spread says, and the time.

    python -m benchmarks.ensembles [CASE] [MEMBERS]

On one core; one training of a single network is timed beside it. For cases without inputs.
"""

import os
import statistics
import sys
import time

if __name__ == "__main__":
    # Before JAX is imported: one core, so that the two times can be compared.
    os.environ.setdefault(
        "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    )

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from mbdnode.evaluation import evaluate
from mbdnode.reproduction.cases import get_case
from mbdnode.reproduction.config import configure
from mbdnode.reproduction.run import check, simulate_truth, training_data
from mbdnode.simulation import simulate
from mbdnode.training import fit
from mbdnode.trajectory import State


class Stopwatch:
    """Processor seconds of each epoch after the first, which is compiled."""

    def __init__(self):
        self.marks = []

    def __call__(self, row, total):
        """Take the time; `fit` calls it after every epoch."""
        self.marks.append(time.process_time())

    @property
    def seconds(self) -> float:
        """Of all epochs, each taken as long as the median of them: other programs run too."""
        return statistics.median(np.diff(self.marks)) * len(self.marks)


def main(console: Console, name: str, members: int) -> None:
    """Train, predict and print."""
    case, config = get_case(name), configure(name)
    truth, model = simulate_truth(case), check(config)
    data = training_data(case, truth, config)
    one, all_of_them = Stopwatch(), Stopwatch()
    fit(model, data, config.training, report=one)
    found = fit(model, data, config.training, members=members, report=all_of_them)
    console.print(found.status)

    def rollout(source):
        start = State(truth.q[0], truth.v[0])
        return simulate(source, truth.t, start, integrator=config.training.integrator)

    def errors(run):
        metrics = evaluate(truth, run, train_steps=case.train_steps)
        return metrics.mse, metrics.mse_id, metrics.mse_ood

    mean = rollout(found.model)
    singles = [errors(rollout(member)) for member in found.model]
    table = Table(title=f"{name}, recipe paper, {len(found.model)} members")
    for column in ("", "mse", "mse_id", "mse_ood"):
        table.add_column(column, justify="left" if not column else "right")
    rows = {"mean of the members": errors(mean)}
    # A member's mean square error is on average the mean's own and the variance about it.
    picks = {
        "average": statistics.fmean,
        "median": statistics.median,
        "min": min,
        "max": max,
    }
    for title, pick in picks.items():
        rows[f"members, {title}"] = tuple(pick(column) for column in zip(*singles, strict=True))
    for title, numbers in rows.items():
        table.add_row(title, *(f"{x:.1e}" for x in numbers))
    console.print(table)
    error = np.abs(np.concatenate([mean.q - truth.q, mean.v - truth.v], axis=1))
    spread = np.concatenate(jax.tree.leaves(mean.spread), axis=1)
    after = slice(case.train_steps + 1, None)
    within = np.mean(error[after] <= 2 * spread[after])
    console.print(
        f"after the training range {within:.0%} of errors are within two standard deviations"
    )
    ratio = all_of_them.seconds / one.seconds
    console.print(
        f"processor seconds of training: one network {one.seconds:.1f}, all {members} at once "
        f"{all_of_them.seconds:.1f} ({ratio:.1f} times as many)"
    )


if __name__ == "__main__":
    case_name = sys.argv[1] if len(sys.argv) > 1 else "single-mass-spring-damper"
    main(Console(width=110), case_name, int(sys.argv[2]) if len(sys.argv) > 2 else 8)
