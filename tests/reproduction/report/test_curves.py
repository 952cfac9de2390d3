"""The curves of a chapter as plain data: what the browser gets is what was predicted."""

import json

import numpy as np
from predictions import truth_of
from reproduction.report.samples import (
    chapter,
    crank_chapter,
    entry,
    failed_entry,
    pendulum_chapter,
)

from mbdnode.reproduction.report.chapters import make_palette
from mbdnode.reproduction.report.motion_figures import predicted
from mbdnode.reproduction.report.page import make_curves


def curves_of(made):
    return make_curves(made, predicted(made), make_palette([made]))


def test_chapter_without_a_prediction_has_none():
    assert curves_of(chapter("single-pendulum", (failed_entry(),))) is None


def test_curves_are_json_without_what_json_lacks():
    for made in (pendulum_chapter(), crank_chapter()):
        json.dumps(curves_of(made), allow_nan=False)


def test_curves_hold_the_motion_and_its_squared_error():
    made = pendulum_chapter()
    curves, truth = curves_of(made), truth_of("single-pendulum")
    assert curves is not None
    assert np.allclose(curves["truth"]["theta"], truth.q[:, 0], rtol=1e-4)
    off = 0.01 * np.asarray(truth.t)[:, None] * np.concatenate([truth.q, truth.v], axis=1)
    squares = curves["entries"][0]["squares"]
    assert squares[0] is None
    assert np.allclose(squares[1:], np.mean(off[1:] ** 2, axis=1), rtol=1e-2)
    assert curves["columns"]["theta_dot"] == {"title": "\u03b8\u0307", "unit": "rad/s"}


def test_each_method_has_its_color_and_its_integrators_are_variants_of_it():
    name = "single-mass-spring"
    entries = [entry(name, integrator=i) for i in ("lf2", "ys4")]
    made = chapter(name, (*entries, entry(name, recipe="best"), entry(name, model="lnn")))
    curves = curves_of(made)
    assert curves is not None
    looks = [(one["place"], one["variant"]) for one in curves["entries"]]
    assert looks == [(0, 0), (0, 1), (1, 0), (2, 0)]
