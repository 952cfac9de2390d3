"""The drawing of any file: every part is where the mechanism is."""

from pathlib import Path

import numpy as np
import pytest
from mechanism_texts import EVERYTHING

from mbdnode.mechanisms import from_text, read_mechanism
from mbdnode.multibody import resolve_parameters
from mbdnode.report import save_figure
from mbdnode.report.drawings import find_drawing
from mbdnode.report.pictures import draw_mechanism
from mbdnode.report.shapes import Area, Disc, Ground, Link
from mbdnode.report.style import INK

EXAMPLES = Path(__file__).parents[3] / "examples" / "mechanisms"


def values(mechanism):
    return {name: float(value) for name, value in resolve_parameters(mechanism).items()}


def reference(mechanism):
    return np.array([mechanism.reference[name] for name in mechanism.coordinate_names])


def of_kind(shapes, kind):
    return [shape for shape in shapes if isinstance(shape, kind)]


def rods_of(shapes):
    return [link for link in of_kind(shapes, Link) if link.held]


def pins_of(shapes):
    return [disc for disc in of_kind(shapes, Disc) if disc.edge == INK]


def test_a_four_bar_is_three_bars_between_four_pins():
    mechanism = read_mechanism(EXAMPLES / "four_bar.toml")
    drawing, mu = find_drawing(mechanism), values(mechanism)
    # Crank and rocker upright, the coupler level between them.
    q = np.array([0, 0.2, np.pi / 2, 0.45, 0.4, 0.0, 1.0, 0.4, np.pi / 2])
    parts = drawing.parts(q, mu)
    ends = [sorted([tuple(rod.start), tuple(rod.end)]) for rod in rods_of(parts)]
    np.testing.assert_allclose(ends[0], [[0, 0], [0, 0.4]], atol=1e-12)
    np.testing.assert_allclose(ends[1], [[0, 0.4], [0.9, 0.4]], atol=1e-12)
    np.testing.assert_allclose(ends[2], [[1, 0], [1, 0.8]], atol=1e-12)
    assert [pin.color == INK for pin in pins_of(parts)] == [True, False, False, True]
    ground = drawing.ground(q[None], mu)
    assert {tuple(pin.at) for pin in pins_of(ground)} == {(0.0, 0.0), (1.0, 0.0)}
    assert len(of_kind(ground, Ground)) == 2
    (trace,) = drawing.traces(np.zeros(1), q[None], mu)
    np.testing.assert_allclose(trace, [[0.45, 0.4]])


def test_plates_blocks_wheels_and_springs_are_drawn():
    mechanism = from_text(EVERYTHING)
    drawing, mu, q = find_drawing(mechanism), values(mechanism), reference(mechanism)
    parts = drawing.parts(q, mu)
    wheel = max(of_kind(parts, Disc), key=lambda bob: bob.radius)
    assert wheel.radius == 0.2
    hub = q[6:8] + 0.05 * np.array([-np.sin(0.4), np.cos(0.4)])
    np.testing.assert_allclose(wheel.at, hub, atol=1e-12)
    assert len(of_kind(parts, Area)) >= 2  # the cart, and its block
    (coil,) = [x for x in of_kind(parts, Link) if not x.held and len(x.pattern) == 1]
    np.testing.assert_allclose((coil.start, coil.end), [[3, 1], q[6:8]], atol=1e-12)
    rods = [sorted([tuple(rod.start), tuple(rod.end)]) for rod in rods_of(parts)]
    link = q[[[0, 1], [3, 4]]] + np.array([[0.2, 0.0], [-0.3, 0.0]])
    assert min(np.max(np.abs(np.subtract(rod, link))) for rod in rods) < 1e-12


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_parts_are_the_same_in_every_pose(path):
    mechanism = read_mechanism(path)
    drawing, mu = find_drawing(mechanism), values(mechanism)
    random = np.random.default_rng(0)
    looks = [
        [p.look for p in drawing.parts(q, mu)]
        for q in random.normal(size=(3, len(mechanism.coordinates)))
    ]
    assert looks[0] == looks[1] == looks[2]
    assert len(drawing.traces(np.zeros(1), reference(mechanism)[None], mu)) == len(drawing.colors)


def test_a_picture_names_the_bodies_and_is_the_same_twice(tmp_path):
    mechanism = read_mechanism(EXAMPLES / "slider_crank.toml")
    for name in ("a.svg", "b.svg", "a.png"):
        figure = draw_mechanism(mechanism, reference(mechanism))
        save_figure(figure, tmp_path / name)
    texts = {text.get_text() for text in figure.axes[0].texts}
    assert texts == {"crank", "rod", "slider"}
    assert (tmp_path / "a.svg").read_text().startswith("<?xml")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_a_body_without_joints_is_a_disc():
    mechanism = from_text("[bodies.a]\ncenter = [1.0, 2.0]\n")
    (disc,) = find_drawing(mechanism).parts(np.array([1.0, 2.0, 0.3]), {})
    assert isinstance(disc, Disc)
    assert tuple(disc.at) == (1.0, 2.0)
