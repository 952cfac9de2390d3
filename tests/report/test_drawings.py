from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbdnode.mechanisms import (
    CartPole,
    DoublePendulum,
    FourBar,
    SingleMassSpring,
    SinglePendulum,
    SliderCrank,
    read_mechanism,
)
from mbdnode.report.drawings import DRAWINGS, find_drawing
from mbdnode.report.shapes import Area, Disc, Link
from mbdnode.report.style import INK
from mbdnode.reproduction.cases import CASES


def values(mechanism, **changes):
    return {p.name: changes.get(p.name, p.default) for p in mechanism.parameters}


def shapes(mechanism, q, kind, **changes):
    parts = find_drawing(mechanism).parts(np.asarray(q, float), values(mechanism, **changes))
    return [part for part in parts if isinstance(part, kind)]


def rods(mechanism, q, **changes):
    return [link for link in shapes(mechanism, q, Link, **changes) if link.held]


def center(area):
    return np.mean(area.points, axis=0)


def test_every_case_has_a_drawing():
    assert all(find_drawing(case.mechanism) is not None for case in CASES.values())


def test_mechanism_without_a_drawing_is_told_apart():
    assert find_drawing(FourBar()) is None


def test_pendulum_hangs_straight_down_at_rest_and_right_for_positive_angles():
    (bob,) = shapes(SinglePendulum(), [0.0], Disc, L=2.0)
    np.testing.assert_allclose(bob.at, (0.0, -2.0), atol=1e-15)
    (bob,) = shapes(SinglePendulum(), [np.pi / 2], Disc, L=2.0)
    np.testing.assert_allclose(bob.at, (2.0, 0.0), atol=1e-15)


def test_second_bob_hangs_from_the_first():
    first, second = shapes(DoublePendulum(), [np.pi / 2, 0.0], Disc, l1=1.5, l2=0.5)
    np.testing.assert_allclose(first.at, (1.5, 0.0), atol=1e-15)
    np.testing.assert_allclose(second.at, (1.5, -0.5), atol=1e-15)


def test_pole_stands_upright_on_its_cart_at_angle_zero():
    (cart,) = shapes(CartPole(), [0.0, 3.0], Area)
    (pole,) = rods(CartPole(), [0.0, 3.0])
    assert center(cart)[0] == pytest.approx(3.0)
    np.testing.assert_allclose(pole.end, (3.0, 0.5), atol=1e-15)


def test_rod_of_the_slider_crank_has_its_length():
    theta = 0.7
    tilt = -np.arcsin(np.sin(theta) / 2)
    q = np.zeros(9)
    q[2], q[5], q[6] = theta, tilt, 2 * np.cos(theta) + 4 * np.cos(tilt)
    crank, rod = rods(SliderCrank(), q)
    assert np.hypot(*np.subtract(crank.end, crank.start)) == pytest.approx(2.0)
    assert np.hypot(*np.subtract(rod.end, rod.start)) == pytest.approx(4.0)
    pin, slider = (disc for disc in shapes(SliderCrank(), q, Disc) if disc.edge == INK)
    assert (tuple(pin.at), tuple(slider.at)) == (tuple(crank.end), tuple(rod.end))


def test_mass_moves_by_its_displacement_and_its_track_runs_downwards():
    at = [center(shapes(SingleMassSpring(), [x], Area)[0])[0] for x in (0.0, 0.4)]
    assert at[1] - at[0] == pytest.approx(0.4)
    t, q = np.array([0.0, 1.0, 2.0]), np.array([[0.0], [0.4], [-0.2]])
    (track,) = find_drawing(SingleMassSpring()).traces(t, q, values(SingleMassSpring()))
    np.testing.assert_allclose(track[:, 0] - at[0], q[:, 0], atol=1e-15)
    np.testing.assert_allclose(np.diff(track[:, 1], 2), 0.0, atol=1e-15)
    assert np.all(np.diff(track[:, 1]) < 0)


# Tracks of masses on springs run on paper below them, and a vehicle has no rods.
@pytest.mark.parametrize(
    "name", [name for name in CASES if not name.endswith(("spring", "damper", "vehicle"))]
)
def test_trace_ends_at_the_end_of_a_drawn_rod(name):
    mechanism = CASES[name].mechanism
    drawing, mu = find_drawing(mechanism), values(mechanism)
    q = np.random.default_rng(0).uniform(-1, 1, (2, len(mechanism.coordinates)))
    first, *_ = drawing.traces(np.arange(2.0), q, mu)
    ends = [part.end for part in drawing.parts(q[-1], mu) if isinstance(part, Link)]
    assert min(np.hypot(*np.subtract(first[-1], end)) for end in ends) < 1e-12


@pytest.mark.parametrize("name", CASES)
def test_every_trace_has_its_color(name):
    mechanism = CASES[name].mechanism
    drawing = find_drawing(mechanism)
    q = np.zeros((2, len(mechanism.coordinates)))
    traces = drawing.traces(np.arange(2.0), q, values(mechanism))
    assert len(traces) == len(drawing.colors)
    assert all(trace.shape == (2, 2) for trace in traces)


EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "mechanisms").glob("*.toml"))


@pytest.mark.parametrize(
    "mechanism",
    [*(kind() for kind in DRAWINGS), *map(read_mechanism, EXAMPLES)],
    ids=[*(kind.__name__ for kind in DRAWINGS), *(path.stem for path in EXAMPLES)],
)
def test_traced_drawing_has_the_numbers_of_the_plain_one(mechanism):
    drawing = find_drawing(mechanism)
    q = np.random.default_rng(1).normal(size=(3, len(mechanism.coordinates)))

    def numbers(q, mu):
        shapes = (*drawing.parts(q[0], mu), *drawing.ground(q, mu))
        paths = drawing.traces(np.arange(3.0), q, mu)
        plain = [number for shape in shapes for number in shape.numbers]
        return [*plain, *(number for path in paths for number in path.reshape(-1))]

    mu = values(mechanism)
    traced = jax.jit(numbers)(jnp.asarray(q), {k: jnp.asarray(v) for k, v in mu.items()})
    # Sums of a few products of numbers below ten.
    np.testing.assert_allclose(np.stack(traced), np.stack(numbers(q, mu)), atol=1e-13)
