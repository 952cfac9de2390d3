"""Ways to fit, from simple to rich.

1. Linear in lengths, sines and cosines of angles, velocities and inputs.
2. A mechanism: mass, potential, damping, inputs, laws of the joints; the simplest laws that the
   data obeys.
3. The form of every rigid mechanism, `g + D v + Gamma[v, v] + G u`, in bases of growing degree.
4. Random tanh features beside it, for what that form cannot say.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from mbdnode.data.rows import Rows, counted, places
from mbdnode.identification.mechanical_laws import linear_mechanism, mechanisms, most_mechanisms
from mbdnode.identification.problem import Candidate, Problem, chunks_of
from mbdnode.identification.regression.least_squares import regress
from mbdnode.identification.shooting import improved, refine_further
from mbdnode.identification.validation import ValidationSplit, validation_error
from mbdnode.models.basis import scale_of
from mbdnode.models.function_library import Library

_DEGREES, _FEW_DEGREES = (1, 2, 3, 5, 8, 12, 18, 26, 36), (1, 3, 18)
_FEATURES, _SCALES, _RIDGES = 160, (0.5, 1.0, 2.0), (1e-20, 1e-14, 1e-9, 1e-5)
# More unknowns than this part of the equations would fit anything.
_CROWDED = 0.4


def families(
    problem: Problem, rows: Rows
) -> Iterator[Iterator[tuple[Candidate, Sequence[Candidate]]]]:
    """All ways that make sense for this much data, family by family, the simplest first.

    An iterator over those of each family, each with the next ones as far as they are known; a
    candidate that is not asked for costs nothing.
    """
    wanted = (problem.structure,) if problem.structure != "chosen" else tuple(_FAMILIES)
    for family in wanted:
        for part in _FAMILIES[family]:
            yield _in_turn(part(problem, rows))


def _in_turn(
    batches: Iterator[list[Candidate]],
) -> Iterator[tuple[Candidate, Sequence[Candidate]]]:
    for batch in batches:
        for number, one in enumerate(batch):
            yield one, batch[number + 1 :]


def try_ahead(
    problem: Problem,
    candidates: Sequence[Candidate],
    place: int,
    rows: Rows,
    split: ValidationSplit,
) -> None:
    """Have every worker fit and score one of the next candidates, while the first is looked at.

    **Arguments:**

    - `problem`: what is to be learned; nothing is done if its checkpoint has no workers.
    """
    kept = problem.kept
    for number, one in enumerate(candidates[: kept.speculative], place):
        names = f"candidate-{number}", f"error of {number}"
        kept.ahead(names, _fit_and_score, problem, one.fit, rows, split)


def _fit_and_score(
    problem: Problem, fit: Callable[[Rows], Any], rows: Rows, split: ValidationSplit
) -> tuple[Any, float]:
    model = fit(rows)
    return model, candidate_error(problem, model, split)


def candidate_error(problem: Problem, model: Any, split: ValidationSplit) -> float:
    """The NRMSE of a candidate's model over the split; infinite for one that has none."""
    return np.inf if model is None else validation_error(problem, model, split)


def most_candidates(problem: Problem) -> int:
    """How many there can be at most; how many there are shows only as they are tried."""
    most = {
        "linear": 1,
        "lagrangian": most_mechanisms(problem),
        "mechanical": len(_DEGREES if _tries_all(problem) else _FEW_DEGREES),
        "features": len(_SCALES) * len(_RIDGES) if _tries_all(problem) else len(_RIDGES[1:3]),
    }
    return sum(most.values()) if problem.structure == "chosen" else max(1, most[problem.structure])


def _tries_all(problem: Problem) -> bool:
    """Whether forms that are no mechanism's are tried in all sizes; in noise, few are enough."""
    return problem.refined and not problem.noise.matters


def _linear(problem: Problem, rows: Rows) -> Iterator[list[Candidate]]:
    every = lambda model: np.arange(model.network.weights.size)  # noqa: E731
    fit = lambda r: _linear_law(problem, r)  # noqa: E731
    refine = lambda m, r: refine_further(problem, m, r, every(m))  # noqa: E731
    yield [Candidate("linear", "linear law", fit, refine)]


def _lagrangian(problem: Problem, rows: Rows) -> Iterator[list[Candidate]]:
    # A law is found whole, so there is none beside a part that is known.
    if problem.known == "nothing" and not problem.needs_joint_laws:
        # Where there is noise, those with laws of the joints are a family of their own.
        joint_laws = False if problem.noise.matters else None
        yield from mechanisms(problem, rows, joint_laws=joint_laws)


def _with_elastic_shafts(problem: Problem, rows: Rows) -> Iterator[list[Candidate]]:
    noisy = problem.noise.matters and not problem.needs_joint_laws
    if problem.known == "nothing" and noisy:
        yield from linear_mechanism(problem, rows)


def _with_joint_laws(problem: Problem, rows: Rows) -> Iterator[list[Candidate]]:
    if problem.known == "nothing" and problem.noise.matters:
        yield from mechanisms(problem, rows, joint_laws=True)


def _mechanical(problem: Problem, rows: Rows) -> Iterator[list[Candidate]]:
    found = []
    for degree in _DEGREES if _tries_all(problem) else _FEW_DEGREES:
        blank = Library.for_system(problem.system, degree=degree, use_parameters=problem.parameters)
        if not _fits(blank, rows):
            break  # Higher degrees have more functions still.
        fit = lambda r, d=degree: _library(problem, r, degree=d)  # noqa: E731
        found.append(Candidate("mechanical", f"mechanical form of degree {degree}", fit))
    yield found


def _features(problem: Problem, rows: Rows) -> Iterator[list[Candidate]]:
    every = _tries_all(problem)
    yield [
        Candidate(
            "features",
            f"fit of {_FEATURES} random features, scale {scale:g}, ridge {ridge:g}",
            lambda r, s=scale, k=ridge: _library(
                problem, r, ridge=k, degree=1, quadratic=False, features=_FEATURES, scale=s
            ),
        )
        for scale in (_SCALES if every else _SCALES[1:2])
        for ridge in (_RIDGES if every else _RIDGES[1:3])
    ]


_FAMILIES = {
    "linear": (_linear,),
    "lagrangian": (_lagrangian, _with_elastic_shafts, _with_joint_laws),
    "mechanical": (_mechanical,),
    "features": (_features,),
}


def _fits(model: Any, rows: Rows) -> bool:
    leaf = jax.tree.leaves(model.network)[0]
    return leaf.shape[-1] <= _CROWDED * len(counted(rows))


def _linear_law(problem: Problem, rows: Rows) -> Library | None:
    model = _library(problem, rows, degree=1, quadratic=False)
    if model is None or not (problem.refined and problem.noise.matters):
        return model
    return improved(problem, model, rows, np.arange(model.network.weights.size))


def _library(
    problem: Problem, rows: Rows, *, ridge: float = 0.0, scale: float = 1.0, **settings: Any
) -> Library | None:
    model = Library.for_system(
        problem.system,
        seed=problem.seed,
        lengths=scale_of(places(rows, problem.parameters)),
        scale=scale,
        use_parameters=problem.parameters,
        known=problem.known,
        forces=problem.forces,
        interpolation=problem.interpolation,
        **settings,
    )
    model = regress(
        model,
        rows,
        chunks_of(problem, rows),
        ridge=ridge,
        integrator=problem.integrator,
        noise=problem.noise,
        by_steps=problem.by_steps,
    )
    return model if np.all(np.isfinite(np.asarray(model.network.weights))) else None
