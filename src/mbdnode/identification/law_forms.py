"""Forms of laws: which terms a law of a mechanism may have, from few to many.

A form is a choice of the columns of a mechanism without coefficients. Forms share that mechanism
where they can, so that what is compiled for one serves all.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mbdnode.data.rows import Rows, counted, places
from mbdnode.identification.problem import Problem
from mbdnode.models.base import minimal_coordinates
from mbdnode.models.basis import scale_of
from mbdnode.models.learned_mechanism import LearnedMechanism


class Terms(NamedTuple):
    """What there is in a law.

    **Arguments:**

    - `mass`, `potential`, `acting`: degrees of mass, potential and input map.
    - `springs`: whether angles, and the twists between two, have springs.
    - `joint_laws`: whether joints have laws of their own: springs that need not be linear, drag,
        friction.
    """

    mass: int
    potential: int
    acting: int = 0
    springs: bool = False
    joint_laws: bool = False


# Each is a part of the one beside it, whose compiled programs serve all of its parts.
_PLAIN = Terms(2, 2, 1, springs=True)
_JOINTS = Terms(2, 1, 1, springs=True, joint_laws=True)
_FORMS: tuple[tuple[Terms, Terms], ...] = (
    (Terms(1, 1), _PLAIN),
    (Terms(2, 1), _PLAIN),
    (Terms(2, 1, 1), _PLAIN),
    (Terms(0, 1, springs=True), _PLAIN),
    (Terms(2, 1, 1, springs=True), _PLAIN),
    (Terms(1, 1, springs=True, joint_laws=True), _JOINTS),
    (Terms(2, 1, springs=True, joint_laws=True), _JOINTS),
    (Terms(2, 1, 1, springs=True, joint_laws=True), _JOINTS),
    (Terms(0, 2), _PLAIN),
    (Terms(1, 2), _PLAIN),
    (Terms(0, 1, springs=True, joint_laws=True), _JOINTS),
    (Terms(2, 2), _PLAIN),
    *(
        (terms, terms)
        for terms in (
            Terms(0, 4, springs=True, joint_laws=True),
            Terms(1, 2, springs=True, joint_laws=True),
            Terms(2, 4),
        )
    ),
)
# Masses on linear springs.
_LINEAR = (Terms(0, 0, springs=True), _PLAIN)
# Of the recipe that tries few. What hangs on a length that changes has its potential as a product
# of that length and an angle.
_FEW_FORMS, _HANGING = 8, (Terms(2, 2), _PLAIN)
# A richer form with more columns than this takes longer than to compile its parts one by one.
_MOST_COLUMNS = 150
# More unknowns than this part of the equations would fit anything.
_CROWDED = 0.4


@dataclass(frozen=True)
class Form:
    """Terms that a law may have.

    **Arguments:**

    - `blank`: a mechanism without coefficients that has all of them, and maybe more.
    - `columns`: which of its columns they are.
    """

    blank: LearnedMechanism
    columns: np.ndarray


def most_columns(rows: Rows) -> float:
    """How many terms these rows can tell of."""
    return _CROWDED * rows.z.shape[1] * len(counted(rows))


def forms_of(problem: Problem) -> list[tuple[Terms, Terms]]:
    """The forms that make sense for a system, each with that of its compiled programs."""
    forms = _FORMS if problem.refined else _FORMS[:_FEW_FORMS]
    own = _kinds(problem)
    if len(own) == 2 and _HANGING not in forms:
        forms = (*forms, _HANGING)
    if not any(own):
        # Lengths have springs in their potentials.
        forms = [(form, rich) for form, rich in forms if form.joint_laws or not form.springs]
    return _driven(problem, forms)


def _kinds(problem: Problem) -> set[bool]:
    """Whether there are angles among the independent coordinates, and whether there are others."""
    return {problem.system.coordinates[i].is_angle for i in minimal_coordinates(problem.system)}


def _driven(problem: Problem, forms: Iterable[tuple[Terms, Terms]]) -> list[tuple[Terms, Terms]]:
    """Those that make sense for the inputs."""
    if problem.system.inputs and problem.forces == "inputs":
        return list(forms)
    return [(form, rich._replace(acting=0)) for form, rich in forms if form.acting == 0]


def law_forms(problem: Problem, rows: Rows) -> Iterator[Form]:
    """Every form that this much data can tell of."""
    yield from _made(problem, rows, forms_of(problem))


def linear_form(problem: Problem, rows: Rows) -> Form | None:
    """Constant masses on linear springs, with viscous damping, in angles.

    A `Form`; None for systems whose coordinates are not all angles, of which a linear law has all
    of this, or for too little data.
    """
    if _kinds(problem) != {True}:
        return None
    return next(_made(problem, rows, _driven(problem, [_LINEAR])), None)


def _made(problem: Problem, rows: Rows, forms: list[tuple[Terms, Terms]]) -> Iterator[Form]:
    most = most_columns(rows)
    blanks: dict[Terms, LearnedMechanism] = {}

    def blank_of(terms: Terms) -> LearnedMechanism:
        if terms not in blanks:
            blanks[terms] = LearnedMechanism.for_system(
                problem.system,
                lengths=scale_of(places(rows, problem.parameters)),
                mass_degree=terms.mass,
                potential_degree=terms.potential,
                use_parameters=problem.parameters,
                angle_springs=terms.springs,
                joint_laws=terms.joint_laws,
                relative_angles=True,
                input_degree=terms.acting,
                forces=problem.forces,
                interpolation=problem.interpolation,
            )
        return blanks[terms]

    for terms, richer in forms:
        blank = blank_of(richer)
        if blank.network.values.size > _MOST_COLUMNS:
            blank = blank_of(terms)
        columns = blank.columns_up_to(terms.mass, terms.potential, terms.acting, terms.springs)
        if columns.size <= most:
            yield Form(blank, columns)


def form_groups(
    problem: Problem, rows: Rows, joint_laws: bool | None
) -> Iterator[list[tuple[int, Form]]]:
    """Numbered forms whose laws compare: of noisy data those with the same equations.

    **Arguments:**

    - `joint_laws`: only forms in which joints have laws of their own, or only others; all if None.
    """
    groups: dict[Any, list[tuple[int, Form]]] = {}
    for number, form in enumerate(law_forms(problem, rows)):
        settings = form.blank.settings
        if joint_laws is not None and settings.joint_laws != joint_laws:
            continue
        if problem.noise.matters:
            groups.setdefault(settings, []).append((number, form))
        else:
            yield [(number, form)]
    yield from groups.values()
