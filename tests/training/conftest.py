"""Data that the tests of training share: few steps, and made without compiling anything."""

import numpy as np
import pytest
from motions import as_trajectory
from problems import solve_pendulum, solve_slider_crank

from mbdnode.mechanisms import SinglePendulum, SliderCrank
from mbdnode.models import MBDNODE


@pytest.fixture(scope="session")
def swing():
    """Ten steps of 0.04 s of a pendulum under a changing force."""
    forces = np.cos([*range(10), 9.0])
    states = solve_pendulum(forces[:-1], [0.5, 1.0], 0.04)
    return as_trajectory(SinglePendulum(), np.arange(11) * 0.04, states, forces[:, None])


@pytest.fixture(scope="session")
def crank():
    """Ten steps of 0.01 s of a slider-crank under changing force and torque."""
    inputs = np.random.default_rng(1).uniform(-10, 10, (10, 2))
    states, inputs = solve_slider_crank(inputs), np.concatenate([inputs, inputs[-1:]])
    return as_trajectory(SliderCrank(), np.arange(11) * 0.01, states, inputs)


@pytest.fixture
def pendulum_model():
    return MBDNODE.for_system(SinglePendulum(), width=4)
