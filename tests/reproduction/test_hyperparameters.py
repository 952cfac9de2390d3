"""The table of hyper-parameters, typed a second time from the paper."""

import dataclasses
import os
import signal

import numpy as np
import pytest

import mbdnode as mbd
from mbdnode.mechanisms import CartPole, FourBar, SingleMassSpring
from mbdnode.models import HNN, KINDS, LSTM, MBDNODE, MODELS, MBDNODEConfig
from mbdnode.models.paper_settings import configured
from mbdnode.reproduction.cases import CASES, PAPER_CASES, get_case
from mbdnode.reproduction.config import configure
from mbdnode.reproduction.plan import quick
from mbdnode.reproduction.settings_tables import table_column

# Epochs, first learning rate, its decay an epoch: the column MBD-NODE of the paper's tables.
PRINTED = {
    "single-mass-spring": (450, 1e-3, 0.99),
    "single-mass-spring-damper": (350, 1e-3, 0.98),
    "triple-mass-spring-damper": (350, 6e-4, 0.98),
    "single-pendulum": (400, 6e-4, 0.98),
    "single-pendulum:lengths": (400, 6e-4, 0.98),
    "double-pendulum": (450, 1e-3, 0.98),
    "double-pendulum:released-low": (450, 1e-3, 0.98),
    "cart-pole": (450, 1e-3, 0.98),
    "cart-pole:controlled": (450, 1e-3, 0.98),
    "slider-crank": (500, 1e-3, 0.98),
    "slider-crank:friction": (500, 1e-3, 0.98),
    "vehicle": (500, 1e-3, 0.98),
}
# Where the text names the integrator beside the result, or the one that made the data.
INTEGRATORS = {
    "single-mass-spring": "lf2",
    "single-mass-spring-damper": "rk4",
    "triple-mass-spring-damper": "rk4",
    "single-pendulum": "mp2",
    "single-pendulum:lengths": "mp2",
    "double-pendulum": "rk4",
    "double-pendulum:released-low": "rk4",
    "cart-pole": "mp2",
    "cart-pole:controlled": "rk4",
    "slider-crank": "rk4",
    "slider-crank:friction": "rk4",
    "vehicle": "rk4",
}


@pytest.mark.parametrize("case", PRINTED)
def test_case_has_the_printed_values(case):
    found = get_case(case).column("mbd-node")
    assert (found.epochs, found.learning_rate, found.decay) == PRINTED[case]
    assert found.integrator == INTEGRATORS[case]


def test_every_case_has_a_column():
    assert set(PRINTED) == set(CASES)


def test_masses_divide_the_network_where_the_system_is_masses_on_springs():
    assert configure("single-mass-spring").settings.divisor == (10.0,)
    assert configure("single-mass-spring-damper").settings.divisor == (10.0,)
    assert configure("triple-mass-spring-damper").settings.divisor == (100.0, 10.0, 1.0)


@pytest.mark.parametrize("integrator", ["rk4", "fe1", "implicit-midpoint"])
def test_mass_spring_has_a_second_column_for_other_integrators(integrator):
    found = get_case("single-mass-spring").column("mbd-node", integrator)
    assert (found.epochs, found.learning_rate, found.decay) == (300, 1e-3, 0.98)
    assert found.integrator == integrator


def test_symplectic_integrators_share_the_first_column():
    found = get_case("single-mass-spring").column("mbd-node", "ys4")
    assert (found.epochs, found.decay, found.integrator) == (450, 0.99, "ys4")


def test_slider_crank_is_drawn_from_the_printed_box():
    assert {
        "theta1": (0.0, 2 * np.pi),
        "theta1_dot": (-4.0, 4.0),
        "F": (-10.0, 10.0),
        "T": (-10.0, 10.0),
    } == get_case("slider-crank").bounds


@pytest.mark.parametrize("case", PRINTED)
def test_run_of_the_paper_takes_them_all(case):
    config = configure(case)
    training = config.training
    assert (training.epochs, training.learning_rate, training.decay) == PRINTED[case]
    assert training.integrator == INTEGRATORS[case]
    assert (training.window, training.precision, training.loss) == (1, "float32", "minimal")
    # Samples have no order in time, and come in batches; so do many rows of another paper.
    if not get_case(case).bounds and case in PAPER_CASES:
        assert (training.batch_size, training.shuffle) == (1, False)
    settings = config.settings
    assert (settings.width, settings.hidden_layers, settings.activation) == (256, 2, "tanh")
    assert settings.initialization == "xavier"
    assert not settings.scaling or case not in PAPER_CASES
    assert settings.structure == "free"
    assert settings.use_velocity == (INTEGRATORS[case] != "lf2")


def test_paper_network_is_the_default():
    assert configure("double-pendulum").settings == MBDNODEConfig()


# Epochs, first learning rate, decay: the other columns. The HNN's printed decay is left out, since
# each of its epochs is one update.
OTHERS = {
    ("single-mass-spring", "hnn"): (30_000, 1e-3, 1.0),
    ("single-mass-spring", "lnn"): (400, 1e-4, 0.98),
    **{
        (case, "lstm"): (400, 5e-4, 0.98)
        for case in list(PRINTED)[1:8]
        if case != "single-pendulum:lengths"
    },
    ("single-mass-spring-damper", "fcnn"): (600, 5e-4, 0.98),
    ("triple-mass-spring-damper", "fcnn"): (600, 5e-4, 0.98),
    ("single-pendulum", "fcnn"): (600, 5e-4, 0.98),
    ("double-pendulum", "fcnn"): (600, 5e-4, 0.99),
    ("double-pendulum:released-low", "fcnn"): (600, 5e-4, 0.99),
    ("cart-pole", "fcnn"): (600, 5e-4, 0.99),
}


@pytest.mark.parametrize(("case", "model"), OTHERS)
def test_baselines_have_the_printed_values(case, model):
    training = configure(case, model=model).training
    assert (training.epochs, training.learning_rate, training.decay) == OTHERS[case, model]
    assert configure(case, model=model).settings.width == 256


def test_baselines_stand_in_the_cases_of_the_paper_and_no_others():
    tried = {
        (name, column.model) for name, case in CASES.items() for column in case.hyperparameters
    }
    assert {pair for pair in tried if pair[1] not in ("mbd-node", "numerical")} == set(OTHERS)


# The error table, typed a second time.
ERRORS = {
    ("single-mass-spring", "mbd-node"): 1.3e-6,
    ("single-mass-spring", "hnn"): 1.9e-2,
    ("single-mass-spring", "lnn"): 9.1e-6,
    ("single-mass-spring-damper", "mbd-node"): 8.6e-4,
    ("single-mass-spring-damper", "lstm"): 1.8e-2,
    ("single-mass-spring-damper", "fcnn"): 9.9e-2,
    ("triple-mass-spring-damper", "mbd-node"): 8.2e-3,
    ("triple-mass-spring-damper", "lstm"): 1.8e-1,
    ("triple-mass-spring-damper", "fcnn"): 4.2e-2,
    ("single-pendulum", "mbd-node"): 2.0e-3,
    ("single-pendulum", "lstm"): 3.4e-3,
    ("single-pendulum", "fcnn"): 8.0e-1,
    ("double-pendulum:released-low", "mbd-node"): 2.0e-1,
    ("double-pendulum:released-low", "lstm"): 6.4e-1,
    ("double-pendulum:released-low", "fcnn"): 2.2,
    ("cart-pole", "mbd-node"): 6.0e-5,
    ("cart-pole", "lstm"): 3.2e-4,
    ("cart-pole", "fcnn"): 4.7e-2,
    ("slider-crank", "mbd-node"): 3.2e-2,
}


@pytest.mark.parametrize(
    ("model", "marked"),
    [
        ("mbd-node", {}),
        ("hnn", {"Learning rate decay": "1 (paper: 0.98)"}),
        ("lnn", {"Activation function": "Softplus (paper: Softmax)"}),
    ],
)
def test_values_that_are_not_the_papers_say_so(model, marked):
    column = table_column(configure("single-mass-spring", model=model))
    assert {name: value for name, value in column.items() if "paper" in value} == marked


def test_schedule_is_what_falls():
    column = table_column(configure("single-pendulum", recipe="adam-lm"))
    assert column["Learning rate decay"] == "cosine, to zero"


def test_shortened_run_is_marked_in_its_table():
    column = table_column(quick(configure("single-mass-spring-damper")))
    assert column["Max. epochs"] == "35 (paper: 350)"


@pytest.mark.parametrize("case", ["single-mass-spring-damper", "cart-pole"])
@pytest.mark.parametrize("model", ["mbd-node", "lstm", "fcnn"])
def test_other_tables_are_the_papers(case, model):
    assert not any(
        "paper" in value for value in table_column(configure(case, model=model)).values()
    )


def test_every_comparable_error_is_the_printed_one():
    found = {
        (name, r.model): r.value
        for name, case in CASES.items()
        for r in case.references
        if r.quantity == "mse" and not r.incomparable
    }
    assert found == ERRORS


def test_every_number_of_the_paper_has_a_run_that_answers_it():
    for case in CASES.values():
        columns = {(column.model, column.integrator) for column in case.hyperparameters}
        assert {(r.model, r.integrator) for r in case.references} <= columns


def test_time_costs_add_up_to_the_printed_column():
    # The sum of the thirty times of the table, added from the text.
    printed = 507.73 + 874.05 + 1461.52 + 218.02 + 988.45
    printed += 316.86 + 518.09 + 1254.13 + 220.13 + 500.63
    printed += 358.55 + 608.55 + 915.68 + 214.13 + 460.33
    printed += 250.52 + 276.12 + 838.37 + 210.18 + 348.36
    printed += 253.34 + 368.75 + 854.06 + 176.51 + 402.62
    printed += 255.80 + 285.04 + 776.08 + 214.26 + 358.14
    times = [
        r.value for case in CASES.values() for r in case.references if r.quantity == "train_seconds"
    ]
    assert len(times) == 30
    assert sum(times) == pytest.approx(printed, abs=1e-9)


# The columns of the baselines: epochs, first learning rate, its decay an epoch. The HNN sees
# all data in every update, so that a decay would end it after a few hundred of its 30,000.
BASELINES = {
    ("single-mass-spring", "hnn"): (30_000, 1e-3, 1.0, None),
    ("single-mass-spring", "lnn"): (400, 1e-4, 0.98, 1),
    ("single-mass-spring-damper", "lstm"): (400, 5e-4, 0.98, 16),
    ("single-mass-spring-damper", "fcnn"): (600, 5e-4, 0.98, 1),
    ("triple-mass-spring-damper", "fcnn"): (600, 5e-4, 0.98, 1),
    ("single-pendulum", "lstm"): (400, 5e-4, 0.98, 16),
    ("double-pendulum", "fcnn"): (600, 5e-4, 0.99, 1),
    ("cart-pole", "fcnn"): (600, 5e-4, 0.99, 1),
    ("cart-pole", "lstm"): (400, 5e-4, 0.98, 16),
    **{
        (name, "mbd-node"): (*printed, 64 if name == "slider-crank" else 1)
        for name, printed in PRINTED.items()
        if ":" not in name and name in PAPER_CASES
    },
}


@pytest.mark.parametrize(("case", "model"), BASELINES)
def test_recipe_of_the_paper_means_in_python_what_it_means_in_a_run(case, model):
    run = configure(case, model=model)
    kind = KINDS[MODELS[model][0]]
    made = kind.for_system(get_case(case).mechanism, **dataclasses.asdict(run.settings))
    found, told = configured("paper", made)
    assert found == run.training
    printed = found.epochs, found.learning_rate, found.decay, found.batch_size
    assert printed == BASELINES[case, model]
    assert told.startswith("; recipe paper: settings of tab:hyper_")
    assert "does not" not in told


def test_fit_takes_the_papers_settings_and_says_so():
    spring = SingleMassSpring()
    swing = mbd.simulate(spring, np.arange(21) * 0.01, {"x": 1.0})
    stop = lambda row, total: os.kill(os.getpid(), signal.SIGINT)  # noqa: E731
    found = mbd.fit(HNN.for_system(spring), swing, "paper", report=stop)
    # One update an epoch: all data in one batch.
    assert (found.updates, found.config.epochs, found.config.batch_size) == (1, 30_000, None)
    assert found.config.weight_decay == 1e-4
    expected = "; recipe paper: settings of tab:hyper_sms for hnn, 30,000 epochs"
    assert found.status == "interrupted after 1 of 30000 epochs" + expected


def test_what_the_paper_does_not_say_is_said():
    told = configured("paper", MBDNODE.for_system(FourBar(), width=4))[1]
    assert "the paper has no settings for this mbd-node, so those of TrainingConfig" in told
    config, told = configured("paper", MBDNODE.for_system(SingleMassSpring(), width=4))
    assert (config.integrator, config.epochs) == ("rk4", 300)
    assert told.endswith("; its network has width=256, divisor=(10.0,), this one does not")
    config, told = configured("adam-lm", MBDNODE.for_system(CartPole(), width=24))
    assert "width" not in told
    assert "affine=True" in told
    assert configured(config, MBDNODE.for_system(CartPole())) == (config, "")


def test_recipe_of_other_networks_is_refused():
    model = LSTM.for_system(SingleMassSpring(), width=4)
    with pytest.raises(mbd.UserError, match=r"'paper-shuffled' trains mbd-node, not 'lstm'"):
        configured("paper-shuffled", model)


def test_former_name_of_a_recipe_is_still_known():
    assert configure("cart-pole", recipe="trained") == configure("cart-pole", recipe="adam-lm")
    with pytest.warns(DeprecationWarning, match="called 'adam-lm'"):
        config = configured("trained", MBDNODE.for_system(CartPole()))[0]
    assert config == mbd.RECIPES["adam-lm"].config == mbd.RECIPES["trained"].config
