import jax.numpy as jnp
import numpy as np
import pytest

from mbdnode.mechanisms import DoublePendulum, SingleMassSpring, SinglePendulum, SliderCrank
from mbdnode.report import summarize
from mbdnode.status import Outcome, Status
from mbdnode.trajectory import Trajectory


def trajectory_of(system, q, v, *, u=None, position=None, velocity=None, last=None):
    """A trajectory with the given states and residuals, one every second."""
    count, last = len(q), len(q) - 1 if last is None else last
    code = Outcome.COMPLETED if last == count - 1 else Outcome.NOT_FINITE
    none = np.zeros(count)
    names = system.coordinate_names
    return Trajectory(
        t=jnp.arange(count, dtype=float),
        q=jnp.asarray(q, float),
        v=jnp.asarray(v, float),
        u=jnp.asarray(np.zeros((count, len(system.inputs))) if u is None else u, float),
        position_residual=jnp.asarray(none if position is None else position, float),
        velocity_residual=jnp.asarray(none if velocity is None else velocity, float),
        status=Status(
            jnp.array(code.value), jnp.array(last), jnp.array(float(last)), jnp.array(-1), names
        ),
        coordinates=names,
        rates=system.rate_names,
        inputs=system.input_names,
    )


def test_energy_drift_is_the_largest_distance_from_the_start():
    # E = m v^2/2 + k x^2/2 with m = 10, k = 50: 25, then 20, then 25.2 J.
    summary = summarize(
        SingleMassSpring(),
        trajectory_of(SingleMassSpring(), [[1.0], [0.0], [1.0]], [[0.0], [2.0], [0.2]]),
    )
    assert summary.energy_drift_j == pytest.approx(5.0, abs=1e-12)
    assert (summary.rows, summary.start_s, summary.end_s) == (3, 0.0, 2.0)
    assert summary.degrees_of_freedom == 1


def test_energy_follows_the_parameters_of_the_rollout():
    trajectory = trajectory_of(SingleMassSpring(), [[1.0], [0.0]], [[0.0], [0.0]])
    summary = summarize(SingleMassSpring(), trajectory, {"k": 8.0})
    assert summary.energy_drift_j == pytest.approx(4.0, abs=1e-12)


def test_energy_is_not_judged_where_it_need_not_be_constant():
    damped = trajectory_of(SinglePendulum(), [[1.0], [0.0]], [[0.0], [0.0]])
    assert summarize(SinglePendulum(), damped).energy_drift_j is None
    forced = trajectory_of(SliderCrank(), np.zeros((2, 9)), np.zeros((2, 9)), u=[[0, 0], [1, 0]])
    assert summarize(SliderCrank(), forced).energy_drift_j is None
    free = trajectory_of(SliderCrank(), np.zeros((2, 9)), np.zeros((2, 9)))
    assert summarize(SliderCrank(), free).energy_drift_j == 0.0


def test_residuals_are_the_largest_and_only_of_constrained_systems():
    still = np.zeros((3, 9))
    trajectory = trajectory_of(
        SliderCrank(), still, still, position=[1e-16, 3e-16, 2e-16], velocity=[5e-16, 0, 0]
    )
    summary = summarize(SliderCrank(), trajectory)
    assert (summary.position_residual, summary.velocity_residual) == (3e-16, 5e-16)
    assert summary.degrees_of_freedom == 1
    assert dict(summary.lines())["position residual"] == "3.0e-16 at most"
    unconstrained = summarize(
        DoublePendulum(), trajectory_of(DoublePendulum(), np.zeros((2, 2)), np.zeros((2, 2)))
    )
    assert unconstrained.position_residual is None
    assert unconstrained.velocity_residual is None
    assert [label for label, _ in unconstrained.lines()] == ["time", "energy drift"]


def test_rows_after_a_failure_do_not_count():
    trajectory = trajectory_of(
        SingleMassSpring(), [[1.0], [1.0], [np.nan]], [[0.0], [0.0], [np.nan]], last=1
    )
    summary = summarize(SingleMassSpring(), trajectory)
    assert (summary.rows, summary.end_s, summary.energy_drift_j) == (2, 1.0, 0.0)
