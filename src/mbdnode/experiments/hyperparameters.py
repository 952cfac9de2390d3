"""The paper's hyper-parameters of MBD-NODE, every case in one table.

Network and optimiser are the same in all: two hidden layers of 256, tanh, Xavier, Adam, the mean
squared error of one step. What differs is below. The integrator is the one named with the
printed error where the text says it, and otherwise the one that made the data. `divisor` is the
mass, by which the paper divides the network's output.
"""

from dataclasses import dataclass

import numpy as np

from mbdnode.naming import unknown_name


@dataclass(frozen=True)
class HyperParameters:
    """One column of one of the paper's tables.

    **Arguments:**

    - `epochs`, `learning_rate`, `decay`: of the training.
    - `integrator`: inside the loss.
    - `divisor`: of the network's output.
    - `source`: the table in the paper.
    """

    epochs: int
    learning_rate: float
    decay: float
    integrator: str
    divisor: tuple[float, ...]
    source: str


_SYMPLECTIC = ("lf2", "ys4", "fk6")

PAPER: dict[str, HyperParameters] = {
    "single-mass-spring": HyperParameters(450, 1e-3, 0.99, "lf2", (10.0,), "tab:hyper_sms"),
    "single-mass-spring-damper": HyperParameters(350, 1e-3, 0.98, "rk4", (10.0,), "tab:hyper_smsd"),
    "triple-mass-spring-damper": HyperParameters(
        350, 6e-4, 0.98, "rk4", (100.0, 10.0, 1.0), "tab:hyper_tmsd"
    ),
    "single-pendulum": HyperParameters(400, 6e-4, 0.98, "mp2", (1.0,), "tab:hyper_sp"),
    "double-pendulum": HyperParameters(450, 1e-3, 0.98, "rk4", (), "tab:hyper_dp"),
    "double-pendulum:released-low": HyperParameters(450, 1e-3, 0.98, "rk4", (), "tab:hyper_dp"),
    "cart-pole": HyperParameters(450, 1e-3, 0.98, "mp2", (), "tab:hyper_cp"),
    "slider-crank": HyperParameters(500, 1e-3, 0.98, "rk4", (), "tab:hyper_sc"),
}
# The mass-spring's second column: not symplectic, so it may read velocities.
SINGLE_MASS_SPRING_RK4 = HyperParameters(300, 1e-3, 0.98, "rk4", (10.0,), "tab:hyper_sms")

# The slider-crank is trained on draws from this box, not on a trajectory.
SLIDER_CRANK_BOX = {
    "theta1": (0.0, 2 * np.pi),
    "theta1_dot": (-4.0, 4.0),
    "F": (-10.0, 10.0),
    "T": (-10.0, 10.0),
}


def paper_hyperparameters(case: str, integrator: str | None = None) -> HyperParameters:
    """The paper's values for a case.

    **Arguments:**

    - `case`: its name.
    - `integrator`: another one than the table's; the mass-spring has a column of its own for
        integrators that are not symplectic.

    **Returns:**

    `HyperParameters`. Raises `ValueError` for a case without a table.
    """
    if case not in PAPER:
        raise unknown_name("case with a table in the paper", case, PAPER)
    found = PAPER[case]
    if integrator is None or integrator == found.integrator:
        return found
    if case == "single-mass-spring" and integrator not in _SYMPLECTIC:
        found = SINGLE_MASS_SPRING_RK4
    return HyperParameters(
        found.epochs, found.learning_rate, found.decay, integrator, found.divisor, found.source
    )
