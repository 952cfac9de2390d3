"""The figure of truth and prediction, also for a prediction that went wrong."""

import jax.numpy as jnp
import numpy as np
import pytest

from mbdnode.multibody import AccelerationFunction, angle, length
from mbdnode.reproduction.run_figure import draw_run
from mbdnode.status import completed
from mbdnode.trajectory import Trajectory

T = np.linspace(0.0, 2.0, 21)


def made(theta, x):
    q, zero = jnp.stack([jnp.asarray(theta), jnp.asarray(x)], axis=1), jnp.zeros(len(T))
    return Trajectory(
        t=jnp.asarray(T),
        q=q,
        v=2 * q,
        u=jnp.zeros((len(T), 0)),
        position_residual=zero,
        velocity_residual=zero,
        status=completed(jnp.asarray(2.0), jnp.asarray(20), ("theta", "x")),
        coordinates=("theta", "x"),
        rates=("theta_dot", "x_dot"),
        inputs=(),
    )


def draw(prediction, history=(1.0, 0.1), train_end_s=1.0):
    system = AccelerationFunction(lambda t, q, v, u, mu: -q, (angle("theta"), length("x")))
    truth = made(np.sin(T), np.full(21, 3.0))
    return draw_run("A run", system, truth, prediction, train_end_s, history)


def lines(figure, style):
    first = figure.axes[0]
    return [line for line in first.get_lines() if line.get_linestyle() == style]


def test_prediction_is_dashed_while_training_and_dotted_after_it():
    figure = draw(made(np.cos(T), np.full(21, 3.0)))
    (inside,), (outside,) = lines(figure, "--"), lines(figure, ":")
    assert np.array_equal(inside.get_xdata(), T[T <= 1.0])
    # From the last row of the training range, so that the line has no gap.
    assert np.array_equal(outside.get_xdata(), T[T >= 1.0])
    assert np.array_equal(inside.get_ydata(), np.cos(T)[T <= 1.0])


def test_only_what_moves_is_shown():
    # A row for theta, one for error and loss; x stands still.
    assert len(draw(made(np.cos(T), np.full(21, 3.0))).axes) == 6


def test_without_a_training_range_all_is_dotted():
    figure = draw(made(np.cos(T), np.full(21, 3.0)), train_end_s=0.0)
    (dotted,) = lines(figure, ":")
    assert np.array_equal(dotted.get_xdata(), T)
    assert not lines(figure, "--")


@pytest.mark.parametrize("history", [(), (1.0,), (1.0, 0.5)])
def test_prediction_that_ended_early_can_be_drawn(history, tmp_path):
    broken = np.where(T < 0.5, np.cos(T), np.nan)
    draw(made(broken, np.full(21, np.nan)), history).savefig(tmp_path / "f.png")
    assert (tmp_path / "f.png").stat().st_size > 0


def test_loss_has_axes_only_where_there_are_epochs():
    shown = {}
    for history in ((), (1.0, 0.1)):
        figure = draw(made(np.cos(T), np.full(21, 3.0)), history)
        shown[history] = [axes.get_ylabel() for axes in figure.axes if axes.axison]
    assert "training loss" in shown[1.0, 0.1]
    assert "training loss" not in shown[()]
    assert len(shown[()]) == len(shown[1.0, 0.1]) - 1


def test_error_that_is_round_off_is_drawn_as_such():
    figure = draw(made(np.sin(T) + 1e-14, np.full(21, 3.0)))
    axes = next(axes for axes in figure.axes if axes.get_ylabel() == "squared error")
    assert [text.get_text() for text in axes.texts] == ["round-off"]
    assert np.ptp(axes.get_lines()[0].get_ydata()) == 0


def test_exact_start_is_no_band_of_round_off():
    figure = draw(made(np.sin(T) + 1e-3 * T, np.full(21, 3.0)))
    axes = next(axes for axes in figure.axes if axes.get_ylabel() == "squared error")
    assert not axes.texts
    assert np.isnan(axes.get_lines()[0].get_ydata()[0])


def test_wild_prediction_does_not_squeeze_the_truth():
    figure = draw(made(1e6 * np.cos(T), np.full(21, 3.0)))
    low, high = figure.axes[0].get_ylim()
    assert -1 < low < high < 2
