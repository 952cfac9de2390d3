"""A case as data: what moves and from where, how it is learned, what the paper says of it.

The columns of the paper's hyper-parameter tables stand here as the cases name them: all models have
two hidden layers of 256, Adam and the mean squared error. What the text leaves open is filled in:
MBD-NODE and FCNN make one update for each step, in time order; the LSTM takes small batches in a
new order each epoch; the HNN takes all data in one batch.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mbdnode.errors import UserError
from mbdnode.integrators import get_integrator
from mbdnode.multibody import AbstractMechanism
from mbdnode.reproduction.cases.control_task import ControlTask
from mbdnode.reproduction.reference import Exhibit, Reference

NONE = "-"
_GATES = "Sigmoid, Tanh"


@dataclass(frozen=True)
class HyperParameters:
    """One column of one of the paper's tables.

    **Arguments:**

    - `model`, `integrator`: what it is of; "-" for a model without an integrator.
    - `epochs`, `learning_rate`, `decay`: of the training, as printed.
    - `source`: the table in the paper.
    - `settings`: of the model, where they are not its defaults.
    - `training`: fields of our training configuration, also where they are not the printed ones.
    - `activation`: as printed.
    """

    model: str
    integrator: str
    epochs: int
    learning_rate: float
    decay: float
    source: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    activation: str = "Tanh"

    @property
    def printed(self) -> dict[str, str]:
        """The column as the paper prints it, by the paper's own headings."""
        return {
            "No. of hidden layers": "2",
            "No. of nodes per hidden layer": "256",
            "Max. epochs": f"{self.epochs:,}",
            "Initial learning rate": f"{self.learning_rate:g}",
            "Learning rate decay": f"{self.decay:g}",
            "Activation function": self.activation,
            "Loss function": "MSE",
            "Optimizer": "Adam",
        }


def mbdnode(
    integrators: str, epochs: int, learning_rate: float, decay: float, source: str, **settings: Any
) -> tuple[HyperParameters, ...]:
    """MBD-NODE with each of several integrators.

    **Arguments:**

    - `integrators`: names with blanks between them; the first is the one whose error the paper
        prints, the others stand in its table of time costs.
    - `epochs`, `learning_rate`, `decay`, `source`: of the column.
    - `settings`: of the model.

    **Returns:**

    One column for each integrator.
    """
    return tuple(
        HyperParameters("mbd-node", name, epochs, learning_rate, decay, source, settings)
        for name in integrators.split()
    )


def lstm(source: str) -> HyperParameters:
    """The LSTM, the same in every case."""
    training = {"batch_size": 16, "shuffle": True}
    return HyperParameters(
        "lstm", NONE, 400, 5e-4, 0.98, source, training=training, activation=_GATES
    )


def fcnn(source: str, decay: float = 0.98) -> HyperParameters:
    """The FCNN, with the case's own decay."""
    return HyperParameters("fcnn", NONE, 600, 5e-4, decay, source)


def hnn(source: str) -> HyperParameters:
    """The HNN: every update sees all data, so the printed decay is left out.

    At 0.98 an update the rate would be gone after a few hundred of the 30,000. Sigmoid and tanh
    take turns, layer by layer: the table names both, and not which is where.
    """
    training = {"batch_size": None, "weight_decay": 1e-4, "decay": 1.0}
    settings = {"activation": "sigmoid,tanh"}
    return HyperParameters("hnn", "rk4", 30_000, 1e-3, 0.98, source, settings, training, _GATES)


def lnn(source: str) -> HyperParameters:
    """The LNN: one update for each state, in a new order each epoch.

    The printed activation is softmax; ours is softplus, as in the LNN's own paper.
    """
    training = {"shuffle": True}
    return HyperParameters(
        "lnn", "rk4", 400, 1e-4, 0.98, source, training=training, activation="Softmax"
    )


def numerical(integrator: str, source: str) -> HyperParameters:
    """The system itself, by an integrator: nothing is trained."""
    return HyperParameters("numerical", integrator, 1, 1e-3, 1.0, source)


# For a model on a case that the paper did not try it on.
USUAL = {
    "lstm": lstm("the paper's other cases"),
    "fcnn": fcnn("the paper's other cases"),
    "hnn": hnn("the paper's single mass-spring system"),
    "lnn": lnn("the paper's single mass-spring system"),
}


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
    def control_trials(self) -> tuple[ControlTask, ...]:
        """Those of the trials in which the model plans for a controller."""
        return tuple(trial for trial in self.trials if isinstance(trial, ControlTask))

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
