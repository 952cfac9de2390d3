"""From the description of a mechanism in space to what a file would hold, and to its text."""

from collections.abc import Mapping
from typing import Any

from mbdnode.mechanisms.spatial.description import Output, Shape, SpatialDescription
from mbdnode.mechanisms.spatial.parameters import all_parameters
from mbdnode.mechanisms.spatial.schema import TABLES
from mbdnode.mechanisms.toml_files.writing import changed_fields, put, toml_text
from mbdnode.naming import unknown_name

_PLAIN = ("couplings", "motors", "drives", "friction")


def to_dict(description: SpatialDescription) -> dict[str, Any]:
    """A description as a file would have it, in plain tables, lists, numbers and text.

    What `described` reads back as an equal description; it can be written as JSON.
    """
    kinds = {"bodies", "joints", "springs", "loads", "outputs", *_PLAIN}
    plain = {key: value for key, value in changed_fields(description).items() if key not in kinds}
    parts: dict[str, dict[str, Any]] = {
        kind: {part.name: changed_fields(part) for part in getattr(description, kind)}
        for kind in ("bodies", "joints", "springs", *_PLAIN)
    }
    for body in description.bodies:
        if body.shapes:
            parts["bodies"][body.name]["shapes"] = [_shape(shape) for shape in body.shapes]
    for joint in description.joints:
        keys = parts["joints"][joint.name]
        if "frames" in keys:
            keys["frames"] = [changed_fields(frame) for frame in joint.frames]
        if joint.type == "rolling":  # Without an axis it is a ball.
            keys["axis"] = list(joint.axis)
    for spring in description.springs:
        keys = parts["springs"][spring.name]
        keys["stiffness"] = spring.stiffness
        if not spring.coordinate:
            keys["bodies"] = list(spring.bodies)
    for kind in ("force", "torque"):
        loads = [load for load in description.loads if load.kind == kind]
        parts[f"{kind}s"] = {load.name: changed_fields(load) for load in loads}
        for keys in parts[f"{kind}s"].values():
            del keys["kind"]
    parts["outputs"] = {output.name: _output(output) for output in description.outputs}
    for kind in TABLES:
        if parts.get(kind):
            plain[kind] = {
                name: {key: value for key, value in keys.items() if key != "name"}
                for name, keys in parts[kind].items()
            }
    return plain


def to_toml(description: SpatialDescription, parameters: Mapping[str, float] | None = None) -> str:
    """The text of a mechanism file, with other values of parameters.

    In SI units and radians, without comments.
    """
    data = to_dict(description)
    places = {parameter.name: (parameter, path) for parameter, path in all_parameters(description)}
    for name, value in (parameters or {}).items():
        if name not in places:
            raise unknown_name("parameter", name, places)
        path = places[name][1]
        if path[-1].isdigit():
            _fill(data, path[:-1], description)
        put(data, path, float(value))
    return toml_text(data, TABLES)


def _fill(data: dict[str, Any], path: tuple[str, ...], description: SpatialDescription) -> None:
    """Write out a list of which one number is to change."""
    kind, *part = path
    if not part:
        data.setdefault(kind, list(description.gravity))
    elif kind == "bodies":
        body = next(body for body in description.bodies if body.name == part[0])
        data[kind][body.name].setdefault(part[1], list(getattr(body, part[1])))


def _shape(shape: Shape) -> dict[str, Any]:
    keys: dict[str, Any] = {"type": shape.type}
    if shape.type == "mesh":
        keys |= {"file": shape.file, "scale": list(shape.size)}
    elif shape.type == "box":
        keys["size"] = list(shape.size)
    else:
        keys |= dict(zip(("radius", "length"), shape.size, strict=False))
    return keys | changed_fields(shape.frame)


def _output(output: Output) -> dict[str, Any]:
    if output.type == "distance":
        ends = [list(output.frame.at), list(output.other_at)]
        return {"distance": {"bodies": [output.body, output.other], "points": ends}}
    return {output.type: {"body": output.body, **changed_fields(output.frame)}}
