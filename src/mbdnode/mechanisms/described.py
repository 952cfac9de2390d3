"""What mechanisms that are made from a description have in common, in the plane and in space."""

import abc
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import equinox as eqx

from mbdnode.multibody import AbstractSystem


class AbstractDescribed(AbstractSystem):
    """A mechanism that a file says, and that can be written to one."""

    # A field of every final class; the type checker would read an AbstractVar as an argument here.
    if TYPE_CHECKING:
        description: ClassVar[Any]
    else:
        description: eqx.AbstractVar[Any]

    @property
    @abc.abstractmethod
    def constraint_names(self) -> tuple[str, ...]:
        """The part and the row of each constraint."""

    @abc.abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The description as plain data, which `from_dict` reads back."""

    @abc.abstractmethod
    def to_toml(self, parameters: Mapping[str, float] | None = None) -> str:
        """The text of a mechanism file, with other values of parameters if they are given."""
