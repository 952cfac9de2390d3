"""Medians and quantiles, against NumPy's own."""

import numpy as np
import pytest

from mbdnode.data.signal.order_statistics import median, quantile, row_medians

GENERATOR = np.random.default_rng(0)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 31, 32])
def test_medians_are_those_of_numpy(count):
    table = GENERATOR.normal(size=(5, count))
    assert median(table[0]) == np.median(table[0])
    np.testing.assert_array_equal(row_medians(table), np.median(table, axis=1))


@pytest.mark.parametrize("count", [1, 2, 3, 50])
@pytest.mark.parametrize("part", [0.0, 0.3, 0.95, 0.99, 1.0])
def test_quantiles_are_those_of_numpy_up_to_rounding(count, part):
    values = GENERATOR.normal(size=count)
    assert quantile(values, part) == pytest.approx(np.quantile(values, part), rel=1e-14, abs=1e-15)


def test_value_that_is_not_a_number_makes_the_result_none():
    values = np.array([1.0, np.nan, 3.0])
    assert np.isnan(median(values))
    assert np.isnan(quantile(values, 0.0))
    assert np.isnan(median(np.zeros(0)))
