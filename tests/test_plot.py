"""`mbd.plot`: axes hold what was given, with units; wrong input is refused in a sentence."""

import subprocess
import sys

import equinox as eqx
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure
from predictions import diverging, drifting, truth_of

import mbdnode as mbd

PENDULUM, CRANK = mbd.mechanisms.SinglePendulum(), mbd.mechanisms.SliderCrank()
TRUTH = truth_of("single-pendulum")
RUN = drifting(TRUTH, 0.01)
T, THETA, OMEGA = (np.asarray(TRUTH[name]) for name in ("t", "theta", "theta_dot"))


@pytest.fixture(autouse=True)
def _no_display():
    mpl.use("agg")
    yield
    pyplot.close("all")


def ax():
    return Figure().subplots()


def points(axes):
    return {line.get_label(): line.get_xydata() for line in axes.lines}


def labels(axes):
    return axes.get_xlabel(), axes.get_ylabel()


def test_loss_is_that_of_each_epoch_with_the_validation_beside_it():
    history = [{"epoch": k, "loss": 10.0**-k, "validation_loss": 2 * 10.0**-k} for k in range(3)]
    axes = mbd.plot.loss(mbd.Fit(None, history, "", "completed", 3, 0.0, 0.0), ax())
    expected = np.array([[1, 1.0], [2, 0.1], [3, 0.01]])
    assert points(axes)["training loss"] == pytest.approx(expected)
    assert points(axes)["validation loss"] == pytest.approx(expected * [1, 2])
    assert (labels(axes), axes.get_yscale()) == (("epoch", "loss"), "log")
    alone = mbd.plot.loss([{"loss": 1.0}, {"loss": 0.5}], ax())
    assert list(points(alone)) == ["training loss"]
    assert labels(alone) == ("epoch", "training loss")


def test_motion_of_one_column_holds_every_run_and_the_training_range():
    axes = mbd.plot.motion(PENDULUM, (TRUTH, RUN), ax=ax(), train_end_s=2.0)
    assert np.array_equal(points(axes)["truth"], np.stack([T, THETA], axis=1))
    inside, after = axes.lines[1:]
    found = np.stack([T, np.asarray(RUN["theta"])], axis=1)
    assert np.array_equal(inside.get_xydata(), found[T <= 2.0])
    assert np.array_equal(after.get_xydata(), found[T >= 2.0])
    assert [line.get_linestyle() for line in axes.lines] == ["-", "--", ":"]
    assert labels(axes) == ("t [s]", r"$\theta$ [rad]")
    (shade,) = axes.patches
    assert shade.get_extents().transformed(axes.transData.inverted()).x1 == pytest.approx(2.0)


def test_motion_of_several_columns_names_each_with_its_unit():
    axes = mbd.plot.motion(PENDULUM, TRUTH, ["theta", "theta_dot", "F"], ax())
    assert labels(axes)[1] == r"$\theta$ [rad], $\dot{\theta}$ [rad/s], $F$ [N]"
    assert np.array_equal(axes.lines[1].get_ydata(), OMEGA)
    assert axes.lines[2].get_drawstyle() == "steps-post"
    assert np.array_equal(axes.lines[2].get_ydata(), np.asarray(TRUTH["F"]))
    crank = truth_of("slider-crank")
    assert labels(mbd.plot.motion(CRANK, crank, ["x1", "x3"], ax()))[1] == "[m]"
    # Without names, the coordinate that all others follow from.
    assert labels(mbd.plot.motion(CRANK, crank, ax=ax()))[1] == r"$\theta_{1}$ [rad]"


def test_portrait_holds_velocity_over_coordinate():
    axes = mbd.plot.phase_portrait(PENDULUM, {"truth": TRUTH, "ours": RUN}, ax=ax())
    assert np.array_equal(points(axes)["truth"], np.stack([THETA, OMEGA], axis=1))
    assert np.array_equal(points(axes)["ours"][:, 1], np.asarray(RUN["theta_dot"]))
    assert labels(axes) == (r"$\theta$ [rad]", r"$\dot{\theta}$ [rad/s]")
    third = mbd.plot.phase_portrait(CRANK, truth_of("slider-crank"), "x3", ax())
    assert labels(third) == ("$x_{3}$ [m]", r"$\dot{x}_{3}$ [m/s]")


def test_mean_of_the_drawn_error_is_the_mse_that_the_label_tells():
    # Off everywhere: an exact start would be left out of the line.
    off = eqx.tree_at(lambda x: x.q, TRUTH, TRUTH.q + 0.1)
    axes = mbd.plot.error(TRUTH, {"ours": off, "worse": RUN}, ax(), train_end_s=2.0)
    line, worse = axes.lines
    assert np.array_equal(line.get_xdata(), T)
    assert line.get_ydata() == pytest.approx(0.1**2 / 2)
    assert line.get_label() == "ours: mse 5.0e-3"
    mse = np.mean((np.asarray(RUN.q - TRUTH.q) ** 2 + np.asarray(RUN.v - TRUTH.v) ** 2) / 2)
    assert np.nansum(worse.get_ydata()) / len(T) == pytest.approx(mse)
    assert (labels(axes), axes.get_yscale()) == (("t [s]", "squared error"), "log")


def test_energy_is_that_of_the_textbook_in_joules():
    axes = mbd.plot.energy(PENDULUM, (TRUTH, RUN), {"m": 2.0}, ax())
    # One meter long.
    assert points(axes)["truth"][:, 1] == pytest.approx(OMEGA**2 - 2 * 9.81 * np.cos(THETA))
    assert labels(axes) == ("t [s]", "energy [J]")


def test_residual_is_the_largest_of_its_part_of_the_run():
    size = 10.0 ** -np.arange(3.0, 64.0)
    run = eqx.tree_at(
        lambda x: (x.position_residual, x.velocity_residual),
        truth_of("slider-crank"),
        (jnp.asarray(size), jnp.asarray(2 * size)),
    )
    found = points(mbd.plot.residual(run, ax()))
    # What is below round-off is at its lower end, since a logarithm has no zero.
    assert found["positions"][:, 1] == pytest.approx(np.maximum(size, 1e-17))
    assert found["velocities"][:10, 1] == pytest.approx(2 * size[:10])


def test_given_axes_are_used_and_new_ones_have_a_legend():
    for draw in (
        lambda ax: mbd.plot.loss([{"loss": 1.0}], ax),
        lambda ax: mbd.plot.motion(PENDULUM, TRUTH, "theta", ax),
        lambda ax: mbd.plot.phase_portrait(PENDULUM, TRUTH, "theta", ax),
        lambda ax: mbd.plot.error(TRUTH, RUN, ax),
        lambda ax: mbd.plot.energy(PENDULUM, TRUTH, None, ax),
        lambda ax: mbd.plot.residual(TRUTH, ax),
    ):
        mine = ax()
        assert draw(mine) is mine
        assert mine.lines
        assert mine.get_legend() is None
    assert pyplot.get_fignums() == []
    new = mbd.plot.motion(PENDULUM, (TRUTH, RUN))
    assert [text.get_text() for text in new.get_legend().get_texts()] == ["truth", "prediction"]
    assert mbd.plot.motion(PENDULUM, TRUTH).get_legend() is None


def test_prediction_that_failed_is_drawn_as_far_as_it_goes(tmp_path):
    broken = diverging(TRUTH)
    axes = mbd.plot.error(TRUTH, broken, ax())
    assert axes.lines[0].get_label() == "prediction: mse no number"
    low, high = mbd.plot.motion(PENDULUM, (TRUTH, broken), "theta", ax()).get_ylim()
    assert -2 < low < high < 2
    axes.figure.savefig(tmp_path / "broken.png")


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: mbd.plot.loss([]), "no epochs, so there is no loss to plot"),
        (lambda: mbd.plot.loss(TRUTH), "was given a Trajectory. It takes a Fit, or its history"),
        (lambda: mbd.plot.motion(PENDULUM, TRUTH, "phi"), "column 'phi'"),
        (lambda: mbd.plot.motion(PENDULUM, []), "given a list. It takes a trajectory, a truth"),
        (lambda: mbd.plot.motion(CRANK, TRUTH), "SliderCrank has the coordinates x1.*has theta"),
        (lambda: mbd.plot.phase_portrait(PENDULUM, TRUTH, "phi"), "coordinate 'phi'"),
        (lambda: mbd.plot.error(TRUTH, TRUTH.rows(0, 9)), "has 10 rows of theta"),
        (lambda: mbd.plot.energy(PENDULUM, (TRUTH, truth_of("slider-crank"))), "one system at a"),
    ],
)
def test_what_cannot_be_plotted_is_refused_in_a_sentence(call, sentence):
    with pytest.raises(mbd.UserError, match=sentence):
        call()
    assert pyplot.get_fignums() == []


# In a process of its own: here annotations are checked before the functions can say anything.
SCRIPT = """
import sys, mbdnode as mbd, numpy as np
print("matplotlib" in sys.modules)
from matplotlib.figure import Figure
ax = Figure().subplots()
mbd.plot.loss([{"loss": 1.0}], ax)
print("matplotlib.pyplot" in sys.modules)
system = mbd.mechanisms.SinglePendulum()
run = mbd.simulate(system, np.linspace(0.0, 0.1, 5), {"theta": 1.0})
for call in (
    lambda: mbd.plot.motion(system, {"a": np.zeros(3)}),
    lambda: mbd.plot.motion(run, system),
    lambda: mbd.plot.motion(run, run),
    lambda: mbd.plot.residual(run, ax.figure),
):
    try:
        call()
    except mbd.UserError as error:
        print(error)
"""


def test_plots_load_matplotlib_when_called_and_say_what_they_take():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    before, pyplot_after, *said = done.stdout.splitlines()
    assert (before, pyplot_after) == ("False", "False")
    expected = [
        "'a' is a ndarray; a plot takes trajectories",
        "given a SinglePendulum. It takes a trajectory",
        "The system is a Trajectory. Give the mechanism or the model",
        "ax is a Figure; it must be Matplotlib axes",
    ]
    assert len(said) == len(expected)
    for message, words in zip(said, expected, strict=True):
        assert words in message
