"""A learned model: a system whose accelerations come from data.

It acts on the minimal coordinates of a partition that never changes, so a rollout can step those
alone and complete the rest once a step.
"""

import abc
from typing import Any, ClassVar

from mbdnode.multibody import AbstractSystem


class AbstractModel(AbstractSystem):
    """What every learned model has in common."""

    closed_on_minimal: ClassVar[bool] = True

    @property
    @abc.abstractmethod
    def config(self) -> Any:
        """What rebuilds the model's shape, as a dataclass."""
