"""What a mechanism file in space may say: every key, its kind, and what it means.

The reader checks a file against these tables, and the documentation prints them.
"""

from mbdnode.mechanisms.planar.schema import DRIVES as PLANAR_DRIVES
from mbdnode.mechanisms.planar.schema import FRICTION as PLANAR_FRICTION
from mbdnode.mechanisms.spatial.description import GROUND
from mbdnode.mechanisms.spatial.shapes import shape
from mbdnode.mechanisms.spatial.values import (
    FRAME,
    axis,
    coordinate,
    coordinates,
    direction,
    frames,
    list_of,
    one_or_more,
    six_numbers,
    table,
    vector,
    vectors,
)
from mbdnode.mechanisms.toml_files.parts import PartKeys
from mbdnode.mechanisms.toml_files.values import (
    Key,
    angle,
    body,
    choice,
    flag,
    needed,
    number,
    numbers,
    pair,
    text,
    texts,
)

TOP = (
    Key("name", text, "what the mechanism is called; the file's name by default"),
    Key("gravity", vector, "acceleration of gravity `[x, y, z]` in m/s^2; none by default"),
    Key("independent", texts, "coordinates to integrate; chosen by the program by default"),
    Key("unknown", texts, "parameters that a fit is to find; their values are where it starts"),
)

BODY = (
    Key("mass", number, "kg", minimum=0.0),
    Key("center", vector, "of mass, `[x, y, z]` in m; default the body's origin"),
    Key("inertia", six_numbers, "about the mass center, `[xx, yy, zz, xy, xz, yz]` in kg m^2"),
    Key(
        "shapes",
        list_of(shape, '[{ type = "sphere", radius = 0.1 }]'),
        "what it looks like; shapes with a `density` give mass, center and inertia",
    ),
)

_BODIES = needed("bodies", pair, 'two bodies, such as `["ground", "arm"]`')
_FRAMES = Key("frames", frames, "a frame of each, `[{ at, rpy }, { at, rpy }]`; default their own")
_AXIS = Key("axis", axis, "in the first frame; default `[0, 0, 1]`")
_CUT = Key("cut", flag, "whether the joint closes a loop; chosen by the program by default")
_START = Key("start", one_or_more, "its coordinates near which it is assembled, rad or m")
_ARMATURE = Key("armature", number, "inertia of what moves with it, kg m^2 or kg", minimum=0.0)
_RADIUS = needed("radius", number, "of what rolls, m", minimum=0.0, strict=True)
_TREE = (_BODIES, _FRAMES, _CUT)

JOINTS: dict[str, tuple[Key, ...]] = {
    "revolute": (*_TREE, _START, _AXIS, _ARMATURE),
    "prismatic": (*_TREE, _START, _AXIS, _ARMATURE),
    "cylindrical": (*_TREE, _START, _AXIS),
    "universal": (
        *_TREE,
        _START,
        _AXIS,
        Key("second_axis", axis, "in the second frame; default `[1, 0, 0]`"),
    ),
    "spherical": (*_TREE, _START),
    "planar": (*_TREE, _START, _AXIS),
    "screw": (
        *_TREE,
        _START,
        _AXIS,
        needed("pitch", number, "how far it moves, m/rad"),
        _ARMATURE,
    ),
    "free": (_BODIES, _FRAMES, _START),
    "fixed": _TREE,
    "distance": (
        _BODIES,
        _FRAMES,
        needed("length", number, "between the frames, m", minimum=0.0, strict=True),
    ),
    "line": (_BODIES, _FRAMES, _AXIS),
    "rolling": (
        _BODIES,
        _FRAMES,
        _RADIUS,
        Key("axis", vector, "of a disk, in the second frame; zero for a ball"),
    ),
    "blade": (_BODIES, _FRAMES, _AXIS),
}

COUPLING = (
    needed("coordinates", coordinates, "the one that follows, and the one that it follows"),
    Key("ratio", number, "how many times the other one it is"),
    Key("coefficients", numbers, "of 1, x, x^2, ... of the other one x, instead of a ratio"),
)

_WHERE = (
    Key("bodies", pair, "two bodies; or a `coordinate`"),
    Key("points", vectors, "a point of each, `[[x, y, z], [x, y, z]]` in m; default their origins"),
    Key("coordinate", coordinate, "of a joint, along which it acts; or two `bodies`"),
)
_DAMPING = ("damping", number, "N s/m, or N m s/rad")

SPRING = (
    *_WHERE,
    needed("stiffness", number, "N/m, or N m/rad", minimum=0.0),
    Key(*_DAMPING, minimum=0.0),
    Key("free", angle, "length or coordinate at which it does not pull, m or rad; default 0"),
    Key("preload", number, "added to its pull, N or N m; default 0"),
)

DAMPER = (*_WHERE, needed(*_DAMPING, minimum=0.0))

_LOAD = (
    needed("body", body, "on which it acts"),
    needed("direction", direction, "`[x, y, z]`; its length does not matter"),
    Key("frame", choice, "of the direction; `body` turns with it", choices=(GROUND, "body")),
    Key("against", body, "on which the opposite acts; default the ground"),
)

FORCE = (
    *_LOAD,
    Key("at", vector, "where, in the body, `[x, y, z]` in m; default its origin"),
    Key("value", number, "of a constant force, N; without it, an input"),
)

TORQUE = (*_LOAD, Key("value", number, "of a constant torque, N m; without it, an input"))

MOTOR = (
    needed("coordinate", coordinate, "which it drives"),
    Key("gear", number, "its force is the input times this; default 1"),
    Key("rotor_inertia", number, "of the motor itself, kg m^2; default 0", minimum=0.0),
)

# As in the plane; but a joint with several coordinates is named with one of them.
_COORDINATE = needed("joint", coordinate, "a joint, or one coordinate of a joint with several")
DRIVES = {motion: (_COORDINATE, *keys[1:]) for motion, keys in PLANAR_DRIVES.items()}
FRICTION = (_COORDINATE, *PLANAR_FRICTION[1:])

_BODY = needed("body", body, "on which it is")
_AT, _RPY = FRAME
OUTPUTS = {
    "point": ((_BODY, _AT), "where a point is, m"),
    "velocity": ((_BODY, _AT), "of a point, m/s"),
    "acceleration": ((_BODY, _AT), "of a point, m/s^2"),
    "orientation": ((_BODY, _RPY), "Euler parameters, the scalar first"),
    "angular_velocity": ((_BODY,), "in the axes of the ground, rad/s"),
    "angular_acceleration": ((_BODY,), "in the axes of the ground, rad/s^2"),
    "gyroscope": ((_BODY, _RPY), "angular velocity in its own axes, rad/s"),
    "accelerometer": ((_BODY, _AT, _RPY), "acceleration less gravity in its own axes, m/s^2"),
    "distance": (
        (
            needed("bodies", pair, "two bodies"),
            Key("points", vectors, "a point of each; default their origins"),
        ),
        "between two points, m",
    ),
}

TABLES: dict[str, PartKeys] = {
    "bodies": PartKeys("body", {"": BODY}),
    "joints": PartKeys("joint", JOINTS, "type"),
    "couplings": PartKeys("coupling", {"": COUPLING}),
    "springs": PartKeys("spring", {"": SPRING}),
    "dampers": PartKeys("damper", {"": DAMPER}),
    "forces": PartKeys("force", {"": FORCE}),
    "torques": PartKeys("torque", {"": TORQUE}),
    "motors": PartKeys("motor", {"": MOTOR}),
    "drives": PartKeys("drive", DRIVES, "motion"),
    "friction": PartKeys("friction", {"": FRICTION}),
    "outputs": PartKeys(
        "output",
        {
            "": tuple(
                Key(name, table(keys, f"the {name}"), meaning)
                for name, (keys, meaning) in OUTPUTS.items()
            )
        },
    ),
}
