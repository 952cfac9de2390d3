"""The slider-crank with its constraints kept five ways, each network trained well.

Hard constraints by partition (on the minimal coordinates, the paper's algorithm 3, and on the
completed state, algorithm 2), a quadratic penalty, an augmented Lagrangian, and none. All learn
from the same samples with a small scaled network, Adam, then Levenberg-Marquardt; the augmented
Lagrangian, whose multipliers the latter does not raise, has more of Adam in its place. The rollout
is the case's own: 10,000 steps under random force and torque.

`python -m benchmarks.constraint_study [NAME ...]` runs those whose name contains one of the words.
"""

import sys
import time
from dataclasses import replace

from rich.console import Console
from rich.table import Table

import mbdnode as mbd
from mbdnode.evaluation import predict
from mbdnode.recipes import RECIPES
from mbdnode.reproduction.cases import get_case
from mbdnode.reproduction.run import simulate_truth

WAYS = (
    ("hard, minimal loss (algorithm 3)", "hard", "minimal"),
    ("hard, full loss (algorithm 2)", "hard", "full"),
    ("penalty", "penalty", "minimal"),
    ("augmented Lagrangian", "augmented", "minimal"),
    ("none", "none", "minimal"),
)
# Those of the augmented Lagrangian, in place of ten and of the refinement.
ADAM_EPOCHS = 100


def main(
    console: Console,
    words: tuple[str, ...] = (),
    samples: int = 1_000,
    width: int = 16,
    refinement: int = 30,
) -> None:
    """Train, roll out and print.

    **Arguments:**

    - `console`: to print on.
    - `words`: of the names of what is run; all if there are none.
    - `samples`, `width`, `refinement`: of the data, of the network's layers, of the iterations.
    """
    table = Table(title=f"Slider-crank, {samples:,} samples, 2 x {width}, one seed; 10,000 steps")
    heads = ("constraints", "processor [s]", "last loss", "mse", "position", "velocity")
    for column in heads:
        table.add_column(column, justify="left" if column == "constraints" else "right")
    case = get_case("slider-crank")
    truth = simulate_truth(case)
    data = mbd.StepStream(case.mechanism, case.bounds, samples, case.dt_s).chunk(0)
    changes = {"validation": 0.0, "refinement": refinement, "regularization": 0.0}
    usual = replace(RECIPES["adam-lm"].config, **changes)
    settings = {"width": width, "angle_features": True, "scaling": True}
    for name, constraints, loss in WAYS:
        if words and not any(word in name for word in words):
            continue
        model = mbd.MBDNODE.for_system(case.mechanism, constraints=constraints, **settings)
        recipe = replace(usual, loss=loss)
        if constraints == "augmented":
            recipe = replace(recipe, refinement=0, epochs=ADAM_EPOCHS)
        start = time.process_time()
        trained = mbd.fit(model, data, recipe)
        spent = time.process_time() - start
        prediction = predict(trained.model, truth, "rk4", case.parameters)
        metrics = mbd.evaluate(truth, prediction, train_steps=0, system=case.mechanism)
        error = prediction.status if metrics.mse is None else f"{metrics.mse:.1e}"
        table.add_row(
            name,
            f"{spent:.0f}",
            f"{trained.history[-1]['loss']:.1e}",
            str(error),
            f"{metrics.position_residual:.1e}",
            f"{metrics.velocity_residual:.1e}",
        )
    console.print(table)


if __name__ == "__main__":
    main(Console(width=110), tuple(sys.argv[1:]))
