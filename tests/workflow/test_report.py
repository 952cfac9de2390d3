"""The page of a fitted model: it says what the report says, and shows it."""

import re
from dataclasses import replace
from functools import cache, partial
from html.parser import HTMLParser

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from browser import Tab
from predictions import diverging, drifting, truth_of

from mbdnode.evaluation import HeldOut, Horizon, score
from mbdnode.evaluation.valid_prediction_time import PieceErrors
from mbdnode.mechanisms import SinglePendulum, SliderCrank, from_text
from mbdnode.mechanisms.planar import PlanarKinematics
from mbdnode.multibody import AccelerationFunction, Coordinate, Input
from mbdnode.simulation import simulate
from mbdnode.status import completed
from mbdnode.trajectory import Trajectory
from mbdnode.workflow.report.figures import draw_energy, draw_horizon, draw_run
from mbdnode.workflow.report.page import make_fit_page, write_fit_page
from mbdnode.workflow.report.state_space_figure import draw_space, independent_coordinates
from mbdnode.workflow.results import ReportData, verdict

AHEAD = np.linspace(0.1, 2.0, 20)
HORIZON = Horizon(
    *(AHEAD, 0.05 * AHEAD, 0.1 * AHEAD, 0.2 * AHEAD, 0 * AHEAD + 0.9, 0.7, 0.073, 24),
    shortest_s=0.4,
    longest_s=1.5,
    pieces=PieceErrors(1.0, 0.11, 0.12, 0.13, 24),
)


def off_by(truth, share):
    """A prediction that is off by a share of every state's own standard deviation."""
    q, v = (np.asarray(x) + share * np.std(np.asarray(x), axis=0) for x in (truth.q, truth.v))
    return eqx.tree_at(lambda x: (x.q, x.v), truth, (jnp.asarray(q), jnp.asarray(v)))


def held_out(truth, prediction, name="a run", outside=0.0, recorded=()):
    """A run of which the last share of the rows lies outside the training data."""
    rows = np.arange(len(truth)) >= (1 - outside) * len(truth)
    return HeldOut(name, truth, prediction, rows, recorded or truth.columns[1:])


def known_of(*runs):
    """The columns of runs, as training data."""
    tables = np.concatenate([np.asarray(run.table) for run in runs])
    return dict(zip(runs[0].columns, tables.T, strict=True))


def story_of(system, runs, **changes):
    """A report of these runs."""
    made = ReportData(
        title="A bench",
        command="mbdnode fit logs --out there",
        system=system,
        parameters={},
        facts=(("model", "mbd-node"), ("recipe", "fast")),
        read=("61 rows were read.", "theta was unwrapped at 3 places."),
        held_out=tuple(runs),
        scores=score(runs, system.coordinates),
        horizon=HORIZON,
        known=known_of(*(run.truth for run in runs)) if runs else {},
        versions={"mbdnode": "0.1.0"},
    )
    return replace(made, **changes)


@cache
def pendulum_story():
    """Two runs of a pendulum, a quarter of the second one outside the training data."""
    truth = truth_of("single-pendulum")
    recorded = ("theta", "theta_dot")
    runs = (
        held_out(truth, off_by(truth, 0.05), "calm.csv", recorded=recorded),
        held_out(truth, off_by(truth, -0.3), "wild.csv", outside=0.25, recorded=recorded),
    )
    return story_of(SinglePendulum(), runs, warnings=("The sensor drifted.",))


@cache
def crank_story():
    """Eight runs of a slider-crank of which only the crank was recorded."""
    truth = truth_of("slider-crank")
    runs = [
        held_out(truth, drifting(truth, 0.01), f"run {i}", recorded=("theta1",)) for i in range(8)
    ]
    return story_of(SliderCrank(), runs)


@cache
def page_of(make):
    return make_fit_page(make())


class Reader(HTMLParser):
    """Text, names of elements, and what their attributes refer to."""

    def __init__(self, page):
        super().__init__()
        self.words, self.tags, self.addresses, self.alts = [], [], [], []
        self.feed(page)
        self.text = re.sub(r"\s+", " ", " ".join(self.words))

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        found = dict(attrs)
        self.addresses += [found[name] for name in ("src", "href") if name in found]
        if tag == "img":
            self.alts.append(found["alt"])

    def handle_data(self, data):
        self.words.append(data)


def lines_of(axes):
    return {line.get_label(): line.get_xydata() for line in axes.lines}


def test_verdict_tells_the_error_by_column_and_the_valid_prediction_time():
    # Its angle swings by less than a radian, so that both columns are in standard deviations.
    deviation = float(np.std(truth_of("single-pendulum")["theta"]))
    both = np.sqrt((0.05**2 + 0.3**2) / 2)
    assert verdict(pendulum_story()).startswith(
        f"On 2 held-out runs the NRMSE is 22 % (theta {both * deviation:.2g} rad = 22 %, "
        "theta_dot 22 %; run by run from 5 % to 30 %); the valid prediction time is 0.7 s (median "
        "of 24 predictions, which stay within 7.3 % for 0.4 to 1.5 s). NRMSE by where one begins: "
        "median 12 %, from 11 % to 13 %, over 24 pieces of 1 s of the held-out data. wild.csv: the "
        "error exceeds 10 % at t = 0 s, first in theta"
    )


@pytest.mark.parametrize(
    ("horizon", "words"),
    [
        (None, "the valid prediction time was not measured"),
        (
            replace(HORIZON, valid_s=None),
            "there is no valid prediction time (median of 24 predictions",
        ),
        (replace(HORIZON, valid_s=2.0), "is 2 s, as far as was measured"),
    ],
)
def test_verdict_is_honest_about_the_time_ahead(horizon, words):
    assert words in verdict(replace(pendulum_story(), horizon=horizon))


def test_prediction_that_ended_early_leaves_no_error_to_tell():
    truth = truth_of("single-pendulum")
    failed = held_out(truth, diverging(truth), "failed")
    good = held_out(truth, off_by(truth, 0.01), "good")
    report = story_of(SinglePendulum(), (good, good, failed))
    # `diverging` ends at six tenths of the time.
    assert report.scores.runs[2].ended_s == pytest.approx(1.75)
    text = verdict(report)
    assert "the prediction ends before the run does (1 of 3)" in text
    assert "failed: the error exceeds 10 % at t =" in text
    assert "the prediction ends at t = 1.75 s" in text


def test_run_in_which_nothing_moves_has_no_error():
    truth = truth_of("single-pendulum")
    still = eqx.tree_at(lambda x: x.q, truth, jnp.ones_like(truth.q))
    report = story_of(SinglePendulum(), [held_out(still, still, recorded=("theta",))])
    assert "nothing that was recorded moves" in verdict(report)


def test_figure_of_a_run_holds_truth_prediction_and_inputs():
    run = pendulum_story().held_out[1]
    theta, rate, force = draw_run(SinglePendulum(), run).axes
    for axes, name in ((theta, "theta"), (rate, "theta_dot")):
        lines = lines_of(axes)
        assert np.array_equal(lines["truth"][:, 1], run.truth[name])
        assert np.array_equal(lines["prediction"][:, 1], run.prediction[name])
    assert np.array_equal(lines_of(force)["truth"][:, 1], run.truth["F"])
    assert [a.get_ylabel().split(" ")[-1] for a in (theta, rate, force)] == [
        "[rad]",
        "[rad/s]",
        "[N]",
    ]


def test_rows_outside_the_training_data_are_shaded_as_long_as_there_is_a_prediction():
    truth = truth_of("single-pendulum")
    flags = np.zeros(61, bool)
    flags[[10, 11, 30]] = flags[40:] = True
    run = HeldOut("a run", truth, diverging(truth), flags, ("theta",))
    axes = draw_run(SinglePendulum(), run).axes[0]
    (bars,) = [c for c in axes.collections if c.get_paths()]
    found = [(p.vertices[:, 0].min(), p.vertices[:, 0].max()) for p in bars.get_paths()]
    # Rows are 0.05 s apart, and the last that is predicted is row 35.
    assert np.allclose(found, [(0.475, 0.575), (1.475, 1.525)])
    assert lines_of(axes)["the prediction fails"][0, 0] == pytest.approx(1.75)


def test_long_run_is_thinned_and_a_single_row_outside_is_still_shaded():
    t = np.linspace(0.0, 100.0, 30_001)
    truth = trajectory(t, np.sin(t)[:, None], np.cos(t)[:, None], ("x",))
    flags = np.arange(len(t)) == 12_345
    axes = draw_run(spring(), HeldOut("long", truth, truth, flags, ("x",))).axes[0]
    drawn = lines_of(axes)["truth"]
    assert len(drawn) == 2_000
    assert np.allclose(drawn[:, 1], np.sin(drawn[:, 0]))
    (bars,) = axes.collections
    low, high = np.quantile(bars.get_paths()[0].vertices[:, 0], [0, 1])
    assert low < t[12_345] < high < low + 0.2
    # One row of the fifteen or so that share its place.
    assert bars.get_facecolor()[0, 3] == 0.35


def trajectory(t, q, v, names):
    """What a model might have returned."""
    nothing = jnp.zeros(len(t))
    status = completed(jnp.asarray(t[-1]), jnp.asarray(len(t) - 1), names)
    arrays = [jnp.asarray(x) for x in (t, q, v, np.zeros((len(t), 0)))]
    rates = tuple(f"{name}_dot" for name in names)
    return Trajectory(*arrays, nothing, nothing, status, names, rates, ())


def spring(*names, unit=""):
    """An oscillator without units, as a bare function."""
    coordinates = tuple(Coordinate(name, unit) for name in names or ("x",))
    return AccelerationFunction(lambda t, q, v, u, mu: -q, coordinates)


def test_columns_without_units_have_no_brackets_and_names_are_no_mathematics():
    t = np.linspace(0.0, 1.0, 5)
    name = "gap $\\oops$"
    truth = trajectory(t, t[:, None], t[:, None], (name,))
    figure = draw_run(spring(name), held_out(truth, truth))
    figure.canvas.draw()
    assert [axes.get_ylabel() for axes in figure.axes[:2]] == [
        "gap \\$\\oops\\$",
        "gap \\$\\oops\\$_dot",
    ]


def test_horizon_is_drawn_in_per_cent_with_limit_and_valid_prediction_time():
    (axes,) = draw_horizon(HORIZON).axes
    lines = lines_of(axes)
    assert np.allclose(lines["median"], np.stack([AHEAD, 10 * AHEAD], axis=1))
    assert np.allclose(lines["predicting no motion"][:, 1], 90.0)
    assert np.allclose(lines["limit, 7.3 %"][:, 1], 7.3)
    assert np.allclose(lines["valid prediction time, 0.7 s"][:, 0], 0.7)
    (band,) = [c for c in axes.collections if c.get_label() == "interquartile range"]
    corners = band.get_paths()[0].vertices
    assert np.allclose([corners[:, 1].min(), corners[:, 1].max()], [0.5, 40.0])
    assert not any("valid" in label for label in lines_of(draw_invalid()))


def draw_invalid():
    """With errors that a logarithm does not take."""
    nothing = np.where(AHEAD < 1, 0.0, np.nan)
    return draw_horizon(replace(HORIZON, valid_s=None, low=nothing)).axes[0]


def test_space_shows_the_data_and_marks_what_left_it():
    report = pendulum_story()
    states, force = draw_space(report).axes
    lines = lines_of(states)
    assert np.array_equal(lines["known"].T, [report.known["theta"], report.known["theta_dot"]])
    assert len(lines["inside"]) == 61 + 46
    beyond = np.asarray(report.held_out[1].prediction.q)[46:, 0]
    assert np.array_equal(lines["outside"][:, 0], beyond)
    data, driven = (patch.get_data().values for patch in force.patches)
    assert data.sum() == pytest.approx(100.0)
    assert driven.sum() == pytest.approx(100.0)


def test_space_of_a_constrained_system_has_its_independent_coordinate_only():
    report = crank_story()
    assert [c.name for c in independent_coordinates(report)] == ["theta1"]
    states, *inputs = draw_space(report).axes
    assert len(inputs) == 2
    # The crank turns further than half a turn, and is folded.
    assert np.max(np.asarray(report.known["theta1"])) > 3.2
    assert np.max(np.abs(lines_of(states)["known"][:, 0])) <= np.pi


def test_energy_is_that_of_the_textbook():
    report = pendulum_story()
    figure = draw_energy(report, report.held_out)
    for run, axes in zip(report.held_out, figure.axes, strict=True):
        lines = lines_of(axes)
        for name, one in (("truth", run.truth), ("prediction", run.prediction)):
            theta, rate = one.q[:, 0], one.v[:, 0]
            assert np.array_equal(lines[name][:, 0], run.truth.t)
            assert np.allclose(lines[name][:, 1], 0.5 * rate**2 - 9.81 * np.cos(theta))


def test_page_says_what_the_story_says():
    reader = Reader(page_of(pendulum_story))
    for words in (
        "A bench",
        "On 2 held-out runs the NRMSE is 22 %",
        "The sensor drifted.",
        "recipe fast",
        "61 rows were read.",
        "25 % of the predicted rows lie outside the training data (orange).",
        "15 of 122 predicted rows (12 %)",
        "is the median, 0.7 s, of times from 0.4 to 1.5 s.",
        "By where one begins: NRMSE median 12 %, from 11 % to 13 %, over 24 pieces of 1 s",
        "mbdnode fit logs --out there",
        "mbdnode 0.1.0",
    ):
        assert words in reader.text
    # Two runs, horizon, space and energy; a pendulum in one angle has no constraints.
    assert len(reader.alts) == 5
    assert all(len(alt) > 20 for alt in reader.alts)
    assert "canvas" in reader.tags
    assert "Constraints" not in reader.text


def test_page_refers_to_nothing_outside_itself():
    page = page_of(pendulum_story)
    reader = Reader(page)
    assert all(address.startswith(("data:", "#")) for address in reader.addresses)
    assert "://" not in page
    assert not re.search(r"@import|url\(", page)


def test_page_of_many_runs_draws_six_and_lists_all():
    reader = Reader(page_of(crank_story))
    assert "The first 6 runs are plotted; 2 more are in the table." in reader.text
    assert [f"run {i} 6 s 61" in reader.text for i in range(8)] == [True] * 8
    # Besides them horizon, space, energy and residuals.
    assert len(reader.alts) == 6 + 4
    truth = truth_of("slider-crank")
    largest = float(np.max(np.asarray(truth.position_residual)))
    told = re.search(r"at most (\S+) for positions", reader.text)[1]
    assert float(told) == pytest.approx(largest, rel=0.05)


@cache
def hostile_story():
    """A bare function whose names are markup, and a prediction that failed."""
    name = "x</script><script>alert(1)</script>"
    system = AccelerationFunction(
        lambda t, q, v, u, mu: u - q, (Coordinate(name, ""),), inputs=(Input("<b>", ""),)
    )
    t = np.linspace(0.0, 2.0, 41)
    truth = simulate(system, t, {name: 1.0}, inputs=np.ones((41, 1)))
    run = held_out(truth, diverging(truth), name="<i>run</i> & \udcff", outside=1.0)
    return story_of(
        system,
        [run],
        title="<h1>title",
        command="fit '<x>' && rm",
        horizon=None,
        warnings=("<u>careful</u>",),
        facts=(("<s>", "<s>"),),
        read=("<em>",),
        versions={"<q>": "<q>"},
    )


def test_names_are_text_and_never_markup(tmp_path):
    write_fit_page(hostile_story(), tmp_path / "page.html")
    reader = Reader((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert not {"script", "b", "i", "u", "s", "em", "q"} & set(reader.tags)
    assert reader.tags.count("h1") == 1
    for words in ("<h1>title", "<i>run</i> & ?", "<u>careful</u>", "fit '<x>' && rm"):
        assert words in reader.text


def test_page_of_a_bare_function_has_no_film_and_no_energy_and_says_where_it_failed():
    text = Reader(page_of(hostile_story)).text
    assert "Energy" not in text
    assert "In motion" not in text
    assert "The prediction ended at t = 1.15 s" in text
    assert "nothing to measure the error against the time ahead on" in text


def test_prediction_that_fails_at_once_is_said_to_have_none():
    truth = truth_of("single-pendulum")
    nothing = eqx.tree_at(lambda x: (x.q, x.v), truth, (truth.q * np.nan, truth.v * np.nan))
    report = story_of(SinglePendulum(), [held_out(truth, nothing)])
    text = Reader(make_fit_page(report)).text
    assert "Not one row could be predicted. The prediction ended at t = 0 s." in text
    assert "On the held-out run the prediction ends before the run does" in text


def test_page_without_held_out_runs_says_so():
    known = pendulum_story().known
    nothing = score((), pendulum_story().system.coordinates)
    report = replace(pendulum_story(), held_out=(), scores=nothing, horizon=None, known=known)
    reader = Reader(make_fit_page(report))
    assert "No run was held out, so it is not known how well the model predicts." in reader.text
    assert len(reader.alts) == 1
    assert "were not kept" in Reader(make_fit_page(replace(report, known={}))).text


def test_system_without_masses_is_drawn_and_has_no_energy():
    link = from_text(
        """
        name = "link"
        [bodies.link]
        center = [1.0, 0.0]
        [joints.pin]
        type = "revolute"
        bodies = ["ground", "link"]
        points = [[0.0, 0.0], [-1.0, 0.0]]
        """
    )
    assert isinstance(link, PlanarKinematics)
    t = np.linspace(0.0, 1.0, 21)
    q = np.stack([np.cos(t), np.sin(t), t], axis=1)
    v = np.stack([-np.sin(t), np.cos(t), 1 + 0 * t], axis=1)
    truth = trajectory(t, q, v, link.coordinate_names)
    report = story_of(link, [held_out(truth, truth)])
    assert len(independent_coordinates(report)) == 1
    text = Reader(make_fit_page(report)).text
    assert "a run, held out: the last predicted pose." in text
    assert "Energy" not in text
    assert "Constraints" in text


def test_page_that_cannot_be_made_leaves_the_old_one(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("old")
    with pytest.raises(ValueError, match="unknown"):
        write_fit_page(replace(pendulum_story(), parameters={"unknown": 1.0}), path)
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (420, "dark")])
def test_page_fits_the_screen_and_its_film_moves(browser, tmp_path, width, scheme):
    path = tmp_path / "page.html"
    path.write_text(page_of(pendulum_story), encoding="utf-8")
    tab = browser.open(path, width, 900, prefers_color_scheme=scheme)
    # The page has no Plotly to wait for.
    tab.wait_for = lambda _: Tab.wait_for(tab, "document.readyState === 'complete'")
    with tab:
        tab.wait_for = partial(Tab.wait_for, tab)
        assert tab.ask("document.documentElement.scrollWidth <= innerWidth")
        assert tab.ask("[...document.images].every((i) => i.complete && i.naturalWidth > 300)")
        tab.show(".film canvas")
        tab.wait_for("Number(document.querySelector('.film canvas').dataset.time) > 0.05")
        assert tab.problems == []
        assert tab.requests == [path.as_uri()]
