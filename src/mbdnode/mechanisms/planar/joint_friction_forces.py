"""The forces of friction in joints, by the law of `joint_friction`."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbdnode.mechanisms.planar.joint_friction import Friction
from mbdnode.multibody import Params


def friction_limits(part: Friction, s: Any, rate: Any, mu: Params) -> Float[Array, "2"]:
    """Of dry friction in a joint, backward and forward."""
    both = jnp.stack(_both(part, "limit", "backward", s, mu))
    if part.static is None or part.speed is None:
        return both
    rest = jnp.exp(-((rate / mu[f"{part.name}_speed"]) ** 2))
    return both * (1 + (mu[f"{part.name}_static"] - 1) * rest)


def viscous_forces(
    parts: Sequence[Friction], s: Float[Array, " n"], rates: Float[Array, " n"], mu: Params
) -> Float[Array, " n"]:
    """Of all frictions in joints, along their motions."""
    rows = zip(parts, s, rates, strict=True)
    return jnp.stack([_viscous_force(part, place, rate, mu) for part, place, rate in rows])


def _viscous_force(part: Friction, s: Any, rate: Any, mu: Params) -> Any:
    """Along the motion, so below zero while it goes forward."""
    if part.viscous is None:
        return jnp.zeros_like(rate)
    backward, forward = _both(part, "viscous", "viscous_backward", s, mu)
    return -jnp.where(rate > 0, forward, backward) * rate


def _both(part: Friction, key: str, other: str, s: Any, mu: Params) -> tuple[Any, Any]:
    """The values of backward and of forward motion."""
    forward = _value(part, key, s, mu)
    return (forward if getattr(part, other) is None else _value(part, other, s, mu)), forward


def _value(part: Friction, key: str, s: Any, mu: Params) -> Any:
    along = part.profile(key)
    return mu[f"{part.name}_{key}"] if along is None else along(s, mu)
