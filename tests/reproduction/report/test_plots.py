"""What the browser gets of a figure: its lines as they were drawn."""

import json

import numpy as np
import pytest
from predictions import truth_of
from reproduction.report.samples import (
    chapter,
    crank_chapter,
    entry,
    mass_spring_chapter,
    pendulum_chapter,
)

from mbdnode.reproduction.cases.printed import Exhibit
from mbdnode.reproduction.figures import draw_exhibit
from mbdnode.reproduction.plots import plain_text, read_figure


def plot_of(made, kind):
    figure = draw_exhibit(made, Exhibit("fig:x", kind, "A caption."))
    figure.draw_without_rendering()
    return read_figure(figure)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (pendulum_chapter, "over-time"),
        (pendulum_chapter, "phase"),
        (mass_spring_chapter, "phase-energy"),
        (mass_spring_chapter, "errors"),
        (crank_chapter, "driven"),
        (crank_chapter, "controlled"),
    ],
)
def test_plot_is_json_within_its_own_limits(make, kind):
    plot = plot_of(make(), kind)
    json.dumps(plot, allow_nan=False)
    for panel in plot["panels"]:
        assert 0 <= panel["x"][0] < panel["x"][1] <= 1
        assert 0 <= panel["y"][0] < panel["y"][1] <= 1


def test_plot_holds_the_motion_and_its_prediction():
    plot = plot_of(chapter("single-pendulum", (entry("single-pendulum"),)), "over-time")
    angle, speed = plot["panels"]
    truth, inside, after = angle["lines"]
    t, theta = (np.asarray(truth_of("single-pendulum")[name]) for name in ("t", "theta"))
    assert np.allclose(truth["x"], t, rtol=1e-3)
    assert np.allclose(truth["y"], theta, rtol=1e-3)
    assert [line["name"] for line in angle["lines"]] == ["truth", "prediction", "prediction"]
    assert (inside["dash"], after["dash"]) == ("dash", "dot")
    assert np.allclose(after["y"], (theta * (1 + 0.01 * t))[t >= 2.0], rtol=1e-3)
    assert angle["up"]["label"] == "\u03b8 [rad]"
    assert speed["up"]["label"] == "\u03b8\u0307 [rad/s]"
    # The training range.
    assert angle["shades"] == [
        {"corners": pytest.approx([0.0, *angle["up"]["range"][:1], 2.0, angle["up"]["range"][1]]),
         "color": "shade"}
    ]  # fmt: skip


def test_round_off_is_a_band_on_an_axis_of_magnitudes():
    errors, _ = plot_of(mass_spring_chapter(), "errors")["panels"]
    assert errors["words"] == ["round-off"]
    assert errors["up"]["type"] == "log"
    tops = [shade["corners"][3] for shade in errors["shades"]]
    assert any(top == pytest.approx(1e-24) for top in tops)


def test_mechanism_is_no_plot():
    assert plot_of(pendulum_chapter(), "system") is None


@pytest.mark.parametrize(
    ("label", "text"),
    [
        (r"$\dot{\theta}_{12}$ [rad/s]", "\u03b8\u0307\u2081\u2082 [rad/s]"),
        ("$x$ [m]", "x [m]"),
        (r"$x_{3}$, $\omega$", "x\u2083, \u03c9"),
        (r"cost [\$]", "cost [$]"),
        ("mse", "mse"),
    ],
)
def test_labels_are_plain_letters(label, text):
    assert plain_text(label) == text
