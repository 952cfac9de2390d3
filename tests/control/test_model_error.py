"""What a model is worth to a controller."""

import equinox as eqx
import numpy as np
import pytest

import mbdnode as mbd
from mbdnode.control import loop_difference
from mbdnode.mechanisms.cart_pole import CartPole


def test_mechanism_has_no_jacobian_error_against_itself():
    error = mbd.jacobian_error(CartPole(), CartPole(), [0.3, 0.0, 1.0, 0.0])
    assert (error.A, error.B) == (0.0, 0.0)


class LightCart(CartPole):
    """Half the gravity, so that A is half as large but for its ones, and B the same."""

    def force(self, t, q, v, u, mu):
        return super().force(t, q, v, u, {**mu, "g": mu["g"] / 2})


def test_jacobian_error_is_relative_in_the_frobenius_norm():
    error = mbd.jacobian_error(LightCart(), CartPole(), [0.0] * 4)
    moved = np.hypot(39.24, 9.81)
    assert pytest.approx(0.5 * moved / np.sqrt(moved**2 + 2.0), rel=1e-12) == error.A
    assert pytest.approx(0.0, abs=1e-15) == error.B


def test_difference_of_loops_is_a_part_of_each_columns_range():
    cart = CartPole()
    truth = mbd.simulate(cart, np.linspace(0.0, 1.0, 21), {"theta": 0.1})
    shifted = eqx.tree_at(lambda run: run.q, truth, truth.q + np.array([[0.0, 0.02]]))
    found = loop_difference(shifted, truth)
    assert found["x"] == pytest.approx(0.02 / np.ptp(truth["x"]), rel=1e-12)
    assert found["theta"] == 0.0
    # The input was zero all the time, so it has no range.
    assert "u" not in found


def test_loop_that_ended_early_has_no_difference():
    truth = mbd.simulate(CartPole(), np.linspace(0.0, 1.0, 21), {"theta": 0.1})
    lost = eqx.tree_at(lambda run: run.q, truth, truth.q.at[15:].set(np.nan))
    assert loop_difference(lost, truth)["x"] is None
