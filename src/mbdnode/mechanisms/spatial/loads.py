"""What pushes the bodies: springs and dampers, forces and torques, motors.

Forces at points are wrenches on the nodes of the tree, at the origin `o` at which its screws are
taken; what acts along a coordinate is a generalized force already.
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.mechanisms.spatial.description import GROUND, Load, SpatialDescription, Spring
from mbdnode.mechanisms.spatial.graph import Layout, coordinate_names
from mbdnode.multibody import Inputs, Params
from mbdnode.multibody.lie import cross
from mbdnode.multibody.tree import Poses, Twist


def values(mu: Params, parts: Sequence[Any], key: str) -> Float[Array, " n"]:
    """A parameter of every part."""
    return jnp.stack([mu[f"{part.name}_{key}"] for part in parts])


def keeps_energy(description: SpatialDescription) -> bool:
    """Whether energy is constant without inputs."""
    damped = any(spring.damping for spring in description.springs)
    constant = [load for load in description.loads if load.value is not None]
    following = any(not has_potential(load) for load in constant)
    return not (damped or following or description.drives or description.friction)


def has_potential(load: Load) -> bool:
    """Whether a load is constant in size and direction, and acts against the ground."""
    steady = load.kind == "force" and load.frame == GROUND and load.against == GROUND
    return load.value is not None and steady


def at_coordinates(
    description: SpatialDescription, layout: Layout, q: Any, v: Any, u: Inputs, mu: Params
) -> Float[Array, " nq"]:
    """Springs, dampers and motors of joints."""
    total = jnp.zeros_like(q)
    springs = [s for s in description.springs if s.coordinate]
    if springs:
        places = layout.places([s.coordinate for s in springs])
        stretch = q[places] - values(mu, springs, "free")
        pull = values(mu, springs, "stiffness") * stretch + values(mu, springs, "preload")
        pull = pull + values(mu, springs, "damping") * v[places]
        total = total - pull @ _chosen(places, q)
    motors = description.motors
    if motors:
        places = layout.places([m.coordinate for m in motors])
        given = u[len(u) - len(motors) :] * values(mu, motors, "gear")
        total = total + given @ _chosen(places, q)
    return total


def rotor_inertias(
    description: SpatialDescription, layout: Layout, mu: Params
) -> Float[Array, " nq"] | None:
    """Armatures and rotors, which add to the diagonal of the mass matrix."""
    parts = []
    for joint in description.joints:
        if joint.armature:
            places = layout.places(coordinate_names(joint))
            parts.append((places, mu[f"{joint.name}_armature"]))
    for motor in description.motors:
        if motor.rotor_inertia:
            own = mu[f"{motor.name}_rotor_inertia"] * mu[f"{motor.name}_gear"] ** 2
            parts.append((layout.places([motor.coordinate]), own))
    if not parts:
        return None
    chosen = np.zeros((len(parts), len(layout.names)))
    for row, (places, _) in enumerate(parts):
        chosen[row, places] = 1.0
    inertias = jnp.stack([value for _, value in parts])
    return inertias @ jnp.asarray(chosen, inertias.dtype)


def _chosen(places: np.ndarray, q: Float[Array, " nq"]) -> Float[Array, "n nq"]:
    """A row for each place, with a one there."""
    return jnp.asarray(places[:, None] == np.arange(q.shape[0])[None, :], q.dtype)


def stretches(layout: Layout, springs: Sequence[Spring], poses: Poses):
    """Of springs between points: the nodes and the points of either end, lengths, directions."""
    ends = []
    for side in (0, 1):
        places = [layout.bodies[s.bodies[side]] for s in springs]
        at = [
            p.rotation @ np.array(s.points[side]) + p.offset
            for p, s in zip(places, springs, strict=True)
        ]
        nodes = np.array([p.node for p in places], int)
        ends.append((nodes, poses.point(nodes, np.stack(at))))
    (first, start), (second, end) = ends
    apart = end - start
    squared = jnp.sum(apart * apart, axis=1)
    there = squared > 0
    # Of nothing the direction is taken as zero.
    length = jnp.where(there, jnp.sqrt(jnp.where(there, squared, 1.0)), 0.0)
    direction = apart / jnp.where(there, length, 1.0)[:, None]
    return first, second, start, end, length, direction


def at_nodes(
    description: SpatialDescription,
    layout: Layout,
    poses: Poses,
    twists: Twist,
    origin: Float[Array, "3"],
    u: Inputs,
    mu: Params,
) -> tuple[np.ndarray, Twist] | None:
    """Wrenches of springs, forces and torques, and the nodes on which they act."""
    nodes, wrenches = [], []
    springs = [s for s in description.springs if not s.coordinate]
    if springs:
        first, second, start, end, length, direction = stretches(layout, springs, poses)
        arms = start - origin[None], end - origin[None]
        speeds = [
            twists.linear[n] + cross(twists.angular[n], a)
            for n, a in zip((first, second), arms, strict=True)
        ]
        rate = jnp.sum((speeds[1] - speeds[0]) * direction, axis=1)
        pull = values(mu, springs, "stiffness") * (length - values(mu, springs, "free"))
        pull = pull + values(mu, springs, "damping") * rate + values(mu, springs, "preload")
        force = pull[:, None] * direction
        nodes += [first, second]
        wrenches += [Twist(cross(arms[0], force), force), Twist(-cross(arms[1], force), -force)]
    loads, given = description.loads, 0
    for load in loads:
        size = mu[f"{load.name}_value"] if load.value is not None else u[given]
        given += load.value is None
        body = layout.bodies[load.body]
        axes = body if load.frame != GROUND else layout.bodies[GROUND]
        along = poses.direction(axes.node, axes.rotation @ np.array(load.direction)) * size
        arm = poses.point(body.node, body.rotation @ np.array(load.at) + body.offset) - origin
        if load.kind == "force":
            wrench = Twist(cross(arm, along)[None], along[None])
        else:
            wrench = Twist(along[None], jnp.zeros_like(along)[None])
        nodes += [np.array([body.node]), np.array([layout.bodies[load.against].node])]
        wrenches += [wrench, Twist(-wrench.angular, -wrench.linear)]
    if not nodes:
        return None
    parts = (jnp.concatenate(x) for x in zip(*wrenches, strict=True))
    return np.concatenate(nodes), Twist(*parts)


def potential(
    description: SpatialDescription, layout: Layout, q: Any, poses: Poses, mu: Params
) -> Float[Array, ""]:
    """Of springs, and of constant forces that have one."""
    total = jnp.zeros((), q.dtype)
    joints = [s for s in description.springs if s.coordinate]
    points = [s for s in description.springs if not s.coordinate]
    for springs in (joints, points):
        if not springs:
            continue
        if springs is joints:
            place = q[layout.places([s.coordinate for s in springs])]
        else:
            place = stretches(layout, springs, poses)[4]
        stretch = place - values(mu, springs, "free")
        energy = 0.5 * values(mu, springs, "stiffness") * stretch**2
        total = total + jnp.sum(energy + values(mu, springs, "preload") * place)
    for load in description.loads:
        if has_potential(load):
            body = layout.bodies[load.body]
            at = poses.point(body.node, body.rotation @ np.array(load.at) + body.offset)
            total = total - mu[f"{load.name}_value"] * (at @ jnp.asarray(load.direction, at.dtype))
    return total
