"""A case as data: what moves and from where, how it is learned, what the paper says of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from mbdnode.errors import UserError
from mbdnode.evaluation.verdict import Reference
from mbdnode.experiments.control_task import ControlTask
from mbdnode.experiments.hyperparameters import USUAL, HyperParameters, numerical
from mbdnode.integrators import get_integrator
from mbdnode.multibody import AbstractMechanism
from mbdnode.report.chapters import Exhibit

MakeInputs = Callable[[int, np.random.Generator], np.ndarray]


@dataclass(frozen=True)
class Trial:
    """A motion that a trained model has not seen.

    **Arguments:**

    - `name`, `title`: for files and for people.
    - `initial`: its start, by name.
    - `steps`: how many, of the case's own size.
    - `inputs`: from the number of steps and a generator; None for zero.
    - `figure`: the label of the figure that shows it.
    """

    name: str
    title: str
    initial: Mapping[str, float]
    steps: int
    inputs: MakeInputs | None = None
    figure: str = ""


@dataclass(frozen=True)
class Case:
    """One of the paper's systems, ready to simulate and to learn.

    **Arguments:**

    - `name`, `title`: for the command line and for people.
    - `mechanism`: the system, with the text's parameters as defaults.
    - `initial`: what the text gives of the start, by name.
    - `dt_s`: the step.
    - `steps`: how many, training range included.
    - `train_steps`: how many of them are for training; zero for a case that is trained on draws.
    - `integrator`: what made the paper's data.
    - `source`: where in the paper.
    - `inputs`: the test's inputs from the number of steps and a generator; None for zero.
    - `parameters`: values that differ from the mechanism's defaults.
    - `box`: least and greatest value of what is drawn, for a case that is trained on draws.
    - `draws`: how many, with the paper's recipe.
    - `printed_draws`: how many the paper took.
    - `redraw`: whether every epoch has new ones; otherwise each sees all of them.
    - `control`: the task that a learned model is put to, in place of predicting a motion.
    - `hyperparameters`: how each model is trained.
    - `references`: the paper's numbers.
    - `exhibits`: the paper's figures.
    - `trials`: what a model trained on the case is asked besides: motions, or control.
    - `notes`: what a reader needs to judge the numbers.
    - `network_notes`: the same, of networks alone.
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
    inputs: MakeInputs | None = None
    parameters: Mapping[str, float] = field(default_factory=dict)
    box: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    draws: int = 1_000_000
    printed_draws: int = 10_000_000
    redraw: bool = True
    control: ControlTask | None = None
    hyperparameters: tuple[HyperParameters, ...] = ()
    references: tuple[Reference, ...] = ()
    exhibits: tuple[Exhibit, ...] = ()
    trials: tuple[Trial | ControlTask, ...] = ()
    notes: tuple[str, ...] = ()
    network_notes: tuple[str, ...] = ()

    def times(self, steps: int | None = None, dt_s: float | None = None) -> np.ndarray:
        """The times of the case, or of as many steps of that size."""
        dt_s = self.dt_s if dt_s is None else dt_s
        return np.arange((self.steps if steps is None else steps) + 1) * dt_s

    def make_inputs(self, steps: int, seed: int = 0) -> np.ndarray | None:
        """One row of inputs for each step, the same for the same seed; None for zero."""
        return None if self.inputs is None else self.inputs(steps, np.random.default_rng(seed))

    def column(self, model: str, integrator: str | None = None) -> HyperParameters:
        """The paper's hyper-parameters of a model on this case.

        **Arguments:**

        - `model`: by name.
        - `integrator`: another one than the table's first.

        **Returns:**

        The table's column; where the paper has none, that of its other cases.
        """
        if model == "numerical":
            return numerical(integrator or "rk4", "tab:sms_test")
        own = [column for column in self.hyperparameters if column.model == model]
        if not own:
            own = [USUAL[model]] if model in USUAL else []
        if not own:
            raise UserError(f"The case {self.name!r} has no hyper-parameters for {model!r}.")
        if integrator is None:
            return own[0]
        for column in own:
            if column.integrator == integrator:
                return column
        # Of several, the one whose integrator is of the same nature.
        same = [c for c in own if _is_symplectic(c.integrator) == _is_symplectic(integrator)]
        return replace((same or own)[0], integrator=integrator)


def _is_symplectic(integrator: str) -> bool:
    return integrator != "-" and get_integrator(integrator).needs_separable
