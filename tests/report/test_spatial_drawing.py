"""Pictures of mechanisms in space: a parallel projection, and what is drawn in it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from spatial_machines import four_bar, heavy_top, spatial_slider_crank

import mbdnode as mbd
from mbdnode.mechanisms.spatial import SpatialMechanism
from mbdnode.mechanisms.spatial.description import (
    GROUND,
    Body,
    Frame,
    Joint,
    Shape,
    SpatialDescription,
)
from mbdnode.report.drawings import find_drawing
from mbdnode.report.pictures import draw_mechanism
from mbdnode.report.shapes import Area, Disc, Link


def hinged(*shapes):
    """A body with these shapes on a hinge about z."""
    body = Body("arm", 1.0, (0.2, 0.0, 0.0), (0.1, 0.1, 0.1, 0.0, 0.0, 0.0), shapes)
    joint = Joint("hinge", "revolute", (GROUND, "arm"))
    made = SpatialDescription("door", (body,), (joint,), gravity=(0.0, 0.0, -9.81))
    return SpatialMechanism(made)


@pytest.mark.parametrize("make", [four_bar, heavy_top, spatial_slider_crank])
def test_bars_are_as_long_as_a_parallel_projection_makes_them(make):
    machine = make()
    state = mbd.consistent_state(machine, {})
    drawing = find_drawing(machine)
    parts = drawing.parts(np.asarray(state.q), {})
    assert any(isinstance(part, Link) for part in parts)
    for part in parts:
        if isinstance(part, Link):
            seen = np.hypot(*np.subtract(part.end, part.start))
            assert seen <= 2.0 + 1e-9  # The longest bar of all three, seen from the side.
    assert len(drawing.ground(np.asarray(state.q)[None], {})) == 18
    figure = draw_mechanism(machine, np.asarray(state.q))
    names = {text.get_text() for axes in figure.axes for text in axes.texts}
    assert names == {body.name for body in machine.description.bodies}


def test_shapes_are_drawn_with_their_sizes():
    sphere = Shape("sphere", Frame((0.4, 0.0, 0.0)), (0.05,))
    rod = Shape("capsule", Frame((0.0, 0.0, 0.2)), (0.02, 0.4))
    crate = Shape("box", Frame(), (0.1, 0.2, 0.3))
    drawing = find_drawing(hinged(sphere, rod, crate))
    parts = drawing.parts(np.array([0.3]), {})
    discs = [part.radius for part in parts if isinstance(part, Disc)]
    assert discs.count(0.05) == 1
    assert discs.count(0.02) == 2
    areas = [np.array(part.points, float) for part in parts if isinstance(part, Area)]
    assert len(areas) == 7  # The side of the rod and the faces of the box.
    # The rod stands upright: its sides are as far apart as it is thick.
    side = areas[0]
    assert np.hypot(*(side[0] - side[3])) == pytest.approx(0.04, abs=1e-12)
    # Opposite faces of a box look alike.
    sizes = lambda face: np.hypot(*(np.roll(face, -1, axis=0) - face).T)  # noqa: E731
    for first, second in zip(areas[1::2], areas[2::2], strict=True):
        np.testing.assert_allclose(sizes(first), sizes(second), atol=1e-12)


def test_parts_and_paths_are_traced_as_they_are_drawn():
    machine = four_bar()
    q = np.asarray(mbd.consistent_state(machine, {}).q)
    drawing = find_drawing(machine)
    numbers = lambda x: jnp.stack([n for part in drawing.parts(x, {}) for n in part.numbers])  # noqa: E731
    plain = [n for part in drawing.parts(q, {}) for n in part.numbers]
    np.testing.assert_allclose(jax.jit(numbers)(jnp.asarray(q)), plain, atol=1e-12)
    paths = drawing.traces(np.zeros(2), np.stack([q, q]), {})
    assert all(path.shape == (2, 2) for path in paths)
