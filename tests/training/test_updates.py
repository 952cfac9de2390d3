"""The paper's algorithm a second time: NumPy alone, slopes by complex steps, Adam written out."""

import dataclasses

import jax
import numpy as np
import pytest

from mbdnode.recipes import training_config
from mbdnode.training import TrainingConfig, fit
from mbdnode.training.train import batches, rates

RATE, DECAY = 1e-3, 0.98


def unpack(numbers, shapes):
    sizes = np.cumsum([int(np.prod(shape)) for shape in shapes])
    return [x.reshape(s) for x, s in zip(np.split(numbers, sizes[:-1]), shapes, strict=True)]


class ByHand:
    """One network on one trajectory of a pendulum; all numbers of the network in one vector."""

    def __init__(self, model, run):
        layers = model.network
        arrays = [
            np.asarray(x) for pair in zip(layers.weights, layers.biases, strict=True) for x in pair
        ]
        self.shapes = [x.shape for x in arrays]
        self.numbers = np.concatenate([x.ravel() for x in arrays])
        self.y = np.concatenate([run.q, run.v], axis=1)
        self.u, self.dt = np.asarray(run.u), 0.04
        self.first, self.second, self.count = 0.0, 0.0, 0

    def rate(self, numbers, y, u):
        w1, b1, w2, b2, w3, b3 = unpack(numbers, self.shapes)
        x = np.concatenate([y, u])
        return np.concatenate([y[1:], w3 @ np.tanh(w2 @ np.tanh(w1 @ x + b1) + b2) + b3])

    def loss(self, numbers, row):
        y, u, h = self.y[row], self.u[row], self.dt
        k1 = self.rate(numbers, y, u)
        k2 = self.rate(numbers, y + h / 2 * k1, u)
        k3 = self.rate(numbers, y + h / 2 * k2, u)
        k4 = self.rate(numbers, y + h * k3, u)
        off = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4) - self.y[row + 1]
        return np.sum(off**2) / 2

    def slope(self, numbers, row):
        """Exact to round-off: an imaginary step has nothing to cancel."""
        steps = numbers + 1e-30j * np.eye(numbers.size)
        return np.array([self.loss(step, row).imag / 1e-30 for step in steps])

    def update(self, rows, rate):
        """Kingma and Ba's algorithm 1, with their constants."""
        slope = np.mean([self.slope(self.numbers, row) for row in rows], axis=0)
        self.count += 1
        self.first = 0.9 * self.first + 0.1 * slope
        self.second = 0.999 * self.second + 0.001 * slope**2
        mean = self.first / (1 - 0.9**self.count)
        size = np.sqrt(self.second / (1 - 0.999**self.count))
        self.numbers = self.numbers - rate * mean / (size + 1e-8)


def trained_numbers(result):
    layers = result.model.network
    pairs = zip(layers.weights, layers.biases, strict=True)
    return np.concatenate([np.asarray(x, float).ravel() for pair in pairs for x in pair])


@pytest.fixture(scope="module")
def two_epochs(swing):
    """Twenty updates by hand, and the mean loss before each, epoch by epoch."""
    from mbdnode.mechanisms import SinglePendulum
    from mbdnode.models import MBDNODE

    model = MBDNODE.for_system(SinglePendulum(), width=4)
    hand, losses = ByHand(model, swing), []
    for epoch in range(2):
        before = []
        for row in range(10):
            before.append(hand.loss(hand.numbers, row))
            hand.update([row], RATE * DECAY**epoch)
        losses.append(np.mean(before))
    return model, hand, losses


@pytest.mark.parametrize(
    ("precision", "tolerance"),
    [
        # Round-off of float64, times the rate over the smallest slope.
        ("float64", 1e-10),
        # Residuals of a few hundredths are known to 1e-5 in float32; twenty updates move a weight
        # by 2e-2, and a decay that came too early would show as 1e-4.
        ("float32", 2e-6),
    ],
)
def test_first_updates_of_the_paper_recipe_are_those_by_hand(
    precision, tolerance, swing, two_epochs
):
    model, hand, losses = two_epochs
    config = dataclasses.replace(training_config("paper"), epochs=2, precision=precision)
    result = fit(model, swing, config)
    assert result.updates == 20
    np.testing.assert_allclose(trained_numbers(result), hand.numbers, atol=tolerance)
    relative = 1e-10 if precision == "float64" else 1e-4
    np.testing.assert_allclose([row["loss"] for row in result.history], losses, rtol=relative)
    assert [row["learning_rate"] for row in result.history] == [RATE, RATE * DECAY]
    assert result.model.network.weights[0].dtype == precision


def test_recipe_of_the_paper_is_what_the_paper_says():
    recipe = training_config("paper")
    assert (recipe.batch_size, recipe.shuffle, recipe.window) == (1, False, 1)
    assert (recipe.precision, recipe.gradient, recipe.loss) == ("float32", "backprop", "minimal")


def test_batch_is_the_mean_over_the_windows_that_it_has(swing, pendulum_model):
    config = TrainingConfig(epochs=1, batch_size=4, shuffle=True, precision="float64")
    result = fit(pendulum_model, swing, config, seed=3)
    hand = ByHand(pendulum_model, swing)
    for rows in batches(10, config, 3, 0):
        hand.update([row for row in rows if row >= 0], RATE)
    assert result.updates == 3
    np.testing.assert_allclose(trained_numbers(result), hand.numbers, atol=1e-10)


def test_full_batch_on_two_trajectories_is_one_update(swing, pendulum_model):
    both = jax.tree.map(lambda x: np.stack([x, x]), swing)
    config = TrainingConfig(epochs=1, batch_size=None, precision="float64")
    result = fit(pendulum_model, jax.tree.map(jax.numpy.asarray, both), config)
    hand = ByHand(pendulum_model, swing)
    hand.update(range(10), RATE)
    assert result.updates == 1
    np.testing.assert_allclose(trained_numbers(result), hand.numbers, atol=1e-10)


def test_updates_of_an_epoch_pass_over_the_data_as_often_as_they_need():
    config = TrainingConfig(batch_size=4, updates=5, shuffle=True)
    table = batches(10, config, seed=3, epoch=2)
    assert table.shape == (5, 4)
    first, second = np.split(table.ravel(), 2)
    assert sorted(first) == sorted(second) == list(range(10))
    assert not np.array_equal(first, second)
    assert np.array_equal(table, batches(10, config, seed=3, epoch=2))
    assert not np.array_equal(table, batches(10, config, seed=3, epoch=3))


def test_rate_falls_along_a_cosine_or_by_a_factor_an_epoch():
    smooth = TrainingConfig(epochs=3, learning_rate=2.0, schedule="cosine")
    found = np.concatenate([rates(smooth, epoch, 4) for epoch in range(3)])
    np.testing.assert_allclose(found, 2 * np.cos(np.pi * np.arange(12) / 24) ** 2)
    steps = TrainingConfig(epochs=3, learning_rate=2.0, decay=0.5)
    np.testing.assert_allclose(rates(steps, 2, 4), np.full(4, 0.5))
