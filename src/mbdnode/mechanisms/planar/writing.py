"""From a description to the text of a TOML file that reads back as the same mechanism."""

import json
import re
from collections.abc import Mapping
from typing import Any

from mbdnode.mechanisms.planar.description import PARTS, Description, all_parameters, to_dict
from mbdnode.naming import unknown_name

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def to_toml(description: Description, parameters: Mapping[str, float] | None = None) -> str:
    """The text of a mechanism file.

    A text that `from_text` reads; in SI units and radians, without comments.
    """
    data = to_dict(description)
    places = dict(all_parameters(description))
    for name, value in (parameters or {}).items():
        if name not in places:
            raise unknown_name("parameter", name, places)
        _place(data, places[name], name, float(value))
    lines = [f"{key} = {_value(value)}" for key, value in data.items() if key not in PARTS]
    for kind in PARTS:
        for part, keys in data.get(kind, {}).items():
            lines += ["", f"[{kind}.{_key(part)}]"]
            lines += [f"{key} = {_value(value)}" for key, value in keys.items()]
    return "\n".join(lines) + "\n"


def _place(data: dict[str, Any], path: tuple[str, ...], name: str, value: float) -> None:
    """Put the value of a parameter where the file has it."""
    if path == ("gravity",):
        data["gravity"]["xy".index(name[-1])] = value
        return
    if path[0] == "drives":
        part = data["drives"][path[1]]
        key = name.removeprefix(f"{path[1]}_")
        if "coefficients" in part:
            part["coefficients"][int(key[1:])] = value
        else:
            part[key] = value
        return
    kind, part, key, *place = path
    if place:
        data[kind][part][key][int(place[0])] = value
    else:
        data[kind][part][key] = value


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name)


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_value(item) for item in value)}]"
    # Text and truth values are written in TOML as in JSON, and so are floats.
    return json.dumps(value, ensure_ascii=False)
