"""The table of hyper-parameters, typed a second time from the paper."""

import numpy as np
import pytest

from mbdnode.experiments import CASES
from mbdnode.experiments.hyperparameters import PAPER, SLIDER_CRANK_BOX, paper_hyperparameters
from mbdnode.experiments.run import configure
from mbdnode.models import MBDNODEConfig

# Epochs, first learning rate, its decay an epoch: the column MBD-NODE of the paper's tables.
PRINTED = {
    "single-mass-spring": (450, 1e-3, 0.99),
    "single-mass-spring-damper": (350, 1e-3, 0.98),
    "triple-mass-spring-damper": (350, 6e-4, 0.98),
    "single-pendulum": (400, 6e-4, 0.98),
    "double-pendulum": (450, 1e-3, 0.98),
    "double-pendulum:released-low": (450, 1e-3, 0.98),
    "cart-pole": (450, 1e-3, 0.98),
    "slider-crank": (500, 1e-3, 0.98),
}
# Where the text names the integrator beside the result, or the one that made the data.
INTEGRATORS = {
    "single-mass-spring": "lf2",
    "single-mass-spring-damper": "rk4",
    "triple-mass-spring-damper": "rk4",
    "single-pendulum": "mp2",
    "double-pendulum": "rk4",
    "double-pendulum:released-low": "rk4",
    "cart-pole": "mp2",
    "slider-crank": "rk4",
}


@pytest.mark.parametrize("case", PRINTED)
def test_case_has_the_printed_values(case):
    found = paper_hyperparameters(case)
    assert (found.epochs, found.learning_rate, found.decay) == PRINTED[case]
    assert found.integrator == INTEGRATORS[case]


def test_every_case_has_a_column():
    assert set(PRINTED) == set(PAPER) == set(CASES)


def test_masses_divide_the_network_where_the_system_is_masses_on_springs():
    assert paper_hyperparameters("single-mass-spring").divisor == (10.0,)
    assert paper_hyperparameters("single-mass-spring-damper").divisor == (10.0,)
    assert paper_hyperparameters("triple-mass-spring-damper").divisor == (100.0, 10.0, 1.0)


@pytest.mark.parametrize("integrator", ["rk4", "fe1", "implicit-midpoint"])
def test_mass_spring_has_a_second_column_for_other_integrators(integrator):
    found = paper_hyperparameters("single-mass-spring", integrator)
    assert (found.epochs, found.learning_rate, found.decay) == (300, 1e-3, 0.98)
    assert found.integrator == integrator


def test_symplectic_integrators_share_the_first_column():
    found = paper_hyperparameters("single-mass-spring", "ys4")
    assert (found.epochs, found.decay, found.integrator) == (450, 0.99, "ys4")


def test_slider_crank_is_drawn_from_the_printed_box():
    assert {
        "theta1": (0.0, 2 * np.pi),
        "theta1_dot": (-4.0, 4.0),
        "F": (-10.0, 10.0),
        "T": (-10.0, 10.0),
    } == SLIDER_CRANK_BOX


@pytest.mark.parametrize("case", PRINTED)
def test_run_of_the_paper_takes_them_all(case):
    config = configure(case)
    training = config.training
    assert (training.epochs, training.learning_rate, training.decay) == PRINTED[case]
    assert training.integrator == INTEGRATORS[case]
    assert (training.window, training.precision, training.loss) == (1, "float32", "minimal")
    if case != "slider-crank":
        assert (training.batch_size, training.shuffle) == (1, False)
    settings = config.settings
    assert (settings.width, settings.hidden_layers, settings.activation) == (256, 2, "tanh")
    assert (settings.initialization, settings.scaling) == ("xavier", False)
    assert settings.use_velocity == (INTEGRATORS[case] != "lf2")


def test_paper_network_is_the_default():
    assert configure("double-pendulum").settings == MBDNODEConfig()


def test_case_without_a_table_is_refused():
    with pytest.raises(ValueError, match=r"'cartpole'.*Did you mean 'cart-pole'"):
        paper_hyperparameters("cartpole")
