"""The errors by hand on small arrays, and residuals that a soft model cannot hide."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import TIMES, Pendulum

from mbdnode.evaluation import evaluate, nrmse
from mbdnode.mechanisms import SingleMassSpring, SingleMassSpringDamper, SliderCrank
from mbdnode.models import FCNN, LSTM, MBDNODE, Ensemble
from mbdnode.multibody import RecordedSystem, angle, consistent_state, length
from mbdnode.simulation import simulate
from mbdnode.status import completed
from mbdnode.trajectory import State, Trajectory


def made(q, v, t=None, names=("x", "y")):
    q, v = jnp.asarray(q, float), jnp.asarray(v, float)
    t = jnp.arange(float(len(q))) if t is None else jnp.asarray(t)
    none = jnp.zeros(len(q))
    return Trajectory(
        t=t,
        q=q,
        v=v,
        u=jnp.zeros((len(q), 0)),
        position_residual=none,
        velocity_residual=none,
        status=completed(t[-1], jnp.asarray(len(q) - 1), names),
        coordinates=names,
        rates=tuple(f"{name}_dot" for name in names),
        inputs=(),
    )


TRUTH = made(np.zeros((4, 2)), np.zeros((4, 2)))
# Squared errors of the rows, summed over four components: 0, 1 + 4, 9, 4 + 16.
OFF = made([[0, 0], [1, 0], [0, 3], [2, 0]], [[0, 0], [0, 2], [0, 0], [0, -4]])


def test_errors_are_means_over_components_and_times():
    found = evaluate(TRUTH, OFF)
    assert found.mse == (0 + 5 + 9 + 20) / 16
    assert found.mse_sum == (0 + 5 + 9 + 20) / 4


def test_error_that_overflows_is_infinite_and_no_warning():
    # Warnings are errors here; the square of 1e200 is beyond float64.
    far = made(1e200 * np.ones((4, 2)), np.zeros((4, 2)))
    assert evaluate(TRUTH, far).mse == np.inf
    moving = made([[0, 0], [1, 1], [2, 2], [3, 3]], np.zeros((4, 2)))
    assert nrmse(moving, far, (length("x"), length("y"))) == np.inf


@pytest.mark.parametrize(
    ("train_steps", "inside", "outside"),
    [
        (None, None, None),
        (0, None, 34 / 16),
        (1, 5 / 8, 29 / 8),
        (2, 14 / 12, 20 / 4),
        (3, 34 / 16, None),
        (300, 34 / 16, None),
    ],
)
def test_error_is_split_after_the_last_state_of_training(train_steps, inside, outside):
    found = evaluate(TRUTH, OFF, train_steps=train_steps)
    assert (found.mse_id, found.mse_ood) == (inside, outside)
    assert found.mse == 34 / 16


def test_perfect_rollout_has_no_error():
    found = evaluate(OFF, OFF, train_steps=2)
    assert (found.mse, found.mse_id, found.mse_ood, found.mse_sum) == (0, 0, 0, 0)


def test_nrmse_is_in_units_of_the_standard_deviation_of_what_moves():
    names = (length("x"), length("y"))
    truth = made([[1, 5], [-1, 5], [1, 5], [-1, 5]], [[2, 0], [-2, 0], [2, 0], [-2, 0]])
    # Half of the deviation of x, a quarter of that of its velocity; y stands still.
    off = np.array([0.5, 0.0])
    q, v = np.asarray(truth.q) + off, np.asarray(truth.v) + off
    assert nrmse(truth, made(q, v), names) == pytest.approx(np.sqrt((0.5**2 + 0.25**2) / 2))
    assert np.isnan(nrmse(truth, made(q * np.nan, v), names))


def test_error_of_an_angle_that_winds_counts_by_its_travel():
    turns, steady = np.linspace(0.0, 100.0, 4)[:, None], np.array([[1.0], [-1.0], [1.0], [-1.0]])
    truth = made(turns, steady, names=("theta",))
    found = nrmse(truth, made(turns + 1.0, steady, names=("theta",)), (angle("theta"),))
    # One radian of 0, 33, 67 and 100, whose deviation is 100 sqrt(5) / 6; nothing of its velocity.
    assert found == pytest.approx(6 / (100 * np.sqrt(5)) / np.sqrt(2))


def test_rollout_that_ended_early_has_no_error_to_report():
    short = made([[0, 0], [1, 0], [0, 3], [np.nan] * 2], np.zeros((4, 2)))
    found = evaluate(TRUTH, short, train_steps=2)
    assert np.isnan(found.mse)
    assert np.isnan(found.mse_ood)
    assert found.mse_id == 10 / 12


def test_truth_comes_first_and_both_have_a_name():
    soft = dataclasses.replace(OFF, position_residual=jnp.ones(4))
    assert evaluate(TRUTH, soft).position_residual == 1
    assert evaluate(prediction=soft, truth=TRUTH) == evaluate(TRUTH, soft)


@pytest.mark.parametrize(
    ("prediction", "sign"),
    [
        (made([[0, 0], [1, 0], [0, 3], [np.nan] * 2], np.zeros((4, 2))), "not finite"),
        (dataclasses.replace(OFF, spread=State(OFF.q, OFF.v)), "mean of an ensemble"),
        (dataclasses.replace(OFF, outside=jnp.zeros(4, bool)), "left the training data"),
    ],
)
def test_prediction_in_the_place_of_the_truth_is_refused(prediction, sign):
    evaluate(TRUTH, prediction)
    with pytest.raises(ValueError, match=f"{sign}.*evaluate\\(truth, prediction\\)"):
        evaluate(prediction, TRUTH)


def test_metrics_by_name_hold_every_number():
    found = evaluate(TRUTH, OFF, train_steps=1)
    names = {field.name for field in dataclasses.fields(found)}
    assert set(found.as_dict()) == names
    assert found.as_dict()["mse_sum"] == found.mse_sum


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (made(np.zeros((3, 2)), np.zeros((3, 2))), "4 rows.*3 of x, y"),
        (made(np.zeros((4, 2)), np.zeros((4, 2)), names=("x", "z")), "x, y.*x, z"),
        (made(np.zeros((4, 2)), np.zeros((4, 2)), t=[0.0, 1.0, 2.0, 3.1]), "different times"),
    ],
)
def test_unlike_trajectories_are_refused(other, message):
    with pytest.raises(ValueError, match=message):
        evaluate(other, OFF)


def test_batch_and_negative_range_are_refused():
    batch = jax.tree.map(lambda x: jnp.stack([x, x]), OFF)
    with pytest.raises(ValueError, match="single trajectory"):
        evaluate(TRUTH, batch)
    with pytest.raises(ValueError, match="train_steps is -1"):
        evaluate(TRUTH, OFF, train_steps=-1)


def test_residuals_of_a_soft_model_are_those_of_the_mechanism():
    model = MBDNODE.for_system(Pendulum(), width=4, constraints="none")
    start = consistent_state(Pendulum(), {"x": 0.5})
    run = simulate(model, TIMES, start)
    x, y, v, w = (np.asarray(run[name]) for name in ("x", "y", "x_dot", "y_dot"))
    leaving = np.abs(2 * (x * v + y * w))
    for judged, rod in (({}, 1.5), ({"system": model}, 1.2), ({"system": Pendulum()}, 1.2)):
        given = {"parameters": {"L": rod}} if judged else {}
        found = evaluate(run, run, **judged, **given)
        off = np.abs(x**2 + y**2 - rod**2)
        assert found.position_residual == pytest.approx(np.max(off), rel=1e-12)
        assert found.velocity_residual == pytest.approx(np.max(leaving), rel=1e-12)
        assert found.velocity_residual > 1e-3
    np.testing.assert_allclose(
        run.position_residual, np.abs(x**2 + y**2 - 2.25), rtol=1e-12, atol=1e-15
    )


def test_mean_of_soft_models_has_the_residuals_of_the_mean():
    members = [
        MBDNODE.for_system(Pendulum(), width=4, constraints="penalty", seed=seed) for seed in (0, 1)
    ]
    run = simulate(Ensemble(members), TIMES, consistent_state(Pendulum(), {"x": 0.5}))
    x, y = np.asarray(run["x"]), np.asarray(run["y"])
    np.testing.assert_allclose(
        run.position_residual, np.abs(x**2 + y**2 - 2.25), rtol=1e-12, atol=1e-15
    )
    assert np.max(run.position_residual) > 1e-3


@pytest.mark.parametrize("kind", [LSTM, FCNN, MBDNODE])
def test_residuals_are_unknown_where_the_system_is(kind):
    system = RecordedSystem(coordinates=(length("x"),))
    model = kind.for_system(system, width=4, **({"past": 1} if kind is LSTM else {}))
    if kind is FCNN:
        model = eqx.tree_at(lambda m: m.start, model, jnp.array([1.0, 0.0]))
    found = evaluate(*[simulate(model, TIMES, State(jnp.ones(1), jnp.zeros(1)))] * 2)
    assert np.isnan(found.position_residual)
    assert np.isnan(found.velocity_residual)
    assert np.isfinite(found.mse)


def test_residuals_of_a_table_are_unknown():
    frame = simulate(Pendulum(), TIMES, {"x": 0.5}).to_frame()
    assert np.all(np.isnan(Trajectory.from_frame(frame).position_residual))


def test_energy_drift_is_the_largest_change_of_the_stored_energy():
    run = made([[1.0], [0.0], [1.0]], [[0.0], [2.0], [1.0]], names=("x",))
    # k = 50, m = 10: 25 J at first, then 20 J, then 30 J.
    found = evaluate(run, run, system=SingleMassSpring())
    assert found.energy_drift == pytest.approx(5.0)
    assert evaluate(run, run).energy_drift is None
    heavy = evaluate(run, run, system=SingleMassSpring(), parameters={"m": 20.0})
    assert heavy.energy_drift == pytest.approx(15.0)


def test_work_of_dampers_and_inputs_is_no_drift():
    run = made([[1.0], [0.0], [1.0]], [[0.0], [2.0], [1.0]], names=("x",))
    assert evaluate(run, run, system=SingleMassSpringDamper()).energy_drift is None
    crank, start = SliderCrank(), {"theta1": 1.0, "theta1_dot": 1.0}
    free = simulate(crank, TIMES, start)
    driven = simulate(crank, TIMES, start, inputs=np.ones((41, 2)))
    # RK4 at 0.025 s; the torque would count as some tens of joules.
    assert evaluate(free, free, system=crank).energy_drift < 1e-3
    assert evaluate(driven, driven, system=crank).energy_drift is None


def test_drift_and_residual_of_a_mechanism_with_constraints():
    crank = SliderCrank()
    state = consistent_state(crank, {"theta1": 1.0, "theta1_dot": 1.0})
    rows = jnp.stack([state.q, state.q.at[7].add(0.25)])
    run = made(rows, jnp.stack([state.v, 2 * state.v]), names=crank.coordinate_names)
    found = evaluate(run, run, system=crank)
    # y3 = 0 and y2 + ... = y3 are both off by what was added; doubling v leaves four times T.
    assert found.position_residual == pytest.approx(0.25)
    masses = np.array([3, 3, 4, 6, 6, 32, 1, 1, 1])
    assert found.energy_drift == pytest.approx(
        1.5 * float(np.sum(masses * np.asarray(state.v) ** 2))
    )
