"""The columns of the paper's hyper-parameter tables, as the cases name them.

All models have two hidden layers of 256, Adam and the mean squared error. What the text leaves
open is filled in here: MBD-NODE and FCNN make one update for each step, in time order; the LSTM
takes small batches in a new order each epoch; the HNN takes all data in one batch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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

    At 0.98 an update the rate would be gone after a few hundred of the 30,000. Its network is tanh
    alone.
    """
    training = {"batch_size": None, "weight_decay": 1e-4, "decay": 1.0}
    return HyperParameters(
        "hnn", "rk4", 30_000, 1e-3, 0.98, source, training=training, activation=_GATES
    )


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
