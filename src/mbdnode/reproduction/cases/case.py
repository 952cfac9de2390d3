"""A case as data: what moves and from where, how it is learned, what the paper says of it.

The columns of the paper's hyper-parameter tables stand in `models/paper_settings.py` and with the
baselines.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from mbdnode.errors import UserError
from mbdnode.models import KINDS
from mbdnode.models.paper_settings import HyperParameters, nearest_column, paper_columns
from mbdnode.multibody import AbstractMechanism
from mbdnode.reproduction.cases.control_task import ControlTask
from mbdnode.reproduction.cases.printed import Exhibit, Reference
from mbdnode.simulation.simulate import ANALYTIC


def numerical(integrator: str, source: str) -> HyperParameters:
    """The system itself, by an integrator: nothing is trained."""
    return HyperParameters("numerical", integrator, 1, 1e-3, 1.0, source, {})


def paper_table(system: str, *, width: int, hidden_layers: int) -> tuple[HyperParameters, ...]:
    """The columns of the paper's table of a system, whose networks have this shape."""
    shape = {"width": width, "hidden_layers": hidden_layers}
    return tuple(
        replace(
            column,
            settings={name: shape.get(name, value) for name, value in column.settings.items()},
        )
        for kind in KINDS.values()
        for column in kind.paper
        if column.system == system
    )


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
    - `parameters`: values that differ from the case's.
    """

    name: str
    title: str
    initial: Mapping[str, float]
    steps: int
    inputs: MakeInputs | None = None
    figure: str = ""
    parameters: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """One of the paper's systems, ready to simulate and to learn.

    **Arguments:**

    - `name`, `title`: for the command line and for people.
    - `mechanism`: the system, with the text's parameters as defaults.
    - `initial`: what the text gives of the start, by name.
    - `dt_s`: the step.
    - `steps`: how many, training range included.
    - `train_steps`: how many of them are for training; zero for a case that is trained on samples,
        or on motions with other parameters.
    - `integrator`: what made the paper's data.
    - `source`: where in the paper.
    - `inputs`: the test's inputs from the number of steps and a generator; None for zero.
    - `parameters`: values that differ from the mechanism's defaults.
    - `training_parameters`: for a case that is trained on motions with other parameters: those of
        each, which is as long as the case's own and starts alike.
    - `bounds`: min and max of what is sampled, for a case that is trained on samples.
    - `samples`: how many, with the paper's recipe.
    - `printed_samples`: how many the paper took.
    - `resample`: whether every epoch has new ones; otherwise each sees all of them.
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
    training_parameters: tuple[Mapping[str, float], ...] = ()
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    samples: int = 1_000_000
    printed_samples: int = 10_000_000
    resample: bool = True
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

    @property
    def made_by(self) -> str:
        """The integrator of the data, whose steps are fitted; rk4 where that is a closed form."""
        return "rk4" if self.integrator == ANALYTIC else self.integrator

    @property
    def control_trials(self) -> tuple[ControlTask, ...]:
        """Those of the trials in which the model plans for a controller."""
        return tuple(trial for trial in self.trials if isinstance(trial, ControlTask))

    def column(self, model: str, integrator: str | None = None) -> HyperParameters:
        """The paper's hyper-parameters of a model on this case, or of its other cases."""
        if model == "numerical":
            return numerical(integrator or "rk4", "tab:sms_test")
        own = tuple(column for column in self.hyperparameters if column.model == model)
        own = own or (paper_columns(KINDS[model], "") if model in KINDS else ())
        if not own:
            raise UserError(f"The case {self.name!r} has no hyper-parameters for {model!r}.")
        return own[0] if integrator is None else nearest_column(own, integrator)
