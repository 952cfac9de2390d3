"""What the page of a fitted model is made of: plain data, so that the page can be made again."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from mbdnode.multibody import AbstractSystem
from mbdnode.trajectory import Trajectory


@dataclass(frozen=True)
class HeldOut:
    """A run that was not trained on, and what the model says of it.

    **Arguments:**

    - `name`: of the run, as its log calls it.
    - `truth`, `prediction`: at the same times, the prediction from the first state alone.
    - `outside`: for each row of the prediction, whether it lies outside the training data.
    - `recorded`: the columns of `truth` that were measured; the others follow from the constraints.
    """

    name: str
    truth: Trajectory
    prediction: Trajectory
    outside: np.ndarray
    recorded: tuple[str, ...]


@dataclass(frozen=True)
class Horizon:
    """How the error grows with the time predicted ahead, over many starts in the held-out runs.

    **Arguments:**

    - `ahead_s`: the times ahead.
    - `low`, `middle`, `high`: quartiles over the starts of the error, in spreads of the motion
        (one is as bad as always saying the mean), the root mean square over recorded columns.
    - `persistence`: the median error of saying that nothing moves.
    - `trusted_s`: until when the middle stays below `limit`; None if it never does.
    - `limit`: what still counts as trusted.
    """

    ahead_s: np.ndarray
    low: np.ndarray
    middle: np.ndarray
    high: np.ndarray
    persistence: np.ndarray
    trusted_s: float | None
    limit: float


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
    horizon: Horizon | None
    known: Mapping[str, np.ndarray]
    warnings: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
