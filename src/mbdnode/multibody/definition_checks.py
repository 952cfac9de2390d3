"""Whether a user's own system is well formed, said by the name of the method that is not.

Methods are traced, so nothing is computed, and a definition that has passed is not looked at again.
Indices that lie beyond an array are refused in the trace, since JAX takes the last entry instead.
The mass matrix is looked at where a motion begins.
"""

import contextlib
import inspect
import traceback
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.errors import UserError
from mbdnode.multibody.constant_indices import indices_beyond
from mbdnode.multibody.equations_of_motion import AbstractMechanism, masses
from mbdnode.multibody.kinematics import vector
from mbdnode.multibody.quantities import Coordinate
from mbdnode.multibody.system import (
    AbstractSystem,
    AccelerationFunction,
    Coords,
    Params,
    require_system,
    resolve_parameters,
)
from mbdnode.naming import unknown_name

_passed: set[Any] = set()
# Methods that a mechanism need not have.
_OPTIONAL = ("constraint", "nonholonomic", "dry_friction", "contacts", "potential_energy")
# Where plain numbers are asked of values that JAX traces: by `math`, by NumPy, by `if`, by `range`.
_NEEDS_NUMBERS = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)
# Files of others, and of this package.
_NOT_OWN = ("site-packages", str(Path(__file__).parents[1]))
# Round-off of a mass matrix, relative to the masses on its diagonal.
_ROUND_OFF = 1e-9
# How alike two names are (of at most 1) that are taken for one: a letter more, or two exchanged.
_NEARLY = 0.85


def check_definition(system: Any) -> None:
    """Raise `UserError` unless the system's names and the shapes that it returns fit together.

    **Arguments:**

    - `system`: a mechanism or a model.
    """
    require_system(system)
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
    if isinstance(system, AccelerationFunction):
        _shape("The acceleration function", system.function, t, q, q, u, mu)
    _passed.add(key)


def check_mass(system: AbstractSystem, q: Coords, mu: Params, jacobian: np.ndarray) -> None:
    """Raise `UserError` for a mass matrix that no masses have, by its entry.

    No motion may have a negative kinetic energy. A body may be without mass where constraints give
    its motion; of coordinates in no constraint, a motion without mass has no acceleration.

    **Arguments:**

    - `system`: any; only a mechanism has a mass matrix.
    - `q`, `mu`: where, as plain numbers.
    - `jacobian`: of its constraints there, a row for each.
    """
    if not isinstance(system, AbstractMechanism):
        return
    mass = np.asarray(masses(system, q, mu))
    mass = np.diag(mass) if mass.ndim == 1 else mass
    name, names = f"{type(system).__name__}.mass_matrix", system.coordinate_names
    at = lambda i, j: f"[{i}, {j}] = {mass[i, j]:.4g} ({names[i]}, {names[j]})"  # noqa: E731
    way_out = "Check its signs, and the parameters in it."
    if not np.all(np.isfinite(mass)):
        raise UserError(
            f"{name} has {at(*np.argwhere(~np.isfinite(mass))[0])}; every entry must be finite. "
            + way_out
        )
    diagonal = np.diagonal(mass)
    if np.any(diagonal < 0):
        i = int(np.argmax(diagonal < 0))
        raise UserError(f"{name} has {at(i, i)}; a mass must not be negative. {way_out}")
    size = np.sqrt(diagonal)
    size = np.where(size > 0, size, np.max(size, initial=0.0))
    unit = mass / np.where(size > 0, size[:, None] * size, 1.0)
    apart = np.abs(unit - unit.T)
    if np.max(apart) > _ROUND_OFF:
        i, j = sorted(np.unravel_index(int(np.argmax(apart)), apart.shape))
        raise UserError(
            f"{name} is not symmetric: it has {at(i, j)}, but {at(j, i)}. Give both the same value."
        )
    values, motions = np.linalg.eigh(unit)
    if values[0] < -_ROUND_OFF * len(names):
        # The entries that make it so are those between the coordinates that move most.
        i, j = sorted(np.argsort(-np.abs(motions[:, 0]))[:2])
        raise UserError(
            f"{name} is indefinite: with {at(i, j)} beside {at(i, i)} and {at(j, j)}, some motion "
            f"has a negative kinetic energy. {way_out}"
        )
    free = np.flatnonzero(~np.any(jacobian, axis=0))
    values, motions = np.linalg.eigh(unit[np.ix_(free, free)])
    if free.size and values[0] <= _ROUND_OFF * len(names):
        i = int(free[np.argmax(np.abs(motions[:, 0]))])
        raise UserError(
            f"{name} is singular: with {at(i, i)}, a motion that no constraint gives has no mass, "
            f"so its acceleration is not determined. {way_out}"
        )


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
    rows = _shape(f"{name}.constraint", system.constraint, t, q, mu)
    if len(rows) != 1:
        raise UserError(
            f"{name}.constraint returned shape {rows}; it must return one residual for each "
            "constraint, as a list or a vector (a single one in brackets)."
        )
    matrix, right = (
        _shape(f"{name}.nonholonomic", lambda *x, k=k: system.nonholonomic(*x)[k], t, q, mu)
        for k in range(2)
    )
    none = matrix == (0,) and right == (0,)
    if not none and (len(matrix) != 2 or matrix[1] != count or right != matrix[:1]):
        raise UserError(
            f"{name}.nonholonomic returned A of shape {matrix} and b of shape {right}; A must have "
            f"a row for each constraint and {count} columns, b a value for each row."
        )


def _check_dynamics(mechanism: AbstractMechanism, t, q, u, mu) -> None:
    count, name = q.shape[0], type(mechanism).__name__
    each = f"one for each coordinate: {', '.join(mechanism.coordinate_names)}"
    force = _shape(f"{name}.force", mechanism.force, t, q, q, u, mu)
    if force != (count,):
        raise UserError(
            f"{name}.force returned shape {force}; it must return {count} values, {each}."
        )
    mass = _shape(f"{name}.mass_matrix", mechanism.mass_matrix, q, mu)
    if mass not in ((count,), (count, count)):
        raise UserError(
            f"{name}.mass_matrix returned shape {mass}; it must return {count} values, {each}, or "
            f"a matrix of shape ({count}, {count})."
        )

    with plain_sentences(f"{name}.dry_friction", mu):
        contacts = jax.make_jaxpr(mechanism.contacts)(t, q, q, u, mu)
    check_indices(f"{name}.dry_friction", contacts)
    with plain_sentences(f"{name}.potential_energy", mu):
        potential = jax.make_jaxpr(mechanism.potential_energy)(q, mu)
    check_indices(f"{name}.potential_energy", potential)


def _shape(what: str, method: Callable, *arguments: Any) -> tuple[int, ...]:
    """The shape of what a method returns, as an array of real numbers."""

    def as_array(*arguments):
        value = method(*arguments)
        if value is None:
            raise UserError(f"{what} returned None; it must return numbers.")
        _check_real(what, value)
        if isinstance(value, (tuple, list)) and any(
            isinstance(row, (tuple, list)) for row in value
        ):
            return jnp.stack([vector(row) for row in value])
        return vector(value) if isinstance(value, (tuple, list)) else jnp.asarray(value)

    with plain_sentences(what, arguments[-1]):
        traced = jax.make_jaxpr(as_array)(*arguments)
    check_indices(what, traced)
    return traced.out_avals[0].shape


def _check_real(what: str, value: Any, place: str = "") -> None:
    """Raise `UserError` for complex numbers, whose imaginary part would be lost."""
    if isinstance(value, (tuple, list)):
        for i, entry in enumerate(value):
            _check_real(what, entry, f"{place}[{i}]")
    elif value is None:
        raise UserError(f"{what} has None in entry {place}; it must return numbers.")
    elif jnp.iscomplexobj(value):
        which = f"has complex numbers in entry {place}" if place else "returned complex numbers"
        raise UserError(f"{what} {which}; it must return real ones. Take jnp.real or jnp.abs.")


def check_indices(what: str, traced: Any) -> None:
    """Raise `UserError` for a constant index that lies beyond its array.

    **Arguments:**

    - `what`: the function, as the subject of a sentence.
    - `traced`: what `jax.make_jaxpr` makes of it.
    """
    for index, size in indices_beyond(traced):
        raise UserError(
            f"{what} takes entry {index}, counted from 0, of an array that has {size}; JAX would "
            f"take another one without a word. Give an index from 0 to {size - 1}."
        )


@contextlib.contextmanager
def plain_sentences(what: str, mu: Any = None) -> Iterator[None]:
    """Turn what a user's own function cannot do with traced values into a `UserError`.

    **Arguments:**

    - `what`: the function, as the subject of a sentence.
    - `mu`: the parameters that it is given, by name.
    """
    try:
        yield
    except _NEEDS_NUMBERS as error:
        raise UserError(
            f"{what} asks for plain numbers{_own_line(error)}, but JAX traces its values, to "
            "compile it. Use jax.numpy: jnp.sin for math.sin or np.sin, jnp.where for `if`."
        ) from error
    except (IndexError, TypeError) as error:
        raise UserError(f"{what} fails{_own_line(error)}: {error}") from error
    except KeyError as error:
        name = error.args[0] if error.args else None
        if mu is None or not isinstance(name, str) or name in mu:
            raise
        raise UserError(
            f"{what} asks for {name!r}, which is no parameter; there are "
            f"{', '.join(mu) or 'none'}. Put it in `parameters` of the class."
        ) from error


def _own_line(error: BaseException) -> str:
    """The last line that is a user's own, or nothing if there is none."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if not any(place in f.filename for place in _NOT_OWN)]
    return f" in '{own[-1].line}' (line {own[-1].lineno} of {own[-1].filename})" if own else ""
