"""Laws that the paper's systems do not have: a cubic spring, quadratic drag, smooth friction.

    python -m benchmarks.other_laws [--known] [SEEDS] [CASE ...]

Each of the paper's cases with one more force in its joints, learned from the same range as the
case's own: the paper's network by the paper's recipe, and the closed forms, which are not told that
anything was added; the hybrid that `mbdnode fit` would make of the law of `best`: with a network
for what the law misses, where the validation split says that it helps; and the case's own
mechanism, which has not the force, with networks for what it misses: a function of each coordinate
and of each velocity, or one free network, as the validation split says. `--known` trains the last
of these alone.
"""

import dataclasses
import os
import statistics
import sys
import time
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from rich.console import Console
from rich.table import Table

from mbdnode.evaluation import evaluate, predict
from mbdnode.identification import learn
from mbdnode.models import MBDNODE
from mbdnode.multibody import AbstractMechanism, Coordinate, Input, Parameter
from mbdnode.multibody.kinematics import vector
from mbdnode.recipes import RECIPES as ALL
from mbdnode.recipes import training_config
from mbdnode.reproduction.cases import CASES
from mbdnode.reproduction.cases.case import Case
from mbdnode.reproduction.config import configure
from mbdnode.reproduction.run import simulate_truth
from mbdnode.training import fit
from mbdnode.trajectory import Dataset
from mbdnode.workflow.hybrid import BETTER, try_hybrid

# Of each recipe, the last of which finds the law that is corrected.
RECIPES, HYBRID, KNOWN = ("paper", "fast", "best"), "hybrid", "mechanism + network"
# What the mechanism may lack, to choose from on the validation split, and how it is trained: as by
# `adam-lm`, with more iterations, as there are few weights, and less that holds them small.
CORRECTIONS = (
    {"structure": "joints", "width": 8, "affine": True},
    {"structure": "free", "width": ALL["adam-lm"].settings["width"]},
)
LONGER = {"refinement": 60, "regularization": 0.01}
# Force against stretch and rate of each joint, in the units of the system.
LAWS = {
    "cubic spring": lambda q, v: -2.0 * q**3,
    "quadratic drag": lambda q, v: -0.5 * v * jnp.abs(v),
    "smooth friction": lambda q, v: -0.5 * jnp.tanh(v / 0.1),
}


class WithLaw(AbstractMechanism):
    """A mechanism with one more force on each of its coordinates."""

    body: AbstractMechanism
    law: str = eqx.field(static=True)
    coordinates: tuple[Coordinate, ...] = eqx.field(static=True, kw_only=True)
    inputs: tuple[Input, ...] = eqx.field(static=True, kw_only=True)
    parameters: tuple[Parameter, ...] = eqx.field(static=True, kw_only=True)

    def mass_matrix(self, q, mu):
        """That of the mechanism."""
        return self.body.mass_matrix(q, mu)

    def force(self, t, q, v, u, mu):
        """Those of the mechanism, and the law."""
        return vector(self.body.force(t, q, v, u, mu)) + LAWS[self.law](q, v)


def altered(case: Case, law: str) -> Case:
    """The case with one more law."""
    body = case.mechanism
    mechanism = WithLaw(
        body,
        law,
        coordinates=body.coordinates,
        inputs=body.inputs,
        parameters=body.parameters,
    )
    # The mass-spring's own data is its closed form, which no longer holds.
    integrator = "rk4" if case.integrator == "analytic" else case.integrator
    return dataclasses.replace(case, mechanism=mechanism, integrator=integrator)


def learned(case: Case, recipe: str, seed: int) -> tuple[float, Any]:
    """The error of the whole rollout, and how it was trained."""
    config = configure(case.name, recipe=recipe, seed=seed)
    subject = case.mechanism
    if not config.finds_law:
        settings = {
            f.name: getattr(config.settings, f.name) for f in dataclasses.fields(config.settings)
        }
        subject = MBDNODE.for_system(case.mechanism, seed=seed, **settings)
    truth = simulate_truth(case)
    data = Dataset(truth.rows(0, case.train_steps), case.parameters)
    trained = learn(subject, data, config.training, seed=seed)
    found = predict(trained.model, truth, config.training.integrator, case.parameters)
    return evaluate(truth, found).mse, trained


def corrected(case: Case, law: Any, seed: int) -> tuple[float, Any]:
    """The same of a law with a network beside it; of the law alone where that is no use."""
    integrator = configure(case.name, recipe="best").training.integrator
    truth = simulate_truth(case)
    data = Dataset(truth.rows(0, case.train_steps), case.parameters)
    training = dataclasses.replace(training_config("adam-lm"), integrator=integrator)
    trial = try_hybrid(law, data, training, seed=seed)
    better = trial.hybrid_nrmse * BETTER < trial.law_nrmse
    trained = trial.finish() if better else law
    found = predict(trained.model, truth, integrator, case.parameters)
    return evaluate(truth, found).mse, trained


def completed(case: Case, body: AbstractMechanism, seed: int) -> tuple[float, Any]:
    """The same of the mechanism without the force, with a network for it."""
    integrator = configure(case.name, recipe="best").training.integrator
    truth = simulate_truth(case)
    data = Dataset(truth.rows(0, case.train_steps), case.parameters)
    training = dataclasses.replace(training_config("adam-lm"), integrator=integrator, **LONGER)
    models = [
        MBDNODE.for_system(body, correction_of=body, seed=seed, correction_weight=1e-9, **settings)
        for settings in CORRECTIONS
    ]
    trained = fit(models, data, training, seed=seed)
    found = predict(trained.model, truth, integrator, case.parameters)
    return evaluate(truth, found).mse, trained


def with_known(console: Console, seeds: int, names: list[str]) -> None:
    """Learn what the mechanism misses of every law, and print."""
    title = f"{KNOWN}: mse of the whole rollout, {seeds} seed(s), one core"
    table = Table(title=title)
    for column in ("case", "law", "median", "min", "max", "processor [s]"):
        table.add_column(column, justify="left" if column in ("case", "law") else "right")
    for name in names:
        for kind in LAWS:
            case, start = altered(CASES[name], kind), time.process_time()
            found = [completed(case, CASES[name].mechanism, seed) for seed in range(seeds)]
            seconds = (time.process_time() - start) / seeds
            errors = [error for error, _ in found]
            cells = [f"{x:.1e}" for x in (statistics.median(errors), min(errors), max(errors))]
            table.add_row(name, kind, *cells, f"{seconds:.0f}")
            console.print(f"[dim]{name}, {kind}: {cells}; {seconds:.0f} s; {found[0][1].status}")
    console.print(table)


def main(console: Console, seeds: int, names: list[str]) -> None:
    """Learn every case with every law, and print."""
    table = Table(title=f"Other laws: mse of the whole rollout, median of {seeds} seed(s)")
    for column in ("case", "law", *RECIPES, HYBRID, KNOWN, "paper/that", "what was chosen"):
        table.add_column(column, justify="left" if column in ("case", "law") else "right")
    for name in names:
        for kind in LAWS:
            case = altered(CASES[name], kind)
            medians, status, laws = {}, "", []
            for recipe in (*RECIPES, HYBRID, KNOWN):
                if recipe == KNOWN:
                    own = CASES[name].mechanism
                    found = [completed(case, own, seed) for seed in range(seeds)]
                elif recipe == HYBRID:
                    found = [corrected(case, law, seed) for seed, law in enumerate(laws)]
                else:
                    found = [learned(case, recipe, seed) for seed in range(seeds)]
                laws = [trained for _, trained in found]
                medians[recipe] = statistics.median(error for error, _ in found)
                status = status if recipe == KNOWN else laws[0].status
                # Hundreds of compiled programs in one process exhaust its memory maps.
                jax.clear_caches()
                console.print(f"[dim]{name}, {kind}, {recipe}: {medians[recipe]:.1e}; {status}")
            cells = [f"{medians[recipe]:.1e}" for recipe in (*RECIPES, HYBRID, KNOWN)]
            ratio = medians["paper"] / medians[KNOWN]
            table.add_row(name, kind, *cells, f"{ratio:.1e}", status.split(";")[0])
    console.print(table)


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--known"]
    count = int(words[0]) if words else 1
    chosen = words[1:] or [name for name, case in CASES.items() if not case.bounds]
    if "--known" in sys.argv:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        with_known(Console(width=150), count, chosen)
    else:
        main(Console(width=150), count, chosen)
