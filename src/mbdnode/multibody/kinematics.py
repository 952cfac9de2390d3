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
from jaxtyping import Array, Float

from mbdnode.multibody.system import AbstractSystem, Coords, Params, Time
from mbdnode.program_cache import stored_program

_Function = TypeVar("_Function", bound=Callable)


def compiled(function: _Function) -> _Function:
    """Compiled for calls on plain numbers; inlined, and free, inside a rollout."""
    return stored_program(function, inline=True)


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
    """`Phi(t, q)`."""
    return vector(system.constraint(t, q, mu)).astype(q.dtype)


def _nonholonomic(system, t, q, mu) -> tuple[Float[Array, "nn nq"], Float[Array, " nn"]]:
    matrix, right = system.nonholonomic(t, q, mu)
    if isinstance(matrix, (tuple, list)):
        rows = [vector(row) for row in matrix]
        matrix = jnp.stack(rows) if rows else jnp.zeros((0, q.shape[0]))
    return jnp.asarray(matrix).astype(q.dtype), vector(right).astype(q.dtype)


@compiled
def position_jacobian(
    system: AbstractSystem, t: Time, q: Coords, mu: Params
) -> Float[Array, "nh nq"]:
    """`Phi_q`, by forward-mode autodiff."""
    return jax.jacfwd(position_residual, argnums=2)(system, t, q, mu)


def position_time_derivative(
    system: AbstractSystem, t: Time, q: Coords, mu: Params
) -> Float[Array, " nh"]:
    """`Phi_t`; zero where the constraints do not depend on time."""
    return jax.jvp(lambda s: position_residual(system, s, q, mu), (t,), (jnp.ones_like(t),))[1]


@compiled
def velocity_constraints(
    system: AbstractSystem, t: Time, q: Coords, mu: Params
) -> tuple[Float[Array, "nc nq"], Float[Array, " nc"]]:
    """`C = [Phi_q; A]` and `c = [-Phi_t; b]`, so that `C v = c`."""
    matrix, right = _nonholonomic(system, t, q, mu)
    jacobian = position_jacobian(system, t, q, mu)
    drift = -position_time_derivative(system, t, q, mu)
    return jnp.concatenate([jacobian, matrix]), jnp.concatenate([drift, right])


@compiled
def velocity_residual(
    system: AbstractSystem, t: Time, q: Coords, v: Coords, mu: Params
) -> Float[Array, " nc"]:
    """`C v - c`: the rate at which `Phi` is left, then the nonholonomic rows."""
    moving = (jnp.ones_like(t), v)
    leaving = jax.jvp(lambda s, x: position_residual(system, s, x, mu), (t, q), moving)[1]
    matrix, right = _nonholonomic(system, t, q, mu)
    return jnp.concatenate([leaving, matrix @ v - right])


def gamma(system: AbstractSystem, t: Time, q: Coords, v: Coords, mu: Params) -> Float[Array, " nc"]:
    """The right-hand side of `C a = gamma`: what the curvature of the constraints asks for."""
    moving = (jnp.ones_like(t), v)
    held = lambda s, x: velocity_residual(system, s, x, v, mu)  # noqa: E731
    return -jax.jvp(held, (t, q), moving)[1]


def constraint_counts(system: AbstractSystem, mu: Params) -> tuple[int, int]:
    """How many holonomic and how many nonholonomic constraints there are."""
    leaves, structure = jax.tree.flatten((system, mu))
    # Shapes alone decide, and a loop under control asks at every step: traced once for each.
    kinds = tuple(_Kind(x.shape, x.dtype) if eqx.is_array(x) else x for x in leaves)
    try:
        return _counts(structure, kinds)
    except TypeError:  # What cannot be hashed.
        return _counts.__wrapped__(structure, kinds)


class _Kind(NamedTuple):
    """Of an array."""

    shape: tuple[int, ...]
    dtype: Any


@functools.lru_cache(maxsize=256)
def _counts(structure: Any, kinds: tuple) -> tuple[int, int]:
    shapes = [jax.ShapeDtypeStruct(*x) if isinstance(x, _Kind) else x for x in kinds]
    system, mu = jax.tree.unflatten(structure, shapes)
    t, q = jnp.zeros(()), jnp.zeros(len(system.coordinates))
    shape = eqx.filter_eval_shape
    holonomic = shape(position_residual, system, t, q, mu).shape[0]
    nonholonomic = shape(_nonholonomic, system, t, q, mu)[1].shape[0]
    return holonomic, nonholonomic
