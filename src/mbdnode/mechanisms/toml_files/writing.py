"""From the parts of a mechanism to plain data, and from those to the text of a TOML file."""

import json
import re
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def changed_fields(part: Any) -> dict[str, Any]:
    """The fields of a dataclass that differ from their defaults, tuples as lists."""
    values = {field.name: (getattr(part, field.name), field.default) for field in fields(part)}
    return {name: _lists(value) for name, (value, usual) in values.items() if value != usual}


def toml_text(data: dict[str, Any], kinds: Iterable[str]) -> str:
    """The text of a file: what it says of the whole, then a table for each part of each kind."""
    kinds = tuple(kinds)
    lines = [f"{key} = {_value(value)}" for key, value in data.items() if key not in kinds]
    for kind in kinds:
        for part, keys in data.get(kind, {}).items():
            lines += ["", f"[{kind}.{_key(part)}]"]
            lines += [f"{key} = {_value(value)}" for key, value in keys.items()]
    return "\n".join(lines) + "\n"


def put(data: Any, path: tuple[str, ...], value: float) -> None:
    """Write a number where plain data have it; places in lists are digits."""
    *outer, last = path
    for key in outer:
        data = data[int(key)] if isinstance(data, list) else data.setdefault(key, {})
    data[int(last) if isinstance(data, list) else last] = value


def _lists(value: Any) -> Any:
    return [_lists(item) for item in value] if isinstance(value, tuple) else value


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name)


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_value(item) for item in value)}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_key(key)} = {_value(v)}' for key, v in value.items())} }}"
    # Text and truth values are written in TOML as in JSON, and so are floats.
    return json.dumps(value, ensure_ascii=False)
