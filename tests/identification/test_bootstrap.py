"""Parameters fitted again to resampled runs, against regression in closed form."""

import jax.numpy as jnp
import numpy as np
import pytest

import mbdnode as mbd
from mbdnode.identification.parameters.bootstrap import make_blocks, times_taken
from mbdnode.status import completed

RUNS, REPETITIONS = 24, 200
T = 0.1 * np.arange(31)


class Falling(mbd.AbstractMechanism):
    """Constant acceleration, for which a step of RK4 is exact and the fit a linear regression."""

    coordinates = (mbd.length("x"),)
    parameters = (mbd.positive("a", 1.0, "m/s^2"),)

    def mass_matrix(self, q, mu):
        return [1.0]

    def force(self, t, q, v, u, mu):
        return [mu["a"]]


def recorded(accelerations, noise, t=T):
    """Runs with noise in their positions."""
    random, runs = np.random.default_rng(3), []
    for k, a in enumerate(accelerations):
        v = 0.1 * k + a * t
        x = 0.1 * k * t + a * t**2 / 2 + noise * random.standard_normal(len(t))
        nothing = jnp.zeros(len(t))
        runs.append(
            mbd.Trajectory(
                t=jnp.asarray(t),
                q=jnp.asarray(x[:, None]),
                v=jnp.asarray(v[:, None]),
                u=jnp.zeros((len(t), 0)),
                position_residual=nothing,
                velocity_residual=nothing,
                status=completed(jnp.asarray(t[-1]), jnp.array(len(t) - 1), ("x",)),
                coordinates=("x",),
                rates=Falling().rate_names,
                inputs=(),
            )
        )
    return mbd.Dataset(runs, recorded=["x"])


def regressed(data):
    """The acceleration of each run by a parabola."""
    return np.array([2 * np.polyfit(T, np.asarray(run.q[:, 0]), 2)[0] for run in data.trajectories])


def found_in(data, **options):
    options = {"bootstrap": REPETITIONS, **options}
    return mbd.identify(Falling(), data, unknown=["a"], **options)


@pytest.fixture(scope="module")
def alike():
    data = recorded(np.full(RUNS, 2.0), 0.01)
    return data, found_in(data)


def test_each_repetition_is_the_regression_over_the_runs_that_it_takes(alike):
    data, found = alike
    own = regressed(data)
    taken = np.array([times_taken(RUNS, 0, k) for k in range(REPETITIONS)])
    np.testing.assert_array_equal(taken.sum(axis=1), RUNS)
    # Runs of the same times weigh alike. The fit ends where its cost falls by less than a
    # millionth, 0.0007 of it, which is a few hundredths of a standard error.
    expected = taken @ own / RUNS
    away = found.bootstrap.values[:, 0] - expected
    assert np.max(np.abs(away)) < 0.05 * found.standard_errors["a"]
    assert (found.bootstrap.blocks, found.bootstrap.whole_runs) == (RUNS, True)


def test_where_the_model_is_right_standard_errors_are_those_of_the_covariance(alike):
    found = alike[1]
    # Of 24 runs and 200 repetitions: 15 % of it, as one standard deviation.
    ratio = found.bootstrap.standard_errors["a"] / found.standard_errors["a"]
    assert abs(ratio - 1) < 3 * np.sqrt(1 / (2 * RUNS) + 1 / (2 * REPETITIONS))
    low, high = found.bootstrap.intervals()["a"]
    assert low < 2.0 < high
    assert np.mean((found.bootstrap.values >= low) & (found.bootstrap.values <= high)) == 0.95
    assert "bootstrap of 200 repetitions over 24 runs" in str(found)


def test_runs_that_differ_by_more_than_noise_are_told_by_the_bootstrap_alone():
    accelerations = 2.0 + 0.05 * np.random.default_rng(1).standard_normal(RUNS)
    found = found_in(recorded(accelerations, 0.01))
    expected = np.std(accelerations) / np.sqrt(RUNS)
    # Three standard deviations of the Monte Carlo error, and noise beside the differences.
    assert abs(found.bootstrap.standard_errors["a"] / expected - 1) < 3 / np.sqrt(2 * REPETITIONS)
    assert found.standard_errors["a"] < 0.5 * expected


def test_a_single_run_is_resampled_in_stretches():
    t, told = 0.02 * np.arange(401), []
    found = found_in(recorded([2.0], 0.01, t), report=lambda row, total: told.append((row, total)))
    # Counted from zero, as epochs are.
    assert (told[-1][0]["epoch"], told[-1][1]) == (REPETITIONS - 1, REPETITIONS)
    assert (found.bootstrap.blocks, found.bootstrap.whole_runs) == (20, False)
    ratio = found.bootstrap.standard_errors["a"] / found.standard_errors["a"]
    assert abs(ratio - 1) < 3 * np.sqrt(1 / (2 * 20) + 1 / (2 * REPETITIONS))


def test_blocks_are_all_rows_once():
    blocks = make_blocks([401, 30, 5])
    for run, rows in enumerate([401, 30, 5]):
        taken = np.concatenate([np.arange(rows)[own] for k, own in blocks if k == run])
        np.testing.assert_array_equal(taken, np.arange(rows))
    assert len(make_blocks([10] * 25)) == 25


@pytest.mark.parametrize(
    ("options", "why"),
    [({"bootstrap": 1}, "at least 2"), ({"unknown": None}, "it is for unknown parameters")],
)
def test_bootstrap_that_tells_nothing_is_refused(alike, options, why):
    with pytest.raises(mbd.UserError, match=why):
        mbd.identify(Falling(), alike[0], **{"unknown": ["a"], "bootstrap": 20, **options})
