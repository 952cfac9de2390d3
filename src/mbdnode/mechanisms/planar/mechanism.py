"""A planar mechanism made at run time from a description.

Every body has three coordinates, its mass center `(x, y)` and its angle, so the mass matrix is
constant and diagonal and there are no centrifugal terms; joints are constraints. The description is
static and compared by value: the same file read twice uses the same compiled programs.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NoReturn

import equinox as eqx
import jax
import jax.numpy as jnp

from mbdnode.errors import UserError
from mbdnode.mechanisms.described import AbstractDescribed
from mbdnode.mechanisms.planar import description as parts
from mbdnode.mechanisms.planar.description import (
    Description,
    make_coordinates,
    make_inputs,
    make_parameters,
    make_profiles,
)
from mbdnode.mechanisms.planar.joint_friction_forces import friction_limits, viscous_forces
from mbdnode.mechanisms.planar.joints import (
    constraint_names,
    constraints,
    coordinates_and_angles,
    joint_motions,
)
from mbdnode.mechanisms.planar.loads import generalized_force, keeps_energy, potential
from mbdnode.mechanisms.planar.writing import to_toml
from mbdnode.multibody import (
    AbstractMechanism,
    Coordinate,
    Input,
    Parameter,
    Profile,
)


class AbstractPlanar(AbstractDescribed):
    """What bodies in the plane have in common, whether or not their masses are known."""

    @property
    def reference(self) -> Mapping[str, float]:
        """The poses of the file."""
        return {
            name: value
            for body in self.description.bodies
            for name, value in zip(body.coordinates, (*body.center, body.angle), strict=True)
        }

    @property
    def constraint_names(self) -> tuple[str, ...]:
        """The joint and the row of each constraint."""
        return constraint_names(self.description)

    def to_dict(self) -> dict[str, Any]:
        """The description as plain data, which `from_dict` reads back."""
        return parts.to_dict(self.description)

    def to_toml(self, parameters: Mapping[str, float] | None = None) -> str:
        """The text of a mechanism file, with other values of parameters if they are given."""
        return to_toml(self.description, parameters)

    def lenient(self):
        """The same mechanism, with redundant constraints allowed."""
        kind: Any = type(self)
        return kind(replace(self.description, allow_redundant=True))

    def constraint(self, t, q, mu):
        """Joints and drives."""
        return constraints(self.description, t, q, mu)


class PlanarMechanism(AbstractPlanar, AbstractMechanism):
    """Planar bodies with known masses, joints and loads.

    **Arguments:**

    - `description`: what it is made of; `read_mechanism` makes it from a file.
    """

    description: Description = eqx.field(static=True)
    coordinates: tuple[Coordinate, ...] = eqx.field(static=True)
    inputs: tuple[Input, ...] = eqx.field(static=True)
    parameters: tuple[Parameter, ...] = eqx.field(static=True)
    independent: tuple[str, ...] | None = eqx.field(static=True)
    allow_redundant: bool = eqx.field(static=True)
    profiles: tuple[Profile, ...] = eqx.field(static=True)
    conservative: bool = eqx.field(static=True)
    separable: bool = eqx.field(static=True)

    def __init__(self, description: Description):
        if description.weightless:
            raise UserError(_no_dynamics(description))
        self.description = description
        self.coordinates = make_coordinates(description)
        self.inputs = make_inputs(description)
        self.parameters = make_parameters(description)
        self.independent = description.independent
        self.allow_redundant = description.allow_redundant
        self.profiles = make_profiles(description)
        self.conservative = keeps_energy(description)
        self.separable = not (description.joints or description.dampers or description.friction)

    def mass_matrix(self, q, mu):
        """Constant and diagonal."""
        return [
            mu[f"{body.name}_{key}"]
            for body in self.description.bodies
            for key in ("mass", "mass", "inertia")
        ]

    def force(self, t, q, v, u, mu):
        """Weight, springs, dampers, viscous friction of joints, loads and inputs."""
        force = generalized_force(self.description, q, v, u, mu)
        parts = self.description.friction
        if all(part.viscous is None for part in parts):
            return force
        motion, along = self._joint_motions(q), jax.jacfwd(self._joint_motions)(q)
        return force + viscous_forces(parts, motion, along @ v, mu) @ along

    def dry_friction(self, t, q, v, u, mu):
        """Of joints: against their angular velocity, or the velocity along their axis."""
        parts = self.description.friction
        if not parts:
            return None
        motion, along = self._joint_motions(q), jax.jacfwd(self._joint_motions)(q)
        rows = zip(parts, motion, along @ v, strict=True)
        return along, jnp.stack([friction_limits(part, s, rate, mu) for part, s, rate in rows])

    def _joint_motions(self, q):
        """The angle or the displacement of every joint with friction."""
        joints = [self.description.joint(part.joint) for part in self.description.friction]
        w = coordinates_and_angles(q)
        return jnp.stack([joint_motions(self.description, [one], w)[0] for one in joints])

    def potential_energy(self, q, mu):
        """Of weight, springs and constant loads."""
        return potential(self.description, q, mu)


class PlanarKinematics(AbstractPlanar):
    """Planar bodies of which only the motion is known: constraints, but no accelerations.

    It can be assembled, partitioned and drawn, and a model can be learned on it.

    **Arguments:**

    - `description`: in which some body has no mass.
    """

    description: Description = eqx.field(static=True)
    coordinates: tuple[Coordinate, ...] = eqx.field(static=True)
    inputs: tuple[Input, ...] = eqx.field(static=True)
    parameters: tuple[Parameter, ...] = eqx.field(static=True)
    independent: tuple[str, ...] | None = eqx.field(static=True)
    allow_redundant: bool = eqx.field(static=True)

    def __init__(self, description: Description):
        self.description = description
        self.coordinates = make_coordinates(description)
        self.inputs = make_inputs(description)
        self.parameters = make_parameters(description)
        self.independent = description.independent
        self.allow_redundant = description.allow_redundant

    def independent_acceleration(self, t, q, v, u, mu, tangent):
        """Refused, unless nothing is free to accelerate."""
        if tangent.split.independent.shape[0] == 0:
            return jnp.zeros(0, q.dtype)
        self._refuse()

    def mass_matrix(self, q, mu) -> NoReturn:
        """Refused."""
        self._refuse()

    def force(self, t, q, v, u, mu) -> NoReturn:
        """Refused."""
        self._refuse()

    def potential_energy(self, q, mu) -> NoReturn:
        """Refused."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise UserError(_no_dynamics(self.description))


def _no_dynamics(description: Description) -> str:
    lacking = description.weightless
    several = len(lacking) > 1
    return (
        f"The mechanism {description.name!r} gives no mass and inertia for {', '.join(lacking)}, "
        "so its forces, energy and accelerations are not known; only its kinematics "
        f"are usable. Add mass and inertia to {'these bodies' if several else 'this body'} in "
        "the file, or learn a model on it."
    )
