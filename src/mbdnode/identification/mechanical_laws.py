"""Mechanisms as candidates: the simplest laws that the data obeys, in forms of growing richness.

Each form is a set of terms. Along the data its equations are linear in their coefficients, as
accelerations give them or, for noisy data, in integral form; `null_vector` finds which few terms
make a law, and `noisy_laws` where there is noise. What they find is then fitted to the steps of the
integrator, or to rollouts.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.identification.law_forms import (
    Form,
    form_groups,
    forms_of,
    law_forms,
    linear_form,
    most_columns,
)
from mbdnode.identification.problem import Candidate, Problem, chunks_of
from mbdnode.identification.regression.motion_equations import (
    equations_along,
    fit_to_chunks,
    is_law,
    weighted_equations,
)
from mbdnode.identification.regression.noisy_laws import (
    Likelihood,
    WeightedEquations,
    WeightedLaw,
    first_law,
    fit_law,
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
from mbdnode.identification.shooting import improved, refine_further
from mbdnode.identification.term_selection import SelectedLaw, select_terms
from mbdnode.models.learned_mechanism import LearnedMechanism
from mbdnode.training.rows import Rows

# Of the windows of noisy data: the shorter ones tell more, unless noise or the smoothing of rates
# hides it. One length for coefficients, and for laws of the joints, whose widths multiply the work.
_LENGTHS, _LENGTH = (4, 2, 1), 2
# Friction sets in over these parts of the largest rate; the shooting refinement finds the rest.
_WIDTHS, _USUAL_WIDTH = (0.3, 0.1, 0.03, 0.01), 0.1
# Laws of one form that are fitted; each term more must lower what is left by this factor.
_MOST, _WORTH = 4, 2.0
# A law that leaves more than this part of its inertia is fitted only if there is no better one.
_PROMISING = 1e-2
# The name of what is kept of a form, by its number.
_PROPOSALS = "proposals of form {}"


def mechanisms(
    problem: Problem, rows: Rows, *, joint_laws: bool | None = None
) -> Iterator[list[Candidate]]:
    """Laws that are worth fitting.

    **Arguments:**

    - `problem`: what is to be learned.
    - `rows`: what may be looked at to make proposals.
    - `joint_laws`: only forms in which joints have laws of their own, or only others; all if None.

    **Returns:**

    An iterator over those of a few forms at a time; a form that is not asked for costs nothing.
    """
    doubtful: list[tuple[float, Candidate]] = []
    known = _KnownEquations()
    seen = set()
    for forms in _proposed_ahead(problem, form_groups(problem, rows, joint_laws), rows, known):
        promising: list[Candidate] = []
        proposals: list[tuple[Form, Proposal]] = []
        for number, form in forms:
            propose = lambda f=form: _proposals(problem, f, rows, known)  # noqa: E731
            own = problem.kept.value(_PROPOSALS.format(number), propose)
            proposals += [(form, proposal) for proposal in own]
        if problem.noise.matters:
            # A simple form that lacks a term of the law may still predict within the noise.
            laws = [Likelihood(one[4], one[5], len(one[2])) for _, one in proposals]
            proposals = [proposals[i] for i in in_order(laws)]
        for form, (left, width, support, values, _, _) in proposals:
            # What a richer form finds may be the law of a simpler one.
            if (form.blank.settings, tuple(support)) in seen:
                continue
            seen.add((form.blank.settings, tuple(support)))
            start, support = _with_widths(form.blank, rows, width), np.array(support, int)
            fit = lambda r, b=start, k=support, v=values: _fitted(problem, r, b, k, np.array(v))  # noqa: E731
            candidate = _candidate(problem, fit, support, np.arange(start.network.values.size))
            if problem.noise.matters or left < _PROMISING:
                promising.append(candidate)
            else:
                doubtful.append((left, candidate))
        yield promising
    # Where no form says the truth, the nearest ones may still do well.
    yield [one for _, one in sorted(doubtful, key=lambda pair: pair[0])[:_MOST]]


class _KnownEquations:
    """Equations of richer forms, of which others may be a part, and the laws with all terms.

    Each machine makes its own; of several threads that need the same, the first one does.
    """

    def __init__(self):
        self._found: dict[Any, Any] = {}
        self._making: dict[Any, Any] = {}
        self._guard = threading.Lock()

    def __reduce__(self):
        return _KnownEquations, ()

    def get(self, key: Any, make: Callable[[], Any]) -> Any:
        """What is known by a name, or what is made."""
        with self._guard:
            own = self._making.setdefault(key, threading.Lock())
        with own:
            if key not in self._found:
                self._found[key] = make()
            return self._found[key]


def _proposed_ahead(
    problem: Problem,
    groups: Iterator[list[tuple[int, Form]]],
    rows: Rows,
    known: _KnownEquations,
) -> Iterator[list[tuple[int, Form]]]:
    """The same groups; workers look for the laws of each, and of more where there are few."""
    workers, waiting = problem.kept.workers, []
    if workers:
        problem.kept.share(known)
    for group in groups:
        waiting.append(group)
        for number, form in group:
            _propose_ahead(problem, number, form, rows, known)
        if sum(map(len, waiting)) >= workers:
            yield waiting.pop(0)
    yield from waiting


def _propose_ahead(
    problem: Problem, number: int, form: Form, rows: Rows, known: _KnownEquations
) -> None:
    """Have workers look for the laws of a form; in noise, over windows of each length apart."""
    name, given = _PROPOSALS.format(number), (problem, form, rows, known)
    if not problem.kept.is_open(name):
        return
    paths = [
        problem.kept.ahead(f"{name} over {times} at {width}", _path, *given, width, times)
        for width, times in (_paths_of(form) if problem.noise.matters else ())
    ]
    problem.kept.ahead(name, _proposals, *given, *paths)


def linear_mechanism(problem: Problem, rows: Rows) -> Iterator[list[Candidate]]:
    """Masses that turn on linear springs, with all of their terms, for rollouts to choose from.

    An elastic shaft may swing faster than noisy positions can be smoothed. The equations of such
    rates leave its spring out of every short law, but near the law with all terms, rollouts do not.

    **Arguments:**

    - `problem`: what is to be learned, from noisy data.
    - `rows`: what may be looked at to begin with.

    **Returns:**

    An iterator over a list of one candidate; none for what is not a set of angles.
    """
    form = linear_form(problem, rows)
    weighted = form and weighted_equations(problem, form.blank, rows, _LENGTH)
    if form is None or weighted is None:
        return
    columns = form.columns[weighted[1].norms[form.columns] > 0]
    # Linear equations may be combined: with masses between coordinates, other laws are the same.
    inertial = columns < form.blank.mass_columns
    support = columns[~inertial | np.isin(columns, _simplest(form))]
    start = find_law(weighted[1], support)[0]
    fit = lambda r: _fitted(problem, r, form.blank, support, start)  # noqa: E731
    yield [_candidate(problem, fit, support, columns)]


def _candidate(problem: Problem, fit: Any, support: np.ndarray, columns: np.ndarray) -> Candidate:
    """A law in some terms, which may be chosen anew among these columns where there is noise.

    Rollouts are asked about all terms that are compiled: they cost little more than those of the
    form.
    """

    def reselected(model: Any) -> Candidate:
        own = np.flatnonzero(np.asarray(model.network.values))
        values = np.asarray(model.network.values)[own]

        def fitted(rows: Rows) -> Any:
            # What all chunks say is linear; of the rest, rollouts have said it already.
            if chunks_of(problem, rows) is None:
                return model
            return _fitted(problem, rows, model, own, values)

        return _candidate(problem, fitted, own, columns)

    noisy = problem.noise.matters
    return Candidate(
        "lagrangian",
        f"mechanism of {len(support)} terms",
        fit,
        lambda model, rows: _refined(problem, model, rows, support),
        len(support),
        partial(_selected, problem, columns) if noisy else None,
        reselected if noisy else None,
    )


def _selected(
    problem: Problem, columns: np.ndarray, model: LearnedMechanism, rows: Rows
) -> SelectedLaw | None:
    found = select_terms(problem, model, rows, columns, _free)
    if found is None:
        return None
    if problem.refined:
        law = refine_further(problem, found.model, rows, _free(found.model, found.support))
        found = replace(found, model=law)
    return found if is_law(problem, found.model, rows) else None


def unexplained(problem: Problem, rows: Rows, *, joint_laws: bool = False) -> float:
    """What a form leaves unexplained, with all terms.

    **Arguments:**

    - `problem`: what is to be learned; its noise and whether inputs change say how it is measured.
    - `rows`: the data, under some interpolation of the inputs.
    - `joint_laws`: whether joints have laws of their own in the form.

    **Returns:**

    The part of the inertia; of noisy data the residual in units of its noise, which compares with
    others of that alone. Infinity for too little data.
    """
    every = law_forms(problem, rows)
    form = next((one for one in every if one.blank.settings.joint_laws == joint_laws), None)
    if form is None:
        return np.inf
    form = replace(form, blank=_with_widths(form.blank, rows, _USUAL_WIDTH))
    most = most_columns(rows)
    law, left = None, np.inf
    for times in [one for one in _LENGTHS if one >= _LENGTH] if problem.noise.matters else ():
        weighted = weighted_equations(problem, form.blank, rows, times)
        if weighted is None:
            continue
        support = _moving(weighted[1].norms, form, most)
        starts = [find_law(weighted[1], support)[0]]
        if law is not None and law.support.size == support.size:
            starts.append(law.values)
        found = [fit_law(weighted[0], support, start) for start in starts]
        law = min((one for one in found if one), key=lambda one: one.squares, default=None)
        left = np.inf if law is None else float(np.sqrt(law.squares))
    if law is not None:
        return left
    equations = equations_along(problem, form.blank, rows)
    return find_law(equations, _moving(equations.norms, form, most))[1]


def _moving(norms: np.ndarray, form: Form, most: float) -> np.ndarray:
    """The columns that are not zero, of the richer form if the data can tell of so many."""
    support = np.flatnonzero(norms > 0)
    return support if support.size <= most else np.intersect1d(support, form.columns)


def most_mechanisms(problem: Problem) -> int:
    """How many laws are fitted at most."""
    return 0 if problem.known != "nothing" else _MOST * (len(forms_of(problem)) + 1)


# What a law leaves, its width of friction, its columns and coefficients; of noisy data also the
# length of the windows and the criterion.
Proposal = tuple[float, float, list[int], list[float], int, float]


def _proposals(
    problem: Problem,
    form: Form,
    rows: Rows,
    known: _KnownEquations,
    *paths: Sequence[WeightedLaw],
) -> list[Proposal]:
    """The most promising supports of one form, and what they leave, simple ones first.

    `known` keeps the equations of richer forms, of which this one may be a part; `paths` are as in
    `_proposals_in_noise`.
    """
    given = problem, form, rows, known
    noisy = problem.noise.matters
    every = _proposals_in_noise(*given, paths) if noisy else _proposals_of_steps(*given)
    seen, kept = set(), []
    for _, left, width, support, values, length, criterion in sorted(
        every, key=lambda proposal: proposal[0]
    ):
        if tuple(support) in seen or len(kept) == _MOST:
            continue
        seen.add(tuple(support))
        start = _with_widths(form.blank, rows, width)
        if is_law(problem, _with_coefficients(start, support, values), rows):
            law = support.tolist(), values.tolist()
            kept.append((float(left), float(width), *law, length, float(criterion)))
    return sorted(kept, key=lambda proposal: len(proposal[2]))


# A score by which to sort them, and what a `Proposal` has.
Scored = tuple[float, float, float, np.ndarray, np.ndarray, int, float]


def _proposals_of_steps(
    problem: Problem, form: Form, rows: Rows, known: _KnownEquations
) -> Iterator[Scored]:
    """Supports of data without noise, with a score by which to sort them."""
    blank = form.blank
    for width in _WIDTHS if blank.settings.joint_laws else (1.0,):
        full = _with_widths(blank, rows, width)
        make = lambda f=full: equations_along(problem, f, rows)  # noqa: E731
        equations = known.get((blank.settings, width), make)
        for support in candidate_supports(equations, form.columns):
            values, left = find_law(equations, support)
            yield left * _WORTH**support.size, left, width, support, values, 0, left


def _proposals_in_noise(
    problem: Problem,
    form: Form,
    rows: Rows,
    known: _KnownEquations,
    paths: Sequence[Sequence[WeightedLaw]],
) -> Iterator[Scored]:
    """Supports by the Bayesian information criterion, which compares those of one length.

    `paths` are those of all `_paths_of` the form, if they were found elsewhere.
    """
    found, given = [], (problem, form, rows, known)
    every = dict(zip(_paths_of(form), paths, strict=True)) if paths else {}
    for width in _widths(form):
        laws: dict[int, tuple[WeightedEquations, Sequence[WeightedLaw]]] = {}
        for times in _lengths(form):
            weighted = _equations(*given, width, times)
            if weighted is not None:
                path = every[width, times] if paths else _path(*given, width, times)
                laws[times] = weighted[0], path
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
    return (_LENGTH,) if form.blank.settings.joint_laws else _LENGTHS


def _paths_of(form: Form) -> list[tuple[float, int]]:
    """Widths of friction and lengths of windows, for each of which laws are looked for."""
    return [(width, times) for width in _widths(form) for times in _lengths(form)]


def _equations(
    problem: Problem, form: Form, rows: Rows, known: _KnownEquations, width: float, times: int
) -> tuple[WeightedEquations, HomogeneousEquations] | None:
    full = _with_widths(form.blank, rows, width)
    make = lambda: weighted_equations(problem, full, rows, times)  # noqa: E731
    return known.get((form.blank.settings, width, times), make)


def _path(
    problem: Problem, form: Form, rows: Rows, known: _KnownEquations, width: float, times: int
) -> list[WeightedLaw]:
    """Laws with ever fewer terms, over windows of one length."""
    weighted = _equations(problem, form, rows, known, width, times)
    if weighted is None:
        return []
    columns = form.columns[weighted[1].norms[form.columns] > 0]
    law = _first(problem, form, rows, known, width, times)
    path = weighted_supports(weighted[0], columns, law, _simplest(form))
    # Jacobians are large, and nobody asks for them any more.
    return [replace(law, jacobian=np.zeros((0, law.support.size))) for law in path]


def _first(
    problem: Problem, form: Form, rows: Rows, known: _KnownEquations, width: float, times: int
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


def _simplest(form: Form) -> np.ndarray:
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


def _with_widths(model: LearnedMechanism, rows: Rows, width: float) -> LearnedMechanism:
    """Friction that sets in over this part of each joint's largest rate."""
    if not model.joints.resisting:
        return model
    fastest = np.max(np.abs(np.asarray(rows.s) @ model.joints.matrix.T), axis=0)
    fastest = np.where(fastest > 0, fastest, 1.0)
    return eqx.tree_at(lambda m: m.network.widths, model, jnp.asarray(width * fastest))


def _with_coefficients(
    blank: LearnedMechanism, support: np.ndarray, values: np.ndarray
) -> LearnedMechanism:
    """The law in these columns; the others are zero, so that all laws of a form have one shape."""
    every = _all_values(blank, support, values)
    # The law is free up to a factor: a mass that it cannot lack is one.
    every = every / every[_certain_mass(blank, every)]
    return eqx.tree_at(lambda m: m.network.values, blank, jax.device_put(every))


def _certain_mass(model: LearnedMechanism, values: np.ndarray) -> int:
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


def _fitted(
    problem: Problem, rows: Rows, blank: LearnedMechanism, support: np.ndarray, start: np.ndarray
) -> LearnedMechanism | None:
    """With the coefficients of these rows, from those of a proposal."""
    # Accelerations of the chunks are not exact; without noise the sample says it all.
    chunks = chunks_of(problem, rows) if problem.noise.matters else None
    weighted = weighted_equations(problem, blank, rows, _LENGTH) if problem.noise.matters else None
    law = None if weighted is None else fit_law(weighted[0], support, start)
    if law is not None:
        values = law.values
        if chunks is not None:
            values = fit_to_chunks(problem, blank, rows, chunks, support, values, _LENGTH)
    else:
        some = equations_along(problem, blank, rows, chunks, support)
        values = find_law(some, np.arange(support.size))[0]
    model = _with_coefficients(blank, support, values)
    if problem.refined:
        model = improved(problem, model, rows, _free(model, support))
    return model if is_law(problem, model, rows) else None


def _refined(
    problem: Problem, model: LearnedMechanism, rows: Rows, support: np.ndarray
) -> LearnedMechanism | None:
    found = refine_further(problem, model, rows, _free(model, support))
    return found if is_law(problem, found, rows) else None


def _free(model: LearnedMechanism, support: np.ndarray) -> np.ndarray:
    """All of a support but a mass that is certain, and the widths of its frictions."""
    fixed = _certain_mass(model, np.asarray(model.network.values))
    return np.array([int(k) for k in support if k != fixed] + _widths_of(model, support), int)


def _widths_of(model: LearnedMechanism, support: np.ndarray) -> list[int]:
    """Where the widths of the frictions in a support stand among all coefficients."""
    count, joints = model.network.values.size, model.joints.resisting
    return [int(k) + joints for k in support if k >= count - joints]
