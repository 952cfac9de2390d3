"""From a description to the text of a TOML file that reads back as the same mechanism."""

from collections.abc import Mapping
from typing import Any

from mbdnode.mechanisms.planar.description import PARTS, Description, all_parameters, to_dict
from mbdnode.mechanisms.toml_files.writing import put, toml_text
from mbdnode.naming import unknown_name


def to_toml(description: Description, parameters: Mapping[str, float] | None = None) -> str:
    """The text of a mechanism file.

    A text that `from_text` reads; in SI units and radians, without comments.
    """
    data = to_dict(description)
    places = dict(all_parameters(description))
    for name, value in (parameters or {}).items():
        if name not in places:
            raise unknown_name("parameter", name, places)
        put(data, _place(data, places[name], name), float(value))
    return toml_text(data, PARTS)


def _place(data: dict[str, Any], path: tuple[str, ...], name: str) -> tuple[str, ...]:
    """Where plain data have the value of a parameter."""
    if path == ("gravity",):
        return "gravity", str("xy".index(name[-1]))
    if path[0] == "drives":
        key = name.removeprefix(f"{path[1]}_")
        in_list = "coefficients" in data["drives"][path[1]]
        return (*path, "coefficients", key[1:]) if in_list else (*path, key)
    return path
