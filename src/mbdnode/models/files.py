"""Model files: safetensors, with the configuration as JSON in the header.

A file holds numbers and names, and nothing in it is ever executed: the mechanism whose constraints
the model keeps is looked up by its name in our own catalogue, or given by the caller.
"""

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

from mbdnode.config import from_dict, to_dict
from mbdnode.data.atomic import replace_file
from mbdnode.mechanisms import MECHANISMS, get_mechanism
from mbdnode.models.base import AbstractModel
from mbdnode.models.mbdnode import MBDNODE, MBDNODEConfig
from mbdnode.multibody import AbstractSystem

VERSION = 1
_KEY = "mbdnode"


def save(model: AbstractModel, path: str | os.PathLike) -> None:
    """Write a model; an existing file is replaced whole or not at all.

    **Arguments:**

    - `model`: what to write.
    - `path`: where, by custom with the ending .safetensors.
    """
    write_arrays(path, named_arrays(model), describe(model))


def load(path: str | os.PathLike, system: AbstractSystem | None = None) -> AbstractModel:
    """Read a model.

    **Arguments:**

    - `path`: a file that `save` wrote.
    - `system`: the mechanism that it was made for, if that is not one of our catalogue.

    **Returns:**

    The model, with the same numbers. Raises `ValueError` for a file that is not whole or not ours.
    """
    arrays, header = read_arrays(path)
    if type(header.get("version")) is not int or header["version"] != VERSION:
        raise ValueError(
            f"{path} has model format {header.get('version')!r}; this program reads {VERSION}. "
            "Read it with the program that wrote it, or train the model again."
        )
    if header.get("kind") != "mbd-node":
        raise ValueError(
            f"{path} holds a model of kind {header.get('kind')!r}, which is not known."
        )
    config = from_dict(MBDNODEConfig, header.get("config"))  # pyright: ignore[reportArgumentType]
    for name in MBDNODEConfig.__dataclass_fields__:
        if name not in header["config"]:
            raise ValueError(f"The configuration in {path} lacks {name!r}; it is not whole.")
    _check_sizes(config, arrays, path)
    if system is None:
        if header.get("mechanism") not in list(MECHANISMS):
            raise ValueError(
                f"{path} was made for the mechanism {header.get('class')!r}, which is not in the "
                "catalogue. Pass it as load(path, system=...)."
            )
        system = get_mechanism(header["mechanism"])
    fields = {name: getattr(config, name) for name in MBDNODEConfig.__dataclass_fields__}
    blank = MBDNODE.for_system(system, **fields)
    for key, ours in _names(blank).items():
        if header.get(key) != ours:
            raise ValueError(
                f"{path} was made for {header.get('class')!r} with {key} {header.get(key)}, but "
                f"{type(system).__name__} has {ours}. Load it with the mechanism it was made for."
            )
    return filled(blank, arrays, path)


def _check_sizes(config: MBDNODEConfig, arrays: dict[str, np.ndarray], path) -> None:
    """Before a network of the configuration's size is made: it may ask for any size."""
    kinds = {str(array.dtype) for name, array in arrays.items() if name.startswith("network/")}
    if len(kinds) > 1:
        raise ValueError(f"The network in {path} mixes {', '.join(sorted(kinds))}; it must be one.")
    layers = [name for name in arrays if name.startswith("network/weights/")]
    first = arrays.get("network/weights/0")
    if first is None or first.ndim != 2 or len(layers) != config.hidden_layers + 1:
        raise ValueError(f"{path} does not hold the layers of its own configuration.")
    if first.shape[0] != config.width:
        raise ValueError(
            f"In {path} the array 'network/weights/0' has shape {first.shape}; its own "
            f"configuration asks for a width of {config.width}."
        )


def describe(model: AbstractModel) -> dict[str, Any]:
    """What a file's header says of a model."""
    assert isinstance(model, MBDNODE)
    names: dict[type, str] = {kind: name for name, kind in MECHANISMS.items()}
    return {
        "version": VERSION,
        "kind": "mbd-node",
        "config": to_dict(model.config),
        "mechanism": names.get(type(model.body)),
        "class": type(model.body).__name__,
        **_names(model),
    }


def _names(model: MBDNODE) -> dict[str, list[str]]:
    """The names that a file and a mechanism must share."""
    return {
        "coordinates": list(model.coordinate_names),
        "inputs": list(model.input_names),
        "parameters": list(model.parameter_names),
        "minimal": list(model.independent),
    }


def named_arrays(tree: Any) -> dict[str, np.ndarray]:
    """Every array of a tree, by its path."""
    leaves = jax.tree_util.tree_leaves_with_path(eqx.filter(tree, eqx.is_array))
    return {_name(path): np.asarray(leaf) for path, leaf in leaves}


def filled(tree: Any, arrays: dict[str, np.ndarray], path: str | os.PathLike) -> Any:
    """The tree with its arrays replaced by the named ones; shapes and names must agree."""
    expected = named_arrays(tree)
    for name in expected:
        if name not in arrays:
            raise ValueError(f"{path} lacks the array {name!r}; it is not whole.")
        if arrays[name].shape != expected[name].shape:
            raise ValueError(
                f"In {path} the array {name!r} has shape {arrays[name].shape}; its own "
                f"configuration asks for {expected[name].shape}."
            )
        if arrays[name].dtype not in _floats(expected[name].dtype):
            raise ValueError(
                f"In {path} the array {name!r} is of type {arrays[name].dtype}; it must be "
                f"{expected[name].dtype}."
            )
    for name in arrays:
        if name not in expected:
            raise ValueError(f"{path} has an array {name!r} that its configuration does not know.")
    dynamic, static = eqx.partition(tree, eqx.is_array)
    leaves = jax.tree_util.tree_map_with_path(
        lambda where, _: jnp.asarray(arrays[_name(where)]), dynamic
    )
    return eqx.combine(leaves, static)


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
    metadata = {_KEY: json.dumps(header, sort_keys=True)}
    content = safetensors.numpy.save(
        {name: np.asarray(value, order="C") for name, value in arrays.items()}, metadata=metadata
    )
    replace_file(Path(path), lambda file: file.write(content))


def read_arrays(path: str | os.PathLike) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read arrays and the JSON header."""
    if not Path(path).is_file():
        raise ValueError(f"There is no file {path}.")
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except safetensors.SafetensorError as error:
        raise ValueError(f"{path} is not a whole safetensors file ({error}).") from error
    if _KEY not in metadata:
        raise ValueError(f"{path} is a safetensors file, but mbdnode did not write it.")
    try:
        header = json.loads(metadata[_KEY])
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"The header of {path} is damaged ({error}).") from error
    if not isinstance(header, dict):
        raise ValueError(f"The header of {path} is damaged (it is not an object).")
    return arrays, header
