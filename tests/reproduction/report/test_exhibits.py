"""What the figures show: the right lines in the right style, also when predictions go wrong."""

import itertools
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.text import Text
from predictions import truth_of
from reproduction.report.samples import (
    changed,
    chapter,
    crank_chapter,
    entry,
    failed_entry,
    mass_spring_chapter,
    of_recipe,
    pendulum_chapter,
)

from mbdnode.reproduction.cases.printed import Exhibit
from mbdnode.reproduction.figures import draw_exhibit
from mbdnode.reproduction.run import Probe


def drawn(made, kind):
    return draw_exhibit(made, Exhibit("fig:x", kind, "A caption."))


def moved(result, **changes):
    """The result with another motion."""
    return replace(result, shown=replace(result.shown, **changes))


def titles(figure):
    return [axes.get_title(loc="left") for axes in figure.axes]


def test_each_entry_has_a_row_with_its_error_in_the_title():
    made = chapter("single-pendulum", (entry("single-pendulum", rate=0.1),))
    truth, figure = truth_of("single-pendulum"), drawn(made, "over-time")
    states = np.concatenate([truth.q, truth.v], axis=1)
    error = np.mean((0.1 * np.asarray(truth.t)[:, None] * states) ** 2)
    mantissa, exponent = f"{error:.1e}".split("e")
    expected = f"(a)  MBD-NODE RK4: mse {mantissa}e{int(exponent)}"
    assert titles(figure) == [expected, "(b)"]


def test_prediction_is_dashed_in_the_training_range_and_dotted_after_it():
    made = chapter("single-pendulum", (entry("single-pendulum"),))
    truth, *pieces = drawn(made, "over-time").axes[0].get_lines()
    assert truth.get_linestyle() == "-"
    assert [line.get_linestyle() for line in pieces] == ["--", ":"]
    inside, after = (line.get_xdata() for line in pieces)
    assert inside[-1] == after[0] == pytest.approx(2.0)
    assert after[-1] == pytest.approx(3.0)


def test_exploding_prediction_leaves_the_axes_to_the_truth():
    figure = drawn(pendulum_chapter(), "over-time")
    assert "LSTM: ended at t = " in titles(figure)[2]
    low, high = figure.axes[2].get_ylim()
    assert -2 < low < high < 2


def test_failed_entries_have_no_row_but_do_not_stop_the_figure():
    made = chapter("single-pendulum", (failed_entry(), entry("single-pendulum")))
    assert len(drawn(made, "over-time").axes) == 2


def test_integrators_that_are_only_timed_are_not_shown_but_better_recipes_are():
    shown = titles(drawn(mass_spring_chapter(), "over-time"))[::2]
    assert [title.split(":")[0] for title in shown] == [
        "(a)  MBD-NODE LF2, paper",
        "(c)  law RK4, best",
    ]


def test_portraits_of_one_coordinate_stand_side_by_side():
    figure = drawn(pendulum_chapter(), "phase")
    boxes = [axes.get_subplotspec().rowspan.start for axes in figure.axes]
    assert boxes == [0, 0]


def test_figure_without_a_finished_run_says_so():
    figure = drawn(chapter("single-pendulum", (failed_entry(),)), "phase")
    assert [text.get_text() for text in figure.texts] == [
        "Single pendulum: no finished run to show."
    ]


def test_energy_of_the_mass_spring_stays_in_view():
    figure = drawn(mass_spring_chapter(), "phase-energy")
    # Half the stiffness of 50 N/m times a meter squared.
    low, high = figure.axes[1].get_ylim()
    assert low < 25 < high


def test_starts_show_every_probe_but_the_force():
    assert titles(drawn(pendulum_chapter(), "starts")) == [
        "(a)  from (1, 0): mse 1.0e-3",
        "(b)  from (-1, 0): mse no number",
    ]


def test_long_titles_of_panels_side_by_side_do_not_overlap():
    made = pendulum_chapter()
    long = [
        replace(probe, title="from theta = 3.04159, omega = -1.5", mse=5.2e-13)
        for probe in made.results[0].shown.probes[:2]
    ]
    first = moved(made.results[0], probes=tuple(long))
    both = [of_recipe(first, name) for name in ("paper", "best")]
    figure = drawn(changed(made, both), "starts")
    figure.draw_without_rendering()
    shown = titles(figure)
    texts = [text for text in figure.findobj(Text) if text.get_text() in shown]
    boxes = [text.get_window_extent() for text in texts]
    assert len(boxes) == 4
    for first, second in itertools.combinations(boxes, 2):
        assert not first.overlaps(second)
    assert all(box.x1 < figure.bbox.x1 for box in boxes)


def test_forced_motion_ends_with_the_force_itself():
    figure = drawn(pendulum_chapter(), "forced")
    labels = [axes.get_ylabel() for axes in figure.axes]
    assert labels == [r"$\theta$ [rad]", r"$\dot{\theta}$ [rad/s]", "$F$ [N]"]
    force = figure.axes[2].get_lines()[0].get_ydata()
    assert np.array_equal(force, truth_of("single-pendulum").u[:, 0])


def test_driven_shows_the_crank_and_its_loads_and_dependent_all_the_rest():
    driven = [axes.get_ylabel() for axes in drawn(crank_chapter(), "driven").axes]
    assert driven == [r"$\theta_{1}$ [rad]", r"$\dot{\theta}_{1}$ [rad/s]", "$F$ [N]", "$T$ [N m]"]
    rest = [axes.get_ylabel() for axes in drawn(crank_chapter(), "dependent").axes]
    # x1, y1, x2, y2, theta2, x3 with their rates; y3 and theta3 stand still.
    assert len(rest) == 12
    assert not any("theta}_{1}" in label or "theta_{1}" in label for label in rest)


def test_unknown_kind_of_figure_gets_a_hint():
    with pytest.raises(ValueError, match="Did you mean 'phase'"):
        drawn(pendulum_chapter(), "phases")


def test_mechanism_at_rest_is_shown_at_rest():
    made = chapter("single-pendulum", (entry("single-pendulum"),))
    still = eqx.tree_at(
        lambda x: (x.q, x.v), truth_of("single-pendulum"), replace_fn=jnp.zeros_like
    )
    made = replace(made, results=(moved(made.results[0], truth=still, prediction=still),))
    assert titles(drawn(made, "over-time"))[0] == "(a)  MBD-NODE RK4: mse 0.0e0 (round-off)"


def test_long_trajectory_is_thinned_for_drawing():
    made = pendulum_chapter()
    first = made.results[0]
    longer = jax.tree.map(lambda x: x.repeat(100, axis=0) if x.ndim else x, first.shown.truth)
    longer = eqx.tree_at(lambda x: x.status.step, longer, jnp.array(len(longer) - 1))
    made = replace(made, results=(moved(first, truth=longer, prediction=longer),))
    assert len(drawn(made, "over-time").axes[0].get_lines()[0].get_xdata()) == 2000


@pytest.mark.parametrize("made", [mass_spring_chapter, pendulum_chapter, crank_chapter])
def test_system_is_drawn_as_it_moves_with_its_parameters(made):
    figure = drawn(made(), "system")
    assert titles(figure)[0].startswith("(a)  its motion, ")
    assert figure.axes[0].patches
    known = figure.get_supxlabel()
    assert all(f"{p.name} = " in known for p in made().case.mechanism.parameters if p.unit)


def test_losses_of_what_was_trained_stand_beside_all_errors():
    errors, losses = drawn(mass_spring_chapter(), "errors").axes
    named = [line.get_label() for line in errors.get_lines()]
    assert named == ["MBD-NODE LF2, paper", "MBD-NODE YS4, paper", "law RK4, best"]
    assert [line.get_label() for line in losses.get_lines()] == named[:2]
    law = chapter("single-pendulum", (entry("single-pendulum", "law", recipe="best"),))
    assert len(drawn(law, "errors").axes) == 1


def loop_chapter():
    """A pendulum's two motions, as if a controller had made them."""
    made = entry("single-pendulum", rate=0.1)
    probe = Probe("swing-up", "swung up", made.shown.truth, made.shown.prediction, 1e-3)
    return chapter("single-pendulum", (moved(made, probes=(probe,)),))


def test_controlled_loop_has_a_panel_for_each_state_and_input_and_one_for_the_difference():
    figure = drawn(loop_chapter(), "controlled")
    names = [axes.get_ylabel() for axes in figure.axes]
    assert len(names) == 4
    assert names[-1] == "percent of the range"
    truth = truth_of("single-pendulum")
    exact, learned = figure.axes[0].get_lines()
    assert exact.get_ydata() == pytest.approx(np.asarray(truth["theta"]))
    assert learned.get_linestyle() == ":"
    share = 0.1 * np.asarray(truth.t)
    parts = [
        share * np.abs(np.asarray(truth[name])) / np.ptp(np.asarray(truth[name]))
        for name in ("theta", "theta_dot")
    ]
    line = figure.axes[-1].get_lines()[0].get_ydata()
    assert line[1:] == pytest.approx(100 * np.max(parts, axis=0)[1:], rel=1e-9)


def test_control_trials_have_a_column_each():
    figure = drawn(loop_chapter(), "control-trials")
    assert titles(figure)[0] == "(a)  swung up"
    assert len(figure.axes) == 3


@pytest.mark.parametrize("kind", ["controlled", "control-trials"])
def test_chapter_without_loops_says_so(kind):
    figure = drawn(chapter("single-pendulum", (failed_entry(),)), kind)
    said = [text.get_text() for text in figure.texts]
    assert (said, figure.axes) == (["Single pendulum: no finished run to show."], [])
