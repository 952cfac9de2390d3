"""How each mechanism looks in a given configuration, and what its moving points trace.

A new mechanism gets a picture by one entry in `DRAWINGS`; without one, its figure has none.

Coordinates and parameters are arrays of NumPy or of JAX, and so are the numbers of the shapes: the
playground traces these functions, and the browser then draws by the same lines.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mbdnode.mechanisms import (
    CartPole,
    DoublePendulum,
    SingleMassSpring,
    SingleMassSpringDamper,
    SinglePendulum,
    SliderCrank,
    SliderCrankFriction,
    TripleMassSpringDamper,
)
from mbdnode.mechanisms.planar import AbstractPlanar
from mbdnode.mechanisms.spatial import SpatialMechanism
from mbdnode.mechanisms.vehicle import Vehicle
from mbdnode.multibody import AbstractSystem
from mbdnode.report.shapes import (
    Area,
    Disc,
    Ground,
    Line,
    Link,
    Shape,
    Word,
    block,
    box,
    dashpot,
    library_of,
    pin,
    plate,
    spring,
)
from mbdnode.report.style import COLORS, INK

BLUE, ORANGE, GREEN = COLORS[:3]
# Numbers by name, plain or traced.
Parameters = Mapping[str, Any]


@dataclass(frozen=True)
class Drawing:
    """A way to draw one mechanism.

    **Arguments:**

    - `parts`: what moves, from the coordinates `q` and the parameters.
    - `ground`: what does not, from the coordinates `(n, nq)` of the whole motion.
    - `traces`: the paths `(n, 2)` of the moving points, from `t` and `(n, nq)`.
    - `colors`: one for each path.
    - `poses`: how many earlier poses to show as ghosts.
    - `paper`: the top and the length of the paper on which the paths are a record over time, which
        runs downwards; None where they are places.
    - `labels`: the names of parts, where they stand and in which color, from the coordinates.
    """

    parts: Callable[[Any, Parameters], Sequence[Shape]]
    ground: Callable[[Any, Parameters], Sequence[Shape]]
    traces: Callable[[Any, Any, Parameters], Sequence[Any]]
    colors: tuple[str, ...]
    poses: int = 0
    paper: tuple[float, float] | None = None
    labels: Callable[[Any], Sequence[tuple[str, Any, str]]] = lambda q: ()


def find_drawing(mechanism: AbstractSystem) -> Drawing | None:
    """The drawing of a mechanism, or None if nobody has made one."""
    if isinstance(mechanism, AbstractPlanar):
        from mbdnode.report.planar_drawing import planar_drawing  # which uses this module

        return planar_drawing(mechanism)
    if isinstance(mechanism, SpatialMechanism):
        from mbdnode.report.spatial_drawing import spatial_drawing

        return spatial_drawing(mechanism)
    return DRAWINGS.get(type(mechanism))


def _down(angle, length):
    """From a pivot along a rod that hangs at an angle from the downward vertical."""
    xp = library_of(angle)
    return xp.stack([length * xp.sin(angle), -length * xp.cos(angle)], axis=-1)


def _ceiling(size: Any) -> list[Shape]:
    return [
        Ground((0.28 * size, 0.0), (-0.28 * size, 0.0), 0.07 * size),
        pin((0.0, 0.0), 0.035 * size, fixed=True),
    ]


def _single_pendulum(q: Any, mu: Parameters) -> list[Shape]:
    bob = _down(q[0], mu["L"])
    return [Link((0.0, 0.0), bob), Disc(bob, 0.09 * mu["L"], BLUE)]


def _double_pendulum(q: Any, mu: Parameters) -> list[Shape]:
    size = mu["l1"] + mu["l2"]
    first = _down(q[0], mu["l1"])
    second = first + _down(q[1], mu["l2"])
    return [
        Link((0.0, 0.0), first),
        Link(first, second),
        Disc(first, 0.05 * size, BLUE),
        Disc(second, 0.05 * size, ORANGE),
    ]


def _double_pendulum_traces(t: Any, q: Any, mu: Parameters) -> list[Any]:
    upper = _down(q[:, 0], mu["l1"])
    return [upper, upper + _down(q[:, 1], mu["l2"])]


def _cart_pole(q: Any, mu: Parameters) -> list[Shape]:
    xp = library_of(q)
    size, x = mu["l"], q[1]
    tip = (x + size * xp.sin(q[0]), size * xp.cos(q[0]))
    wheel = 0.11 * size
    return [
        Disc((x - 0.24 * size, -0.28 * size), wheel, GREEN),
        Disc((x + 0.24 * size, -0.28 * size), wheel, GREEN),
        block((x, -0.1 * size), 0.86 * size, 0.32 * size, GREEN),
        Link((x, 0.0), tip),
        pin((x, 0.0), 0.05 * size),
        Disc(tip, 0.1 * size, ORANGE),
    ]


def _cart_pole_ground(q: Any, mu: Parameters) -> list[Shape]:
    size = mu["l"]
    left, right = q[:, 1].min(), q[:, 1].max()
    floor = -0.39 * size
    return [Ground((left - 0.9 * size, floor), (right + 0.9 * size, floor), 0.1 * size)]


def _cart_pole_traces(t: Any, q: Any, mu: Parameters) -> list[Any]:
    xp = library_of(q)
    tip = xp.stack([xp.sin(q[:, 0]), xp.cos(q[:, 0])], axis=-1)
    return [xp.stack([q[:, 1], np.zeros(len(q))], axis=-1) + mu["l"] * tip]


def _slider_crank(q: Any, mu: Parameters) -> list[Shape]:
    xp = library_of(q)
    size = mu["l"]
    elbow, slider = (size * xp.cos(q[2]), size * xp.sin(q[2])), (q[6], q[7])
    return [
        block(slider, 0.62 * size, 0.4 * size, GREEN),
        Link((0.0, 0.0), elbow, color=BLUE, thickness=4.0),
        Link(elbow, slider, color=ORANGE, thickness=3.0),
        pin(elbow, 0.07 * size),
        pin(slider, 0.07 * size),
    ]


def _slider_crank_ground(q: Any, mu: Parameters) -> list[Shape]:
    size, floor = mu["l"], -0.2 * mu["l"]
    left, right = mu["r"] - mu["l"], mu["r"] + mu["l"]
    return [
        Ground((left - 0.45 * size, floor), (right + 0.45 * size, floor), 0.12 * size),
        pin((0.0, 0.0), 0.09 * size, fixed=True),
    ]


def _slider_crank_traces(t: Any, q: Any, mu: Parameters) -> list[Any]:
    xp = library_of(q)
    elbow = mu["l"] * xp.stack([xp.cos(q[:, 2]), xp.sin(q[:, 2])], axis=-1)
    return [elbow, q[:, 3:5]]


def _vehicle(q: Any, mu: Parameters) -> list[Shape]:
    """From above."""
    xp = library_of(q)

    def axes(angle):
        along = xp.stack([xp.cos(angle), xp.sin(angle)])
        return along, xp.stack([-along[1], along[0]])

    size, radius, (along, across) = mu["l"], mu["R"], axes(q[2])
    body = box(q[:2] + 0.5 * size * along, 0.8 * size * along, 0.36 * size * across)
    shapes: list[Shape] = [plate(body, BLUE)]
    for axle, angle in ((q[:2], q[2]), (q[:2] + size * along, q[2] + q[3])):
        forward, sideways = axes(angle)
        for side in (-0.28, 0.28):
            at = axle + side * size * across
            shapes.append(Area(box(at, radius * forward, 0.3 * radius * sideways), INK, INK))
    return shapes


def _vehicle_traces(t: Any, q: Any, mu: Parameters) -> list[Any]:
    xp = library_of(q)
    ahead = mu["l"] * xp.stack([xp.cos(q[:, 2]), xp.sin(q[:, 2])], axis=-1)
    return [q[:, :2], q[:, :2] + ahead]


# Where the paper of a chart recorder begins.
_TOP = -0.45


def _time_arrow(top: float, length: float) -> list[Shape]:
    """The axis of a chart recorder: time runs downwards."""
    end, tip = top - length, 0.03 * length
    return [
        Line(((0.0, top), (0.0, end)), thickness=0.9),
        Line(((-0.5 * tip, end + tip), (0.0, end), (0.5 * tip, end + tip)), thickness=0.9),
        Word((0.0, end - tip), "time"),
    ]


def _mass_row(masses: tuple[str, ...], relaxed: float, track: float, damped: bool) -> Drawing:
    """Masses in a row from a wall on the left; their tracks run downwards with time.

    Springs have no length in the equations: `relaxed` is the one that they get in the drawing.
    `track` is how far down the tracks run, as on the paper of a chart recorder.
    """

    def layout(mu: Parameters) -> tuple[Any, Any]:
        xp = library_of(mu[masses[0]])
        weights = xp.stack([mu[name] for name in masses])
        widths = 1.3 * (weights / weights.max()) ** 0.15
        return xp.cumsum(widths + relaxed) - widths / 2, widths

    def parts(q: Any, mu: Parameters) -> list[Shape]:
        centers, widths = layout(mu)
        low = widths.min()
        shapes: list[Shape] = []
        left = 0.0
        for place, width, color in zip(centers + q, widths, COLORS, strict=False):
            right = place - width / 2
            level = 0.7 * low if damped else 0.5 * low
            shapes.append(spring((left, level), (right, level), 0.36 * low))
            if damped:
                shapes.append(dashpot((left, 0.25 * low), (right, 0.25 * low), 0.3 * low))
            shapes.append(block((place, width / 2), width, width, color))
            left = place + width / 2
        return shapes

    def ground(q: Any, mu: Parameters) -> list[Shape]:
        centers, widths = layout(mu)
        farthest = library_of(q).maximum(q[:, -1].max(), 0.0)
        far = centers[-1] + widths[-1] / 2 + farthest + 0.2
        return [
            Ground((0.0, 0.0), (far, 0.0), 0.2),
            Ground((0.0, 1.6), (0.0, 0.0), 0.2),
            *_time_arrow(_TOP, track),
        ]

    def traces(t: Any, q: Any, mu: Parameters) -> list[Any]:
        centers, _ = layout(mu)
        down = _TOP - track * (t - t[0]) / (t[-1] - t[0])
        return [library_of(q).stack([x, down], axis=-1) for x in (centers[None] + q).T]

    return Drawing(parts, ground, traces, COLORS[: len(masses)], paper=(_TOP, track))


DRAWINGS: dict[type[AbstractSystem], Drawing] = {
    SingleMassSpring: _mass_row(("m",), 2.4, 3.4, damped=False),
    SingleMassSpringDamper: _mass_row(("m",), 2.4, 3.4, damped=True),
    TripleMassSpringDamper: _mass_row(("m1", "m2", "m3"), 1.8, 5.2, damped=True),
    SinglePendulum: Drawing(
        _single_pendulum,
        lambda q, mu: _ceiling(mu["L"]),
        lambda t, q, mu: [_down(q[:, 0], mu["L"])],
        (BLUE,),
        poses=6,
    ),
    DoublePendulum: Drawing(
        _double_pendulum,
        lambda q, mu: _ceiling(mu["l1"] + mu["l2"]),
        _double_pendulum_traces,
        (BLUE, ORANGE),
        poses=5,
    ),
    Vehicle: Drawing(_vehicle, lambda q, mu: [], _vehicle_traces, (BLUE, ORANGE), poses=5),
    CartPole: Drawing(_cart_pole, _cart_pole_ground, _cart_pole_traces, (ORANGE,), poses=5),
    **dict.fromkeys(
        (SliderCrank, SliderCrankFriction),
        Drawing(_slider_crank, _slider_crank_ground, _slider_crank_traces, (BLUE, ORANGE), poses=3),
    ),
}
