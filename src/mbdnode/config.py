"""Configurations are data: frozen dataclasses, to and from JSON, unknown keys refused.

A run is repeated from its saved configuration alone, so what cannot be read back exactly must not
be read at all.
"""

import dataclasses
import os
import re
import tomllib
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from mbdnode.errors import UserError
from mbdnode.naming import unknown_name

_Config = TypeVar("_Config")

# No file that people write is larger or deeper, and what is would take the parser minutes.
_LARGEST_BYTES = 1_000_000
_DEEPEST = 50
_DEEP_KEY = re.compile(
    r"""(?:(?:"[^"\n]*"|'[^'\n]*'|[^\s.,=\[\]{}"']+)[ \t]*\.[ \t]*)""" + f"{{{_DEEPEST}}}"
)


def to_dict(config: Any) -> dict[str, Any]:
    """A configuration as plain dictionaries, lists, strings and numbers."""
    return {f.name: _plain(getattr(config, f.name)) for f in dataclasses.fields(config)}


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return to_dict(value)
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    return value


def from_dict(kind: type[_Config], values: Any) -> _Config:
    """A dataclass from plain values by field name; those that are left out keep their defaults.

    Raises `UserError` for an unknown key or a value of the wrong type.
    """
    if not isinstance(values, Mapping):
        raise UserError(f"A {kind.__name__} is read from names and values, not from {values!r}.")
    hints = typing.get_type_hints(kind)
    fields = dataclasses.fields(kind)  # pyright: ignore[reportArgumentType]
    names = [f.name for f in fields]
    for key in values:
        if key not in names:
            raise unknown_name(f"key of {kind.__name__}", key, names)
    blank = dataclasses.MISSING
    for f in fields:
        if f.name not in values and f.default is blank and f.default_factory is blank:
            raise UserError(f"{kind.__name__} lacks {f.name!r}; it must be given.")
    return kind(**{key: _typed(key, value, hints[key]) for key, value in values.items()})


def check_types(config: Any) -> None:
    """Raise `UserError` unless every field has the type that it is annotated with.

    For `__post_init__` of a frozen dataclass. Lists become tuples, whole numbers become floats
    where those are meant.
    """
    hints = typing.get_type_hints(type(config))
    for f in dataclasses.fields(config):
        value = _typed(f.name, getattr(config, f.name), hints[f.name])
        object.__setattr__(config, f.name, value)


def replace(config: _Config, changes: Mapping[str, str]) -> _Config:
    """The configuration with some values given as text, as on a command line."""
    parsed = parse_values(type(config), changes)
    return dataclasses.replace(config, **parsed)  # pyright: ignore[reportArgumentType]


def parse_values(kind: type, texts: Mapping[str, str]) -> dict[str, Any]:
    """Values of a configuration that are given as text, by field name.

    Raises `UserError` for an unknown name or a value of another type.
    """
    hints = typing.get_type_hints(kind)
    for key in texts:
        if key not in hints:
            raise unknown_name("setting", key, hints)
    return {key: _parsed(key, text, hints[key]) for key, text in texts.items()}


def _typed(key: str, value: Any, hint: Any) -> Any:
    """Check one value against its annotation, and give it the type that it had when saved."""
    if hint is Any:
        return value
    check = _BY_ORIGIN.get(typing.get_origin(hint), _typed_plain)
    return check(key, value, hint)


def _typed_union(key: str, value: Any, hint: Any) -> Any:
    """The first of the types that takes the value; if none does, what the first says of it."""
    options = typing.get_args(hint)
    if value is None and type(None) in options:
        return None
    errors = []
    for option in options:
        try:
            return _typed(key, value, option)
        except UserError as error:
            errors.append(error)
    raise errors[0]


def _typed_literal(key: str, value: Any, hint: Any) -> Any:
    options = typing.get_args(hint)
    if value not in options:
        raise unknown_name(key, str(value), [str(option) for option in options])
    return value


def _typed_tuple(key: str, value: Any, hint: Any) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise _wrong_type(key, value, hint)
    return tuple(_typed(key, each, typing.get_args(hint)[0]) for each in value)


def _typed_mapping(key: str, value: Any, hint: Any) -> dict[Any, Any]:
    if not isinstance(value, Mapping):
        raise _wrong_type(key, value, hint)
    inner = typing.get_args(hint)[1]
    return {name: _typed(f"{key}.{name}", each, inner) for name, each in value.items()}


def _typed_plain(key: str, value: Any, hint: Any) -> Any:
    """A type without parts: a configuration in this one, a number, a text."""
    if dataclasses.is_dataclass(hint):
        if isinstance(value, Mapping):
            return from_dict(hint, value)  # pyright: ignore[reportArgumentType]
        if isinstance(value, hint):  # pyright: ignore[reportArgumentType]
            return value
    elif hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    elif type(value) is hint:
        return value
    raise _wrong_type(key, value, hint)


def _wrong_type(key: str, value: Any, hint: Any) -> UserError:
    wanted = getattr(hint, "__name__", str(hint))
    return UserError(f"{key} is {value!r}; it must be of type {wanted}.")


_BY_ORIGIN: dict[Any, Callable[[str, Any, Any], Any]] = {
    typing.Union: _typed_union,
    types.UnionType: _typed_union,
    typing.Literal: _typed_literal,
    tuple: _typed_tuple,
    dict: _typed_mapping,
    Mapping: _typed_mapping,
    Sequence: _typed_tuple,
}


def _parsed(key: str, text: str, hint: Any) -> Any:
    """Read one value from text, by its annotation."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        if text.lower() == "none" and type(None) in typing.get_args(hint):
            return None
        options = [o for o in typing.get_args(hint) if o is not type(None)]
        for option in options:
            try:
                return _parsed(key, text, option)
            except UserError:
                continue
        return _parsed(key, text, options[0])
    if hint is bool:
        known = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
        if text.lower() not in known:
            raise UserError(f"{key} is {text!r}; give true or false.")
        return known[text.lower()]
    if hint in (int, float):
        try:
            return hint(text)
        except ValueError as error:
            kind = "a whole number" if hint is int else "a number"
            raise UserError(f"{key} is {text!r}; it must be {kind}.") from error
    if typing.get_origin(hint) is tuple:
        inner = typing.get_args(hint)[0]
        return tuple(_parsed(key, part, inner) for part in text.split(",") if part)
    return _typed(key, text, hint)


def as_path(given: Any) -> Path:
    """A path; raises `UserError` for what is none."""
    try:
        return Path(given)
    except TypeError as error:
        raise UserError(
            f"A path is text, such as 'runs/first.csv', or a Path; this one is {given!r}."
        ) from error


def read_toml(path: str | os.PathLike[str], what: str) -> str:
    """The text of a TOML file, not parsed yet; `what` it should be is for messages.

    Raises `UserError` for what is no text file of at most a megabyte.
    """
    file = Path(path)
    try:
        size = file.stat().st_size
        content = file.read_bytes() if file.is_file() and size <= _LARGEST_BYTES else None
    except FileNotFoundError:
        raise UserError(f"There is no file '{path}'. Check the name, or where you are.") from None
    except (OSError, ValueError) as error:
        raise UserError(f"'{path}' cannot be read: {error}.") from error
    if content is None:
        raise UserError(
            f"'{path}' is no regular file of at most {_LARGEST_BYTES:,} bytes, so it is not "
            f"{what}. Name a TOML file."
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise UserError(
            f"{path}, line {line}: byte {error.start} is not UTF-8 text. {what.capitalize()} is a "
            "TOML file; save it as UTF-8."
        ) from error


def parse_toml(text: str, label: str, way_out: str) -> dict[str, Any]:
    """The content of a TOML text, at most 50 levels deep.

    Raises `UserError` for what is no TOML, with its label and a way out, as a sentence.
    """
    try:
        found = None if _DEEP_KEY.search(text) else tomllib.loads(text)
    except RecursionError:
        found = None
    except ValueError as error:  # An endless number is a ValueError, too.
        raise UserError(f"{label} is not TOML: {error}. {way_out}") from error
    if found is None or _is_deep(found):
        raise UserError(
            f"{label} is not TOML as it is read here: it is nested more than {_DEEPEST} levels "
            f"deep. {way_out}"
        )
    return found


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            inner
            for outer in level
            if isinstance(outer, (dict, list))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return any(isinstance(value, (dict, list)) for value in level)
