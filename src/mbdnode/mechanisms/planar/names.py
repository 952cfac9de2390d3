"""Coordinates, inputs and parameters of a description, and where in the file each comes from."""

from mbdnode.mechanisms.planar.description import Description, Drive, Joint
from mbdnode.multibody import Coordinate, Input, Parameter, angle, length, nonnegative, positive

Path = tuple[str, ...]


def make_coordinates(description: Description) -> tuple[Coordinate, ...]:
    """Three for each body: where its centre is, and its angle."""
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
        inertia = nonnegative(f"{name}_inertia", body.inertia, "kg m^2", "about the mass centre")
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
