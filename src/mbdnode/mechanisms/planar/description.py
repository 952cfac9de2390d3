"""What a planar mechanism is made of, as plain data that can be compared, hashed and written.

Every part has a name. Points are in the coordinates of their body, whose origin is its mass
centre; those of the ground are in the plane itself. Numbers are in SI units, angles in radians.
"""

from dataclasses import dataclass, fields
from typing import Any

GROUND = "ground"

Point = tuple[float, float]
Pair = tuple[str, str]
Points = tuple[Point, Point]


@dataclass(frozen=True)
class Body:
    """A rigid body, near where it is assembled.

    **Arguments:**

    - `centre`, `angle`: its pose; the constraints move it to the nearest one that fits.
    - `mass`, `inertia`: about the mass centre; both None for a body of which only the motion is
        known.
    - `coordinates`: the names of its two positions and its angle.
    """

    name: str
    centre: Point
    coordinates: tuple[str, str, str]
    angle: float = 0.0
    mass: float | None = None
    inertia: float | None = None


@dataclass(frozen=True)
class Joint:
    """A joint between two bodies, at a point of each.

    **Arguments:**

    - `type`: "revolute", "prismatic", "fixed", "distance" or "rolling".
    - `direction`: of the axis or the line, in the first body's coordinates (prismatic, rolling).
    - `angle`: of the second body against the first (prismatic, fixed).
    - `length`: between the points (distance).
    - `radius`: of the wheel, which is the second body (rolling).
    """

    name: str
    type: str
    bodies: Pair
    points: Points
    direction: float = 0.0
    angle: float = 0.0
    length: float | None = None
    radius: float | None = None


@dataclass(frozen=True)
class Spring:
    """A linear spring between two points ("linear"), or two angles ("torsional")."""

    name: str
    type: str
    bodies: Pair
    stiffness: float
    points: Points | None = None
    free_length: float | None = None
    free_angle: float = 0.0


@dataclass(frozen=True)
class Damper:
    """A linear damper between two points ("linear"), or two angles ("torsional")."""

    name: str
    type: str
    bodies: Pair
    damping: float
    points: Points | None = None


@dataclass(frozen=True)
class Force:
    """A force at a point; an input of its name, or constant where it has a value.

    **Arguments:**

    - `direction`: its angle, in the plane (`frame = "ground"`) or in the body (`"body"`).
    """

    name: str
    body: str
    point: Point = (0.0, 0.0)
    direction: float = 0.0
    frame: str = GROUND
    value: float | None = None


@dataclass(frozen=True)
class Torque:
    """A torque on the second body and against the first; an input, or constant with a value."""

    name: str
    bodies: Pair
    value: float | None = None


@dataclass(frozen=True)
class Drive:
    """The prescribed motion of a joint: its angle, or its displacement along the axis.

    **Arguments:**

    - `motion`: "rate", "sine" or "polynomial".
    - `start`, `rate`: of `start + rate t`.
    - `offset`, `amplitude`, `frequency`, `phase`: of `offset + amplitude sin(2 pi frequency t +
        phase)`, the frequency in hertz.
    - `coefficients`: of `c0 + c1 t + c2 t^2 + ...`.
    """

    name: str
    joint: str
    motion: str
    start: float = 0.0
    rate: float | None = None
    offset: float = 0.0
    amplitude: float | None = None
    frequency: float | None = None
    phase: float = 0.0
    coefficients: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Description:
    """A whole mechanism; the parts are in the order of the file."""

    name: str
    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...] = ()
    springs: tuple[Spring, ...] = ()
    dampers: tuple[Damper, ...] = ()
    forces: tuple[Force, ...] = ()
    torques: tuple[Torque, ...] = ()
    drives: tuple[Drive, ...] = ()
    gravity: Point | None = None
    independent: tuple[str, ...] | None = None
    allow_redundant: bool = False

    @property
    def weightless(self) -> tuple[str, ...]:
        """The bodies whose mass is not known."""
        return tuple(body.name for body in self.bodies if body.mass is None)

    def number(self, name: str) -> int:
        """The place of a body; the ground is number 0."""
        return (GROUND, *(body.name for body in self.bodies)).index(name)

    def joint(self, name: str) -> Joint:
        """A joint by name."""
        return next(joint for joint in self.joints if joint.name == name)


# The keys of a file that hold named parts.
PARTS: dict[str, type] = {
    "bodies": Body,
    "joints": Joint,
    "springs": Spring,
    "dampers": Damper,
    "forces": Force,
    "torques": Torque,
    "drives": Drive,
}


def to_dict(description: Description) -> dict[str, Any]:
    """A description as a file would have it, in plain lists, numbers and text.

    **Arguments:**

    - `description`: of a mechanism.

    **Returns:**

    What `from_dict` reads back as an equal description; it can be written as JSON.
    """
    plain = _plain(description)
    for kind in PARTS:
        parts = {part.name: _plain(part) for part in getattr(description, kind)}
        plain.pop(kind, None)
        if parts:
            plain[kind] = {
                name: {key: value for key, value in part.items() if key != "name"}
                for name, part in parts.items()
            }
    return plain


def _plain(part: Any) -> dict[str, Any]:
    """The fields that differ from their defaults."""
    values = {field.name: (getattr(part, field.name), field.default) for field in fields(part)}
    return {name: _lists(value) for name, (value, usual) in values.items() if value != usual}


def _lists(value: Any) -> Any:
    return [_lists(item) for item in value] if isinstance(value, tuple) else value
