"""The four-bar linkage: through its dead points, and through a parallelogram's change points."""

import numpy as np
import pytest

import mbdnode as mbd
from mbdnode.mechanisms import FourBar

START = {"crank": 1.0, "crank_dot": 8.0}


@pytest.fixture(scope="module")
def by_rocker():
    """Turning fast enough to go round, integrated from the rocker as far as that will do."""
    t = np.linspace(0.0, 3.0, 601)
    return mbd.simulate(FourBar(), t, START, independent=("rocker",), integrator="dopri8")


def test_a_rocker_named_as_independent_passes_its_dead_points(by_rocker):
    assert by_rocker.status.ok
    assert float(np.ptp(by_rocker["crank"])) > 4 * np.pi
    turns = np.count_nonzero(np.diff(np.sign(by_rocker["rocker_dot"])))
    assert turns >= 4
    # Links of about a meter and rates of about ten: round-off is 1e-16 and 1e-15.
    assert float(by_rocker.position_residual.max()) <= 1e-14
    assert float(by_rocker.velocity_residual.max()) <= 1e-13


def test_passing_a_dead_point_leaves_no_jump(by_rocker):
    by_crank = mbd.simulate(
        FourBar(), by_rocker.t, START, independent=("crank",), integrator="dopri8"
    )
    # The crank has no dead point; a jump of the other run would stay as a difference.
    assert np.max(np.abs(by_rocker.q - by_crank.q)) <= 1e-9
    assert np.max(np.abs(by_rocker.v - by_crank.v)) <= 1e-8


def test_the_linkage_keeps_its_energy_through_dead_points(by_rocker):
    energy = np.asarray(mbd.energy(FourBar(), by_rocker))
    assert np.max(np.abs(energy - energy[0])) <= 1e-10 * np.max(np.abs(energy))


@pytest.mark.slow
def test_without_choosing_again_a_dead_point_ends_the_rollout_with_a_reason():
    run = mbd.simulate(
        FourBar(),
        np.linspace(0.0, 3.0, 301),
        START,
        independent=("rocker",),
        repartition=False,
    )
    assert not run.status.ok
    assert "Newton iteration for the dependent coordinates did not converge" in str(run.status)
    assert np.all(np.isfinite(run.kept.q))


@pytest.mark.slow
@pytest.mark.parametrize("independent", [("crank",), ("rocker",)])
def test_a_parallelogram_keeps_to_its_branch_through_the_change_points(independent):
    # Without weight the coupler only translates, so the inertia is constant, and a constant torque
    # gives a constant acceleration.
    parameters = {"l_ground": 2.0, "l_crank": 1.0, "l_coupler": 2.0, "l_rocker": 1.0, "g": 0.0}
    t, torque = np.linspace(0.0, 6.0, 601), 0.5
    start = mbd.consistent_state(
        FourBar(),
        {"crank": 1.01, "crank_dot": 2.0},
        guess={"coupler": 0.0, "rocker": 1.0},
        parameters=parameters,
    )
    run = mbd.simulate(
        FourBar(),
        t,
        start,
        inputs=np.full(len(t) - 1, torque),
        parameters=parameters,
        independent=independent,
    )
    assert run.status.ok
    masses = {p.name: p.default for p in FourBar.parameters}
    inertia = (
        (masses["I_crank"] + masses["m_crank"] / 4)
        + masses["m_coupler"]
        + (masses["I_rocker"] + masses["m_rocker"] / 4)
    )
    motion = lambda t: 1.01 + 2.0 * t + torque / inertia * t**2 / 2  # noqa: E731
    angle = motion(t)
    assert angle[-1] > 4 * np.pi  # through at least four flat positions
    # RK4 is exact on this motion. What is left is round-off, magnified near the flat positions:
    # each of position, velocity and acceleration divides once more by the sine of the angle at the
    # nearest stage, which is at a whole or a half step.
    nearest = np.min(np.abs(np.sin(motion(np.linspace(0.0, 6.0, 1201)))))
    assert nearest < 1e-2
    tolerance = 10 * np.finfo(float).eps / nearest**3
    assert tolerance < 1e-7
    np.testing.assert_allclose(run["crank"], angle, rtol=0, atol=tolerance)
    np.testing.assert_allclose(run["rocker"], angle, rtol=0, atol=tolerance)
    np.testing.assert_allclose(run["coupler"], 0.0, rtol=0, atol=tolerance)
