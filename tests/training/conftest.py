"""Data that the tests of training share: few steps, and made without compiling anything."""

import jax.numpy as jnp
import numpy as np
import pytest
from problems import solve, solve_slider_crank

from mbdnode.mechanisms import SinglePendulum, SliderCrank
from mbdnode.models import MBDNODE
from mbdnode.status import completed
from mbdnode.trajectory import Trajectory


def as_trajectory(system, t, states, inputs):
    """Rows `(q, v)` and inputs held over each step as a trajectory of `system`."""
    q, v = np.split(np.asarray(states, float), 2, axis=1)
    none = jnp.zeros(len(t))
    return Trajectory(
        t=jnp.asarray(t, float),
        q=jnp.asarray(q),
        v=jnp.asarray(v),
        u=jnp.asarray(np.concatenate([inputs, inputs[-1:]]), float),
        position_residual=none,
        velocity_residual=none,
        status=completed(
            jnp.asarray(t[-1], float), jnp.asarray(len(t) - 1), system.coordinate_names
        ),
        coordinates=system.coordinate_names,
        rates=system.rate_names,
        inputs=system.input_names,
    )


@pytest.fixture(scope="session")
def swing():
    """Ten steps of 0.04 s of a pendulum under a changing force."""
    forces, t = np.cos(np.arange(10.0)), np.arange(11) * 0.04
    y = [np.array([0.5, 1.0])]
    for force in forces:
        right = lambda _, x: [x[1], -9.81 * np.sin(x[0]) - 0.1 * x[1] + force]  # noqa: B023, E731
        y.append(solve(right, y[-1], np.array([0.0, 0.04]))[-1])
    return as_trajectory(SinglePendulum(), t, np.stack(y), forces[:, None])


@pytest.fixture(scope="session")
def crank():
    """Ten steps of 0.01 s of a slider-crank under changing force and torque."""
    inputs = np.random.default_rng(1).uniform(-10, 10, (10, 2))
    return as_trajectory(SliderCrank(), np.arange(11) * 0.01, solve_slider_crank(inputs), inputs)


@pytest.fixture
def pendulum_model():
    return MBDNODE.for_system(SinglePendulum(), width=4)
