"""A learned model: names, a network that training changes, and what it can and cannot do.

A model that gives rates is a system, and `simulate` integrates it. It acts on the minimal
coordinates of a partition that never changes, so a rollout can step those alone and complete the
rest once a step. A model that gives states is a forecaster.
"""

import abc
from typing import TYPE_CHECKING, Any, ClassVar

import equinox as eqx

from mbdnode.models.capabilities import Capability
from mbdnode.multibody import AbstractNamed, AbstractSystem


class AbstractModel(AbstractNamed):
    """What every learned model has in common.

    `network` is what training changes; `body` is the system that it is a model of.
    """

    # The name in files and on the command line, the dataclass of settings, what it can do.
    kind: ClassVar[str]
    settings_type: ClassVar[type]
    capabilities: ClassVar[frozenset[Capability]]

    if TYPE_CHECKING:
        network: Any
        body: AbstractNamed
        settings: Any
    else:
        network: eqx.AbstractVar[Any]
        body: eqx.AbstractVar[AbstractNamed]
        settings: eqx.AbstractVar[Any]

    @classmethod
    @abc.abstractmethod
    def for_system(cls, system: Any, *, seed: Any = 0, **settings: Any) -> Any:
        """An untrained model of a system."""

    @property
    def config(self) -> Any:
        """What rebuilds the model's shape, as a dataclass."""
        return self.settings

    @property
    def history(self) -> int:
        """How many states it starts from."""
        return 1


class AbstractRateModel(AbstractModel, AbstractSystem):
    """A model that gives the rates of its minimal coordinates."""

    closed_on_minimal: ClassVar[bool] = True

    if TYPE_CHECKING:
        minimal: tuple[int, ...]
    else:
        minimal: eqx.AbstractVar[tuple[int, ...]]

    @property
    def independent(self) -> tuple[str, ...]:
        """The minimal coordinates, by name."""
        return tuple(self.coordinates[i].name for i in self.minimal)
