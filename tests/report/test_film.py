"""The films as plain data: what the browser gets is what the mechanism did."""

import json

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from predictions import diverging, drifting, truth_of

from mbdnode.mechanisms import SingleMassSpring, SinglePendulum, SliderCrank
from mbdnode.report.drawings import DRAWINGS
from mbdnode.report.html import make_film

MECHANISMS = {
    "single-mass-spring": SingleMassSpring(),
    "single-pendulum": SinglePendulum(),
    "slider-crank": SliderCrank(),
}


def film_of(name):
    truth = truth_of(name)
    predictions = {"near": drifting(truth, 0.01), "wild": diverging(truth)}
    return make_film(MECHANISMS[name], {}, truth, predictions)


def numbers_at(film, motion, look, frame):
    """The numbers of the part of that place in the list of looks."""
    start = sum(part["count"] for part in film["looks"][:look])
    columns = motion["columns"][start : start + film["looks"][look]["count"]]
    return [column[frame] if isinstance(column, list) else column for column in columns]


def test_bob_of_the_film_is_where_the_pendulum_is():
    film = film_of("single-pendulum")
    theta = np.asarray(truth_of("single-pendulum").q[:, 0])
    for frame in (0, 20, 60):
        x, y, radius = numbers_at(film, film["truth"], 1, frame)
        assert np.allclose([x, y], [np.sin(theta[frame]), -np.cos(theta[frame])], atol=1e-3)
        assert radius == 0.09


def test_part_that_stands_still_is_stored_once():
    film = film_of("single-pendulum")
    # The rod's end at the pivot, then its end at the bob.
    assert film["truth"]["columns"][:2] == [0.0, 0.0]
    assert len(film["truth"]["columns"][2]) == len(film["t"])


def test_prediction_that_exploded_is_null_from_there_on():
    film = film_of("single-pendulum")
    ended = film["predictions"][1]["columns"][2]
    assert ended[0] is not None
    assert ended[-1] is None


def test_truth_stays_inside_the_view():
    for name in MECHANISMS:
        film = film_of(name)
        left, bottom, right, top = film["view"]
        for xs, ys in film["truth"]["paths"]:
            assert left <= np.min(xs) <= np.max(xs) <= right
            assert bottom <= np.min(ys) <= np.max(ys) <= top


def test_prediction_beside_the_truth_is_in_view_up_to_half_of_its_size():
    """The truth swings a little, the prediction turns over."""
    system, truth = MECHANISMS["single-pendulum"], truth_of("single-pendulum")
    angle = np.linspace(0, 1, len(truth.t))[:, None]
    motion = lambda q: eqx.tree_at(lambda run: run.q, truth, jnp.asarray(q))  # noqa: E731
    small, over = motion(0.1 * np.sin(6 * angle)), motion(3.0 * angle)
    view = lambda prediction: np.array(  # noqa: E731
        make_film(system, {}, small, {"model": prediction})["view"]
    )
    size = np.max(view(small)[2:] - view(small)[:2])
    grown = view(over) - view(small)
    assert grown[3] > 0.4 * size  # Upwards, where the other's bob goes.
    assert np.max(np.abs(grown)) < 0.6 * size


def test_film_is_json_without_what_json_lacks():
    for name in MECHANISMS:
        json.dumps(film_of(name), allow_nan=False)


def test_motion_without_a_prediction_has_no_film():
    name = "single-pendulum"
    assert make_film(MECHANISMS[name], {}, truth_of(name), {}) is None


def test_plain_form_of_every_part_has_its_kind_and_lies_within_its_corners():
    for mechanism, drawing in DRAWINGS.items():
        q = np.full(len(mechanism.coordinates), 0.3)
        mu = {p.name: p.default for p in mechanism.parameters}
        for shape in (*drawing.parts(q, mu), *drawing.ground(q[None], mu)):
            look, (low, high) = shape.look, shape.corners()
            assert {"kind", "color"} <= set(look)
            assert look["count"] == len(shape.numbers)
            x, y = shape.numbers[:2]
            assert low[0] <= x <= high[0]
            assert low[1] <= y <= high[1]
