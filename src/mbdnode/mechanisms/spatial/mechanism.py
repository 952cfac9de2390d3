"""A mechanism in space made at run time from a description: a tree of joints, with closed loops.

Its coordinates are those of the joints of the tree, so that a robot arm has no constraint at all.
Joints that close loops, couplings, drives and Euler parameters are constraints, which are kept like
those of every other mechanism. The description is static and compared by value: the same file read
twice uses the same compiled programs.
"""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.errors import UserError
from mbdnode.mechanisms.described import AbstractDescribed
from mbdnode.mechanisms.planar.joint_friction_forces import friction_limits, viscous_forces
from mbdnode.mechanisms.spatial.closures import (
    ROWS,
    VELOCITY_ROWS,
    closure_names,
    closures,
    velocity_closures,
)
from mbdnode.mechanisms.spatial.description import SpatialDescription
from mbdnode.mechanisms.spatial.graph import Layout, lay_out
from mbdnode.mechanisms.spatial.loads import (
    at_coordinates,
    at_nodes,
    keeps_energy,
    potential,
    rotor_inertias,
)
from mbdnode.mechanisms.spatial.outputs import measure, output_quantities
from mbdnode.mechanisms.spatial.parameters import AXES, INERTIA, is_turning, make_parameters
from mbdnode.mechanisms.spatial.writing import to_dict, to_toml
from mbdnode.multibody import AbstractMechanism, Coordinate, Input, Parameter, Params, Profile
from mbdnode.multibody.lie import composed, turned
from mbdnode.multibody.tree import Inertias, Poses

# Where each entry of an inertia matrix is among the six that are given.
_FULL = np.array([[0, 3, 4], [3, 1, 5], [4, 5, 2]])


class SpatialMechanism(AbstractDescribed, AbstractMechanism):
    """Bodies in space with masses, joints and loads.

    **Arguments:**

    - `description`: what it is made of; `read_mechanism` makes it from a file.
    """

    description: SpatialDescription = eqx.field(static=True)
    coordinates: tuple[Coordinate, ...] = eqx.field(static=True)
    inputs: tuple[Input, ...] = eqx.field(static=True)
    parameters: tuple[Parameter, ...] = eqx.field(static=True)
    independent: tuple[str, ...] | None = eqx.field(static=True)
    profiles: tuple[Profile, ...] = eqx.field(static=True)
    outputs: tuple[Coordinate, ...] = eqx.field(static=True)
    conservative: bool = eqx.field(static=True)

    # In space most loops have more closure equations than motions to take away.
    allow_redundant = True

    def __init__(self, description: SpatialDescription):
        self.description = description
        self.coordinates = self.layout.coordinates
        if not self.coordinates:
            raise UserError(
                f"Nothing can move in the mechanism {description.name!r}: all of its bodies are "
                "fixed to the ground. Give it a joint with a coordinate, such as a revolute one."
            )
        loads = [load for load in description.loads if load.value is None]
        forces = [Input(load.name, "N" if load.kind == "force" else "N m") for load in loads]
        units = {c.name: "N m" if c.is_angle else "N" for c in self.coordinates}
        motors = [Input(m.name, units[m.coordinate]) for m in description.motors]
        self.inputs = (*forces, *motors)
        self.parameters = make_parameters(description)
        self.independent = description.independent
        turning = [(part, is_turning(description, part)) for part in description.friction]
        self.profiles = tuple(p for part, turns in turning for p in part.profiles(turning=turns))
        self.outputs = output_quantities(description)
        self.conservative = keeps_energy(description)

    @property
    def layout(self) -> Layout:
        """The tree, the loops and the coordinates."""
        return lay_out(self.description)

    @property
    def reference(self) -> Mapping[str, float]:
        """The joints' start values."""
        return dict(zip(self.layout.names, map(float, self.layout.start), strict=True))

    @property
    def constraint_names(self) -> tuple[str, ...]:
        """The part and the row of each constraint."""
        layout, given = self.layout, self.description
        balls = [f"{layout.names[places[0]][:-3]} (norm)" for places in layout.balls]
        several = (*given.couplings, *given.drives)
        bound = [
            f"{j.name} ({row})"
            for kind in VELOCITY_ROWS
            for j in layout.closing
            if j.type == kind
            for row in VELOCITY_ROWS[kind]
        ]
        return (*balls, *closure_names(layout.closing), *(p.name for p in several), *bound)

    def to_dict(self) -> dict[str, Any]:
        """The description as plain data, which `from_dict` reads back."""
        return to_dict(self.description)

    def to_toml(self, parameters: Mapping[str, float] | None = None) -> str:
        """The text of a mechanism file, with other values of parameters if they are given."""
        return to_toml(self.description, parameters)

    def mass_matrix(self, q, mu):
        """Of the tree, with rotors."""
        tree, poses = self.layout.tree, self.poses(q)
        origin = tree.origin(poses)
        bodies = tree.world_inertias(poses, origin, self._inertias(mu))
        mass = tree.mass_matrix(tree.screws(q, poses, origin), bodies)
        rotors = rotor_inertias(self.description, self.layout, mu)
        return mass if rotors is None else mass + jnp.diag(rotors)

    def force(self, t, q, v, u, mu):
        """Applied forces, less what the motion itself takes."""
        given, layout = self.description, self.layout
        tree, poses = layout.tree, self.poses(q)
        origin = tree.origin(poses)
        screws = tree.screws(q, poses, origin)
        twists = tree.twists(screws, v)
        bodies = tree.world_inertias(poses, origin, self._inertias(mu))
        turning = tree.spatial_accelerations(screws, v)
        total = -tree.inverse_dynamics(screws, bodies, twists, turning, _gravity(mu))
        total = total + at_coordinates(given, layout, q, v, u, mu)
        acting = at_nodes(given, layout, poses, twists, origin, u, mu)
        if acting is not None:
            total = total + tree.generalized_force(screws, *acting)
        if any(part.viscous is not None for part in given.friction):
            places = layout.places([part.joint for part in given.friction])
            along = jnp.eye(len(layout.names), dtype=q.dtype)[places]
            total = total + viscous_forces(given.friction, q[places], v[places], mu) @ along
        return total

    def dry_friction(self, t, q, v, u, mu):
        """Along the coordinates of joints."""
        parts = self.description.friction
        if not parts:
            return None
        places = self.layout.places([part.joint for part in parts])
        rows = zip(parts, q[places], v[places], strict=True)
        limits = jnp.stack([friction_limits(part, s, rate, mu) for part, s, rate in rows])
        return jnp.eye(q.shape[0], dtype=q.dtype)[places], limits

    def constraint(self, t, q, mu):
        """Euler parameters, joints that close loops, couplings and drives."""
        given, layout = self.description, self.layout
        rows = [(jnp.sum(q[places] ** 2)[None] - 1.0) / 2 for places in layout.balls]
        if any(joint.type in ROWS for joint in layout.closing):
            rows += closures(layout, self.poses(q), mu)
        for coupling in given.couplings:
            follower, leader = layout.places(list(coupling.coordinates))
            powers = range(len(coupling.coefficients))
            value = sum(mu[f"{coupling.name}_c{p}"] * q[leader] ** p for p in powers)
            rows.append((q[follower] - value)[None])
        for drive in given.drives:
            place = layout.places([drive.joint])
            rows.append(q[place] - _prescribed(drive, t, mu))
        return jnp.concatenate(rows) if rows else jnp.zeros(0, q.dtype)

    def nonholonomic(self, t, q, mu):
        """What rolls and what has a blade."""
        layout = self.layout
        if not any(joint.type in VELOCITY_ROWS for joint in layout.closing):
            return (), ()
        tree, poses = layout.tree, self.poses(q)
        origin = tree.origin(poses)
        screws = tree.screws(q, poses, origin)

        def slips(v):
            twists = tree.twists(screws, v)
            return jnp.concatenate(velocity_closures(layout, poses, twists, origin, mu))

        matrix = jax.jacfwd(slips)(jnp.zeros_like(q))
        return matrix, jnp.zeros(matrix.shape[0], q.dtype)

    def potential_energy(self, q, mu):
        """Of weight, springs and constant loads."""
        poses, inertias = self.poses(q), self._inertias(mu)
        centers = poses.point(self.layout.tree.body_nodes, inertias.center)
        weight = -inertias.mass @ (centers @ _gravity(mu))
        return weight + potential(self.description, self.layout, q, poses, mu)

    def measure(self, t, q, v, a, mu):
        """The outputs of the description."""
        tree, poses = self.layout.tree, self.poses(q)
        origin = tree.origin(poses)
        screws = tree.screws(q, poses, origin)
        moving = tree.twists(screws, v), tree.spatial_accelerations(screws, v, a)
        return measure(self.description, self.layout, poses, origin, *moving, _gravity(mu))

    def poses(self, q: Float[Array, " nq"]) -> Poses:
        """Of the nodes of the tree, and of the ground."""
        return self.layout.tree.poses(q)

    def body_poses(
        self, q: Float[Array, " nq"]
    ) -> tuple[Float[Array, "bodies 3"], Float[Array, "bodies 3 3"]]:
        """The places of the bodies' origins, and their rotation matrices."""
        places = [self.layout.bodies[body.name] for body in self.description.bodies]
        nodes, found = np.array([place.node for place in places], int), self.poses(q)
        turn = jnp.asarray(np.stack([place.rotation for place in places]), q.dtype)
        at = found.point(nodes, np.stack([place.offset for place in places]))
        return at, composed(found.rotation[nodes], turn)

    def _inertias(self, mu: Params) -> Inertias:
        """In the axes of the nodes that carry the bodies."""
        layout, bodies = self.layout, self.description.bodies
        moving = [b for b in bodies if layout.bodies[b.name].node >= 0]
        keys = ("mass", *(f"center_{a}" for a in AXES), *(f"inertia_{k}" for k in INERTIA))
        table = jnp.stack([mu[f"{b.name}_{key}"] for b in moving for key in keys]).reshape(-1, 10)
        mass, center, inertia = table[:, 0], table[:, 1:4], table[:, 4:][:, _FULL]
        places = [layout.bodies[b.name] for b in moving]
        if all(place.is_own for place in places):
            return Inertias(mass, center, inertia)
        turn = jnp.asarray(np.stack([place.rotation for place in places]), table.dtype)
        offset = jnp.asarray(np.stack([place.offset for place in places]), table.dtype)
        center = turned(turn, center) + offset
        own = composed(composed(turn, inertia), jnp.swapaxes(turn, -1, -2))
        return Inertias(mass, center, own)


def _gravity(mu: Params) -> Float[Array, "3"]:
    return jnp.stack([mu[f"gravity_{axis}"] for axis in AXES])


def _prescribed(drive: Any, t, mu: Params) -> Float[Array, ""]:
    """Where a drive holds its coordinate."""
    value = lambda key: mu[f"{drive.name}_{key}"]  # noqa: E731
    if drive.coefficients is not None:
        return sum(value(f"c{n}") * t**n for n in range(len(drive.coefficients)))
    if drive.rate is not None:
        return value("start") + value("rate") * t
    return value("offset") + value("amplitude") * jnp.sin(
        2 * jnp.pi * value("frequency") * t + value("phase")
    )
