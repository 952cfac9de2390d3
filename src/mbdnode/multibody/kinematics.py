"""Constraints and their derivatives, from `Phi` and the nonholonomic `(A, b)` alone.

With `d/dt` along the motion,

    position      Phi(t, q)            = 0
    velocity      Phi_q v + Phi_t      = 0,      A v - b        = 0
    acceleration  C a                  = gamma,  C = [Phi_q; A].

The velocity residual is the derivative of `Phi` in direction `(1, v)`; differentiating the
residual once more in that direction with `v` held gives `-gamma`. Autodiff does both.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.multibody.sparsity.constraint_structure import (
    Coloring,
    Structure,
    color_columns,
    structure_of,
)
from mbdnode.multibody.sparsity.sparse_constraints import Entries, SparseConstraints
from mbdnode.multibody.system import AbstractNamed, AbstractSystem, Coords, Params, Time

_Function = TypeVar("_Function", bound=Callable)


def compiled(function: _Function) -> _Function:
    """Compiled for calls on plain numbers; inlined, and free, inside a rollout."""
    return eqx.filter_jit(function, inline=True)  # pyright: ignore[reportCallIssue]


def vector(values) -> Float[Array, " n"]:
    """An array from what a user may return: an array, or a sequence of scalars."""
    if not isinstance(values, (tuple, list)):
        values = jnp.asarray(values)
        return values if jnp.issubdtype(values.dtype, jnp.floating) else values.astype(float)
    if not values:
        return jnp.zeros(0)
    kind = jnp.result_type(*values)
    kind = kind if jnp.issubdtype(kind, jnp.floating) else float
    return jnp.stack([jnp.asarray(value, kind) for value in values])


@compiled
def position_residual(
    system: AbstractSystem, t: Time, q: Coords, mu: Params
) -> Float[Array, " nh"]:
    """`Phi(t, q)` of `system`."""
    return vector(system.constraint(t, q, mu)).astype(q.dtype)


def _nonholonomic(system, t, q, mu) -> tuple[Float[Array, "nn nq"], Float[Array, " nn"]]:
    matrix, right = system.nonholonomic(t, q, mu)
    if isinstance(matrix, (tuple, list)):
        rows = [vector(row) for row in matrix]
        matrix = jnp.stack(rows) if rows else jnp.zeros((0, q.shape[0]))
    return jnp.asarray(matrix).astype(q.dtype), vector(right).astype(q.dtype)


class _Kind(NamedTuple):
    """Of an array."""

    shape: tuple[int, ...]
    dtype: Any


def _kind(x: Array) -> _Kind:
    """In double precision: what depends on what is the same in any."""
    return _Kind(x.shape, np.dtype(float) if jnp.issubdtype(x.dtype, jnp.floating) else x.dtype)


def by_shapes(function: Any, system: AbstractSystem, mu: Params, *more: Any) -> Any:
    """What a function finds of a system whose arrays are only shapes, found once for each.

    **Arguments:**

    - `function`: under `functools.lru_cache`; of a structure and leaves for `of_shapes`, and more.
    """
    leaves, structure = jax.tree.flatten((system, mu))
    # Shapes alone decide, and a loop under control asks at every step: traced once for each.
    kinds = tuple(_kind(x) if eqx.is_array(x) else x for x in leaves)
    try:
        return function(structure, kinds, *more)
    except TypeError:  # What cannot be hashed.
        return function.__wrapped__(structure, kinds, *more)


def of_shapes(structure: Any, kinds: tuple) -> tuple[Any, Any]:
    """The system and the parameters with shapes in place of arrays."""
    shapes = [jax.ShapeDtypeStruct(*x) if isinstance(x, _Kind) else x for x in kinds]
    return jax.tree.unflatten(structure, shapes)


def constraint_structure(system: AbstractSystem, mu: Params) -> tuple[Structure, Coloring]:
    """How the holonomic constraints of a system depend on its coordinates.

    A `Structure` with a row for each constraint, and the `Coloring` of `Phi_q`.
    """
    return by_shapes(structure_by_shapes, system, mu)


@functools.lru_cache(maxsize=256)
def structure_by_shapes(structure: Any, kinds: tuple) -> tuple[Structure, Coloring]:
    """The same for `by_shapes`."""
    given = of_shapes(structure, kinds)
    is_shape = lambda x: isinstance(x, jax.ShapeDtypeStruct)  # noqa: E731
    arrays, others = eqx.partition(given, is_shape)

    def function(q, t, arrays):
        system, mu = eqx.combine(arrays, others)
        return vector(system.constraint(t, q, mu)).astype(q.dtype)

    time = jax.ShapeDtypeStruct((), float)
    found = structure_of(function, len(given[0].coordinates), time, arrays)
    return found, color_columns(found)


@compiled
def position_jacobian(
    system: AbstractSystem, t: Time, q: Coords, mu: Params
) -> Float[Array, "nh nq"]:
    """`Phi_q` of `system`, by forward-mode autodiff along as few directions as possible."""
    _, coloring = constraint_structure(system, mu)
    return coloring.jacobian(lambda x: position_residual(system, t, x, mu), q)


def sparse_jacobian(
    system: AbstractSystem, sparse: SparseConstraints, t: Time, q: Coords, mu: Params
) -> Entries:
    """`Phi_q` of a large mechanism, joint by joint."""
    _, coloring = constraint_structure(system, mu)
    return sparse.entries(coloring.derivatives(lambda x: position_residual(system, t, x, mu), q))


def position_time_derivative(
    system: AbstractSystem, t: Time, q: Coords, mu: Params
) -> Float[Array, " nh"]:
    """`Phi_t` of `system`; zero where the constraints do not depend on time."""
    return jax.jvp(lambda s: position_residual(system, s, q, mu), (t,), (jnp.ones_like(t),))[1]


@compiled
def velocity_constraints(
    system: AbstractSystem, t: Time, q: Coords, mu: Params
) -> tuple[Float[Array, "nc nq"], Float[Array, " nc"]]:
    """`C = [Phi_q; A]` and `c = [-Phi_t; b]` of `system`, so that `C v = c`."""
    matrix, right = _nonholonomic(system, t, q, mu)
    jacobian = position_jacobian(system, t, q, mu)
    drift = -position_time_derivative(system, t, q, mu)
    return jnp.concatenate([jacobian, matrix]), jnp.concatenate([drift, right])


@compiled
def velocity_residual(
    system: AbstractSystem, t: Time, q: Coords, v: Coords, mu: Params
) -> Float[Array, " nc"]:
    """`C v - c` of `system`: the rate at which `Phi` is left, then the nonholonomic rows."""
    moving = (jnp.ones_like(t), v)
    leaving = jax.jvp(lambda s, x: position_residual(system, s, x, mu), (t, q), moving)[1]
    matrix, right = _nonholonomic(system, t, q, mu)
    return jnp.concatenate([leaving, matrix @ v - right])


def largest_residuals(
    system: AbstractNamed, t: Time, q: Coords, v: Coords, mu: Params
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The largest entries of `Phi` and of `C v - c` of `system`.

    Of a model they are those of its system, also where the model keeps no constraints; NaN where
    nobody knows them.
    """
    judged = system.residual_system
    if judged is None:
        return jnp.full((), jnp.nan, q.dtype), jnp.full((), jnp.nan, q.dtype)
    largest = lambda x: jnp.max(jnp.abs(x), initial=0.0)  # noqa: E731
    position = position_residual(judged, t, q, mu)
    return largest(position), largest(velocity_residual(judged, t, q, v, mu))


@compiled
def residuals_along(
    system: AbstractNamed,
    t: Float[Array, " n"],
    q: Float[Array, "n nq"],
    v: Float[Array, "n nq"],
    mu: Params,
) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """`largest_residuals` of `system` in every row."""
    return jax.vmap(lambda s, x, w: largest_residuals(system, s, x, w, mu))(t, q, v)


def gamma(system: AbstractSystem, t: Time, q: Coords, v: Coords, mu: Params) -> Float[Array, " nc"]:
    """The right-hand side of `C a = gamma`, from the curvature of the constraints of `system`."""
    moving = (jnp.ones_like(t), v)
    held = lambda s, x: velocity_residual(system, s, x, v, mu)  # noqa: E731
    return -jax.jvp(held, (t, q), moving)[1]


def constraint_counts(system: AbstractSystem, mu: Params) -> tuple[int, int]:
    """How many holonomic and how many nonholonomic constraints `system` has."""
    return by_shapes(_counts, system, mu)


@functools.lru_cache(maxsize=256)
def _counts(structure: Any, kinds: tuple) -> tuple[int, int]:
    system, mu = of_shapes(structure, kinds)
    t, q = (jax.ShapeDtypeStruct(shape, float) for shape in ((), (len(system.coordinates),)))
    shape = eqx.filter_eval_shape
    holonomic = shape(position_residual, system, t, q, mu).shape[0]
    nonholonomic = shape(_nonholonomic, system, t, q, mu)[1].shape[0]
    return holonomic, nonholonomic
