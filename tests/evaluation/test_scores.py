"""One measure of error, by hand on small arrays: scales, angles, columns that were not recorded."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from mbdnode.evaluation import HeldOut, score
from mbdnode.evaluation.predictions import rows_before
from mbdnode.formatting import percent
from mbdnode.mechanisms import SinglePendulum
from mbdnode.multibody import Coordinate, angle
from mbdnode.nrmse import LIMIT, column_scales, errors_without_noise, nrmse_of, row_errors
from mbdnode.status import completed
from mbdnode.trajectory import Trajectory

X, THETA = Coordinate("x", unit="m"), angle("theta")


def trajectory(t, q, v, names):
    """A motion as a log or a model gives it."""
    count = len(t)
    status = completed(jnp.asarray(float(t[-1])), jnp.asarray(count - 1), names)
    arrays = [jnp.asarray(np.asarray(x, float)) for x in (t, q, v, np.zeros((count, 0)))]
    none, rates = jnp.zeros(count), tuple(f"{name}_dot" for name in names)
    return Trajectory(*arrays, none, none, status, names, rates, ())


def held_out(truth, found, recorded, names=("x", "theta"), name="a run", outside=False):
    """A run with a row a second."""
    t = np.arange(len(truth))
    runs = [trajectory(t, q, np.zeros_like(q), names) for q in (truth, found)]
    return HeldOut(name, *runs, np.full(len(t), outside), recorded)


def test_scale_is_the_standard_deviation_of_every_column_angle_or_not():
    runs = [np.array([[0.0, 0.0, 0.0], [2.0, 20.0, 0.2]])]
    assert column_scales(runs, [False, True, True]) == pytest.approx([1.0, 10.0, 0.1])


def test_whole_turns_between_runs_are_no_motion_of_an_angle():
    # One swing of a tenth of a radian, which a log wrapped and another counted on from ten turns.
    swing = 0.1 * np.sqrt(2) * np.sin(2 * np.pi * np.arange(100) / 50)[:, None]
    runs = [swing + 2 * np.pi * turns for turns in (0, -1, 10)]
    assert column_scales(runs, [True]) == pytest.approx([0.1])
    # Of a length the same runs are far apart.
    assert column_scales(runs, [False])[0] > 30
    # Upright or hanging is no matter of turns.
    hanging = [swing, swing + np.pi / 2]
    assert column_scales(hanging, [True]) == pytest.approx([np.hypot(0.1, np.pi / 4)])


def test_column_that_stands_still_has_the_scale_of_the_training_data_or_none():
    judged = [np.array([[0.0, 3.0, 7.0], [2.0, 3.0, 7.0]])]
    training = [np.array([[9.0, 0.0, 7.0], [9.0, 4.0, 7.0]])]
    assert column_scales(judged, [False] * 3) == pytest.approx([1.0, np.nan, np.nan], nan_ok=True)
    found = column_scales(judged, [False] * 3, training)
    assert found == pytest.approx([1.0, 2.0, np.nan], nan_ok=True)
    # Of a constant of size seven, round-off is no motion.
    shaken = [judged[0] + 1e-15 * np.array([[0, 0, 1], [0, 0, -1]])]
    assert np.isnan(column_scales(shaken, [False] * 3)[2])


def test_row_error_is_the_root_mean_square_over_scored_columns():
    truth, found = np.zeros((2, 3)), np.array([[3.0, 8.0, 99.0], [0.0, np.nan, 0.0]])
    scales = np.array([1.0, 2.0, np.nan])
    assert row_errors(truth, found, scales) == pytest.approx([np.sqrt((9 + 16) / 2), np.inf])
    assert np.all(np.isnan(row_errors(truth, found, np.full(3, np.nan))))


def test_nrmse_of_runs_counts_each_by_its_length():
    # A hundred rows of 0.1 and one of 10: the mean square is (1 + 100) / 101.
    assert nrmse_of([np.full(100, 0.1), np.array([10.0])]) == pytest.approx(1.0)
    assert nrmse_of([np.array([0.1]), np.array([np.inf])]) == np.inf
    assert np.isnan(nrmse_of([]))


def test_error_of_an_angle_that_winds_is_told_in_radians_and_in_percent_of_its_travel():
    turns = np.linspace(0.0, 237.0, 1001)[:, None]
    run = held_out(turns, turns + 1.18, ("theta",), ("theta",))
    found = score([run], [THETA])
    # A uniform distribution of width 237 rad has the deviation 237 / sqrt(12).
    share = 1.18 / (237 / np.sqrt(12))
    assert found.nrmse == pytest.approx(share, rel=2e-3)
    assert str(found.columns[0]) == "theta 1.2 rad = 1.7 %"
    assert found.runs[0].left_s is None
    assert found.as_dict()["columns"]["theta"] == {
        "rmse": pytest.approx(1.18),
        "unit": "rad",
        "nrmse": pytest.approx(share, rel=2e-3),
        "contradicts_its_position": False,
    }


def test_pendulum_that_tumbles_and_is_missed_by_its_turns_is_not_predicted():
    # Over the top three times and back, as chaos has it; the prediction stays in the first turn.
    t = np.linspace(0.0, 4 * np.pi, 801)
    theta = 3 * 2 * np.pi * np.sin(t / 4) ** 2 + 0.5 * np.sin(3 * t)
    stays = 0.5 * np.sin(3 * t)
    found = score([held_out(theta[:, None], stays[:, None], ("theta",), ("theta",))], [THETA])
    assert found.nrmse > 1.0
    assert found.runs[0].left_s is not None


def test_column_that_contradicts_its_position_is_shown_and_not_scored():
    t = 0.02 * np.arange(500)
    truth = trajectory(t, np.sin(t)[:, None], 1.3 * np.cos(t)[:, None], ("x",))
    found = trajectory(t, np.sin(t)[:, None], np.cos(t)[:, None], ("x",))
    run = HeldOut("a run", truth, found, np.zeros(500, bool), ("x", "x_dot"))
    assert score([run], [X]).nrmse > 0.1
    scores = score([replace(run, biased=("x_dot",))], [X])
    assert scores.nrmse == 0.0
    assert list(scores.scales) == ["x"]
    assert scores.runs[0].left_s is None
    x, rate = scores.columns
    assert str(x) == "x 0 %"
    assert str(rate) == "x_dot not scored: it contradicts its position"
    assert scores.as_dict()["columns"]["x_dot"]["contradicts_its_position"]


def test_rate_that_was_not_recorded_is_not_scored():
    t = np.arange(5)
    truth = trajectory(t, [[0], [1], [0], [1], [0]], 100 * np.ones((5, 1)) * t[:, None], ("x",))
    found = trajectory(t, truth.q, np.zeros((5, 1)), ("x",))
    run = HeldOut("a run", truth, found, np.zeros(5, bool), ("x",))
    assert score([run], [X]).nrmse == 0.0
    both = HeldOut("a run", truth, found, np.zeros(5, bool), ("x", "x_dot"))
    assert score([both], [X]).nrmse > 1.0


def test_columns_are_told_in_parts_of_their_deviation_and_still_ones_in_their_unit():
    moving = np.array([0.0, 2.0, 0.0, 2.0])
    truth = np.column_stack([moving, np.full(4, 5.0)])
    coordinates = (X, Coordinate("y", unit="m"))
    run = held_out(truth, truth + 0.25, ("x", "y"), ("x", "y"))
    found = score([run], coordinates)
    assert [str(column) for column in found.columns] == ["x 25 %", "y 0.25 m"]
    # What never moves has no part in the NRMSE, here and run by run.
    assert found.nrmse == found.runs[0].nrmse == pytest.approx(0.25)
    nothing = score([held_out(truth[:, 1:], truth[:, 1:], ("y",), ("y",))], coordinates)
    assert nothing.nrmse is None
    assert nothing.scales == {}


def test_noise_of_what_was_recorded_is_told_beside_the_error():
    t = 0.01 * np.arange(2000)
    clean = np.sin(3 * t)
    noisy = clean + np.random.default_rng(0).normal(0.0, 0.05, 2000)
    runs = [trajectory(t, x[:, None], np.zeros((2000, 1)), ("x",)) for x in (noisy, clean)]
    found = score([HeldOut("a run", *runs, np.zeros(2000, bool), ("x",))], [X])
    # The truth itself is predicted, so that the error is the noise, to what 2,000 rows tell of it.
    assert found.noise == pytest.approx(found.nrmse, rel=0.05)
    assert found.noise == pytest.approx(0.05 / np.std(noisy), rel=0.05)


@pytest.mark.parametrize(("offset", "left"), [(0.0, False), (0.25, True)])
def test_noise_of_what_was_recorded_is_no_error_of_the_prediction(offset, left):
    # Nine parts in a hundred: single rows exceed the limit now and then, and most rows of a dozen
    # do somewhere in a run of four thousand.
    t, size = 0.01 * np.arange(4000), 0.09 * np.sqrt(0.5)
    clean = np.sin(3 * t)
    noisy = clean + np.random.default_rng(0).normal(0.0, size, 4000)
    clean = clean + offset * np.sqrt(0.5) * (t >= 20.0)
    runs = [trajectory(t, x[:, None], np.zeros((4000, 1)), ("x",)) for x in (noisy, clean)]
    (one,) = score([HeldOut("a run", *runs, np.zeros(4000, bool), ("x",))], [X]).runs
    assert (one.left_s is not None) == left
    if left:
        # Where the truth steps, to half of the rows that are averaged over.
        assert one.left_s == pytest.approx(20.0, abs=0.2)


def test_overestimated_noise_hides_no_error():
    errors = np.where(np.arange(400) < 200, 0.01, 0.3)
    found = errors_without_noise(errors, 0.5)
    assert np.all(found[300:] > 0.29)
    assert np.all(found[:100] < LIMIT)
    np.testing.assert_array_equal(errors_without_noise(errors, 0.01), errors)


def test_headline_is_the_nrmse_of_all_rows_and_not_of_the_median_run():
    long = np.resize([0.0, 2.0], 98)[:, None]
    short = np.resize([0.0, 2.0], 2)[:, None]
    good = held_out(short, short, ("x",), ("x",), "short")
    bad = held_out(long, long + 1.0, ("x",), ("x",), "long")
    assert score([good, good, bad], [X]).nrmse == pytest.approx(np.sqrt(98 / 102))


def test_prediction_that_leaves_the_limit_is_told_with_time_column_and_place():
    wave = np.sqrt(2) * np.sin(2 * np.pi * np.arange(100) / 50)
    truth = np.column_stack([wave, wave])
    found = truth.copy()
    found[20, 0] += 0.5  # A single row is noise.
    found[60:, 1] += 0.5
    run = held_out(truth, found, ("x", "theta"), outside=True)
    (one,) = score([run], (X, THETA)).runs
    assert (one.left_s, one.left_column, one.left_outside) == (60.0, "theta", True)
    assert one.where == "exceeds 10 % at t = 60 s, first in theta, outside the training data"
    assert one.ended_s is None
    assert LIMIT == 0.1


def test_prediction_that_ends_has_no_error_and_says_when():
    truth = np.resize([0.0, 2.0], 50)[:, None]
    found = np.where(np.arange(50)[:, None] > 30, np.nan, truth)
    scores = score([held_out(truth, found, ("x",), ("x",))], [X])
    assert scores.nrmse is None
    assert scores.ended == scores.runs
    assert (scores.runs[0].ended_s, scores.runs[0].left_s) == (30.0, 31.0)
    assert "ends at t = 30 s" in scores.runs[0].divergence
    assert str(scores.columns[0]) == "x diverged"


def test_initial_state_is_estimated_where_a_rate_was_or_positions_are_noisy():
    t = 0.01 * np.arange(400)
    clean = trajectory(t, np.sin(3 * t)[:, None], 3 * np.cos(3 * t)[:, None], ("theta",))
    model = SinglePendulum()
    assert rows_before(model, clean, None) == 0
    assert rows_before(model, clean, ("theta", "theta_dot")) == 0
    assert rows_before(model, clean, ("theta",)) == 40
    shake = np.random.default_rng(0).normal(0.0, 1e-3, (400, 1))
    noisy = trajectory(t, np.asarray(clean.q) + shake, clean.v, ("theta",))
    assert rows_before(model, noisy, None) == 40
    assert rows_before(object(), noisy, None) == 0
    # Ten rows at least, if they are no more than a quarter of the run.
    assert rows_before(model, noisy.rows(0, 80), None) == 10
    assert rows_before(model, noisy.rows(0, 29), None) == 0


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0 %"), (1.0, "100 %"), (0.0996, "10 %"), (0.00523, "0.52 %"), (3e-6, "3.0e-4 %")],
)
def test_shares_are_told_in_two_digits(share, text):
    assert percent(share) == text
