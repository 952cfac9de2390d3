"""From joints to a tree: which joints carry bodies, which close loops, what the coordinates are.

A spanning tree of the graph of bodies and joints is taken from the ground. Of the joints that may
be cut, those with the fewest coordinates come first into the tree, so that few coordinates and few
closure equations are left; a joint whose coordinate is named elsewhere (by a motor, a spring, a
drive) comes before others, since only joints of the tree have coordinates.
"""

import functools
from dataclasses import dataclass

import numpy as np

from mbdnode.errors import UserError
from mbdnode.mechanisms.spatial.description import (
    COORDINATES,
    GROUND,
    Frame,
    Joint,
    SpatialDescription,
    coordinate_names,
)
from mbdnode.multibody import Coordinate, angle, length
from mbdnode.multibody.lie import rotation_from_rpy
from mbdnode.multibody.tree import Node, Tree

_BALLS = ("spherical", "free")


@dataclass(frozen=True)
class Placement:
    """Where a frame is: on a node of the tree (-1 is the ground), turned and moved there."""

    node: int
    rotation: np.ndarray
    offset: np.ndarray

    def frame(self, frame: Frame) -> "Placement":
        """A frame that is given on this one."""
        turn, offset = matrix_of(frame)
        return Placement(self.node, self.rotation @ turn, self.rotation @ offset + self.offset)

    @property
    def is_own(self) -> bool:
        """Whether it is the node's own frame."""
        return not np.any(self.offset) and np.array_equal(self.rotation, np.eye(3))


@dataclass(frozen=True)
class Layout:
    """What follows from a description without numbers that can change.

    **Arguments:**

    - `tree`: its nodes; its bodies are those of the description that can move, in order.
    - `bodies`: where each body is, the ground too.
    - `coordinates`: in the order of the tree.
    - `start`: their values near which the mechanism is assembled.
    - `closing`: the joints that are constraints.
    - `balls`: the places of the Euler parameters of each ball.
    """

    tree: Tree
    bodies: dict[str, Placement]
    coordinates: tuple[Coordinate, ...]
    start: np.ndarray
    closing: tuple[Joint, ...]
    balls: tuple[np.ndarray, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the coordinates."""
        return tuple(c.name for c in self.coordinates)

    def places(self, names: list[str]) -> np.ndarray:
        """Of coordinates by name."""
        return np.array([self.names.index(name) for name in names], int)


def matrix_of(frame: Frame) -> tuple[np.ndarray, np.ndarray]:
    """The rotation and the origin of a frame."""
    turn = rotation_from_rpy(*frame.rpy) if any(frame.rpy) else np.eye(3)
    return turn, np.array(frame.at, float)


def perpendicular(axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two unit vectors that make a right-handed frame with a unit `axis` as the third."""
    # For the z axis they are x and y.
    near = np.eye(3)[0] if abs(axis[0]) <= 0.9 else np.eye(3)[1]
    first = near - (near @ axis) * axis
    first /= np.linalg.norm(first)
    return first, np.cross(axis, first)


def unit(axis: tuple[float, float, float]) -> np.ndarray:
    """An axis of length one."""
    return np.array(axis, float) / np.linalg.norm(axis)


@functools.lru_cache(maxsize=64)
def lay_out(description: SpatialDescription) -> Layout:
    """The tree, the loops and the coordinates of a mechanism."""
    joints, closing = _spanning_tree(description)
    placements = {GROUND: Placement(-1, np.eye(3), np.zeros(3))}
    nodes: list[Node] = []
    coordinates: list[Coordinate] = []
    start: list[float] = []
    for joint in joints:
        forward = joint.bodies[0] in placements
        parent, child = joint.bodies if forward else joint.bodies[::-1]
        near, far = joint.frames if forward else joint.frames[::-1]
        own, found = _chain(joint, placements[parent].frame(near), far, len(nodes), forward)
        nodes += own
        placements[child] = found
        units = [unit_ for _, unit_ in COORDINATES[joint.type]]
        made = [_coordinate(*pair) for pair in zip(coordinate_names(joint), units, strict=True)]
        values = joint.start or [float(c.name == f"{joint.name}_e0") for c in made]
        order = _reversed_order(joint) if not forward else list(range(len(made)))
        coordinates += [made[k] for k in order]
        start += [values[k] for k in order]
    moving = [b.name for b in description.bodies if placements[b.name].node >= 0]
    tree = Tree(nodes, [placements[name].node for name in moving])
    balls = tuple(tree.columns[k] for k, node in enumerate(nodes) if node.sign)
    return Layout(tree, placements, tuple(coordinates), np.array(start), closing, balls)


def _coordinate(name: str, unit_: str) -> Coordinate:
    if unit_ == "rad":
        return angle(name)
    return length(name) if unit_ else Coordinate(name, unit="")


def _reversed_order(joint: Joint) -> list[int]:
    """The coordinates of a joint that is taken from its second body to the first.

    Its elementary motions come in reverse, Euler parameters together.
    """
    count = len(COORDINATES[joint.type])
    if joint.type in _BALLS:
        return [*range(count - 4, count), *reversed(range(count - 4))]
    return list(reversed(range(count)))


def _spanning_tree(description: SpatialDescription) -> tuple[list[Joint], tuple[Joint, ...]]:
    """The joints of the tree, each after those that lead to it, and those that close loops."""
    named = _named_coordinates(description)

    def order(joint: Joint):
        is_named = any(name in named for name in coordinate_names(joint))
        return joint.cut is not False, joint.type != "fixed", not is_named, _width(joint)

    group = {body: body for body in [GROUND, *(b.name for b in description.bodies)]}

    def root(body: str) -> str:
        while group[body] != body:
            body = group[body]
        return body

    chosen: list[Joint] = []
    for joint in sorted(description.joints, key=order):
        first, second = map(root, joint.bodies)
        if joint.type not in COORDINATES or joint.cut or first == second:
            continue
        group[second] = first
        chosen.append(joint)
    for body in description.bodies:
        if root(body.name) != root(GROUND):
            group[root(body.name)] = root(GROUND)
            chosen.append(Joint(body.name, "free", (GROUND, body.name)))
    closing = tuple(j for j in description.joints if j not in chosen)
    for joint in closing:
        for name in coordinate_names(joint):
            if name in named:
                raise UserError(
                    f"The joint {joint.name!r} closes a loop, so it has no coordinate {name!r}, "
                    f"which {named[name]!r} needs. Say `cut = true` for another joint of the loop."
                )
    places = {joint.name: place for place, joint in enumerate([*description.joints, *chosen])}
    return _from_ground(chosen, places), closing


def _width(joint: Joint) -> int:
    return len(COORDINATES.get(joint.type, ()))


def _named_coordinates(description: SpatialDescription) -> dict[str, str]:
    """Coordinates that other parts need, each with the name of such a part."""
    found: dict[str, str] = {}
    for part in (*description.springs, *description.motors):
        found[part.coordinate] = part.name
    for part in (*description.drives, *description.friction):
        found[part.joint] = part.name
    for coupling in description.couplings:
        found.update(dict.fromkeys(coupling.coordinates, coupling.name))
    found.update(dict.fromkeys(description.independent or (), "independent"))
    for joint in description.joints:
        if joint.armature:
            found.update(dict.fromkeys(coordinate_names(joint), joint.name))
    return found


def _from_ground(chosen: list[Joint], places: dict[str, int]) -> list[Joint]:
    """The joints of the tree, depth first, those of one body in the order of the file."""
    at: dict[str, list[Joint]] = {}
    for joint in sorted(chosen, key=lambda j: places[j.name]):
        for body in joint.bodies:
            at.setdefault(body, []).append(joint)
    ordered: list[Joint] = []
    reached, waiting = {GROUND}, [(GROUND, joint) for joint in reversed(at.get(GROUND, []))]
    while waiting:
        body, joint = waiting.pop()
        if joint in ordered:
            continue
        ordered.append(joint)
        child = joint.bodies[1] if joint.bodies[0] == body else joint.bodies[0]
        reached.add(child)
        waiting += [(child, other) for other in reversed(at[child]) if other is not joint]
    return ordered


def _chain(
    joint: Joint, near: Placement, far: Frame, first: int, forward: bool
) -> tuple[list[Node], Placement]:
    """The nodes of a joint, and where the body is that they carry.

    With the far frame `F` on that body, its pose is that of the near frame times `J(q) F^-1`, which
    is `F^-1` times motions about axes in the body's own coordinates.
    """
    turn, at = matrix_of(far)
    motions = _motions(joint)
    if not forward:
        motions = [(axis, -a, -b, -sign) for axis, a, b, sign in reversed(motions)]
    # The frame that is carried: the body's own, or, if Euler parameters would have to be turned
    # into its axes, the joint's.
    own = not (any(sign for *_, sign in motions) and np.any(turn != np.eye(3)))
    axes, point = (turn, at) if own else (np.eye(3), np.zeros(3))
    rotation, offset = near.rotation @ axes.T, near.offset - near.rotation @ axes.T @ point
    nodes: list[Node] = []
    for axis, by_turn, by_slide, sign in motions:
        parent = first + len(nodes) - 1 if nodes else near.node
        nodes.append(Node(parent, rotation, offset, axes @ axis, point, by_turn, by_slide, sign))
        rotation, offset = np.eye(3), np.zeros(3)
    if not nodes:
        return nodes, Placement(near.node, rotation, offset)
    last = first + len(nodes) - 1
    if own:
        return nodes, Placement(last, np.eye(3), np.zeros(3))
    return nodes, Placement(last, turn.T, -turn.T @ at)


def _motions(joint: Joint) -> list[tuple[np.ndarray, float, float, int]]:
    """The elementary motions of a joint: axis, radians and meters a unit, Euler parameters."""
    x, y, z = np.eye(3)
    ball = (z, 0.0, 0.0, 1)
    if joint.type == "spherical":
        return [ball]
    if joint.type == "free":
        return [(x, 0.0, 1.0, 0), (y, 0.0, 1.0, 0), (z, 0.0, 1.0, 0), ball]
    if joint.type == "fixed":
        return []
    axis = unit(joint.axis)
    if joint.type == "universal":
        return [(axis, 1.0, 0.0, 0), (unit(joint.second_axis), 1.0, 0.0, 0)]
    if joint.type == "planar":
        first, second = perpendicular(axis)
        return [(first, 0.0, 1.0, 0), (second, 0.0, 1.0, 0), (axis, 1.0, 0.0, 0)]
    turning, sliding = (axis, 1.0, 0.0, 0), (axis, 0.0, 1.0, 0)
    return {
        "revolute": [turning],
        "prismatic": [sliding],
        "cylindrical": [turning, sliding],
        "screw": [(axis, 1.0, joint.pitch, 0)],
    }[joint.type]
