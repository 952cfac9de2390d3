"""Ways to fit, from simple to rich.

1. Linear in lengths, sines and cosines of angles, velocities and inputs.
2. A mechanism: mass, potential, damping, inputs; the simplest laws that the data obeys.
3. The form of every rigid mechanism, `g + D v + Gamma[v, v] + G u`, in bases of growing degree.
4. Drawn tanh features beside it, for what that form cannot say.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.models import AbstractRateModel
from mbdnode.models.learned_mechanism import LearnedMechanism
from mbdnode.models.library import Library
from mbdnode.training.closed_form.null_vector import candidate_supports, null_vector
from mbdnode.training.closed_form.polish import polish
from mbdnode.training.closed_form.regression import regress
from mbdnode.training.closed_form.rows import Rows, sizes

# Degrees of mass and potential.
_MECHANISMS = ((0, 1), (0, 2), (1, 1), (1, 2), (2, 1), (2, 2), (2, 4))
_DEGREES = (1, 2, 3, 5, 8, 12, 18, 26, 36)
_FEATURES, _SCALES, _RIDGES = 160, (0.5, 1.0, 2.0), (1e-20, 1e-14, 1e-9, 1e-5)
# More unknowns than this part of the equations would fit anything.
_CROWDED = 0.4
# A mass matrix that is worse than this is no mass matrix.
_SINGULAR = 1e8
# A law that leaves this part of the accelerations unexplained is none.
_UNEXPLAINED = 0.1


@dataclass(frozen=True)
class Task:
    """What all candidates share.

    **Arguments:**

    - `system`: gives the names and the constraints.
    - `integrator`: of the training steps.
    - `polished`: whether the last digits are wanted, and all candidates; a few if not.
    - `seed`: of the drawn features.
    """

    system: Any
    integrator: Any
    polished: bool
    seed: int


@dataclass(frozen=True)
class Candidate:
    """One way to fit.

    **Arguments:**

    - `structure`: its family.
    - `name`: for people.
    - `fit`: from rows to a model; None where it cannot.
    """

    structure: str
    name: str
    fit: Callable[[Rows], AbstractRateModel | None]


def candidates(task: Task, rows: Rows) -> Iterator[Candidate]:
    """All ways that make sense for this much data, the simplest first.

    **Arguments:**

    - `task`: what is to be learned.
    - `rows`: what may be looked at to make proposals.

    **Returns:**

    An iterator; a candidate that is not asked for costs nothing.
    """
    yield Candidate("linear", "linear law", lambda r: _library(task, r, degree=1, quadratic=False))
    yield from _mechanisms(task, rows)
    for degree in _DEGREES if task.polished else _DEGREES[:3]:
        if _fits(Library.for_system(task.system, degree=degree), rows):
            name = f"mechanical form of degree {degree}"
            yield Candidate("mechanical", name, lambda r, d=degree: _library(task, r, degree=d))
    for scale in _SCALES if task.polished else (1.0,):
        for ridge in _RIDGES:
            yield Candidate(
                "features",
                f"set of {_FEATURES} drawn features, scale {scale:g}, ridge {ridge:g}",
                lambda r, s=scale, k=ridge: _library(
                    task, r, ridge=k, degree=1, quadratic=False, features=_FEATURES, scale=s
                ),
            )


def _fits(model: Any, rows: Rows) -> bool:
    leaf = jax.tree.leaves(model.network)[0]
    return leaf.shape[-1] <= _CROWDED * len(rows)


def _library(task: Task, rows: Rows, *, ridge: float = 0.0, **settings: Any) -> Library | None:
    model = Library.for_system(task.system, seed=task.seed, size=sizes(rows), **settings)
    unit = _unit(rows)
    model = regress(model, rows, ridge=ridge, integrator=task.integrator, unit=unit)
    return model if bool(jnp.all(jnp.isfinite(model.network.weights))) else None


def _mechanisms(task: Task, rows: Rows) -> Iterator[Candidate]:
    """Laws that explain the accelerations at all; the others are not worth polishing."""
    for mass, potential in _MECHANISMS if task.polished else _MECHANISMS[2:4]:
        settings = {"mass_degree": mass, "potential_degree": potential}
        blank = LearnedMechanism.for_system(task.system, size=sizes(rows), **settings)
        freedoms = rows.z.shape[1]
        if blank.network.values.size > _CROWDED * freedoms * len(rows):
            continue
        equations = _equations(blank, rows)
        required = np.arange(equations.shape[1]) < blank.mass_columns
        for support in candidate_supports(equations, required):
            # With all columns and zeros among them, so that it is compiled once for all supports.
            whole = np.zeros(equations.shape[1])
            whole[support] = null_vector(equations[:, support])[0]
            if not _is_law(_with_values(blank, whole), rows):
                continue
            kept = tuple(int(k) for k in support)
            yield Candidate(
                "lagrangian",
                f"mechanism of {len(kept)} terms",
                lambda r, k=kept, s=settings: _mechanism(task, r, kept=k, **s),
            )


def _equations(model: LearnedMechanism, rows: Rows) -> np.ndarray:
    found = _every_equation(model, rows)
    return np.asarray(found).reshape(-1, found.shape[-1])


@eqx.filter_jit
def _every_equation(model: LearnedMechanism, rows: Rows):
    return jax.vmap(model.equations)(rows.z, rows.s, rows.a, rows.u)


def _with_values(model: LearnedMechanism, values: np.ndarray) -> LearnedMechanism:
    return eqx.tree_at(lambda m: m.network.values, model, jnp.asarray(values))


def _mechanism(task: Task, rows: Rows, **settings: Any) -> LearnedMechanism | None:
    model = LearnedMechanism.for_system(task.system, size=sizes(rows), **settings)
    values, _ = null_vector(_equations(model, rows))
    # The law is free up to a factor: the largest mass is one.
    masses = np.array(model.settings.kept) < model.mass_columns
    largest = int(np.argmax(np.where(masses, np.abs(values), -1.0)))
    model = _with_values(model, values / values[largest])
    if task.polished:
        model = polish(model, rows, task.integrator, _unit(rows), fixed=largest)
    return model if _is_law(model, rows) else None


def _is_law(model: LearnedMechanism, rows: Rows) -> bool:
    """Whether its mass is regular, and it explains the accelerations at all."""
    masses, rates = (np.asarray(x) for x in _masses_and_rates(model, rows))
    if not (np.all(np.isfinite(masses)) and np.all(np.isfinite(rates))):
        return False
    missed = (rates - np.asarray(rows.a)) / np.asarray(_unit(rows))
    regular = np.max(np.linalg.cond(masses)) < _SINGULAR
    return bool(regular and np.sqrt(np.mean(missed**2)) < _UNEXPLAINED)


@eqx.filter_jit
def _masses_and_rates(model: LearnedMechanism, rows: Rows):
    def rate(z, s, u):
        return model.minimal_rates(jnp.zeros(()), z, s, u, {})[1]

    return jax.vmap(model.mass)(rows.z), jax.vmap(rate)(rows.z, rows.s, rows.u)


def _unit(rows: Rows):
    """The spread of the accelerations."""
    spread = jnp.std(rows.a, axis=0)
    return jnp.where(spread > 0, spread, 1.0)
