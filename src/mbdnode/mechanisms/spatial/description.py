"""What a mechanism in space is made of, as plain data that can be compared, hashed and written.

Every part has a name. Numbers are in SI units, angles in radians. A body has a frame of its own, in
which its mass center, its inertia and the points on it are given; a joint joins a frame on one body
to a frame on another. The ground is a body that stands still, whose frame is the world's.
"""

from dataclasses import dataclass

from mbdnode.mechanisms.planar.description import GROUND as GROUND
from mbdnode.mechanisms.planar.description import Drive as Drive
from mbdnode.mechanisms.planar.description import Pair as Pair
from mbdnode.mechanisms.planar.joint_friction import Friction as Friction

Vector = tuple[float, float, float]
Inertia = tuple[float, float, float, float, float, float]
ORIGIN: Vector = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Frame:
    """A place and a direction on a body.

    **Arguments:**

    - `at`: its origin.
    - `rpy`: roll, pitch and yaw: turned about the body's x, then y, then z axis.
    """

    at: Vector = ORIGIN
    rpy: Vector = ORIGIN


@dataclass(frozen=True)
class Shape:
    """What a body looks like; it has no mass of its own.

    **Arguments:**

    - `type`: "capsule", "cylinder", "box", "sphere" or "mesh".
    - `frame`: of the box, cylinder, capsule (along its z axis), sphere or mesh in the body.
    - `size`: the edges of a box; the radius of a sphere; radius and length of a cylinder or
        capsule; the factors by which a mesh is scaled.
    - `file`: of a mesh.
    """

    type: str
    frame: Frame = Frame()
    size: tuple[float, ...] = ()
    file: str = ""


@dataclass(frozen=True)
class Body:
    """A rigid body.

    **Arguments:**

    - `mass`, `center`: and where its mass center is.
    - `inertia`: about the mass center, along the body's axes: xx, yy, zz, xy, xz, yz.
    - `shapes`: what it looks like.
    """

    name: str
    mass: float = 0.0
    center: Vector = ORIGIN
    inertia: Inertia = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    shapes: tuple[Shape, ...] = ()


@dataclass(frozen=True)
class Joint:
    """A joint between a frame on one body and a frame on another.

    **Arguments:**

    - `type`: "revolute", "prismatic", "cylindrical", "universal", "spherical", "planar", "screw",
        "free" or "fixed"; or a constraint without coordinates of its own: "distance", "line" (the
        second frame's origin stays on the axis), "rolling" (a disk or a ball on a plane) or "blade"
        (the first frame's origin does not move along the axis).
    - `axis`: in the first frame; of a universal joint the axis on the first body, of a planar joint
        the normal of the plane, of a rolling body its own axis in the second frame.
    - `second_axis`: of a universal joint, on the second body.
    - `pitch`: of a screw, in meters per radian.
    - `length`: of a distance.
    - `radius`: of what rolls on the first frame's x-y plane; a ball where `axis` is zero.
    - `cut`: whether the joint closes a loop; None to let the graph decide.
    - `start`: its coordinates near which the mechanism is assembled; zero by default.
    - `armature`: inertia of what turns or slides with the joint, such as a geared rotor's.
    """

    name: str
    type: str
    bodies: Pair
    frames: tuple[Frame, Frame] = (Frame(), Frame())
    axis: Vector = (0.0, 0.0, 1.0)
    second_axis: Vector = (1.0, 0.0, 0.0)
    pitch: float = 0.0
    length: float | None = None
    radius: float | None = None
    cut: bool | None = None
    start: tuple[float, ...] = ()
    armature: float = 0.0


# The coordinates of each type of joint: what is added to its name, and the unit. Euler parameters
# are numbers without a unit; the types that are not here have no coordinates.
COORDINATES: dict[str, tuple[tuple[str, str], ...]] = {
    "revolute": (("", "rad"),),
    "prismatic": (("", "m"),),
    "screw": (("", "rad"),),
    "cylindrical": (("_angle", "rad"), ("_slide", "m")),
    "universal": (("_1", "rad"), ("_2", "rad")),
    "planar": (("_x", "m"), ("_y", "m"), ("_angle", "rad")),
    "spherical": (("_e0", ""), ("_e1", ""), ("_e2", ""), ("_e3", "")),
    "free": (
        *(("_x", "m"), ("_y", "m"), ("_z", "m")),
        *(("_e0", ""), ("_e1", ""), ("_e2", ""), ("_e3", "")),
    ),
    "fixed": (),
}


def coordinate_names(joint: Joint) -> list[str]:
    """Of a joint, if it is one of the tree."""
    return [f"{joint.name}{suffix}" for suffix, _ in COORDINATES.get(joint.type, ())]


@dataclass(frozen=True)
class Coupling:
    """A coordinate as a polynomial of another: gears, rack and pinion, mimic joints.

    **Arguments:**

    - `coordinates`: the one that follows, and the one that it follows.
    - `coefficients`: of 1, x, x^2 and so on.
    """

    name: str
    coordinates: Pair
    coefficients: tuple[float, ...]


@dataclass(frozen=True)
class Spring:
    """A spring with a damper, between two points or along a coordinate of a joint.

    **Arguments:**

    - `bodies`, `points`: of one between two points.
    - `coordinate`: of one in a joint; empty for one between points.
    - `stiffness`, `damping`: force per displacement and per speed.
    - `free`: the length or the coordinate at which the spring does not act.
    - `preload`: force that is added; it pulls two points together, and a coordinate back.
    """

    name: str
    bodies: Pair = (GROUND, GROUND)
    points: tuple[Vector, Vector] = (ORIGIN, ORIGIN)
    coordinate: str = ""
    stiffness: float = 0.0
    damping: float = 0.0
    free: float = 0.0
    preload: float = 0.0


@dataclass(frozen=True)
class Load:
    """A force or a torque on a body; an input of its name, or constant where it has a value.

    **Arguments:**

    - `kind`: "force" or "torque".
    - `body`, `at`: on which it acts, and where.
    - `direction`: of it, in the axes of `frame`, "ground" or "body".
    - `against`: the body on which the opposite acts, at the same place.
    """

    name: str
    kind: str
    body: str
    direction: Vector
    at: Vector = ORIGIN
    frame: str = GROUND
    value: float | None = None
    against: str = GROUND


@dataclass(frozen=True)
class Motor:
    """A force or torque along a coordinate of a joint, through a gear.

    **Arguments:**

    - `coordinate`: which it drives.
    - `gear`: its force on the coordinate is the input times this.
    - `rotor_inertia`: of the motor itself; it acts on the coordinate times the gear squared.
    """

    name: str
    coordinate: str
    gear: float = 1.0
    rotor_inertia: float = 0.0


@dataclass(frozen=True)
class Output:
    """What is measured: columns that are functions of the state.

    **Arguments:**

    - `type`: "point", "velocity", "acceleration" (of a point, in the world), "orientation" (Euler
        parameters), "angular_velocity", "angular_acceleration" (in the world), "gyroscope" and
        "accelerometer" (in the axes of `frame`; the latter measures acceleration less gravity), or
        "distance".
    - `body`, `frame`: of the point or the sensor.
    - `other`, `other_at`: the second point of a distance.
    """

    name: str
    type: str
    body: str
    frame: Frame = Frame()
    other: str = GROUND
    other_at: Vector = ORIGIN


# The columns of each type of output: what is added to its name, and the unit.
_XYZ = ("_x", "_y", "_z")
OUTPUT_COLUMNS: dict[str, tuple[tuple[str, ...], str]] = {
    "point": (_XYZ, "m"),
    "velocity": (_XYZ, "m/s"),
    "acceleration": (_XYZ, "m/s^2"),
    "orientation": (("_e0", "_e1", "_e2", "_e3"), ""),
    "angular_velocity": (_XYZ, "rad/s"),
    "angular_acceleration": (_XYZ, "rad/s^2"),
    "gyroscope": (_XYZ, "rad/s"),
    "accelerometer": (_XYZ, "m/s^2"),
    "distance": (("",), "m"),
}


@dataclass(frozen=True)
class SpatialDescription:
    """A whole mechanism; the parts are in the order of the file.

    **Arguments:**

    - `name`: of the mechanism.
    - `bodies`, `joints`, `couplings`, `springs`, `loads`, `motors`, `drives`, `friction`,
        `outputs`: its parts. The `joint` of a drive or a friction is the name of a coordinate.
    - `gravity`: the acceleration.
    - `independent`: names of the coordinates to integrate; None lets the mechanism choose.
    - `unknown`: names of the parameters to be identified.
    """

    name: str
    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...] = ()
    couplings: tuple[Coupling, ...] = ()
    springs: tuple[Spring, ...] = ()
    loads: tuple[Load, ...] = ()
    motors: tuple[Motor, ...] = ()
    drives: tuple[Drive, ...] = ()
    friction: tuple[Friction, ...] = ()
    outputs: tuple[Output, ...] = ()
    gravity: Vector = ORIGIN
    independent: tuple[str, ...] | None = None
    unknown: tuple[str, ...] = ()

    def __post_init__(self):
        # Forces before torques, as a file has them, so that inputs are in one order.
        object.__setattr__(self, "loads", tuple(sorted(self.loads, key=lambda load: load.kind)))
