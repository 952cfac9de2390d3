"""Derivatives of samples against closed forms."""

import numpy as np
import pytest

from mbdnode.training.differentiation import differentiate


def test_polynomials_of_the_sixth_degree_are_exact_on_uneven_times():
    t = np.sort(np.random.default_rng(0).uniform(-1, 1, 20))
    powers = np.arange(7)
    values = t[:, None] ** powers
    exact = powers * t[:, None] ** np.maximum(powers - 1, 0)
    # Conditioning of seven uneven points.
    np.testing.assert_allclose(differentiate(t, values), exact, atol=1e-9)


@pytest.mark.parametrize("stencil", [3, 5, 7])
def test_error_falls_with_the_order_of_the_stencil(stencil):
    errors = []
    for count in (101, 201):
        t = np.linspace(0, 2, count)
        found = differentiate(t, np.sin(3 * t)[:, None], stencil)[:, 0]
        errors.append(np.max(np.abs(found - 3 * np.cos(3 * t))))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(stencil - 1, abs=0.3)


def test_a_large_constant_costs_no_digits():
    t = np.linspace(0, 1, 50)
    wave = np.sin(t)[:, None]
    np.testing.assert_allclose(differentiate(t, wave + 1e6), differentiate(t, wave), atol=1e-7)


def test_only_the_given_rows_are_used():
    t = np.linspace(0, 1, 60)
    values = np.sin(5 * t)[:, None]
    poisoned = values.copy()
    poisoned[40:] = np.nan
    assert np.array_equal(differentiate(t[:40], poisoned[:40]), differentiate(t[:40], values[:40]))


def test_two_samples_give_their_slope_and_one_is_refused():
    np.testing.assert_allclose(differentiate(np.array([0.0, 2.0]), np.array([[1.0], [5.0]])), 2.0)
    with pytest.raises(ValueError, match="at least two"):
        differentiate(np.array([0.0]), np.array([[1.0]]))
