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
    if header.get("version") != VERSION:
        raise ValueError(
            f"{path} has model format {header.get('version')!r}; this program reads {VERSION}. "
            "Read it with the program that wrote it, or train the model again."
        )
    if header.get("kind") != "mbd-node":
        raise ValueError(
            f"{path} holds a model of kind {header.get('kind')!r}, which is not known."
        )
    if system is None:
        if header.get("mechanism") is None:
            raise ValueError(
                f"{path} was made for the mechanism {header.get('class')!r}, which is not in the "
                "catalogue. Pass it as load(path, system=...)."
            )
        system = get_mechanism(header["mechanism"])
    config = from_dict(MBDNODEConfig, header["config"])
    blank = MBDNODE.for_system(system, **{k: getattr(config, k) for k in header["config"]})
    return filled(blank, arrays, path)


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
    for name in arrays:
        if name not in expected:
            raise ValueError(f"{path} has an array {name!r} that its configuration does not know.")
    dynamic, static = eqx.partition(tree, eqx.is_array)
    leaves = jax.tree_util.tree_map_with_path(
        lambda where, _: jnp.asarray(arrays[_name(where)]), dynamic
    )
    return eqx.combine(leaves, static)


def _name(path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator="/")


def write_arrays(
    path: str | os.PathLike, arrays: dict[str, np.ndarray], header: dict[str, Any]
) -> None:
    """Write arrays and a JSON header; the file is replaced whole or not at all."""
    metadata = {_KEY: json.dumps(header, sort_keys=True)}
    content = safetensors.numpy.save(
        {name: np.ascontiguousarray(value) for name, value in arrays.items()}, metadata=metadata
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
        return arrays, json.loads(metadata[_KEY])
    except json.JSONDecodeError as error:
        raise ValueError(f"The header of {path} is damaged ({error}).") from error
