"""Much data: in parts, judged on a few runs, and told of while it is fitted."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from motions import acceleration, recorded, stepped, with_noise

import mbdnode as mbd
from mbdnode.data import AbstractStream
from mbdnode.data.rows import estimate_noise, rows_of
from mbdnode.identification import identify
from mbdnode.identification.problem import Problem
from mbdnode.identification.regression import least_squares as parts
from mbdnode.identification.regression.least_squares import regress
from mbdnode.identification.validation import (
    MOST_SEGMENTS,
    evenly,
    make_validation,
    validation_error,
)
from mbdnode.integrators import get_integrator
from mbdnode.mechanisms import SinglePendulum
from mbdnode.models.function_library import Library
from mbdnode.progress_text import TrainingRows
from mbdnode.recipes import identification_config

DT_S = 0.01
# What comes before the end of a run, and the end.
CUTS = (slice(0, 20), slice(20, None))


def law(theta, rate):
    return -9.81 * np.sin(theta) - 0.1 * rate


def swings(count, steps=(120,), noise=0.0):
    """Runs from starts of growing amplitude, of these lengths in turn."""
    runs = []
    for i in range(count):
        states = stepped(law, (0.3 + i / count, 0.5), DT_S, steps[i % len(steps)])
        runs.append(recorded(with_noise(states, noise, seed=i), DT_S))
    return runs


def rows_from(runs):
    return rows_of(SinglePendulum(), (0,), mbd.Dataset(runs), accelerations=False)


def rough_model():
    """A law that is nearly right, and so misses by what can be computed otherwise."""
    model = Library.for_system(SinglePendulum(), degree=1, quadratic=False)
    weights = model.network.weights.at[0, model.basis.terms.index((2,))].set(-9.5)
    return eqx.tree_at(lambda m: m.network.weights, model, weights)


class Swings(AbstractStream):
    """Windows of one shape, a batch a chunk."""

    def __init__(self, count, noise):
        self.count, self.noise = count, noise

    def chunk(self, number):
        runs = [
            recorded(with_noise(clean, self.noise, seed=100 * number + i), DT_S)
            for i, clean in enumerate(CLEAN)
        ]
        return mbd.Dataset(jax.tree.map(lambda *x: jnp.stack(x), *runs))


CLEAN = [stepped(law, (a, 0.5), DT_S, 200) for a in (0.4, 0.7, 1.0, 1.3)]


def test_error_on_ends_of_any_length_is_that_of_all_their_rows():
    runs, model = swings(5, steps=(60, 35, 80)), rough_model()
    rows = [rows_from([run]) for run in runs]
    pairs = [tuple(jax.tree.map(lambda x, k=k: x[k], one) for k in CUTS) for one in rows]
    problem = Problem(SinglePendulum(), get_integrator("rk4"), False, 0, estimate_noise(rows[0]))
    found, wanted = [], []
    for run in runs:
        last = len(run) - 1
        truth = run.rows(20, last)
        path = mbd.simulate(model, truth.t, mbd.State(truth.q[0], truth.v[0]))
        found.append(np.concatenate([path.q, path.v], axis=1)[1:])
        wanted.append(np.concatenate([truth.q, truth.v], axis=1)[1:])
    found, wanted = np.concatenate(found), np.concatenate(wanted)
    # The scales are those of the rows' own states, one before those that are predicted.
    scales = np.std(np.concatenate([run.rows(20, len(run) - 2).table for run in runs]), axis=0)
    expected = np.sqrt(np.mean(((found - wanted) / scales[1:3]) ** 2))
    assert expected > 1e-3
    split = make_validation(pairs, None, rows_from(runs), np.array([True]), np.array([True]))
    assert split.scales == pytest.approx(scales[1:3], rel=1e-12)
    assert validation_error(problem, model, split) == pytest.approx(expected, rel=1e-9)


def test_of_very_many_runs_a_few_dozen_are_judged_from_first_to_last():
    assert list(evenly(5)) == [0, 1, 2, 3, 4]
    chosen = evenly(10_000)
    assert len(chosen) == MOST_SEGMENTS
    assert (chosen[0], chosen[-1]) == (0, 9_999)
    assert np.ptp(np.diff(chosen)) <= 1


def test_parts_hold_every_row_once_and_end_with_runs(monkeypatch):
    rows = rows_from(swings(7, steps=(40, 50)))
    monkeypatch.setattr(parts, "MOST_NUMBERS", 1000)
    found = list(parts.parts_of(rows, 10))
    assert len(found) > 3
    assert max(len(one) for one in found) <= 100
    joined = np.concatenate([np.asarray(one.z) for one in found])
    np.testing.assert_array_equal(joined, np.asarray(rows.z))
    ends = np.cumsum([len(one) for one in found])
    assert set(ends) <= set(np.cumsum([40, 50, 40, 50, 40, 50, 40]))
    assert list(parts.parts_of(rows, 1)) == [rows]


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_least_squares_in_parts_are_those_at_once(monkeypatch, noise):
    rows = rows_from(swings(6, noise=noise))
    blank = Library.for_system(SinglePendulum(), degree=2)
    settings = {"ridge": 0.0, "integrator": get_integrator("rk4"), "noise": estimate_noise(rows)}
    whole = regress(blank, rows, **settings).network.weights
    columns = whole.shape[1]
    monkeypatch.setattr(parts, "MOST_NUMBERS", 250 * columns)
    in_parts = regress(blank, rows, **settings).network.weights
    np.testing.assert_allclose(in_parts, whole, atol=1e-6 * float(np.max(np.abs(whole))))


@pytest.fixture(scope="module")
def learned():
    """From eight chunks with much noise, and from the first of them alone; and what was told."""
    told = []
    report = lambda row, total: told.append((row["stage"], row["epoch"], total))  # noqa: E731
    found = identify(SinglePendulum(), Swings(8, 0.05), "fast", report=report)
    return found, identify(SinglePendulum(), Swings(1, 0.05), "fast"), told


def test_every_form_and_every_chunk_is_told(learned):
    found, _, told = learned
    forms = [row for row in told if row[0] == "candidate"]
    assert len(forms) >= 1
    assert [done for _, done, _ in forms] == list(range(len(forms)))
    assert all(len(forms) <= total for _, _, total in forms)
    chunks = [row for row in told if row[0] == "chunk"]
    assert chunks == [("chunk", number, 8) for number in range(8)]
    assert found.history == []


def test_all_chunks_are_fitted_and_not_the_first_alone(learned):
    found, first, _ = learned
    assert found.diagnostics["noise"] == pytest.approx(0.05, rel=0.3)
    points = [(0.5, 0.0), (1.0, 1.0), (-0.8, 2.0), (0.2, -3.0)]
    away = [
        [acceleration(one.model, *point) - law(*point) for point in points]
        for one in (found, first)
    ]
    sizes = np.sqrt(np.mean(np.square(away), axis=1))
    assert sizes[0] < 0.02 * 9.81
    assert sizes[0] < sizes[1]


@pytest.mark.slow
def test_noise_does_not_bias_a_law_of_all_chunks():
    config = replace(identification_config("fast"), structure="lagrangian")
    found = identify(SinglePendulum(), Swings(8, 0.05), config)
    points = [(0.5, 0.0), (1.0, 1.0), (-0.8, 2.0), (0.2, -3.0)]
    away = [acceleration(found.model, *point) - law(*point) for point in points]
    # 6,400 rows with noise of 5 %.
    assert np.sqrt(np.mean(np.square(away))) < 0.01 * 9.81


def test_chunks_are_counted():
    row = {"stage": "chunk", "epoch": 11, "loss": 0.04, "learning_rate": 0.0}
    assert TrainingRows().hear(row, 12, 0.0) == ("", "chunk 12 of 12, min validation NRMSE 4.0e-02")
