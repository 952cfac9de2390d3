"""Which laws of one form are worth fitting: proposals, found by regression.

Along the data the equations of a form are linear in their coefficients. Of data without noise,
`null_vector` finds which few terms make a law; in noise `noisy_laws` does, over windows of several
lengths.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.data.rows import Rows
from mbdnode.identification.law_forms import Form
from mbdnode.identification.problem import Problem
from mbdnode.identification.regression.motion_equations import (
    equations_along,
    is_law,
    weighted_equations,
)
from mbdnode.identification.regression.noisy_laws import (
    Likelihood,
    WeightedEquations,
    WeightedLaw,
    first_law,
    fit_others,
    in_order,
    is_crowded,
    likely,
    weighted_supports,
)
from mbdnode.identification.regression.null_vector import (
    HomogeneousEquations,
    candidate_supports,
    find_law,
)
from mbdnode.models.learned_mechanism import LearnedMechanism

# Of the windows of noisy data: the shorter ones tell more, unless noise or the smoothing of rates
# hides it. One length for coefficients, and for laws of the joints, whose widths multiply the work.
WINDOW_LENGTHS, WINDOW_LENGTH = (4, 2, 1), 2
# Friction sets in over these parts of the largest rate; the shooting refinement finds the rest.
_WIDTHS = (0.3, 0.1, 0.03, 0.01)
# Laws of one form that are fitted; each term more must lower what is left by this factor.
MOST_OF_A_FORM, _WORTH = 4, 2.0
# The name of what is kept of a form, by its number.
PROPOSALS = "proposals of form {}"

# What a law leaves, its width of friction, its columns and coefficients; of noisy data also the
# length of the windows and the criterion.
Proposal = tuple[float, float, list[int], list[float], int, float]

# A score by which to sort them, and what a `Proposal` has.
Scored = tuple[float, float, float, np.ndarray, np.ndarray, int, float]


class KnownEquations:
    """Equations of richer forms, of which others may be a part, and the laws with all terms.

    Each machine makes its own; of several threads that need the same, the first one does.
    """

    def __init__(self):
        self._found: dict[Any, Any] = {}
        self._making: dict[Any, Any] = {}
        self._guard = threading.Lock()

    def __reduce__(self):
        return KnownEquations, ()

    def get(self, key: Any, make: Callable[[], Any]) -> Any:
        """What is known by a name, or what is made."""
        with self._guard:
            own = self._making.setdefault(key, threading.Lock())
        with own:
            if key not in self._found:
                self._found[key] = make()
            return self._found[key]


def proposed_ahead(
    problem: Problem,
    groups: Iterator[list[tuple[int, Form]]],
    rows: Rows,
    known: KnownEquations,
) -> Iterator[list[tuple[int, Form]]]:
    """Groups of forms, whose laws workers look for ahead, of more where there are few."""
    waiting = []
    problem.kept.share(known)
    for group in groups:
        waiting.append(group)
        for number, form in group:
            given = problem, form, rows, known
            problem.kept.ahead(PROPOSALS.format(number), proposals_of, *given)
        if sum(map(len, waiting)) >= problem.kept.speculative:
            yield waiting.pop(0)
    yield from waiting


def proposals_of(problem: Problem, form: Form, rows: Rows, known: KnownEquations) -> list[Proposal]:
    """The most promising supports of one form, and what they leave, simple ones first.

    **Arguments:**

    - `known`: the equations of richer forms, of which this one may be a part.
    """
    given = problem, form, rows, known
    every = (_proposals_in_noise if problem.noise.matters else _proposals_of_steps)(*given)
    seen, kept = set(), []
    for _, left, width, support, values, length, criterion in sorted(
        every, key=lambda proposal: proposal[0]
    ):
        if tuple(support) in seen or len(kept) == MOST_OF_A_FORM:
            continue
        seen.add(tuple(support))
        start = with_widths(form.blank, rows, width)
        if is_law(problem, with_coefficients(start, support, values), rows):
            law = support.tolist(), values.tolist()
            kept.append((float(left), float(width), *law, length, float(criterion)))
    return sorted(kept, key=lambda proposal: len(proposal[2]))


def _proposals_of_steps(
    problem: Problem, form: Form, rows: Rows, known: KnownEquations
) -> Iterator[Scored]:
    """Supports of data without noise, with a score by which to sort them."""
    blank = form.blank
    for width in _WIDTHS if blank.settings.joint_laws else (1.0,):
        full = with_widths(blank, rows, width)
        make = lambda f=full: equations_along(problem, f, rows)  # noqa: E731
        equations = known.get((blank.settings, width), make)
        for support in candidate_supports(equations, form.columns):
            values, left = find_law(equations, support)
            yield left * _WORTH**support.size, left, width, support, values, 0, left


def _proposals_in_noise(
    problem: Problem, form: Form, rows: Rows, known: KnownEquations
) -> Iterator[Scored]:
    """Supports by the Bayesian information criterion, which compares those of one length."""
    found, given = [], (problem, form, rows, known)
    for width in _widths(form):
        laws: dict[int, tuple[WeightedEquations, Sequence[WeightedLaw]]] = {}
        for times in _lengths(form):
            weighted = _equations(*given, width, times)
            if weighted is not None:
                laws[times] = weighted[0], _path(*given, width, times)
        for times, (weighted, path) in laws.items():
            others = [
                law
                for length, (equations, some) in laws.items()
                for law in (likely(some, equations.independent) if length != times else ())
            ]
            both = [*path, *fit_others(weighted, path, others)]
            found += [(times, law.criterion(weighted.independent), width, law) for law in both]
    order = in_order([Likelihood(one[0], one[1], one[3].support.size) for one in found])
    for place, number in enumerate(order):
        times, criterion, width, law = found[number]
        yield place, law.squares, width, law.support, law.values, times, criterion


def _widths(form: Form) -> tuple[float, ...]:
    return _WIDTHS if form.blank.settings.joint_laws else (1.0,)


def _lengths(form: Form) -> tuple[int, ...]:
    return (WINDOW_LENGTH,) if form.blank.settings.joint_laws else WINDOW_LENGTHS


def _equations(
    problem: Problem, form: Form, rows: Rows, known: KnownEquations, width: float, times: int
) -> tuple[WeightedEquations, HomogeneousEquations] | None:
    full = with_widths(form.blank, rows, width)
    make = lambda: weighted_equations(problem, full, rows, times)  # noqa: E731
    return known.get((form.blank.settings, width, times), make)


def _path(
    problem: Problem, form: Form, rows: Rows, known: KnownEquations, width: float, times: int
) -> list[WeightedLaw]:
    """Laws with ever fewer terms, over windows of one length."""
    weighted = _equations(problem, form, rows, known, width, times)
    if weighted is None:
        return []
    columns = form.columns[weighted[1].norms[form.columns] > 0]
    law = _first(problem, form, rows, known, width, times)
    path = weighted_supports(weighted[0], columns, law, simplest_columns(form))
    # Jacobians are large, and nobody asks for them any more.
    return [replace(law, jacobian=np.zeros((0, law.support.size))) for law in path]


def _first(
    problem: Problem, form: Form, rows: Rows, known: KnownEquations, width: float, times: int
) -> WeightedLaw | None:
    """The law with all terms.

    Longer windows lead to where shorter ones have more than one minimum.
    """
    given = problem, form, rows, known, width

    def make() -> WeightedLaw | None:
        weighted = _equations(*given, times)
        if weighted is None:
            return None
        columns = form.columns[weighted[1].norms[form.columns] > 0]
        starts = [_all_values(form.blank, columns, find_law(weighted[1], columns)[0])]
        longer = [n for n in _lengths(form) if n > times and _equations(*given, n) is not None]
        if longer:
            first, equations = _first(*given, longer[-1]), _equations(*given, longer[-1])
            assert equations is not None
            if first is None or is_crowded(equations[0], first):
                first = next(iter(_path(*given, longer[-1])), None)
            if first is not None:
                starts.append(_all_values(form.blank, first.support, first.values))
        return first_law(weighted[0], columns, starts)

    return known.get((form.blank.settings, width, times, tuple(form.columns)), make)


def simplest_columns(form: Form) -> np.ndarray:
    """Constant masses of single coordinates, and the potential of the first degree."""
    blank, count = form.blank, len(form.blank.minimal)
    single = [i for i, (a, b) in enumerate(zip(*np.triu_indices(count), strict=True)) if a == b]
    masses = len(blank.mass_basis) * np.array(single)
    stored = np.flatnonzero(np.array(blank.potential_basis.degrees[1:]) == 1)
    return np.intersect1d(form.columns, np.concatenate([masses, blank.mass_columns + stored]))


def _all_values(blank: LearnedMechanism, support: np.ndarray, values: np.ndarray) -> np.ndarray:
    every = np.zeros(blank.network.values.size)
    every[support] = values
    return every


def with_widths(model: LearnedMechanism, rows: Rows, width: float) -> LearnedMechanism:
    """Friction that sets in over this part of each joint's largest rate."""
    if not model.joints.resisting:
        return model
    fastest = np.max(np.abs(np.asarray(rows.s) @ model.joints.matrix.T), axis=0)
    fastest = np.where(fastest > 0, fastest, 1.0)
    return eqx.tree_at(lambda m: m.network.widths, model, jnp.asarray(width * fastest))


def with_coefficients(
    blank: LearnedMechanism, support: np.ndarray, values: np.ndarray
) -> LearnedMechanism:
    """The law in these columns; the others are zero, so that all laws of a form have one shape."""
    every = _all_values(blank, support, values)
    # The law is free up to a factor: a mass that it cannot lack is one.
    every = every / every[certain_mass(blank, every)]
    return eqx.tree_at(lambda m: m.network.values, blank, jax.device_put(every))


def certain_mass(model: LearnedMechanism, values: np.ndarray) -> int:
    """The largest mass that is the only one of its coordinate, or else the largest of one.

    A coordinate has a mass, so that term is in the right law too. The largest of all may be one of
    several that cancel each other where the motion was, and could then not be removed.
    """
    count, size = len(model.minimal), len(model.mass_basis)
    own = [i for i, (a, b) in enumerate(zip(*np.triu_indices(count), strict=True)) if a == b]
    columns = np.array(model.settings.kept)
    sizes = np.where(columns < model.mass_columns, np.abs(values), 0.0)
    groups = [np.flatnonzero((columns // size == pair) & (sizes > 0)) for pair in own]
    lone = [group[0] for group in groups if group.size == 1]
    some = np.array(lone or [k for group in groups for k in group] or np.arange(sizes.size), int)
    return int(some[np.argmax(sizes[some])])
