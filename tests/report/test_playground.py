"""The playground in a browser: it computes what Python computes, and answers a hand and keys."""

import io
import json
import math
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

import mbdnode as mbd
from mbdnode.mechanisms import SinglePendulum, SliderCrank
from mbdnode.models import FittedMechanism
from mbdnode.multibody import AccelerationFunction
from mbdnode.report.playground import Play
from mbdnode.report.playground_html import make_play_page, write_play_page
from mbdnode.simulation import training_domain

MOTION = "document.querySelector('.playground').playground.motion"
STRANGE = "</script><b onclick='x'>&amp; \"quoted\""


def weaker_pendulum():
    """A pendulum that falls a thousandth more slowly, as a model of one might."""
    pendulum = SinglePendulum()
    # Without damping and force, which no test here compares.
    fall = lambda t, q, v, u, mu: -0.999 * mu["g"] / mu["L"] * jnp.sin(q)  # noqa: E731
    names = {"inputs": pendulum.inputs, "parameters": pendulum.parameters}
    return AccelerationFunction(fall, pendulum.coordinates, **names)


@pytest.fixture(scope="module")
def crank_page(tmp_path_factory):
    """The slider-crank as the command writes it."""
    path = tmp_path_factory.mktemp("play") / "crank.html"
    command = ["-c", "import sys; from mbdnode.cli import main; sys.exit(main())"]
    words = ["play", "slider-crank", "--out", str(path)]
    done = subprocess.run([sys.executable, *command, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"Wrote {path}")
    return path


@pytest.fixture(scope="module")
def pair_page(tmp_path_factory):
    """A pendulum and a model of it, trained on swings up to half a radian."""
    path, pendulum = tmp_path_factory.mktemp("play") / "pair.html", SinglePendulum()
    swing = mbd.simulate(pendulum, 0.01 * np.arange(401), {"theta": 0.5}, parameters={"c": 0.0})
    play = Play(
        title=STRANGE,
        name="pair",
        system=weaker_pendulum(),
        label="law",
        initial={"theta": 0.5},
        truth=pendulum,
        parameters={"c": 0.0},
        domain=training_domain(pendulum, [swing]),
        used=("L", "g"),
    )
    write_play_page(play, path)
    return path


def opened(browser, path, width=1280, height=900, **media):
    """The page at rest, unless it is asked to move."""
    return browser.open(path, width, height, **{"prefers_reduced_motion": "reduce", **media})


def ready(tab):
    tab.wait_for("Boolean(document.querySelector('.playground').playground)")
    return tab


def states_after(tab, steps, inputs=()):
    """Coordinates and velocities of every system after so many steps from the start."""
    return tab.ask(f"""{{
        const m = {MOTION};
        m.reset();
        m.u.set({json.dumps(list(inputs))});
        for (let i = 0; i < {steps}; i++) m.step();
        m.bodies.map(({{ state }}) => [[...state.q], [...state.v]]);
    }}""")


@pytest.mark.slow
def test_slider_crank_in_javascript_is_that_of_python_over_five_seconds(browser, crank_page):
    t = 0.01 * np.arange(501)
    inputs = {"F": np.full(501, 1.5), "T": np.full(501, -2.0)}
    start = {"theta1": 1.0, "theta1_dot": 1.0}
    run = mbd.simulate(SliderCrank(), t, start, inputs=inputs)
    with opened(browser, crank_page) as tab:
        ((q, v),) = states_after(ready(tab), 500, (1.5, -2.0))
        residual = tab.ask(f"{MOTION}.main.residual({MOTION}.t, {MOTION}.u, {MOTION}.p)")
        assert tab.problems == []
    np.testing.assert_allclose(q, run.q[-1], atol=1e-9)
    np.testing.assert_allclose(v, run.v[-1], atol=1e-9)
    # Round-off of sums of lengths below ten.
    assert residual < 1e-13


@pytest.mark.parametrize(("size", "scheme"), [((1400, 900), "light"), ((420, 900), "dark")])
def test_page_moves_by_itself_fits_and_asks_for_nothing(browser, crank_page, size, scheme):
    media = {"prefers_color_scheme": scheme, "prefers_reduced_motion": "no-preference"}
    with opened(browser, crank_page, *size, **media) as tab:
        ready(tab)
        canvas = "document.querySelector('.stage canvas')"
        first = tab.ask(f"{canvas}.toDataURL()")
        tab.wait_for("Number(document.querySelector('.playground').dataset.time) > 0.2")
        assert tab.ask(f"{canvas}.toDataURL()") != first
        assert tab.ask("document.documentElement.scrollWidth <= innerWidth")
        # The page counts frames over the last of them; how many depends on the machine.
        tab.wait_for("Number(document.querySelector('.playground').dataset.frames) > 1")
        assert tab.problems == []
        assert tab.requests == [crank_page.as_uri()]


def test_page_waits_for_whoever_asks_for_calm(browser, crank_page):
    with opened(browser, crank_page) as tab:
        ready(tab)
        tab.ask("new Promise((resolve) => setTimeout(resolve, 300))")
        assert tab.ask("document.querySelector('.playground').dataset.time") == "0.0000"


def pointer(tab, kind, x, y):
    pressed = {"button": "left", "buttons": 0 if kind == "mouseReleased" else 1, "clickCount": 1}
    tab.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **pressed)


def frames(tab, count):
    """Let so many frames pass."""
    tab.ask(f"""new Promise((resolve) => {{
        let left = {count};
        const next = () => (left-- > 0 ? requestAnimationFrame(next) : resolve());
        next();
    }})""")


def on_screen(tab, x, y):
    """Where a point of the plane is on the screen."""
    return tab.ask(f"""{{
        const pane = document.querySelector('.playground').playground.panes.at(-1);
        const box = pane.canvas.getBoundingClientRect(), [px, py] = pane.pen.place([{x}, {y}]);
        [box.left + px, box.top + py];
    }}""")


def test_dragged_crank_follows_the_pointer_with_its_constraints_kept(browser, crank_page):
    with opened(browser, crank_page) as tab:
        ready(tab)
        pin = [2 * math.cos(1.0), 2 * math.sin(1.0)]
        pointer(tab, "mousePressed", *on_screen(tab, *pin))
        goal = on_screen(tab, 2 * math.cos(2.2), 2 * math.sin(2.2))
        pointer(tab, "mouseMoved", *goal)
        frames(tab, 25)
        pointer(tab, "mouseMoved", *goal)
        pointer(tab, "mouseReleased", *goal)
        q = np.array(tab.ask(f"[...{MOTION}.main.state.q]"))
        residual = tab.ask(f"{MOTION}.main.residual(0, {MOTION}.u, {MOTION}.p)")
    # Within a pixel of a hundredth of a meter or so.
    assert q[2] == pytest.approx(2.2, abs=0.03)
    tilt = math.asin(2 * math.sin(q[2]) / 4)
    assert q[6] == pytest.approx(2 * math.cos(q[2]) + 4 * math.cos(tilt), abs=1e-9)
    assert residual < 1e-12


def test_crank_that_is_let_go_while_moving_turns_as_fast_as_the_hand(browser, crank_page):
    x, y, vx, vy = 2 * math.cos(1.0), 2 * math.sin(1.0), -3.0, 1.0
    with opened(browser, crank_page) as tab:
        ready(tab)
        v = tab.ask(f"""{{
            const {{ scene, hand, motion }} = document.querySelector('.playground').playground;
            hand.take(scene.grab(scene.parts(motion.main.state.q), {x}, {y}, 1));
            [...hand.thrown({vx}, {vy})];
        }}""")
    # The part across the crank of two meters; the least squares are damped by 1e-4.
    assert v[2] == pytest.approx((x * vy - y * vx) / 4, rel=1e-3)


def test_keys_kick_pause_and_restart(browser, crank_page):
    with opened(browser, crank_page) as tab:
        ready(tab)
        tab.ask("document.querySelector('.stage canvas').focus()")
        speed = f"{MOTION}.main.state.v[2]"
        before = tab.ask(speed)
        for key in ("k", "ArrowRight", "ArrowLeft"):
            tab.call("Input.dispatchKeyEvent", type="keyDown", key=key)
        kick = tab.ask("document.querySelector('.playground').playground.play.coordinates[2].kick")
        assert tab.ask(speed) == pytest.approx(before + kick)
        tab.call("Input.dispatchKeyEvent", type="keyDown", key=" ")
        tab.wait_for("Number(document.querySelector('.playground').dataset.time) > 0.1")
        tab.call("Input.dispatchKeyEvent", type="keyDown", key=" ")
        assert "Paused" in tab.ask("document.querySelector('[role=status]').textContent")
        tab.call("Input.dispatchKeyEvent", type="keyDown", key="r")
        assert tab.ask(f"{MOTION}.t") == 0.0
        assert tab.ask(speed) == before


def test_parameter_with_which_nothing_fits_together_is_refused(browser, crank_page):
    with opened(browser, crank_page) as tab:
        ready(tab)
        names = [parameter.name for parameter in SliderCrank().parameters]
        # A rod that is too short for the crank at this angle, and one that is not.
        assert tab.ask(f"{MOTION}.set({names.index('r')}, 0.5)") is False
        assert tab.ask(f"{MOTION}.p[{names.index('r')}]") == 4.0
        assert tab.ask(f"{MOTION}.set({names.index('r')}, 5)") is True
        slider = tab.ask(f"{MOTION}.main.state.q[6]")
    tilt = math.asin(2 * math.sin(1.0) / 5)
    assert slider == pytest.approx(2 * math.cos(1.0) + 5 * math.cos(tilt), abs=1e-12)


def test_recorded_rows_are_read_back_as_the_motion(browser, crank_page, tmp_path):
    with opened(browser, crank_page) as tab:
        ready(tab)
        tab.ask(f"{MOTION}.record(true), 0")
        states_after(tab, 20, (0.5, 0.0))
        text = tab.ask(f"{MOTION}.csv()")
    (tmp_path / "crank.csv").write_text(text)
    table = np.genfromtxt(io.StringIO(text), delimiter=",", names=True)
    run = mbd.simulate(
        *(SliderCrank(), 0.01 * np.arange(20), {"theta1": 1.0, "theta1_dot": 1.0}),
        inputs={"F": np.full(20, 0.5), "T": np.zeros(20)},
    )
    np.testing.assert_allclose(table["theta1"], run["theta1"], atol=1e-12)
    np.testing.assert_allclose(table["F"], 0.5)
    coordinates = list(SliderCrank().coordinate_names)
    data = mbd.read(
        tmp_path / "crank.csv",
        time="t",
        run="run",
        coordinates=coordinates,
        rates=[f"{name}_dot" for name in coordinates],
        inputs=["F", "T"],
    )
    assert len(data.trajectories[0]) == 20


def test_model_and_mechanism_drift_apart_and_the_page_says_how_far(browser, pair_page):
    with opened(browser, pair_page) as tab:
        (truth, model) = states_after(ready(tab), 300)
        shown = tab.ask(f"{MOTION}.difference(0, {MOTION}.history.place(0))")
        assert shown == 0.0
        last = tab.ask(f"{MOTION}.difference(0, {MOTION}.history.place({MOTION}.history.length-1))")
    assert last == pytest.approx(abs(truth[0][0] - model[0][0]), rel=1e-12)
    assert 1e-5 < last < 1e-1
    exact = mbd.simulate(
        SinglePendulum(), 0.01 * np.arange(301), {"theta": 0.5}, parameters={"c": 0.0}
    )
    assert truth[0][0] == pytest.approx(float(exact.q[-1, 0]), abs=1e-9)


def test_page_warns_where_the_model_leaves_its_training_data(browser, pair_page):
    with opened(browser, pair_page) as tab:
        ready(tab)
        words = "document.querySelector('.of-domain dd').textContent"
        assert tab.ask(words) == "inside"
        tab.ask("""{
            const slider = document.querySelectorAll('.knobs .group')[1].querySelector('input');
            slider.value = 2.5;
            slider.dispatchEvent(new Event('input'));
        }""")
        tab.wait_for(f"{words}.startsWith('outside')")
        assert "left the training data" in tab.ask(
            "document.querySelector('[role=status]').textContent"
        )
        assert tab.ask("Boolean(document.querySelector('.stage.outside'))")


def test_distance_to_the_training_data_is_that_of_the_domain(browser, pair_page):
    pendulum = SinglePendulum()
    swing = mbd.simulate(pendulum, 0.01 * np.arange(401), {"theta": 0.5}, parameters={"c": 0.0})
    domain = training_domain(pendulum, [swing])
    run = mbd.simulate(pendulum, 0.01 * np.arange(3), {"theta": 1.3}, parameters={"c": 0.0})
    with opened(browser, pair_page) as tab:
        ready(tab)
        q, v = float(run.q[0, 0]), float(run.v[0, 0])
        found = tab.ask(f"{MOTION}.domain.distance([{q}], [{v}], [0])")
    # The page keeps the points as numbers of 32 bits.
    assert found == pytest.approx(domain.distance(run)[0] / domain.threshold, rel=1e-5)


def test_names_are_text_and_nothing_else(browser, pair_page):
    with opened(browser, pair_page) as tab:
        ready(tab)
        assert tab.ask("document.querySelector('h1').textContent") == STRANGE
        assert tab.ask("document.querySelectorAll('b').length") == 0
        assert tab.problems == []


def test_overlay_shows_both_on_one_drawing(browser, pair_page):
    with opened(browser, pair_page) as tab:
        ready(tab)
        visible = "[...document.querySelectorAll('.stage')].filter((s) => s.offsetWidth > 0).length"
        assert tab.ask(visible) == 2
        tab.ask("document.querySelector('.playground').playground.overlay(true)")
        assert tab.ask(visible) == 1


def test_band_of_a_fitted_mechanism_is_the_spread_of_its_simulation(browser, tmp_path):
    values = {"names": ("L", "c"), "values": (1.2, 0.15), "covariance": (1e-4, 2e-5, 2e-5, 4e-5)}
    fitted = FittedMechanism.for_system(SinglePendulum(), **values)
    path = tmp_path / "band.html"
    write_play_page(Play("Fitted", "fitted", fitted, "fitted mechanism", {"theta": 1.0}), path)
    run = mbd.simulate(fitted, 0.01 * np.arange(101), {"theta": 1.0})
    assert run.spread is not None
    with opened(browser, path) as tab:
        ((q, _),) = states_after(ready(tab), 100)
        tab.ask(f"{MOTION}.band.measure(), 0")
        spread = tab.ask(f"{MOTION}.band.q[0]")
        assert tab.problems == []
    assert q[0] == pytest.approx(float(run.q[-1, 0]), abs=1e-9)
    assert spread == pytest.approx(float(run.spread.q[-1, 0]), rel=1e-9)


def test_model_that_only_continues_a_motion_is_refused():
    model = mbd.FCNN.for_system(SinglePendulum())
    with pytest.raises(mbd.UserError, match="continues a recorded motion"):
        make_play_page(Play("No", "no", model, "FCNN", {"theta": 1.0}))
