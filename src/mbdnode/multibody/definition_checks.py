"""Whether a user's own system is well formed, said by the name of the method that is not.

Only shapes are looked at, so nothing is computed, and a definition that has passed is not looked
at again.
"""

import inspect
from difflib import get_close_matches
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.errors import UserError
from mbdnode.multibody.equations_of_motion import AbstractMechanism
from mbdnode.multibody.kinematics import vector
from mbdnode.multibody.quantities import Coordinate
from mbdnode.multibody.system import AbstractSystem, resolve_parameters
from mbdnode.naming import unknown_name

_passed: set[Any] = set()
# Methods that a mechanism need not have.
_OPTIONAL = ("constraint", "nonholonomic", "dry_friction", "contacts", "potential_energy")
# How alike two names are (of at most 1) that are taken for one: a letter more, or two exchanged.
_NEARLY = 0.85


def check_definition(system: AbstractSystem) -> None:
    """Raise `UserError` unless the system's names and the shapes that it returns fit together.

    **Arguments:**

    - `system`: a mechanism or a model.
    """
    key = jax.tree.structure(system)
    if key in _passed:
        return
    name = type(system).__name__
    if not system.coordinates or not all(isinstance(c, Coordinate) for c in system.coordinates):
        raise UserError(
            f"{name}.coordinates is {system.coordinates!r}; it must be a tuple of at least one "
            'length("x") or angle("theta").'
        )
    _check_columns(system)
    if isinstance(system, AbstractMechanism):
        _check_methods(system)
    for named in system.independent or ():
        if named not in system.coordinate_names:
            raise unknown_name("coordinate", named, system.coordinate_names)
    sizes = (), len(system.coordinates), len(system.inputs)
    t, q, u = (jnp.asarray(np.zeros(size), float) for size in sizes)
    mu = resolve_parameters(system)
    _check_constraints(system, t, q, mu)
    if isinstance(system, AbstractMechanism):
        _check_dynamics(system, t, q, u, mu)
    _passed.add(key)


def _check_columns(system: AbstractSystem) -> None:
    """Raise `UserError` for two columns of a trajectory that would have one name."""
    meant = {"t": "the time"}
    for what, names in (
        ("a coordinate", system.coordinate_names),
        ("a rate", system.rate_names),
        ("an input", system.input_names),
    ):
        for name in names:
            if name in meant:
                raise UserError(
                    f"{type(system).__name__} has two columns called {name!r}: {meant[name]} and "
                    f"{what}. Give one of them another name."
                )
            meant[name] = what


def _check_methods(system: AbstractMechanism) -> None:
    """Raise `UserError` for a method that is nearly called what it should be.

    A mechanism is unconstrained, or without friction, if the method for it is not there; one with a
    slip in its name would go unnoticed.
    """
    kind = type(system)
    absent = [n for n in _OPTIONAL if getattr(kind, n, None) is getattr(AbstractMechanism, n)]
    for name, _ in inspect.getmembers(kind, callable):
        if name.startswith("_") or hasattr(AbstractMechanism, name):
            continue
        near = get_close_matches(name, absent, 1, _NEARLY)
        near = near or [each for each in absent if each == "constraint" and each in name]
        if near:
            raise UserError(
                f"{kind.__name__} has a method {name!r}, which is not asked for, and none that is "
                f"called {near[0]!r}. Rename it, or begin its name with an underscore if it is a "
                "helper of your own."
            )


def _check_constraints(system: AbstractSystem, t, q, mu) -> None:
    count, name = q.shape[0], type(system).__name__
    rows = _shape(f"{name}.constraint", lambda: system.constraint(t, q, mu))
    if len(rows) != 1:
        raise UserError(
            f"{name}.constraint returned shape {rows}; it must return one residual for each "
            "constraint, as a list or a vector (a single one in brackets)."
        )
    matrix = _shape(f"{name}.nonholonomic", lambda: system.nonholonomic(t, q, mu)[0])
    right = _shape(f"{name}.nonholonomic", lambda: system.nonholonomic(t, q, mu)[1])
    none = matrix == (0,) and right == (0,)
    if not none and (len(matrix) != 2 or matrix[1] != count or right != matrix[:1]):
        raise UserError(
            f"{name}.nonholonomic returned A of shape {matrix} and b of shape {right}; A must have "
            f"a row for each constraint and {count} columns, b a value for each row."
        )


def _check_dynamics(mechanism: AbstractMechanism, t, q, u, mu) -> None:
    count, name = q.shape[0], type(mechanism).__name__
    each = f"one for each coordinate: {', '.join(mechanism.coordinate_names)}"
    force = _shape(f"{name}.force", lambda: mechanism.force(t, q, q, u, mu))
    if force != (count,):
        raise UserError(
            f"{name}.force returned shape {force}; it must return {count} values, {each}."
        )
    mass = _shape(f"{name}.mass_matrix", lambda: mechanism.mass_matrix(q, mu))
    if mass not in ((count,), (count, count)):
        raise UserError(
            f"{name}.mass_matrix returned shape {mass}; it must return {count} values, {each}, or "
            f"a matrix of shape ({count}, {count})."
        )


def _shape(what: str, call) -> tuple[int, ...]:
    """The shape of what a method returns, as an array."""

    def as_array():
        value = call()
        if value is None:
            raise UserError(f"{what} returned None; it must return numbers.")
        if isinstance(value, (tuple, list)) and any(
            isinstance(row, (tuple, list)) for row in value
        ):
            return jnp.stack([vector(row) for row in value])
        return vector(value) if isinstance(value, (tuple, list)) else jnp.asarray(value)

    try:
        return jax.eval_shape(as_array).shape
    except TypeError as error:
        raise UserError(f"{what} cannot be read as an array of numbers: {error}") from error
