import matplotlib
import matplotlib.image
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import mbdnode as mbd
from mbdnode.mechanisms import KnifeEdgeSleigh, SingleMassSpring
from mbdnode.report import Scene, draw_case, draw_overview, save_figure
from mbdnode.report.scene import draw_scenery
from mbdnode.report.style import symbol


@pytest.fixture(scope="module")
def scene():
    t = np.arange(0.0, 4.0, 0.02)
    spring = SingleMassSpring()
    trajectory = mbd.simulate(spring, t, {"x": 1.0}, integrator="analytic")
    return Scene("single-mass-spring", "A mass on a spring", spring, trajectory, {}, 2.0)


def all_axes(figure):
    return [axes for part in figure.subfigs for axes in part.axes]


def test_every_axis_says_its_quantity_and_unit(scene):
    axes = [a for a in all_axes(draw_case(scene)) if a.axison]
    assert [(a.get_xlabel(), a.get_ylabel()) for a in axes] == [
        ("t [s]", "$x$ [m]"),
        ("t [s]", r"$\dot{x}$ [m/s]"),
        ("$x$ [m]", r"$\dot{x}$ [m/s]"),
        ("t [s]", r"energy change [$10^{-14}$ J]"),
    ]


def test_curves_are_the_trajectory(scene):
    position, velocity, portrait, _ = [a for a in all_axes(draw_case(scene)) if a.axison]
    x, v = np.asarray(scene.trajectory["x"]), np.asarray(scene.trajectory["x_dot"])
    np.testing.assert_array_equal(position.lines[0].get_ydata(), x)
    np.testing.assert_array_equal(velocity.lines[0].get_ydata(), v)
    np.testing.assert_array_equal(portrait.lines[0].get_xdata(), x)
    np.testing.assert_array_equal(portrait.lines[0].get_ydata(), v)


def test_training_range_is_shaded_where_time_is_the_axis(scene):
    for axes in (a for a in all_axes(draw_case(scene)) if a.axison):
        shades = [
            patch.get_extents().transformed(axes.transData.inverted()) for patch in axes.patches
        ]
        spans = [(round(box.x0, 9), round(box.x1, 9)) for box in shades]
        assert spans == ([(0.0, 2.0)] if axes.get_xlabel() == "t [s]" else [])


def test_angle_that_turns_over_is_folded_and_broken_in_the_portrait():
    t = np.linspace(0.0, 4.0, 201)
    turning = mbd.simulate(mbd.mechanisms.SinglePendulum(), t, {"theta": 0.0, "theta_dot": 12.0})
    assert float(turning["theta"][-1]) > 4 * np.pi
    scene = Scene("p", "P", mbd.mechanisms.SinglePendulum(), turning, {})
    portrait = next(a for a in all_axes(draw_case(scene)) if a.get_xlabel() == r"$\theta$ [rad]")
    drawn = np.asarray(portrait.lines[0].get_xdata(), float)
    turns = np.floor((np.asarray(turning["theta"]) + np.pi) / (2 * np.pi))
    assert np.nanmax(np.abs(drawn)) <= np.pi
    assert np.count_nonzero(np.isnan(drawn)) == np.count_nonzero(np.diff(turns))


def test_mechanism_without_a_drawing_still_gets_its_curves():
    sleigh = KnifeEdgeSleigh()
    t = np.linspace(0.0, 1.0, 21)
    rate = {coordinate.rate: 0.5 for coordinate in sleigh.coordinates if coordinate.is_angle}
    trajectory = mbd.simulate(sleigh, t, {**dict.fromkeys(sleigh.coordinate_names, 0.0), **rate})
    figure = draw_case(Scene("sleigh", "Sleigh", sleigh, trajectory, {}))
    assert len(figure.subfigs) == 2
    with pytest.raises(ValueError, match=r"no drawing of KnifeEdgeSleigh.*drawings\.py"):
        draw_scenery(figure.subfigs[0].axes[0], sleigh, trajectory, {})


def test_overview_has_a_titled_panel_for_each_scene(scene):
    figure = draw_overview([scene] * 5, columns=4)
    assert [axes.get_title() for axes in figure.axes] == ["single-mass-spring"] * 5


def test_drawing_leaves_no_state_behind(scene, tmp_path):
    before = dict(matplotlib.rcParams)
    figure = draw_case(scene)
    save_figure(figure, tmp_path / "figure.png")
    assert dict(matplotlib.rcParams) == before
    assert isinstance(figure.canvas, FigureCanvasAgg)


def test_saved_figure_has_the_asked_resolution(scene, tmp_path):
    save_figure(draw_case(scene), tmp_path / "figure.png", dpi=50)
    height, width, _ = matplotlib.image.imread(tmp_path / "figure.png").shape
    assert (width, height) == (650, 270)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("x", "$x$"),
        ("theta1", r"$\theta_{1}$"),
        ("theta1_dot", r"$\dot{\theta}_{1}$"),
        ("x12_dot", r"$\dot{x}_{12}$"),
        ("shoulder", "shoulder"),
        ("shoulder_dot", "shoulder_dot"),
        ("tip_x", "tip_x"),
    ],
)
def test_names_become_symbols_where_there_is_one(name, shown):
    assert symbol(name) == shown
