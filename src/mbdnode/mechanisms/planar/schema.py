"""What a mechanism file may say: every key, its kind, whether it must be there, what it means.

The reader checks a file against these tables, and the documentation prints them.
"""

from mbdnode.mechanisms.planar.description import GROUND
from mbdnode.mechanisms.toml_files.parts import PartKeys
from mbdnode.mechanisms.toml_files.values import (
    Key,
    along,
    angle,
    body,
    choice,
    flag,
    joint,
    names,
    needed,
    number,
    numbers,
    pair,
    point,
    points,
    text,
    texts,
)

TOP = (
    Key("name", text, "what the mechanism is called; the file's name by default"),
    Key("plane", choice, "in which the mechanism moves; `xy`", choices=("xy",)),
    Key("gravity", point, "acceleration of gravity `[x, y]` in m/s^2; none by default"),
    Key("independent", texts, "coordinates to integrate; chosen by the program by default"),
    Key("allow_redundant", flag, "solve without the constraints that repeat others; default no"),
    Key("unknown", texts, "parameters that a fit is to find; their values are where it starts"),
)

_BODIES = needed("bodies", pair, 'two bodies, such as `["ground", "crank"]`')
_POINTS = needed("points", points, "a point of each, `[[x, y], [x, y]]` in m")

BODY = (
    needed("center", point, "near where its mass center is assembled, `[x, y]` in m"),
    Key("angle", angle, "near which angle it is assembled, rad; default 0"),
    Key("mass", number, "kg; leave out mass and inertia if unknown", minimum=0.0, strict=True),
    Key("inertia", number, "about the mass center, kg m^2", minimum=0.0),
    Key("coordinates", names, "names of x, y and angle; default `NAME_x`, `NAME_y`, `NAME_angle`"),
)

_DIRECTION = Key("direction", angle, "of the axis or line in the first body, rad; default 0")
_RELATIVE = Key("angle", angle, "of the second body against the first, rad; default 0")

JOINTS: dict[str, tuple[Key, ...]] = {
    "revolute": (_BODIES, _POINTS),
    "prismatic": (_BODIES, _POINTS, _DIRECTION, _RELATIVE),
    "fixed": (_BODIES, _POINTS, _RELATIVE),
    "distance": (
        _BODIES,
        _POINTS,
        needed("length", number, "between the points, m", minimum=0.0, strict=True),
    ),
    "rolling": (
        _BODIES,
        _POINTS,
        needed("radius", number, "of the wheel, m", minimum=0.0, strict=True),
        _DIRECTION,
    ),
}

_STIFFNESS = needed("stiffness", number, "N/m, or N m/rad", minimum=0.0)
_DAMPING = needed("damping", number, "N s/m, or N m s/rad", minimum=0.0)

SPRINGS: dict[str, tuple[Key, ...]] = {
    "linear": (
        _BODIES,
        _POINTS,
        _STIFFNESS,
        needed("free_length", number, "at which it does not pull, m", minimum=0.0),
    ),
    "torsional": (
        _BODIES,
        _STIFFNESS,
        Key("free_angle", angle, "second body against first, rad; default 0"),
    ),
}

DAMPERS: dict[str, tuple[Key, ...]] = {
    "linear": (_BODIES, _POINTS, _DAMPING),
    "torsional": (_BODIES, _DAMPING),
}

FORCE = (
    needed("body", body, "on which it acts"),
    Key("point", point, "where, in the body, `[x, y]` in m; default its center"),
    Key("direction", angle, "of the force, rad; default 0, along x"),
    Key("frame", choice, "of the direction; `body` turns with it", choices=(GROUND, "body")),
    Key("value", number, "of a constant force, N; without it, an input"),
)

TORQUE = (
    needed("bodies", pair, "it turns the second, and the first the other way"),
    Key("value", number, "of a constant torque, N m; without it, an input"),
)

_JOINT = needed("joint", joint, "a revolute or prismatic joint")

DRIVES: dict[str, tuple[Key, ...]] = {
    "rate": (
        _JOINT,
        needed("rate", number, "rad/s or m/s"),
        Key("start", angle, "at t = 0, rad or m; default 0"),
    ),
    "sine": (
        _JOINT,
        needed("amplitude", angle, "rad or m"),
        needed("frequency", number, "Hz", minimum=0.0, strict=True),
        Key("phase", angle, "rad; default 0"),
        Key("offset", angle, "the middle, rad or m; default 0"),
    ),
    "polynomial": (
        _JOINT,
        needed("coefficients", numbers, "of 1, t, t^2, ..., in rad or m and s"),
    ),
}

FRICTION = (
    _JOINT,
    needed("limit", along, "up to which it holds, N m or N", minimum=0.0),
    Key("backward", along, "the same while it moves backward; default as `limit`", minimum=0.0),
    Key("static", number, "how many times the limit holds at rest; default 1", minimum=1.0),
    Key("speed", number, "at which most of that is gone, rad/s or m/s", minimum=0.0, strict=True),
    Key("viscous", along, "per speed, N m s/rad or N s/m; default 0", minimum=0.0),
    Key("viscous_backward", along, "the same backward; default as `viscous`", minimum=0.0),
    Key("over", point, "where the first and last of several values lie, rad or m"),
)


TABLES: dict[str, PartKeys] = {
    "bodies": PartKeys("body", {"": BODY}),
    "joints": PartKeys("joint", JOINTS, "type"),
    "springs": PartKeys("spring", SPRINGS, "type"),
    "dampers": PartKeys("damper", DAMPERS, "type"),
    "forces": PartKeys("force", {"": FORCE}),
    "torques": PartKeys("torque", {"": TORQUE}),
    "drives": PartKeys("drive", DRIVES, "motion"),
    "friction": PartKeys("friction", {"": FRICTION}),
}
