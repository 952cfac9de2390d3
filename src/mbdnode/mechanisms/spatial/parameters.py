"""The numbers of a mechanism in space that can be changed or identified, by name."""

from mbdnode.mechanisms.planar.description import Joint as PlanarJoint
from mbdnode.mechanisms.planar.description import drive_terms
from mbdnode.mechanisms.spatial.description import Drive, Friction, SpatialDescription
from mbdnode.mechanisms.spatial.graph import COORDINATES, coordinate_names
from mbdnode.multibody import Parameter, nonnegative, positive

AXES = ("x", "y", "z")
INERTIA = ("xx", "yy", "zz", "xy", "xz", "yz")


def make_parameters(description: SpatialDescription) -> tuple[Parameter, ...]:
    """Every number that `parameters=` can change."""
    gravity = zip(AXES, description.gravity, strict=True)
    found = [Parameter(f"gravity_{axis}", value, "m/s^2") for axis, value in gravity]
    for body in description.bodies:
        name = body.name
        found.append(nonnegative(f"{name}_mass", body.mass, "kg"))
        for axis, value in zip(AXES, body.center, strict=True):
            found.append(Parameter(f"{name}_center_{axis}", value, "m"))
        for key, value in zip(INERTIA, body.inertia, strict=True):
            make = nonnegative if key in INERTIA[:3] else Parameter
            found.append(make(f"{name}_inertia_{key}", value, "kg m^2"))
    for joint in description.joints:
        for key, value in (("length", joint.length), ("radius", joint.radius)):
            if value is not None:
                found.append(positive(f"{joint.name}_{key}", value, "m"))
        if joint.armature:
            found.append(nonnegative(f"{joint.name}_armature", joint.armature, "kg m^2"))
    for spring in description.springs:
        unit = unit_of(description, spring.coordinate)
        force = "N m" if unit == "rad" else "N"
        found.append(nonnegative(f"{spring.name}_stiffness", spring.stiffness, f"{force}/{unit}"))
        found.append(nonnegative(f"{spring.name}_damping", spring.damping, f"{force} s/{unit}"))
        found.append(Parameter(f"{spring.name}_free", spring.free, unit))
        found.append(Parameter(f"{spring.name}_preload", spring.preload, force))
    for load in description.loads:
        if load.value is not None:
            unit = "N" if load.kind == "force" else "N m"
            found.append(Parameter(f"{load.name}_value", load.value, unit))
    for motor in description.motors:
        found.append(Parameter(f"{motor.name}_gear", motor.gear))
        found.append(nonnegative(f"{motor.name}_rotor_inertia", motor.rotor_inertia, "kg m^2"))
    for coupling in description.couplings:
        terms = enumerate(coupling.coefficients)
        found += [Parameter(f"{coupling.name}_c{power}", value) for power, value in terms]
    for drive in description.drives:
        found += _of_drive(description, drive)
    for part in description.friction:
        own = part.parameters(turning=is_turning(description, part))
        found += [parameter for parameter, _ in own]
    return tuple(found)


def _of_drive(description: SpatialDescription, drive: Drive) -> list[Parameter]:
    turning = unit_of(description, drive.joint) == "rad"
    kind = "revolute" if turning else "prismatic"
    joint = PlanarJoint(drive.joint, kind, ("", ""), ((0.0, 0.0), (0.0, 0.0)))
    terms = drive_terms(drive, joint)
    return [
        (positive if key == "frequency" else Parameter)(f"{drive.name}_{key}", value, unit)
        for key, value, unit in terms
    ]


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
