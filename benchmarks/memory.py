"""Memory of whole-trajectory training: backpropagation against the adjoint.

The paper gives O(N C L) for backpropagation: steps, evaluations a step, layers. What the compiler
reserves for one gradient is read off, not estimated, so nothing has to run.
"""

import equinox as eqx
import jax
from rich.console import Console
from rich.table import Table

import mbdnode as mbd
from mbdnode.reproduction.cases import get_case
from mbdnode.training.algorithms import StepObjective

CASE = get_case("single-mass-spring-damper")
STEPS = (100, 200, 400, 800, 1600)


def megabytes(steps: int, gradient: str, integrator: str) -> float:
    """Temporary memory of one gradient of the loss over a whole trajectory."""
    truth = mbd.simulate(CASE.mechanism, CASE.times(steps), CASE.initial)
    model = mbd.MBDNODE.for_system(CASE.mechanism)
    config = mbd.TrainingConfig(
        window=None, gradient=gradient, integrator=integrator, precision="float64"
    )
    model, objective = StepObjective.prepare(model, mbd.Dataset(truth), config)
    window = jax.tree.map(lambda x: x[0], objective.examples)

    @eqx.filter_jit
    @eqx.filter_grad
    def gradient_of(model, window):
        return objective.loss(model, window, None)

    analysis = gradient_of.lower(model, window).compile().compiled.memory_analysis()
    return analysis.temp_size_in_bytes / 2**20


def main(console: Console) -> None:
    """Measure and print."""
    table = Table(title="Memory of one gradient over a whole trajectory [MB], 2 x 256, float64")
    table.add_column("steps", justify="right")
    ways = (
        ("backprop, fe1 (C = 1)", "backprop", "fe1"),
        ("backprop, rk4 (C = 4)", "backprop", "rk4"),
        ("adjoint, dopri5", "adjoint", "dopri5"),
    )
    for name, _, _ in ways:
        table.add_column(name, justify="right")
    for steps in STEPS:
        table.add_row(str(steps), *(f"{megabytes(steps, g, i):.2f}" for _, g, i in ways))
    console.print(table)


if __name__ == "__main__":
    main(Console(width=110))
