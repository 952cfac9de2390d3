"""What the page of a fitted model is made of: plain data, so that the page can be made again."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from mbdnode.evaluation import HeldOut, Horizon, Scores
from mbdnode.multibody import AbstractSystem


@dataclass(frozen=True)
class FitStory:
    """Everything that the page says.

    **Arguments:**

    - `title`, `command`: of the fit.
    - `system`: what moves; it may have no masses, and so no energy.
    - `parameters`: of the system.
    - `facts`: label and value, in order: model, recipe, how the training ended, times, seeds.
    - `read`: what was read, cut, unwrapped and estimated, line by line.
    - `held_out`: runs that were not trained on.
    - `scores`: of them.
    - `horizon`: None where there was nothing to measure it on.
    - `known`: the states and inputs of the training data by column name, thinned.
    - `warnings`: sentences that a reader must not miss.
    - `versions`: of the packages, by name.
    """

    title: str
    command: str
    system: AbstractSystem
    parameters: Mapping[str, float]
    facts: tuple[tuple[str, str], ...]
    read: tuple[str, ...]
    held_out: tuple[HeldOut, ...]
    scores: Scores
    horizon: Horizon | None
    known: Mapping[str, np.ndarray]
    warnings: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
