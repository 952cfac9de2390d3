"""What pushes the bodies: weight, springs, dampers, constant loads and inputs.

Weight, springs and constant loads that keep their direction have a potential `V(q)`; everything
else does work along a displacement. Generalized forces are the slope of that work,

    Q = d/dx [ -V(x) + sum F.p(x) + sum T turn(x) - sum c l' l(x) - sum c turn' turn(x) ]  at x = q,

with forces, torques and rates of length held at their present values.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.mechanisms.planar.description import GROUND, Description, Force
from mbdnode.mechanisms.planar.joints import (
    between,
    coordinates_and_angles,
    points,
    size,
    turn,
    vectors,
)
from mbdnode.multibody import Coords, Inputs, Params


def has_potential(force: Force) -> bool:
    """Whether a force is constant in size and direction."""
    return force.value is not None and force.frame == GROUND


def keeps_energy(description: Description) -> bool:
    """Whether energy is constant without inputs."""
    turning = [f for f in description.forces if f.value is not None and not has_potential(f)]
    losing = description.dampers or description.friction
    return not (losing or description.drives or turning or description.weightless)


def potential(description: Description, q: Coords, mu: Params) -> Float[Array, ""]:
    """`V(q)` of weight, springs and the constant loads that have one."""
    w, total = coordinates_and_angles(q), jnp.zeros((), q.dtype)
    if description.gravity is not None:
        gravity = jnp.stack([mu["gravity_x"], mu["gravity_y"]])
        masses = jnp.stack([mu[f"{body.name}_mass"] for body in description.bodies])
        total = total - masses @ (q.reshape(-1, 3)[:, :2] @ gravity)
    for kind, free in (("linear", "free_length"), ("torsional", "free_angle")):
        springs = [spring for spring in description.springs if spring.type == kind]
        if springs:
            stretch = _measure(description, kind, springs, w) - _values(mu, springs, free)
            total = total + 0.5 * _values(mu, springs, "stiffness") @ stretch**2
    dead = [force for force in description.forces if has_potential(force)]
    if dead:
        total = total - _work_of_forces(description, dead, _values(mu, dead, "value"), q, q)
    steady = [torque for torque in description.torques if torque.value is not None]
    if steady:
        total = total - _values(mu, steady, "value") @ turn(description, steady)(w)
    return total


def generalized_force(
    description: Description, q: Coords, v: Coords, u: Inputs, mu: Params
) -> Coords:
    """`Q`, one for each coordinate."""
    damping = _damping(description, q, v, mu)

    def work(x):
        total = -potential(description, x, mu)
        for kind, dampers, force in damping:
            total = total + force @ _measure(description, kind, dampers, coordinates_and_angles(x))
        following = [f for f in description.forces if f.value is not None and not has_potential(f)]
        if following:
            sizes = _values(mu, following, "value")
            total = total + _work_of_forces(description, following, sizes, q, x)
        forces = [force for force in description.forces if force.value is None]
        if forces:
            total = total + _work_of_forces(description, forces, u[: len(forces)], q, x)
        torques = [torque for torque in description.torques if torque.value is None]
        if torques:
            total = total + u[len(forces) :] @ turn(description, torques)(coordinates_and_angles(x))
        return total

    return jax.grad(work)(q)


def _measure(
    description: Description, kind: str, parts: Sequence[Any], w: Array
) -> Float[Array, " n"]:
    """The length of linear springs or dampers, the angle of torsional ones."""
    if kind == "linear":
        return size(between(description, parts)(w))
    return turn(description, parts)(w)


def _damping(description: Description, q: Coords, v: Coords, mu: Params) -> list[Any]:
    """For each kind of damper: which they are, and the force that they give along themselves."""
    found = []
    for kind in ("linear", "torsional"):
        dampers = [damper for damper in description.dampers if damper.type == kind]
        if dampers:
            measure = lambda x, k=kind, d=dampers: _measure(  # noqa: E731
                description, k, d, coordinates_and_angles(x)
            )
            rate = jax.jvp(measure, (q,), (v,))[1]
            found.append((kind, dampers, -_values(mu, dampers, "damping") * rate))
    return found


def _work_of_forces(
    description: Description, forces: Sequence[Force], sizes: Array, q: Coords, x: Coords
) -> Float[Array, ""]:
    """Of forces that point as they do at `q`, up to the points where they act at `x`."""
    angle = np.array([force.direction for force in forces], float)
    units = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    frames = [force.body if force.frame == "body" else GROUND for force in forces]
    direction = vectors(description, frames, units)(coordinates_and_angles(q)).reshape(-1, 2)
    at = points(description, [force.body for force in forces], [f.point for f in forces])
    return sizes @ jnp.sum(direction * at(coordinates_and_angles(x)).reshape(-1, 2), axis=1)


def _values(mu: Params, parts: Sequence[Any], key: str) -> Float[Array, " n"]:
    return jnp.stack([mu[f"{part.name}_{key}"] for part in parts])
