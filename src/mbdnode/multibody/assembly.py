"""Consistent states: the user gives what is known, the rest is completed or the request refused.

Known coordinates are held; the unknown ones move from their guess to the nearest configuration
(in the sense of each damped least-squares step) with `Phi(t, q) = 0`. Velocities solve the linear
constraints `C v = c`, the unknown ones with least norm, so that what nothing drives stands still.
"""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from mbdnode.errors import UserError
from mbdnode.levenberg_marquardt import minimize
from mbdnode.multibody.definition_checks import check_definition, check_mass
from mbdnode.multibody.partition import constraint_values
from mbdnode.multibody.system import (
    AbstractSystem,
    Params,
    is_traced,
    real_array,
    resolve_parameters,
)
from mbdnode.naming import by_name, unknown_name
from mbdnode.trajectory import State

# A completed state is accepted at round-off, relative to the mechanism's size.
_ROUND_OFF = 1e-10
# A given state further off than this is a mistake of the caller's, not rounding in a file.
OFF_MANIFOLD = 1e-6


def consistent_state(
    system: AbstractSystem,
    known: Any,
    *,
    guess: Any = None,
    t: float = 0.0,
    parameters: Any = None,
) -> State:
    """Complete a partly known state.

    **Arguments:**

    - `system`: whose state.
    - `known`: coordinates and velocities by name, such as `{"theta1": 1.0, "theta1_dot": 1.0}`.
    - `guess`: where to look for the other coordinates; the system's `reference` by default. It
        decides between the branches of a mechanism that can be assembled in several ways.
    - `t`: the time, for constraints that depend on it.
    - `parameters`: values other than the defaults.

    **Returns:**

    A `State` on the constraint manifold. Raises `UserError` if there is none with those values.
    """
    check_definition(system)
    names, rates = system.coordinate_names, system.rate_names
    known, near = by_name(known), {} if guess is None else by_name(guess)
    for what, given in (("known values", known), ("guess", near)):
        if not isinstance(given, Mapping):
            raise UserError(
                f"The {what} are {given!r}; give them by name, such as {{{names[0]!r}: 1.0}}."
            )
    near = {**system.reference, **near}
    for name, value in [*known.items(), *near.items()]:
        if name not in (*names, *rates):
            raise unknown_name("coordinate", name, (*names, *rates))
        if np.ndim(value) != 0 or not _is_finite(value):
            raise UserError(f"Initial value of {name!r} is {value!r}; it must be a finite number.")
    mu = resolve_parameters(system, parameters)
    time = jnp.asarray(np.asarray(t, float), float)
    start = np.array([float(known.get(n, near.get(n, 0.0))) for n in names])
    free = np.array([n not in known for n in names])
    q = _assemble(system, time, start, free, mu)
    v = np.array([float(known.get(r, near.get(r, 0.0))) for r in rates])
    v = _set_moving(system, time, q, v, np.array([r not in known for r in rates]), mu)
    return State(jnp.asarray(q, float), jnp.asarray(v, float))


def _assemble(system, t, start: np.ndarray, free: np.ndarray, mu: Params) -> np.ndarray:
    at_rest = jnp.asarray(np.zeros(start.shape), float)
    values = lambda q: constraint_values(system, t, jnp.asarray(q, float), at_rest, mu)  # noqa: E731
    first = values(start)
    count = first.position.size
    # In units of the coordinates' sizes, so that none is preferred.
    scale = first.scale[free]
    place = lambda x: _placed(x * scale, free, start)  # noqa: E731
    residual = lambda x: values(place(x)).position  # noqa: E731
    jacobian = lambda x: values(place(x)).jacobian[:count, free] * scale[None, :]  # noqa: E731

    def is_closed(q):
        here = values(q)
        reach = _reach(system, q)
        allowed = _allowed(_ROUND_OFF, here.jacobian[:count], reach, here.size[:count])
        return bool(np.all(np.abs(here.position) <= allowed))

    q = start
    if count and free.any() and np.max(np.abs(first.position)) > 0:
        for search in (_by_damped_steps, _by_trust_region):
            q = _refined(values, place(search(residual, jacobian, start[free] / scale)), free)
            if is_closed(q):
                return q
    if count and not is_closed(q):
        here, names = values(q), system.coordinate_names
        error, slopes = here.position, here.jacobian[:count]
        raise _impossible(system, "position", error, slopes, q, ~free, names)
    return q


def _by_damped_steps(residual, jacobian, start: np.ndarray) -> np.ndarray:
    """A few damped Gauss-Newton steps, which do for most."""
    return minimize(residual, jacobian, start, tolerance=1e-3).x


def _by_trust_region(residual, jacobian, start: np.ndarray) -> np.ndarray:
    """For a start that is far off, or where the constraints cannot be met."""
    import scipy.optimize  # It takes half as long to load as JAX.

    tight = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15}
    return scipy.optimize.least_squares(residual, start, jac=jacobian, **tight).x  # pyright: ignore


def _refined(values, q: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Least-norm Newton steps take it from small to round-off."""
    for _ in range(5):
        here, trial = values(q), q.copy()
        slopes = here.jacobian[: here.position.size, free]
        if not np.all(np.isfinite(slopes)):
            break
        trial[free] -= np.linalg.lstsq(slopes, here.position, rcond=1e-12)[0]
        if not np.linalg.norm(values(trial).position) < np.linalg.norm(here.position):
            break
        q = trial
    return q


def _set_moving(system, t, q, given: np.ndarray, free: np.ndarray, mu: Params) -> np.ndarray:
    q, rates = jnp.asarray(q, float), jnp.asarray(given, float)
    here = constraint_values(system, t, q, rates, mu)
    jacobian, right = here.jacobian, here.right
    if right.size == 0:
        return given
    v = given.copy()
    v[free] += np.linalg.lstsq(jacobian[:, free], right - jacobian @ given, rcond=1e-12)[0]
    error = jacobian @ v - right
    size = _moving(here.scale, here.size, v)
    if not np.all(np.abs(error) <= _allowed(_ROUND_OFF, jacobian, np.abs(v), size)):
        raise _impossible(system, "velocity", error, jacobian, v, ~free, system.rate_names)
    return v


def _is_finite(value: Any) -> bool:
    try:
        return bool(np.isfinite(float(value)))
    except (TypeError, ValueError):
        return False


def _allowed(
    tolerance: float, jacobian: np.ndarray, values: np.ndarray, size: np.ndarray
) -> np.ndarray:
    """What each constraint may read: a part of what its values would make it, plus round-off."""
    return tolerance * np.abs(jacobian) @ values + 1e3 * np.finfo(float).eps * size


def _moving(scale, size, v) -> np.ndarray:
    """The constraints' sizes at the velocity level, where round-off grows with the speed."""
    fastest = np.max(np.abs(np.asarray(v)) / np.asarray(scale), initial=0.0)
    return np.asarray(size) * max(1.0, float(fastest))


def _reach(system: AbstractSystem, q: np.ndarray) -> np.ndarray:
    """The largest length for each length, the largest angle for each angle."""
    is_angle = np.array([c.is_angle for c in system.coordinates])
    most = lambda mask: np.max(np.abs(q[mask]), initial=0.0)  # noqa: E731
    return np.where(is_angle, most(is_angle), most(~is_angle))


def _placed(values: np.ndarray, where: np.ndarray, others: np.ndarray) -> np.ndarray:
    full = others.copy()
    full[where] = values
    return full


def _impossible(system, level, error, jacobian, values, known, names) -> UserError:
    """Name the worst constraint, and the given values that stand in the way.

    The unknown values have done what they can, so the slope of the squared residual along the
    given ones says which of those would have to change.
    """
    worst = int(np.nanargmax(np.abs(error))) if np.any(np.isfinite(error)) else 0
    pull = np.abs(np.nan_to_num(jacobian.T @ error)) * known
    blamed = [names[i] for i in np.argsort(-pull) if pull[i] > 1e-6 * np.max(pull)]
    blamed = blamed or [name for name, is_known in zip(names, known, strict=True) if is_known]
    given = ", ".join(f"{n} = {values[names.index(n)]:g}" for n in blamed)
    who = f"The given {given} cannot be met" if given else "The constraints cannot be met"
    rows = getattr(system, "constraint_names", ())
    which = f"{worst} (counted from 0) of {type(system).__name__}"
    which = f"of the joint or drive {rows[worst]}" if worst < len(rows) else which
    way = "Give fewer values and let the rest be completed, change them" if given else ""
    way = way or "Check the points and lengths of its parts"
    return UserError(
        f"{who}: {level} constraint {which} is left with a residual of {error[worst]:.3g}. {way}, "
        "or give a guess nearer to the configuration that is meant."
    )


def real_state(state: State) -> State:
    """The `state` as arrays of real numbers; raises `UserError` for anything else."""
    try:
        return State(real_array(state.q), real_array(state.v))
    except (TypeError, ValueError) as error:
        raise UserError(
            f"The state has q = {state.q!r} and v = {state.v!r}; both must be arrays of real "
            "numbers, one for each coordinate."
        ) from error


def check_state(system: AbstractSystem, t, q, v, mu: Params) -> None:
    """Raise `UserError` unless a state of `system` has its size and is finite and consistent.

    Of traced values only the shapes can be checked.
    """
    count = len(system.coordinates)
    for label, values, names in (("q", q, system.coordinate_names), ("v", v, system.rate_names)):
        if jnp.shape(values) != (count,):
            raise UserError(
                f"Initial {label} has shape {jnp.shape(values)}; {type(system).__name__} has "
                f"{count} coordinate(s), so it must have shape ({count},): {', '.join(names)}."
            )
        if is_traced(values):
            continue
        values = np.asarray(values)
        if not np.all(np.isfinite(values)):
            index = int(np.argmin(np.isfinite(values)))
            raise UserError(
                f"Initial value of {names[index]!r} is {values[index]}; it must be a finite number."
            )
    if is_traced(system, t, q, v, mu):
        return
    here = constraint_values(system, t, q, v, mu)
    position, velocity, jacobian = here.position, here.velocity, here.jacobian
    check_mass(system, q, mu, jacobian)
    reach = _reach(system, np.asarray(q))
    speed = np.maximum(reach, np.abs(np.asarray(v)))
    rows, moving = here.size[: position.size], _moving(here.scale, here.size, v)
    checks = (
        ("position", position, _allowed(OFF_MANIFOLD, jacobian[: position.size], reach, rows)),
        ("velocity", velocity, _allowed(OFF_MANIFOLD, jacobian, speed, moving)),
    )
    for level, error, allowed in checks:
        if not np.all(np.abs(error) <= allowed):
            worst = int(np.argmax(np.abs(error)))
            raise UserError(
                f"The initial state is off the constraint manifold: {level} constraint {worst} "
                f"(counted from 0) has a residual of {error[worst]:.3g}. Use consistent_state to "
                "complete the state from the values that are known."
            )
