"""A case: a mechanism with a start, a step, a length and a split, as the paper gives them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from mbdnode.multibody import AbstractMechanism


@dataclass(frozen=True)
class Case:
    """One of the paper's systems, ready to simulate.

    **Arguments:**

    - `name`, `title`: for the command line and for people.
    - `mechanism`: the system, with the text's parameters as defaults.
    - `initial`: what the text gives of the start, by name.
    - `dt_s`: the step.
    - `steps`: how many, training range included.
    - `train_steps`: how many of them are for training.
    - `integrator`: what made the paper's data.
    - `source`: where in the paper.
    - `inputs`: the test's inputs from the number of steps and a generator; None for zero.
    - `parameters`: values that differ from the mechanism's defaults.
    """

    name: str
    title: str
    mechanism: AbstractMechanism
    initial: Mapping[str, float]
    dt_s: float
    steps: int
    train_steps: int
    integrator: str
    source: str
    inputs: Callable[[int, np.random.Generator], np.ndarray] | None = None
    parameters: Mapping[str, float] = field(default_factory=dict)

    def times(self, steps: int | None = None, dt_s: float | None = None) -> np.ndarray:
        """The times of the case, or of as many steps of that size."""
        dt_s = self.dt_s if dt_s is None else dt_s
        return np.arange((self.steps if steps is None else steps) + 1) * dt_s

    def make_inputs(self, steps: int, seed: int = 0) -> np.ndarray | None:
        """One row of inputs for each step, the same for the same seed; None for zero."""
        return None if self.inputs is None else self.inputs(steps, np.random.default_rng(seed))
