"""Playgrounds of the paper's cases: the mechanism alone, or beside what a run has learned of it."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from mbdnode.data.folders import MODEL
from mbdnode.integrators import get_integrator
from mbdnode.models import load
from mbdnode.multibody import consistent_state
from mbdnode.report.playground import Play
from mbdnode.reproduction.cases import Case, get_case
from mbdnode.reproduction.config import integrator_of
from mbdnode.reproduction.folder import read_run
from mbdnode.reproduction.run import training_motions
from mbdnode.reproduction.titles import model_title, structure_text
from mbdnode.simulation import Domain, training_domain
from mbdnode.trajectory import Trajectory
from mbdnode.workflow.systems import used_parameters

# Of the paper's samples so many say where they lie.
_MOST_SAMPLES = 3_000


def play_case(
    name: str,
    initial: Mapping[str, float],
    *,
    parameters: Mapping[str, float] | None = None,
    integrator: str = "rk4",
    dt_s: float | None = None,
) -> Play:
    """A playground of a case's mechanism."""
    case = get_case(name)
    values = {**case.parameters, **(parameters or {})}
    start = {**case.initial, **initial}
    if initial or parameters:  # What the case says itself is known to fit together.
        consistent_state(case.mechanism, start, parameters=values)
    return Play(
        title=case.title,
        name=case.name.replace(":", "-"),
        system=case.mechanism,
        label="mechanism",
        initial=start,
        parameters=values,
        integrator=integrator,
        dt_s=case.dt_s if dt_s is None else dt_s,
        inputs=_ranges(case),
    )


def play_run(
    folder: Path,
    initial: Mapping[str, float],
    *,
    parameters: Mapping[str, float] | None = None,
    integrator: str | None = None,
    dt_s: float | None = None,
) -> Play:
    """A playground of a case's mechanism and of the model that a run has learned."""
    stored, model = read_run(folder), load(folder / MODEL)
    own = integrator_of(stored.config)
    play = play_case(
        stored.config.case,
        initial,
        parameters=parameters,
        integrator=integrator or _steps(own),
        dt_s=dt_s,
    )
    case = get_case(stored.config.case)
    return replace(
        play,
        system=model,
        label=model_title(str(stored.metrics["model"])) + structure_text([stored.metrics]),
        truth=case.mechanism,
        domain=_domain(case, model, stored.truth),
        used=used_parameters(model),
        # From another start, or with other parameters, it would be another motion.
        motion=None if initial or parameters else stored.truth.kept,
    )


def _steps(integrator: str) -> str:
    """An integrator of fixed steps, and rk4 in place of another."""
    if integrator == "-" or get_integrator(integrator).controls_error:
        return "rk4"
    return integrator


def _ranges(case: Case) -> dict[str, tuple[float, float]]:
    """How far each input goes in the case."""
    inputs = case.make_inputs(200)
    found = {}
    for place, name in enumerate(case.mechanism.input_names):
        if name in case.bounds:
            found[name] = case.bounds[name]
        elif inputs is not None and np.any(inputs[:, place]):
            largest = float(np.max(np.abs(inputs[:, place])))
            found[name] = (-largest, largest)
    return found


def _domain(case: Case, model: Any, truth: Trajectory) -> Domain | None:
    """Where the training data lies: motions, or samples between bounds."""
    if not case.bounds:
        return training_domain(model, training_motions(case, truth).trajectories)
    rows = truth.rows(0, min(_MOST_SAMPLES, len(truth) - 1))
    random = np.random.default_rng(0)

    def column(name: str, values: Any) -> Any:
        low, high = case.bounds.get(name, (0.0, 0.0))
        return random.uniform(low, high, len(values)) if name in case.bounds else values

    def sampled(names, values):
        columns = [column(name, x) for name, x in zip(names, np.asarray(values).T, strict=True)]
        return jnp.asarray(np.array(columns).reshape(len(names), len(rows)).T)

    samples = replace(
        rows,
        q=sampled(rows.coordinates, rows.q),
        v=sampled(rows.rates, rows.v),
        u=sampled(rows.inputs, rows.u),
    )
    return training_domain(model, [samples])
