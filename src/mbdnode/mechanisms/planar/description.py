"""What a planar mechanism is made of, as plain data that can be compared, hashed and written.

Every part has a name. Points are in the coordinates of their body, whose origin is its mass
center; those of the ground are in the plane itself. Numbers are in SI units, angles in radians.

Coordinates, inputs and parameters of a description, and where in the file each comes from.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mbdnode.mechanisms.planar.joint_friction import Friction
from mbdnode.mechanisms.toml_files.writing import changed_fields
from mbdnode.multibody import (
    Coordinate,
    Input,
    Parameter,
    angle,
    length,
    nonnegative,
    positive,
)

if TYPE_CHECKING:
    from mbdnode.multibody import Profile

GROUND = "ground"

Point = tuple[float, float]
Pair = tuple[str, str]
Points = tuple[Point, Point]


@dataclass(frozen=True)
class Body:
    """A rigid body, near where it is assembled.

    **Arguments:**

    - `center`, `angle`: its pose; the constraints move it to the nearest one that fits.
    - `mass`, `inertia`: about the mass center; both None for a body of which only the motion is
        known.
    - `coordinates`: the names of its two positions and its angle.
    """

    name: str
    center: Point
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
    """A whole mechanism; the parts are in the order of the file.

    **Arguments:**

    - `name`: of the mechanism.
    - `bodies`, `joints`, `springs`, `dampers`, `forces`, `torques`, `drives`: its parts.
    - `friction`: in its joints.
    - `gravity`: the acceleration; None for none.
    - `independent`: names of the coordinates to integrate; None lets the mechanism choose.
    - `allow_redundant`: whether constraints that repeat others are dropped.
    - `unknown`: names of the parameters to be identified.
    """

    name: str
    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...] = ()
    springs: tuple[Spring, ...] = ()
    dampers: tuple[Damper, ...] = ()
    forces: tuple[Force, ...] = ()
    torques: tuple[Torque, ...] = ()
    drives: tuple[Drive, ...] = ()
    friction: tuple[Friction, ...] = ()
    gravity: Point | None = None
    independent: tuple[str, ...] | None = None
    allow_redundant: bool = False
    unknown: tuple[str, ...] = ()

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
    "friction": Friction,
}


def to_dict(description: Description) -> dict[str, Any]:
    """A description as a file would have it, in plain lists, numbers and text.

    What `from_dict` reads back as an equal description; it can be written as JSON.
    """
    plain = changed_fields(description)
    for kind in PARTS:
        parts = {part.name: changed_fields(part) for part in getattr(description, kind)}
        plain.pop(kind, None)
        if parts:
            plain[kind] = {
                name: {key: value for key, value in part.items() if key != "name"}
                for name, part in parts.items()
            }
    return plain


Path = tuple[str, ...]


def make_coordinates(description: Description) -> tuple[Coordinate, ...]:
    """Three for each body: where its center is, and its angle."""
    return tuple(
        coordinate
        for body in description.bodies
        for coordinate in (
            length(body.coordinates[0]),
            length(body.coordinates[1]),
            angle(body.coordinates[2]),
        )
    )


def make_inputs(description: Description) -> tuple[Input, ...]:
    """The forces and then the torques that have no value of their own."""
    forces = [Input(force.name, "N") for force in description.forces if force.value is None]
    torques = [Input(torque.name, "N m") for torque in description.torques if torque.value is None]
    return (*forces, *torques)


def make_parameters(description: Description) -> tuple[Parameter, ...]:
    """Every number that `parameters=` can change."""
    return tuple(parameter for parameter, _ in _parameters(description))


def all_columns(description: Description) -> list[tuple[str, Path]]:
    """The names of a trajectory's columns, each with its place in the file."""
    columns: list[tuple[str, Path]] = [("t", ())]
    for body in description.bodies:
        path = ("bodies", body.name, "coordinates")
        columns += [(name, path) for name in body.coordinates]
        columns += [(f"{name}_dot", path) for name in body.coordinates]
    columns += [(f.name, ("forces", f.name)) for f in description.forces if f.value is None]
    columns += [(t.name, ("torques", t.name)) for t in description.torques if t.value is None]
    return columns


def all_parameters(description: Description) -> list[tuple[str, Path]]:
    """The names of the parameters, each with its place in the file."""
    return [(parameter.name, path) for parameter, path in _parameters(description)]


def drive_terms(drive: Drive, joint: Joint) -> list[tuple[str, float, str]]:
    """The numbers of a drive: key, value and unit."""
    unit = "rad" if joint.type == "revolute" else "m"
    if drive.coefficients is not None:
        units = [unit, f"{unit}/s", *(f"{unit}/s^{n}" for n in range(2, len(drive.coefficients)))]
        return [(f"c{n}", c, units[n]) for n, c in enumerate(drive.coefficients)]
    if drive.rate is not None:
        return [("start", drive.start, unit), ("rate", drive.rate, f"{unit}/s")]
    assert drive.amplitude is not None
    assert drive.frequency is not None
    return [
        ("offset", drive.offset, unit),
        ("amplitude", drive.amplitude, unit),
        ("frequency", drive.frequency, "Hz"),
        ("phase", drive.phase, "rad"),
    ]


def _parameters(description: Description) -> list[tuple[Parameter, Path]]:
    return [
        *_gravity(description),
        *_masses(description),
        *_sizes(description),
        *_laws(description),
        *_loads(description),
        *_drives(description),
        *_friction(description),
    ]


def _gravity(description: Description) -> list[tuple[Parameter, Path]]:
    return [
        (Parameter(f"gravity_{axis}", value, "m/s^2"), ("gravity",))
        for axis, value in zip("xy", description.gravity or (), strict=False)
    ]


def _masses(description: Description) -> list[tuple[Parameter, Path]]:
    found: list[tuple[Parameter, Path]] = []
    for body in description.bodies:
        if body.mass is None or body.inertia is None:
            continue
        name, path = body.name, ("bodies", body.name)
        found.append((positive(f"{name}_mass", body.mass, "kg"), (*path, "mass")))
        inertia = nonnegative(f"{name}_inertia", body.inertia, "kg m^2", "about the mass center")
        found.append((inertia, (*path, "inertia")))
    return found


def _sizes(description: Description) -> list[tuple[Parameter, Path]]:
    return [
        (positive(f"{joint.name}_{key}", value, "m"), ("joints", joint.name, key))
        for joint in description.joints
        for key, value in (("length", joint.length), ("radius", joint.radius))
        if value is not None
    ]


def _laws(description: Description) -> list[tuple[Parameter, Path]]:
    found: list[tuple[Parameter, Path]] = []
    for spring in description.springs:
        name, path = spring.name, ("springs", spring.name)
        turning = spring.type == "torsional"
        unit = "N m/rad" if turning else "N/m"
        stiffness = nonnegative(f"{name}_stiffness", spring.stiffness, unit)
        found.append((stiffness, (*path, "stiffness")))
        if turning:
            free = Parameter(f"{name}_free_angle", spring.free_angle, "rad")
            found.append((free, (*path, "free_angle")))
        elif spring.free_length is not None:
            free = nonnegative(f"{name}_free_length", spring.free_length, "m")
            found.append((free, (*path, "free_length")))
    for damper in description.dampers:
        unit = "N m s/rad" if damper.type == "torsional" else "N s/m"
        damping = nonnegative(f"{damper.name}_damping", damper.damping, unit)
        found.append((damping, ("dampers", damper.name, "damping")))
    return found


def _loads(description: Description) -> list[tuple[Parameter, Path]]:
    kinds = (("forces", description.forces, "N"), ("torques", description.torques, "N m"))
    return [
        (Parameter(f"{load.name}_value", load.value, unit), (kind, load.name, "value"))
        for kind, loads, unit in kinds
        for load in loads
        if load.value is not None
    ]


def _drives(description: Description) -> list[tuple[Parameter, Path]]:
    return [
        (
            positive(f"{drive.name}_{key}", value, unit)
            if key == "frequency"
            else Parameter(f"{drive.name}_{key}", value, unit),
            ("drives", drive.name),
        )
        for drive in description.drives
        for key, value, unit in drive_terms(drive, description.joint(drive.joint))
    ]


def _turning(description: Description, part: Friction) -> bool:
    return description.joint(part.joint).type == "revolute"


def _friction(description: Description) -> list[tuple[Parameter, Path]]:
    return [
        one
        for part in description.friction
        for one in part.parameters(turning=_turning(description, part))
    ]


def make_profiles(description: Description) -> "tuple[Profile, ...]":
    """Numbers that change along a joint."""
    return tuple(
        one
        for part in description.friction
        for one in part.profiles(turning=_turning(description, part))
    )
