"""The numbers of a mechanism in space that can be changed or identified, by name."""

from mbdnode.mechanisms.planar.description import Joint as PlanarJoint
from mbdnode.mechanisms.planar.description import drive_terms
from mbdnode.mechanisms.spatial.description import (
    COORDINATES,
    Body,
    Friction,
    Joint,
    SpatialDescription,
    Spring,
    coordinate_names,
)
from mbdnode.mechanisms.toml_files.key_lines import Path
from mbdnode.multibody import Parameter, nonnegative, positive

AXES = ("x", "y", "z")
INERTIA = ("xx", "yy", "zz", "xy", "xz", "yz")


def make_parameters(description: SpatialDescription) -> tuple[Parameter, ...]:
    """Every number that `parameters=` can change."""
    return tuple(parameter for parameter, _ in all_parameters(description))


def all_parameters(description: SpatialDescription) -> list[tuple[Parameter, Path]]:
    """Every parameter, with its place in what `to_dict` gives."""
    gravity = enumerate(zip(AXES, description.gravity, strict=True))
    found: list[tuple[Parameter, Path]] = [
        (Parameter(f"gravity_{axis}", value, "m/s^2"), ("gravity", str(n)))
        for n, (axis, value) in gravity
    ]
    for body in description.bodies:
        found += _of_body(body)
    for joint in description.joints:
        found += _of_joint(joint)
    for spring in description.springs:
        found += _of_spring(spring, unit_of(description, spring.coordinate))
    for load in description.loads:
        if load.value is not None:
            unit = "N" if load.kind == "force" else "N m"
            value = Parameter(f"{load.name}_value", load.value, unit)
            found.append((value, (f"{load.kind}s", load.name, "value")))
    for motor in description.motors:
        path, inertia = ("motors", motor.name), "rotor_inertia"
        found.append((Parameter(f"{motor.name}_gear", motor.gear), (*path, "gear")))
        rotor = nonnegative(f"{motor.name}_{inertia}", motor.rotor_inertia, "kg m^2")
        found.append((rotor, (*path, inertia)))
    for coupling in description.couplings:
        path = ("couplings", coupling.name, "coefficients")
        for power, value in enumerate(coupling.coefficients):
            found.append((Parameter(f"{coupling.name}_c{power}", value), (*path, str(power))))
    found += _of_drives(description)
    for part in description.friction:
        found += part.parameters(turning=is_turning(description, part))
    return found


def _of_body(body: Body) -> list[tuple[Parameter, Path]]:
    name, path = body.name, ("bodies", body.name)
    found: list[tuple[Parameter, Path]] = [
        (nonnegative(f"{name}_mass", body.mass, "kg"), (*path, "mass"))
    ]
    for n, (axis, value) in enumerate(zip(AXES, body.center, strict=True)):
        found.append((Parameter(f"{name}_center_{axis}", value, "m"), (*path, "center", str(n))))
    for n, (key, value) in enumerate(zip(INERTIA, body.inertia, strict=True)):
        # Robots' files have moments below zero; who reads one is warned of it.
        make = nonnegative if key in INERTIA[:3] and value >= 0 else Parameter
        entry = make(f"{name}_inertia_{key}", value, "kg m^2")
        found.append((entry, (*path, "inertia", str(n))))
    return found


def _of_joint(joint: Joint) -> list[tuple[Parameter, Path]]:
    path = ("joints", joint.name)
    found: list[tuple[Parameter, Path]] = [
        (positive(f"{joint.name}_{key}", value, "m"), (*path, key))
        for key, value in (("length", joint.length), ("radius", joint.radius))
        if value is not None
    ]
    if joint.armature:
        armature = nonnegative(f"{joint.name}_armature", joint.armature, "kg m^2")
        found.append((armature, (*path, "armature")))
    return found


def _of_spring(spring: Spring, unit: str) -> list[tuple[Parameter, Path]]:
    name, force = spring.name, "N m" if unit == "rad" else "N"
    values = (
        nonnegative(f"{name}_stiffness", spring.stiffness, f"{force}/{unit}"),
        nonnegative(f"{name}_damping", spring.damping, f"{force} s/{unit}"),
        Parameter(f"{name}_free", spring.free, unit),
        Parameter(f"{name}_preload", spring.preload, force),
    )
    return [(value, ("springs", name, value.name.removeprefix(f"{name}_"))) for value in values]


def _of_drives(description: SpatialDescription) -> list[tuple[Parameter, Path]]:
    found: list[tuple[Parameter, Path]] = []
    for drive in description.drives:
        turning = unit_of(description, drive.joint) == "rad"
        kind = "revolute" if turning else "prismatic"
        joint = PlanarJoint(drive.joint, kind, ("", ""), ((0.0, 0.0), (0.0, 0.0)))
        for key, value, unit in drive_terms(drive, joint):
            make = positive if key == "frequency" else Parameter
            in_list = drive.coefficients is not None
            place = ("coefficients", key[1:]) if in_list else (key,)
            path = ("drives", drive.name, *place)
            found.append((make(f"{drive.name}_{key}", value, unit), path))
    return found


def is_turning(description: SpatialDescription, part: Friction) -> bool:
    """Whether a friction acts on an angle."""
    return unit_of(description, part.joint) == "rad"


def unit_of(description: SpatialDescription, coordinate: str) -> str:
    """Of a coordinate by name; of the length between two points where there is none."""
    for joint in description.joints:
        names = coordinate_names(joint)
        if coordinate in names:
            return COORDINATES[joint.type][names.index(coordinate)][1]
    return "m"
