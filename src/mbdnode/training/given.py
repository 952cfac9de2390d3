"""What training is given: data of some form, checked against the model."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from mbdnode.data import AbstractStream
from mbdnode.errors import UserError
from mbdnode.models import MBDNODE, AbstractModel
from mbdnode.numerics import check_precision
from mbdnode.trajectory import Dataset, Trajectory


def as_dataset(data: Dataset | Trajectory) -> Dataset:
    """A single trajectory as a dataset of one."""
    return data if isinstance(data, Dataset) else Dataset(data)


def check_stream(model: AbstractModel, stream: AbstractStream | None) -> None:
    """Raise `UserError` for a model that cannot learn from a stream.

    Scales come from the first data that is seen, and other models scale every example.
    """
    if stream is None or model.is_law:
        return
    if not isinstance(model, MBDNODE):
        raise UserError(
            f"{model.kind} learns from recorded motions, not from a stream of draws. Give it a "
            "Dataset, or use MBDNODE."
        )
    if model.settings.constraints == "augmented":
        raise UserError(
            "An augmented Lagrangian keeps multipliers for every step of the data, and a stream "
            "gives new steps each epoch. Give it a Dataset, or use constraints='penalty'."
        )


def cast(tree: Any, precision: str) -> Any:
    """The tree with all of its real numbers in a precision."""
    dtype = jnp.dtype(precision)
    arrays, rest = eqx.partition(tree, eqx.is_inexact_array)
    return eqx.combine(jax.tree.map(lambda x: x.astype(dtype), arrays), rest)


def check_names(model: AbstractModel, data: Dataset) -> None:
    """Raise `UserError` unless model and data have the same names, and are in float64."""
    check_precision()
    first = data.trajectories[0]
    if first.coordinates != model.coordinate_names or first.inputs != model.input_names:
        ours = ", ".join((*model.coordinate_names, *model.input_names))
        theirs = ", ".join((*first.coordinates, *first.inputs))
        raise UserError(
            f"The model has coordinates and inputs {ours}, but the data has {theirs}. Make the "
            "model for the system that made the data."
        )
