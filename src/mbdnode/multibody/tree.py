"""Kinematics and dynamics of a tree of bodies in space, in the coordinates of its joints.

Every joint is a chain of elementary motions: a turn about an axis, a slide along one, a screw, or a
rotation by Euler parameters. Each is a `Node`. A node's pose in the world is the product of all
motions from the ground to it. These products are taken by doubling: every node first knows its
motion against its parent, then against its parent's parent, then against the fourth ancestor, so
that a tree of any shape needs as many products as the logarithm of its depth, and compilation does
not grow with the number of bodies.

With the poses known nothing else is recursive. Let column `c` of the tree's screws be the twist
`S_c = (omega, velocity at o)` of all that hangs on coordinate `c`, when that alone has velocity
one; `o` is a fixed point near the mechanism. With the matrix `B` that says which node moves what,

    V  = B (S v)                     twists of the bodies,
    A  = B (ad_V S v) + B (S a)      their accelerations, as spatial vectors,
    f  = I A + V x* I V - w          what moves them, less the applied wrenches `w`,
    Q  = S^T B^T f                   inverse dynamics,
    M  = S^T I_c S                   the mass matrix, with `I_c` of all that hangs on a node

(R. Featherstone, Rigid Body Dynamics Algorithms, 2008, in the world's axes at one point).
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.multibody.lie import (
    composed,
    cross,
    cross_matrix,
    quaternion_rates,
    quaternion_rotation,
    turned,
)

# Up to so many nodes a parent's pose is found by a product with a matrix of zeros and ones, which
# is compiled into the loop over steps; beyond, by an index, which costs less than the product.
_FEW_NODES = 64


@dataclass(frozen=True)
class Node:
    """One elementary motion, and the frame that it moves.

    **Arguments:**

    - `parent`: the node that it moves against; -1 for the ground.
    - `rotation`, `offset`: of its frame in the parent's, where the coordinate is zero.
    - `axis`, `point`: along or about which it moves, and a point on that line, in its own frame.
    - `turn`, `slide`: radians and meters for each unit of the coordinate.
    - `sign`: of a rotation by Euler parameters: 1, or -1 where it is the inverse; 0 of others.
    """

    parent: int
    rotation: np.ndarray
    offset: np.ndarray
    axis: np.ndarray
    point: np.ndarray
    turn: float = 0.0
    slide: float = 0.0
    sign: int = 0


class Poses(NamedTuple):
    """Of all nodes in the world, and of the ground, which comes last.

    **Arguments:**

    - `rotation`: turns vectors in a node's axes into the world's.
    - `place`: of its origin.
    """

    rotation: Float[Array, "nodes 3 3"]
    place: Float[Array, "nodes 3"]

    def point(self, node: int | np.ndarray, at: Any) -> Float[Array, "*n 3"]:
        """Where points of nodes are; -1 is the ground."""
        return self.place[node] + turned(self.rotation[node], jnp.asarray(at, self.place.dtype))

    def direction(self, node: int | np.ndarray, vector: Any) -> Float[Array, "*n 3"]:
        """Where vectors of nodes point."""
        return turned(self.rotation[node], jnp.asarray(vector, self.place.dtype))


class Twist(NamedTuple):
    """Spatial vectors: an angular and a linear part, at one point.

    Of velocities and accelerations the second part is that of what passes the point; of momenta
    and forces the first part is the moment about it.
    """

    angular: Float[Array, "*n 3"]
    linear: Float[Array, "*n 3"]

    def __add__(self, other: "Twist") -> "Twist":  # pyright: ignore[reportIncompatibleMethodOverride]
        return Twist(self.angular + other.angular, self.linear + other.linear)

    def along(self, columns: "Twist") -> Float[Array, " n"]:
        """The power of forces in motions, row by row."""
        both = self.angular * columns.angular + self.linear * columns.linear
        return jnp.sum(both, axis=-1)

    def summed(self, matrix: np.ndarray) -> "Twist":
        """Sums of several, as the rows of a matrix say."""
        both = jnp.concatenate(self, axis=-1)
        both = jnp.asarray(matrix, both.dtype) @ both
        return Twist(both[..., :3], both[..., 3:])

    def rates_under(self, moving: "Twist") -> "Twist":
        """How motions change that are carried along by others: `ad_V S`."""
        angular = cross(moving.angular, self.angular)
        linear = cross(moving.angular, self.linear) + cross(moving.linear, self.angular)
        return Twist(angular, linear)

    def at(self, arm: Float[Array, "*n 3"]) -> "Twist":
        """A motion as it is seen at another point, an `arm` away."""
        return Twist(self.angular, self.linear + cross(self.angular, arm))


class Inertias(NamedTuple):
    """Masses, centers and inertias of bodies in their nodes' axes.

    **Arguments:**

    - `mass`, `center`: and where the mass center is.
    - `inertia`: about the center.
    """

    mass: Float[Array, " bodies"]
    center: Float[Array, "bodies 3"]
    inertia: Float[Array, "bodies 3 3"]


class WorldInertias(NamedTuple):
    """The same about one point, in the world's axes, with the first moment `mass * center`."""

    mass: Float[Array, "n 1"]
    moment: Float[Array, "n 3"]
    inertia: Float[Array, "n 3 3"]

    def momentum(self, moving: Twist) -> Twist:
        """Of motions."""
        linear = self.mass * moving.linear + cross(moving.angular, self.moment)
        angular = turned(self.inertia, moving.angular) + cross(self.moment, moving.linear)
        return Twist(angular, linear)


class Tree:
    """Nodes, the bodies that hang on them, and what moves what.

    **Arguments:**

    - `nodes`: parents before children.
    - `body_nodes`: of each body that has mass; its axes are the node's.
    """

    def __init__(self, nodes: Sequence[Node], body_nodes: Sequence[int]):
        self.nodes, self.body_nodes = tuple(nodes), np.array(body_nodes, int)
        self.count = len(nodes)
        widths = [4 if node.sign else 1 for node in nodes]
        starts = np.cumsum([0, *widths])
        # The coordinates of each node, and the node of each coordinate.
        self.columns = [np.arange(a, b) for a, b in itertools.pairwise(starts)]
        self.column_nodes = np.repeat(np.arange(self.count), widths)
        stack = lambda name: np.array([getattr(n, name) for n in nodes], float)  # noqa: E731
        self.rotation, self.offset = stack("rotation"), stack("offset")
        self.axis, self.point = stack("axis"), stack("point")
        self.turn, self.slide = stack("turn"), stack("slide")
        self.sign = np.array([n.sign for n in nodes], int)
        above = np.eye(self.count, dtype=bool)
        for number, node in enumerate(nodes):
            if node.parent >= 0:
                above[number] |= above[node.parent]
        # Which node (column) moves which node, which body (row).
        self.moves_nodes = above.astype(float)
        self.moves_bodies = self.moves_nodes[self.body_nodes]

    @cached_property
    def _hinges(self) -> np.ndarray:
        """Nodes with one coordinate."""
        return np.flatnonzero(self.sign == 0)

    @cached_property
    def _balls(self) -> np.ndarray:
        """Nodes with Euler parameters."""
        return np.flatnonzero(self.sign != 0)

    @cached_property
    def _signs(self) -> np.ndarray:
        """By which the Euler parameters of each ball are multiplied in the tree."""
        sign = self.sign[self._balls].astype(float)
        return np.stack([np.ones_like(sign), sign, sign, sign], axis=1)

    @cached_property
    def _rounds(self) -> list[np.ndarray]:
        """The ancestors of all nodes, after each round of doubling; -1 for the ground."""
        above, rounds = np.array([node.parent for node in self.nodes], int), []
        while np.any(above >= 0):
            rounds.append(above)
            above = np.where(above >= 0, above[above], -1)
        return rounds

    def poses(self, q: Float[Array, " nq"]) -> Poses:
        """Of all nodes, at a configuration."""
        rotation, place = self._motions(q)
        for above in self._rounds:
            first, start = self._taken(rotation, place, above)
            rotation, place = composed(first, rotation), start + turned(first, place)
        ground = jnp.eye(3, dtype=q.dtype)[None], jnp.zeros((1, 3), q.dtype)
        return Poses(*(jnp.concatenate(x) for x in zip((rotation, place), ground, strict=True)))

    def _motions(self, q) -> tuple[Float[Array, "nodes 3 3"], Float[Array, "nodes 3"]]:
        """Of each node against its parent."""
        hinges, balls = self._hinges, self._balls
        own = self._hinge_values(q)
        angle = own * jnp.asarray(self.turn[hinges], q.dtype)
        axes = cross_matrix(self.axis[hinges])
        turn, twice = (jnp.asarray(x, q.dtype) for x in (axes, axes @ axes))
        turning = (
            jnp.eye(3, dtype=q.dtype)[None]
            + jnp.sin(angle)[:, None, None] * turn
            + (1 - jnp.cos(angle))[:, None, None] * twice
        )
        slid = jnp.asarray((self.axis * self.slide[:, None])[hinges], q.dtype) * own[:, None]
        if balls.size:
            parameters = self._ball_values(q)
            turning = jnp.concatenate([turning, quaternion_rotation(parameters)])
            slid = jnp.concatenate([slid, jnp.zeros((balls.size, 3), q.dtype)])
            order = np.argsort(np.concatenate([hinges, balls]))
            turning, slid = turning[order], slid[order]
        if np.any(self.point):
            point = jnp.asarray(self.point, q.dtype)
            slid = slid + point - turned(turning, point)
        fixed = jnp.asarray(self.rotation, q.dtype)
        return composed(fixed, turning), jnp.asarray(self.offset, q.dtype) + turned(fixed, slid)

    def _hinge_values(self, q):
        if not self._balls.size:
            return q
        return q[np.array([self.columns[n][0] for n in self._hinges], int)]

    def _ball_values(self, q):
        """The Euler parameters of each ball, as it turns in the tree."""
        places = np.array([self.columns[n] for n in self._balls])
        return q[places] * jnp.asarray(self._signs, q.dtype)

    def _taken(self, rotation, place, above: np.ndarray):
        """The motions of ancestors; of the ground none."""
        known = above >= 0
        still = jnp.asarray(np.where(known[:, None, None], 0.0, np.eye(3)), rotation.dtype)
        if self.count > _FEW_NODES:
            taken = np.where(known, above, 0)
            factor = jnp.asarray(known, rotation.dtype)
            return rotation[taken] * factor[:, None, None] + still, place[taken] * factor[:, None]
        chosen = np.zeros((self.count, self.count))
        chosen[np.flatnonzero(known), above[known]] = 1.0
        both = jnp.concatenate([rotation.reshape(-1, 9), place], axis=1)
        found = jnp.asarray(chosen, rotation.dtype) @ both
        return found[:, :9].reshape(-1, 3, 3) + still, found[:, 9:]

    def screws(self, q: Float[Array, " nq"], poses: Poses, origin: Float[Array, "3"]) -> Twist:
        """The twist that each coordinate's velocity gives, at `origin`."""
        rotation, arm = poses.rotation[: self.count], self._arms(poses, origin)
        hinges, balls = self._hinges, self._balls
        axis = turned(rotation, jnp.asarray(self.axis, q.dtype))[hinges]
        turn, slide = (jnp.asarray(x[hinges, None], q.dtype) for x in (self.turn, self.slide))
        angular = axis * turn
        linear = cross(arm[hinges], angular) + axis * slide
        if not balls.size:
            return Twist(angular, linear)
        signs = jnp.asarray(self._signs, q.dtype)
        own = quaternion_rates(self._ball_values(q)) * signs[:, :, None]
        # Of the body in its own axes: [balls, 4, 3] to the world's.
        spin = jnp.sum(rotation[balls][:, None, :, :] * own[:, :, None, :], axis=-1)
        sweep = cross(jnp.broadcast_to(arm[balls][:, None], spin.shape), spin)
        columns = [self.columns[n][0] for n in hinges] + [c for n in balls for c in self.columns[n]]
        order = np.argsort(columns)
        angular = jnp.concatenate([angular, spin.reshape(-1, 3)])[order]
        return Twist(angular, jnp.concatenate([linear, sweep.reshape(-1, 3)])[order])

    def _arms(self, poses: Poses, origin) -> Float[Array, "nodes 3"]:
        """From the origin to a point on the axis of each node."""
        place, rotation = poses.place[: self.count], poses.rotation[: self.count]
        if np.any(self.point):
            place = place + turned(rotation, jnp.asarray(self.point, place.dtype))
        return place - origin[None]

    @staticmethod
    def origin(poses: Poses) -> Float[Array, "3"]:
        """A point near the mechanism, so that moments about it are small."""
        return jax.lax.stop_gradient(jnp.mean(poses.place[:-1], axis=0))

    def _by_node(self, screws: Twist, rates: Float[Array, " nq"]) -> Twist:
        """What the coordinates of each node give together."""
        own = Twist(*(x * rates[:, None] for x in screws))
        if not self._balls.size:
            return own
        chosen = (np.arange(self.count)[:, None] == self.column_nodes[None, :]).astype(float)
        return own.summed(chosen)

    def twists(self, screws: Twist, v: Float[Array, " nq"]) -> Twist:
        """Of all nodes, and of the ground, which comes last, at the origin of the screws."""
        moving = self._by_node(screws, v).summed(self.moves_nodes)
        return Twist(*(jnp.concatenate([x, jnp.zeros((1, 3), x.dtype)]) for x in moving))

    def spatial_accelerations(
        self, screws: Twist, v: Float[Array, " nq"], a: Float[Array, " nq"] | None = None
    ) -> Twist:
        """Of all nodes, and of the ground; those that velocities alone give without `a`."""
        own = self._by_node(screws, v)
        before = own.summed(self.moves_nodes - np.eye(self.count))
        changing = own.rates_under(before)
        changing = changing if a is None else changing + self._by_node(screws, a)
        found = changing.summed(self.moves_nodes)
        return Twist(*(jnp.concatenate([x, jnp.zeros((1, 3), x.dtype)]) for x in found))

    def world_inertias(self, poses: Poses, origin, bodies: Inertias) -> WorldInertias:
        """Of the bodies, about the origin."""
        rotation, mass = poses.rotation[self.body_nodes], bodies.mass[:, None]
        center = poses.place[self.body_nodes] - origin[None] + turned(rotation, bodies.center)
        own = composed(composed(rotation, bodies.inertia), jnp.swapaxes(rotation, -1, -2))
        squared = jnp.sum(center * center, axis=-1)[:, None, None]
        away = (
            squared * jnp.eye(3, dtype=center.dtype)[None] - center[:, :, None] * center[:, None, :]
        )
        return WorldInertias(mass, mass * center, own + mass[:, :, None] * away)

    def mass_matrix(self, screws: Twist, bodies: WorldInertias) -> Float[Array, "nq nq"]:
        """`M`, from what hangs on each node."""
        flat = [bodies.mass, bodies.moment, bodies.inertia.reshape(-1, 9)]
        below = self.moves_bodies.T[self.column_nodes]
        table = jnp.concatenate(flat, axis=1)
        hanging = jnp.asarray(below, table.dtype) @ table
        inertia = hanging[:, 4:].reshape(-1, 3, 3)
        carried = WorldInertias(hanging[:, :1], hanging[:, 1:4], inertia).momentum(screws)
        products = jnp.concatenate(carried, axis=1) @ jnp.concatenate(screws, axis=1).T
        # Row: what is carried; column: a coordinate between it and the ground.
        path = self.moves_nodes[np.ix_(self.column_nodes, self.column_nodes)]
        same = self.column_nodes[:, None] == self.column_nodes[None, :]
        own, others = (jnp.asarray(x, products.dtype) for x in (path, path * ~same))
        return products * own + (products * others).T

    def inverse_dynamics(
        self,
        screws: Twist,
        bodies: WorldInertias,
        twists: Twist,
        accelerations: Twist,
        gravity: Float[Array, "3"],
    ) -> Float[Array, " nq"]:
        """The generalized forces under which bodies with these accelerations move."""
        moving, found = (Twist(*(x[self.body_nodes] for x in y)) for y in (twists, accelerations))
        found = Twist(found.angular, found.linear - gravity[None])
        momentum, change = bodies.momentum(moving), bodies.momentum(found)
        angular = cross(moving.angular, momentum.angular) + cross(moving.linear, momentum.linear)
        linear = cross(moving.angular, momentum.linear)
        wrench = change + Twist(angular, linear)
        return wrench.summed(self.moves_bodies.T[self.column_nodes]).along(screws)

    def generalized_force(
        self, screws: Twist, nodes: np.ndarray, wrenches: Twist
    ) -> Float[Array, " nq"]:
        """Of wrenches at the origin on nodes; those on the ground, -1, do no work."""
        moved = np.concatenate([self.moves_nodes, np.zeros((1, self.count))])[nodes]
        return wrenches.summed(moved.T[self.column_nodes]).along(screws)
