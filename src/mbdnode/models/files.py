"""Model files: safetensors, with the configuration as JSON in the header.

A file holds numbers and names, and nothing in it is ever executed: the mechanism whose constraints
the model keeps is looked up by its name in our own catalog, made from its description as in a
mechanism file, or given by the caller. An ensemble is one file: the header of its members and
their number, and their arrays stacked.
"""

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import safetensors
import safetensors.numpy

from mbdnode.config import as_path, from_dict, to_dict
from mbdnode.data.files import check_path, replace_file
from mbdnode.errors import UserError
from mbdnode.mechanisms import MECHANISMS, get_mechanism
from mbdnode.mechanisms import from_dict as mechanism_from
from mbdnode.mechanisms.planar import AbstractPlanar
from mbdnode.models.base import AbstractModel
from mbdnode.models.ensemble import Ensemble
from mbdnode.models.registry import KINDS
from mbdnode.multibody import AbstractNamed, RecordedSystem, recorded_from
from mbdnode.naming import is_own, known_object
from mbdnode.numerics import check_precision

VERSION = 1
_KEY = "mbdnode"
# The way out of a damaged file.
_AGAIN = "Copy it again from where it was written, or fit again."
_MEMBERS = "members"
_SHARED = "body/"


def save(model: AbstractModel | Ensemble, path: str | os.PathLike) -> None:
    """Write a model or an ensemble; an existing file is replaced whole or not at all.

    **Arguments:**

    - `model`: what to write.
    - `path`: where, by custom with the ending .safetensors.

    Raises `UserError` for a model that `load` could not make again.
    """
    if not isinstance(model, (AbstractModel, Ensemble)):
        raise UserError(
            f"save was given {type(model).__name__} as its model; it takes a model, such as "
            "MBDNODE, or an Ensemble, and then a path: save(model, path)."
        )
    path = as_path(path)
    if not isinstance(model, Ensemble):
        arrays, header = named_arrays(model), describe(model)
        _check_loadable(model, arrays, header, path)
    else:
        arrays = {**named_arrays(model.shared), **named_arrays(model.stacked)}
        header = {**describe(model[0]), _MEMBERS: len(model)}
        _check_loadable(model[0], _member(arrays, 0), header, path)
    _check_finite(arrays, path)
    write_arrays(path, arrays, header)


def _check_loadable(
    model: AbstractModel, arrays: dict[str, np.ndarray], header: dict[str, Any], path
) -> None:
    """Raise `UserError` unless `load` makes this model of its header and its arrays."""
    told = (
        f"{path} is not written, since load could not read it. A file holds settings, names and "
        f"arrays, and load makes the model from those: {type(model).__name__}.for_system with the "
        "same settings must give arrays of these shapes and the same functions. Change settings "
        "there, and of a model made so no more than numbers."
    )
    try:
        # As it is read back: a tuple is a list in JSON.
        blank = _blank(arrays, json.loads(json.dumps(header)), path, model.body)
        _check_arrays(blank, arrays, path)
    except UserError as error:
        raise UserError(f"{told} What it would say: {error}") from error
    rest = [eqx.filter(tree, eqx.is_array, inverse=True) for tree in (model, blank)]
    if not eqx.tree_equal(*rest):
        raise UserError(f"{told} Something else than numbers was changed in this one.")


def load(path: str | os.PathLike, system: AbstractNamed | None = None) -> Any:
    """Read a model or an ensemble.

    **Arguments:**

    - `path`: a file that `save` wrote.
    - `system`: the mechanism that it was made for, if that is not one of our catalog.

    **Returns:**

    The model, with the same numbers. Raises `UserError` for a file that is not whole or not ours.
    """
    check_precision()
    arrays, header = read_arrays(path)
    _check_finite(arrays, path)
    if _MEMBERS not in header:
        return filled(_blank(arrays, header, path, system), arrays, path)
    count = _member_count(arrays, header, path)
    blank = _blank(_member(arrays, 0), header, path, system)
    return Ensemble([filled(blank, _member(arrays, i), path) for i in range(count)])


def _check_finite(arrays: dict[str, np.ndarray], path: str | os.PathLike) -> None:
    """Raise `UserError` for weights that are not finite.

    What else a model holds may be: the initial state of a network of time is NaN until it is
    trained.
    """
    for name, array in arrays.items():
        if "network" not in name.split("/"):
            continue
        bad = int(np.sum(~np.isfinite(array))) if array.dtype.kind == "f" else 0
        if bad:
            raise UserError(
                f"In {path} the array {name!r} has {bad:,} value(s) that are not finite, so "
                "the model can predict nothing: its training diverged, or the file is damaged. "
                "Train it again."
            )


def _member_count(arrays: dict[str, np.ndarray], header: dict[str, Any], path) -> int:
    """How many models an ensemble's file holds; all of its stacked arrays must agree."""
    count = header[_MEMBERS]
    if type(count) is not int or count < 1:
        raise UserError(f"{path} says that it holds {count!r} models; it must be at least one.")
    for name, array in arrays.items():
        if not name.startswith(_SHARED) and array.shape[:1] != (count,):
            raise UserError(
                f"In {path} the array {name!r} has shape {array.shape}; of {count} models its "
                f"first axis must have length {count}."
            )
    return count


def _member(arrays: dict[str, np.ndarray], index: int) -> dict[str, np.ndarray]:
    """The arrays of one member of an ensemble: its own, and those of the system."""
    return {
        name: array if name.startswith(_SHARED) else np.asarray(array[index])
        for name, array in arrays.items()
    }


def _blank(
    arrays: dict[str, np.ndarray],
    header: dict[str, Any],
    path: str | os.PathLike,
    system: AbstractNamed | None,
) -> Any:
    """A model of the kind, the settings and the system that the header tells, untrained."""
    if type(header.get("version")) is not int or header["version"] != VERSION:
        raise UserError(
            f"{path} has model format {header.get('version')!r}; this program reads {VERSION}. "
            "Read it with the program that wrote it, or train the model again."
        )
    if header.get("kind") not in list(KINDS):
        raise UserError(f"{path} holds a model of kind {header.get('kind')!r}, which is not known.")
    kind = KINDS[header["kind"]]
    config = from_dict(kind.settings_type, header.get("config"))
    names = [field.name for field in dataclasses.fields(kind.settings_type)]
    for name in names:
        # The name of a network of one's own is younger than the first files.
        if name not in header["config"] and name != "network":
            raise UserError(f"The configuration in {path} lacks {name!r}; it is not whole.")
    _check_sizes(config, arrays, path)
    for name in ("network", "activation"):
        if is_own(getattr(config, name, "")):
            known_object(getattr(config, name))
    if system is None and header.get("definition") is not None:
        recorded = header.get("class") == RecordedSystem.__name__
        made = header["definition"]
        system = recorded_from(made) if recorded else mechanism_from(made, label=str(path))
    if system is None:
        if header.get("mechanism") not in list(MECHANISMS):
            raise UserError(
                f"{path} was made for the mechanism {header.get('class')!r}, which is not in the "
                "catalog. Pass it as load(path, system=...)."
            )
        system = get_mechanism(header["mechanism"])
    blank = kind.for_system(system, **{name: getattr(config, name) for name in names})
    for key, ours in _names(blank).items():
        if header.get(key) != ours:
            raise UserError(
                f"{path} was made for {header.get('class')!r} with {key} {header.get(key)}, but "
                f"{type(system).__name__} has {ours}. Load it with the mechanism it was made for."
            )
    return blank


def _check_sizes(config: Any, arrays: dict[str, np.ndarray], path) -> None:
    """Before a network of the configuration's size is made: it may ask for any size."""
    layers = {name: array for name, array in arrays.items() if name.startswith("network/")}
    kinds = {str(array.dtype) for array in layers.values()}
    if len(kinds) > 1:
        raise UserError(f"The network in {path} mixes {', '.join(sorted(kinds))}; it must be one.")
    if not hasattr(config, "width") or getattr(config, "network", ""):
        return  # A model without layers bounds its own size, and so does one of a user's own.
    # A fully connected layer has `width` rows; a recurrent one `width` columns.
    group, axis, count = "network/weights", -2, getattr(config, "hidden_layers", 0) + 1
    if hasattr(config, "layers"):
        group, axis, count = "network/hidden", -1, config.layers
    first = f"{group}/0"
    found = sum(name.startswith(f"{group}/") for name in layers)
    # Three axes for several small networks.
    if first not in layers or layers[first].ndim not in (2, 3) or found != count:
        raise UserError(f"{path} does not hold the layers of its own configuration.")
    if layers[first].shape[axis] != config.width:
        raise UserError(
            f"In {path} the array {first!r} has shape {layers[first].shape}; its own "
            f"configuration asks for a width of {config.width}."
        )


def describe(model: AbstractModel) -> dict[str, Any]:
    """What a file's header says of a model."""
    for name in ("network", "activation"):
        if getattr(model.settings, name, "").startswith("<"):
            raise UserError(
                f"{name} is {getattr(model.settings, name)}, which no other process can import, so "
                "the file could not be read again. Put it in a module of yours and give it as "
                "'module:name'."
            )
    names: dict[type, str] = {kind: name for name, kind in MECHANISMS.items()}
    return {
        "version": VERSION,
        "kind": model.kind,
        "config": to_dict(model.config),
        "mechanism": names.get(type(model.body)),
        "class": type(model.body).__name__,
        # A mechanism from a file goes with its model: plain numbers and names, checked again.
        "definition": _definition(model.body),
        **_names(model),
    }


def _definition(body: Any) -> dict[str, Any] | None:
    return body.to_dict() if isinstance(body, (AbstractPlanar, RecordedSystem)) else None


def _names(model: AbstractModel) -> dict[str, list[str]]:
    """The names that a file and a mechanism must share."""
    return {
        "coordinates": list(model.coordinate_names),
        "inputs": list(model.input_names),
        "parameters": list(model.parameter_names),
        "minimal": list(getattr(model, "independent", None) or model.coordinate_names),
    }


def named_arrays(tree: Any) -> dict[str, np.ndarray]:
    """Every array of a tree, by its path."""
    leaves = jax.tree_util.tree_leaves_with_path(eqx.filter(tree, eqx.is_array))
    return {_name(path): np.asarray(leaf) for path, leaf in leaves}


def filled(tree: Any, arrays: dict[str, np.ndarray], path: str | os.PathLike) -> Any:
    """The tree with its arrays replaced by the named ones; shapes and names must agree."""
    _check_arrays(tree, arrays, path)
    dynamic, static = eqx.partition(tree, eqx.is_array)
    leaves = jax.tree_util.tree_map_with_path(
        lambda where, _: jnp.asarray(arrays[_name(where)]), dynamic
    )
    return eqx.combine(leaves, static)


def _check_arrays(tree: Any, arrays: dict[str, np.ndarray], path: str | os.PathLike) -> None:
    """Raise `UserError` unless the arrays are those of the tree, by name, shape and type."""
    expected = named_arrays(tree)
    for name in expected:
        if name not in arrays:
            raise UserError(f"{path} lacks the array {name!r}; it is not whole.")
        if arrays[name].shape != expected[name].shape:
            raise UserError(
                f"In {path} the array {name!r} has shape {arrays[name].shape}; its own "
                f"configuration asks for {expected[name].shape}."
            )
        if arrays[name].dtype not in _floats(expected[name].dtype):
            raise UserError(
                f"In {path} the array {name!r} is of type {arrays[name].dtype}; it must be "
                f"{expected[name].dtype}."
            )
    for name in arrays:
        if name not in expected:
            raise UserError(f"{path} has an array {name!r} that its configuration does not know.")


def _floats(kind: np.dtype) -> tuple[np.dtype, ...]:
    """Weights may be of either precision; all else is of the type that it was."""
    either = (np.dtype("float32"), np.dtype("float64"))
    return either if kind in either else (kind,)


def _name(path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator="/")


def write_arrays(
    path: str | os.PathLike, arrays: dict[str, np.ndarray], header: dict[str, Any]
) -> None:
    """Write arrays and a JSON header; the file is replaced whole or not at all."""
    # In the order of the header: that of a mechanism's bodies is the order of its coordinates.
    metadata = {_KEY: json.dumps(header)}
    content = safetensors.numpy.save(
        {name: np.asarray(value, order="C") for name, value in arrays.items()}, metadata=metadata
    )
    replace_file(Path(path), lambda file: file.write(content))


def read_arrays(path: str | os.PathLike) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read arrays and the JSON header."""
    path = as_path(path)
    check_path(path)
    if not path.is_file():
        raise UserError(f"There is no file {path}. Check the name, or where you are.")
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except safetensors.SafetensorError as error:
        raise UserError(f"{path} is not a whole safetensors file ({error}). {_AGAIN}") from error
    if _KEY not in metadata:
        raise UserError(
            f"{path} is a safetensors file, but mbdnode did not write it. Name one that it wrote."
        )
    try:
        header = json.loads(metadata[_KEY])
    except (json.JSONDecodeError, RecursionError) as error:
        raise UserError(f"The header of {path} is damaged ({error}). {_AGAIN}") from error
    if not isinstance(header, dict):
        raise UserError(f"The header of {path} is damaged (it is not an object). {_AGAIN}")
    return arrays, header
