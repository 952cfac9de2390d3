"""An ensemble: models of one kind and with the same settings, as one model.

Networks that start from different weights learn the same data and err in different ways. The mean
of their motions has a squared error no larger than theirs is on average: what differs between them
is averaged out, what they have in common is not. Where they disagree none should be trusted. That
they agree proves nothing: they share the data, the structure, and whatever these leave out.

The members' arrays are stacked, so that one compiled program runs all of them.
"""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from mbdnode.errors import UserError
from mbdnode.models.base import AbstractModel
from mbdnode.simulation import AbstractEnsemble


class Ensemble(AbstractEnsemble):
    """Several models as one: `simulate` gives the mean of their motions, and the spread.

    `len(ensemble)`, `ensemble[i]` and loops give the members; an ensemble without some of them is
    made from the others. Of a single member the spread is not a number.

    **Arguments:**

    - `members`: models of one kind, with the same settings, for the same system, in the same
        precision.
    """

    # A model whose arrays have the members as leading axis, but for its system's; and the rest.
    stacked: Any
    shared: Any

    def __init__(self, members: Sequence[AbstractModel]):
        members = tuple(members)
        _check_alike(members)
        parts = [_split(member) for member in members]
        self.stacked = jax.tree.map(lambda *x: jnp.stack(x), *(own for own, _ in parts))
        self.shared = parts[0][1]

    def __len__(self) -> int:
        return jax.tree.leaves(self.stacked)[0].shape[0]

    def __getitem__(self, index: int) -> Any:
        if not -len(self) <= index < len(self):
            raise IndexError(f"There is no member {index}; there are {len(self)}, counted from 0.")
        return eqx.combine(jax.tree.map(lambda x: x[index], self.stacked), self.shared)

    @property
    def body(self) -> Any:
        """The system that all of them are models of."""
        return self.shared.body

    def map(self, function: Callable[[Any], Any]) -> Any:
        """The function's value for every member, all at once.

        **Arguments:**

        - `function`: of a model.

        **Returns:**

        What it returns, every array with the members as leading axis.
        """
        return eqx.filter_vmap(lambda own: function(eqx.combine(own, self.shared)))(self.stacked)


def _split(model: AbstractModel) -> tuple[Any, Any]:
    """The arrays that are a member's own, and what all members share."""

    def is_own(path, leaf) -> bool:
        return eqx.is_array(leaf) and path[0].name != "body"

    return eqx.partition(model, jax.tree_util.tree_map_with_path(is_own, model))


def _check_alike(members: tuple[Any, ...]) -> None:
    """Raise unless all of them can be stacked and mean the same."""
    if not members:
        raise UserError("An ensemble needs at least one model, and none was given.")
    first = members[0]
    for number, member in enumerate(members):
        if not isinstance(member, AbstractModel):
            raise TypeError(
                f"Member {number} is a {type(member).__name__}; an ensemble is made of models, "
                "such as MBDNODE."
            )
        if member.kind != first.kind or type(member) is not type(first):
            raise UserError(
                f"Member {number} is of kind {member.kind!r}, but the first is of kind "
                f"{first.kind!r}. Make an ensemble of each kind."
            )
        if member.settings != first.settings:
            raise UserError(
                f"Member {number} has other settings than the first: {member.settings}, not "
                f"{first.settings}. Members may differ in their weights only."
            )
        if not eqx.tree_equal(member.body, first.body):
            raise UserError(
                f"Member {number} is a model of another {type(member.body).__name__} than the "
                f"first, whose system is a {type(first.body).__name__}. Make all for one system."
            )
        if _shape(member) != _shape(first):
            raise UserError(
                f"The arrays of member {number} differ from the first's in number, shape or "
                "precision. Train all members in the same way."
            )


def _shape(model: AbstractModel) -> Any:
    """What must be the same for two models to be stacked."""
    own = _split(model)[0]
    return jax.tree.structure(own), [(x.shape, x.dtype) for x in jax.tree.leaves(own)]
