"""The films and curves as plain data: what the browser gets is what the mechanism did."""

import json

import numpy as np
from report.samples import (
    chapter,
    crank_chapter,
    entry,
    failed_entry,
    mass_spring_chapter,
    pendulum_chapter,
    truth_of,
)

from mbdnode.report.drawings import DRAWINGS
from mbdnode.report.film import make_film
from mbdnode.reproduction.report.motion_figures import predicted
from mbdnode.reproduction.report.page import make_curves
from mbdnode.reproduction.report.palette import make_palette


def film_of(made):
    predictions = {one.title: one.prediction for one in predicted(made)}
    truth = truth_of(made.name)
    return make_film(made.mechanism, made.parameters, truth, predictions, made.train_end_s)


def curves_of(made):
    return make_curves(made, predicted(made), make_palette([made]))


def numbers_at(film, motion, look, frame):
    """The numbers of the part of that place in the list of looks."""
    start = sum(part["count"] for part in film["looks"][:look])
    columns = motion["columns"][start : start + film["looks"][look]["count"]]
    return [column[frame] if isinstance(column, list) else column for column in columns]


def test_bob_of_the_film_is_where_the_pendulum_is():
    film = film_of(pendulum_chapter())
    theta = np.asarray(truth_of("single-pendulum").q[:, 0])
    for frame in (0, 20, 60):
        x, y, radius = numbers_at(film, film["truth"], 1, frame)
        assert np.allclose([x, y], [np.sin(theta[frame]), -np.cos(theta[frame])], atol=1e-3)
        assert radius == 0.09


def test_part_that_stands_still_is_stored_once():
    film = film_of(pendulum_chapter())
    # The rod's end at the pivot, then its end at the bob.
    assert film["truth"]["columns"][:2] == [0.0, 0.0]
    assert len(film["truth"]["columns"][2]) == len(film["t"])


def test_prediction_that_exploded_is_null_from_there_on():
    film = film_of(pendulum_chapter())
    ended = film["predictions"][1]["columns"][2]
    assert ended[0] is not None
    assert ended[-1] is None


def test_truth_stays_inside_the_view():
    for made in (pendulum_chapter(), mass_spring_chapter(), crank_chapter()):
        film = film_of(made)
        left, bottom, right, top = film["view"]
        for xs, ys in film["truth"]["paths"]:
            assert left <= np.min(xs) <= np.max(xs) <= right
            assert bottom <= np.min(ys) <= np.max(ys) <= top


def test_film_and_curves_are_json_without_what_json_lacks():
    for made in (pendulum_chapter(), crank_chapter()):
        json.dumps([film_of(made), curves_of(made)], allow_nan=False)


def test_chapter_without_a_prediction_has_neither():
    made = chapter("single-pendulum", (failed_entry(),))
    assert film_of(made) is None
    assert curves_of(made) is None


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


def test_plain_form_of_every_part_has_its_kind_and_lies_within_its_corners():
    for mechanism, drawing in DRAWINGS.items():
        q = np.full(len(mechanism.coordinates), 0.3)
        mu = {p.name: p.default for p in mechanism.parameters}
        for shape in (*drawing.parts(q, mu), *drawing.ground(q[None], mu)):
            plain, (low, high) = shape.plain(), shape.corners()
            assert {"kind", "colour"} <= set(plain.look)
            x, y = plain.numbers[:2]
            assert low[0] <= x <= high[0]
            assert low[1] <= y <= high[1]


def test_each_method_has_its_colour_and_its_integrators_are_variants_of_it():
    name = "single-mass-spring"
    entries = [entry(name, integrator=i) for i in ("lf2", "ys4")]
    made = chapter(name, (*entries, entry(name, recipe="best"), entry(name, model="lnn")))
    curves = curves_of(made)
    assert curves is not None
    looks = [(one["place"], one["variant"]) for one in curves["entries"]]
    assert looks == [(0, 0), (0, 1), (1, 0), (2, 0)]
