"""The slider-crank with its constraints kept four ways, trained alike on the same samples.

Hard constraints by partition (on the minimal coordinates, the paper's algorithm 3, and on the
completed state, algorithm 2), a quadratic penalty, an augmented Lagrangian, and none. The rollout
is the case's own: 10,000 steps under random force and torque.
"""

from rich.console import Console
from rich.table import Table

import mbdnode as mbd
from mbdnode.evaluation import predict
from mbdnode.reproduction.cases import get_case
from mbdnode.reproduction.run import simulate_truth

WAYS = (
    ("hard, minimal loss (algorithm 3)", "hard", "minimal"),
    ("hard, full loss (algorithm 2)", "hard", "full"),
    ("penalty", "penalty", "minimal"),
    ("augmented Lagrangian", "augmented", "minimal"),
    ("none", "none", "minimal"),
)


def main(console: Console, samples: int = 1_000, epochs: int = 300, width: int = 128) -> None:
    """Train, roll out and print."""
    table = Table(
        title=f"Slider-crank, {samples:,} samples, {epochs} epochs, 2 x {width}, one seed; "
        "10,000 steps"
    )
    for column in ("constraints", "training [s]", "last loss", "mse", "position", "velocity"):
        table.add_column(column, justify="left" if column == "constraints" else "right")
    case = get_case("slider-crank")
    truth = simulate_truth(case)
    data = mbd.StepStream(case.mechanism, case.bounds, samples, case.dt_s).chunk(0)
    for name, constraints, loss in WAYS:
        model = mbd.MBDNODE.for_system(case.mechanism, constraints=constraints, width=width)
        recipe = mbd.TrainingConfig(epochs=epochs, loss=loss, batch_size=256, shuffle=True)
        trained = mbd.fit(model, data, recipe)
        prediction = predict(trained.model, truth, "rk4", case.parameters)
        metrics = mbd.evaluate(truth, prediction, train_steps=0, system=case.mechanism)
        table.add_row(
            name,
            f"{trained.train_seconds:.0f}",
            f"{trained.history[-1]['loss']:.1e}",
            f"{metrics.mse:.1e}",
            f"{metrics.position_residual:.1e}",
            f"{metrics.velocity_residual:.1e}",
        )
    console.print(table)


if __name__ == "__main__":
    main(Console(width=110))
