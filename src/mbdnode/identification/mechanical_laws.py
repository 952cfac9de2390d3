"""Mechanisms as candidates: the simplest laws that the data obeys, in forms of growing richness.

Each form is a set of terms. Along the data its equations are linear in their coefficients, as
accelerations give them or, for noisy data, in integral form; `null_vector` finds which few terms
make a law, and `noisy_laws` where there is noise. What they find is then fitted to the steps of the
integrator, or to rollouts.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mbdnode.data.rows import Rows
from mbdnode.identification.law_forms import (
    Form,
    form_groups,
    forms_of,
    law_forms,
    linear_form,
    most_columns,
)
from mbdnode.identification.problem import Candidate, Problem, chunks_of
from mbdnode.identification.regression.law_proposals import (
    MOST_OF_A_FORM,
    PROPOSALS,
    WINDOW_LENGTH,
    WINDOW_LENGTHS,
    KnownEquations,
    Proposal,
    certain_mass,
    proposals_of,
    proposed_ahead,
    simplest_columns,
    with_coefficients,
    with_widths,
)
from mbdnode.identification.regression.motion_equations import (
    equations_along,
    fit_to_chunks,
    is_law,
    weighted_equations,
)
from mbdnode.identification.regression.noisy_laws import (
    Likelihood,
    fit_law,
    in_order,
)
from mbdnode.identification.regression.null_vector import (
    find_law,
)
from mbdnode.identification.shooting import improved, refine_further
from mbdnode.identification.term_selection import SelectedLaw, select_terms
from mbdnode.models.learned_mechanism import LearnedMechanism

# Friction sets in over this part of the largest rate where no other was found.
_USUAL_WIDTH = 0.1
# A law that leaves more than this part of its inertia is fitted only if there is no better one.
_PROMISING = 1e-2


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
    known = KnownEquations()
    seen = set()
    for forms in proposed_ahead(problem, form_groups(problem, rows, joint_laws), rows, known):
        promising: list[Candidate] = []
        proposals: list[tuple[Form, Proposal]] = []
        for number, form in forms:
            propose = lambda f=form: proposals_of(problem, f, rows, known)  # noqa: E731
            own = problem.kept.value(PROPOSALS.format(number), propose)
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
            start, support = with_widths(form.blank, rows, width), np.array(support, int)
            fit = lambda r, b=start, k=support, v=values: _fitted(problem, r, b, k, np.array(v))  # noqa: E731
            candidate = _candidate(problem, fit, support, np.arange(start.network.values.size))
            if problem.noise.matters or left < _PROMISING:
                promising.append(candidate)
            else:
                doubtful.append((left, candidate))
        yield promising
    # Where no form says the truth, the nearest ones may still do well.
    yield [one for _, one in sorted(doubtful, key=lambda pair: pair[0])[:MOST_OF_A_FORM]]


def linear_mechanism(problem: Problem, rows: Rows) -> Iterator[list[Candidate]]:
    """Masses that turn on linear springs, with all of their terms, for rollouts to choose from.

    An elastic shaft may swing faster than noisy positions can be smoothed. The equations of such
    rates leave its spring out of every short law, but near the law with all terms, rollouts do not.

    An iterator over a list of one candidate; none for what is not a set of angles.
    """
    form = linear_form(problem, rows)
    weighted = form and weighted_equations(problem, form.blank, rows, WINDOW_LENGTH)
    if form is None or weighted is None:
        return
    columns = form.columns[weighted[1].norms[form.columns] > 0]
    # Linear equations may be combined: with masses between coordinates, other laws are the same.
    inertial = columns < form.blank.mass_columns
    support = columns[~inertial | np.isin(columns, simplest_columns(form))]
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

    **Returns:**

    The part of the inertia; of noisy data the residual in units of its noise, which compares with
    others of that alone. Infinity for too little data.
    """
    every = law_forms(problem, rows)
    form = next((one for one in every if one.blank.settings.joint_laws == joint_laws), None)
    if form is None:
        return np.inf
    form = replace(form, blank=with_widths(form.blank, rows, _USUAL_WIDTH))
    most = most_columns(rows)
    law, left = None, np.inf
    for times in (
        [one for one in WINDOW_LENGTHS if one >= WINDOW_LENGTH] if problem.noise.matters else ()
    ):
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
    return 0 if problem.known != "nothing" else MOST_OF_A_FORM * (len(forms_of(problem)) + 1)


def _fitted(
    problem: Problem, rows: Rows, blank: LearnedMechanism, support: np.ndarray, start: np.ndarray
) -> LearnedMechanism | None:
    """With the coefficients of these rows, from those of a proposal."""
    # Accelerations of the chunks are not exact; without noise the sample says it all.
    chunks = chunks_of(problem, rows) if problem.noise.matters else None
    noisy = problem.noise.matters
    weighted = weighted_equations(problem, blank, rows, WINDOW_LENGTH) if noisy else None
    law = None if weighted is None else fit_law(weighted[0], support, start)
    if law is not None:
        values = law.values
        if chunks is not None:
            values = fit_to_chunks(problem, blank, rows, chunks, support, values, WINDOW_LENGTH)
    else:
        some = equations_along(problem, blank, rows, chunks, support)
        values = find_law(some, np.arange(support.size))[0]
    model = with_coefficients(blank, support, values)
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
    fixed = certain_mass(model, np.asarray(model.network.values))
    return np.array([int(k) for k in support if k != fixed] + _widths_of(model, support), int)


def _widths_of(model: LearnedMechanism, support: np.ndarray) -> list[int]:
    """Where the widths of the frictions in a support stand among all coefficients."""
    count, joints = model.network.values.size, model.joints.resisting
    return [int(k) + joints for k in support if k >= count - joints]
