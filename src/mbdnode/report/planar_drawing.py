"""How a mechanism from a file looks: bars, plates, blocks, wheels, springs, dampers and pins.

Everything is drawn from the joints' points, so that any file has a picture without asking, on which
its bodies are named. As in `drawings`, coordinates may be arrays of NumPy or traced by JAX.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from mbdnode.mechanisms.planar import AbstractPlanar
from mbdnode.mechanisms.planar.description import GROUND, Damper, Description, Joint, Spring
from mbdnode.report.drawings import Drawing, Parameters
from mbdnode.report.planar_layout import Layout, layout_of, place
from mbdnode.report.shapes import (
    Area,
    Disc,
    Ground,
    Line,
    Link,
    Point,
    Shape,
    dashpot,
    library_of,
    pin,
    plate,
    spring,
)
from mbdnode.report.style import COLORS, INK, SHADE

# Parts of the mechanism's size.
_PIN, _BLOCK_LENGTH, _BLOCK_HEIGHT, _DEPTH, _COIL = 0.014, 0.11, 0.065, 0.022, 0.05


def planar_drawing(mechanism: AbstractPlanar) -> Drawing:
    """The drawing of a mechanism from a file.

    **Arguments:**

    - `mechanism`: as `read_mechanism` gives it.

    **Returns:**

    A `Drawing`, as `find_drawing` returns it.
    """
    description = mechanism.description
    layout = layout_of(description)
    return Drawing(
        parts=partial(_parts, description, layout),
        ground=partial(_ground, description, layout),
        traces=partial(_traces, description, layout),
        colors=tuple(body_color(description, name) for name in layout.traced),
        poses=3,
    )


def body_color(description: Description, body: str) -> str:
    """Bodies take the colors in turn; the first six can be told apart by anybody."""
    return COLORS[(description.number(body) - 1) % 6] if body != GROUND else INK


def _at(q, description: Description, body: str, point) -> Any:
    return place(q, description, body, np.array([point], float))[..., 0, :]


def _point(values: Any) -> Point:
    return values[0], values[1]


def _corners(points: Any) -> tuple[Point, ...]:
    return tuple(_point(point) for point in points)


def _unit(vector: Any) -> Any:
    xp = library_of(vector)
    return vector / xp.maximum(xp.hypot(vector[0], vector[1]), 1e-9)


def _parts(description: Description, layout: Layout, q: Any, mu: Parameters) -> Sequence[Shape]:
    shapes: list[Shape] = []
    for part in (*description.springs, *description.dampers):
        shapes += _between(description, layout, part, q)
    for joint in description.joints:
        if joint.type == "rolling":
            shapes += _wheel(description, joint, q, mu)
    blocks = set(layout.sliders.values())
    plates = [name for name, outline in layout.outlines.items() if len(outline) > 2]
    for name in sorted(layout.outlines, key=lambda body: body not in plates):
        if name not in layout.wheels:
            shapes += _body(description, layout, name, q, bare=name in blocks)
    for joint in description.joints:
        if joint.type == "prismatic":
            shapes.append(_block(description, layout, joint, q))
    for joint in description.joints:
        shapes += _pin(description, layout, joint, q)
    return shapes


def _body(description: Description, layout: Layout, name: str, q: Any, bare: bool) -> list[Shape]:
    """A bar or a plate; `bare` for a body that its block shows already."""
    color, outline = body_color(description, name), layout.outlines[name]
    corners = _corners(place(q, description, name, outline))
    if len(outline) > 2:
        return [plate(corners, color)]
    if len(outline) == 1:
        return [] if bare else [Disc(corners[0], 0.035 * layout.size, color)]
    shapes: list[Shape] = [Link(*corners, color=color, thickness=4.0)]
    if name in layout.hanging:
        center = _point(_at(q, description, name, (0.0, 0.0)))
        shapes.append(Disc(center, 0.03 * layout.size, color))
    return shapes


def _frame(q, description: Description, joint: Joint) -> tuple[Any, Any]:
    """The direction of a joint's axis in the plane, and its normal."""
    number = description.number(joint.bodies[0])
    angle = joint.direction + (q[3 * (number - 1) + 2] if number else 0.0)
    xp = library_of(angle)  # NumPy for an axis of the ground, which is known.
    c, s = xp.cos(angle), xp.sin(angle)
    return xp.stack([c, s]), xp.stack([-s, c])


def _block(description: Description, layout: Layout, joint: Joint, q: Any) -> Area:
    name = layout.sliders[joint.name]
    along, across = _frame(q, description, joint)
    center = _at(q, description, name, joint.points[joint.bodies.index(name)])
    half, high = _BLOCK_LENGTH * layout.size / 2, _BLOCK_HEIGHT * layout.size / 2
    corners = [
        center + a * half * along + b * high * across
        for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))
    ]
    return plate(_corners(corners), body_color(description, name), opacity=0.75)


def _wheel(description: Description, joint: Joint, q: Any, mu: Parameters) -> list[Shape]:
    name, radius = joint.bodies[1], mu[f"{joint.name}_radius"]
    color, hub = body_color(description, name), np.array(joint.points[1])
    center = _point(_at(q, description, name, hub))
    shapes: list[Shape] = [Disc(center, radius, color), Disc(center, 0.86 * radius, SHADE)]
    for angle in np.arange(3) * 2 * np.pi / 3:
        spoke = np.array([np.cos(angle), np.sin(angle)])
        outward = _at(q, description, name, hub + spoke) - _at(q, description, name, hub)
        rim = _at(q, description, name, hub) + 0.86 * radius * outward
        shapes.append(Link(center, _point(rim), color=color, thickness=2.0))
    return [*shapes, Disc(center, 0.16 * radius, color)]


def _pin(description: Description, layout: Layout, joint: Joint, q: Any) -> list[Shape]:
    first, second = (
        _at(q, description, body, point)
        for body, point in zip(joint.bodies, joint.points, strict=True)
    )
    radius, held = _PIN * layout.size, GROUND in joint.bodies
    if joint.type == "revolute":
        return [pin(_point(first), radius, fixed=held)]
    if joint.type == "fixed":
        corner = 0.8 * radius * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
        return [Area(_corners([first + c for c in corner]), INK, INK)]
    if joint.type == "distance":
        ends = _point(first), _point(second)
        held_at = zip(ends, joint.bodies, strict=True)
        pins = [pin(point, 0.8 * radius, fixed=body == GROUND) for point, body in held_at]
        return [Link(*ends, color=INK, thickness=1.6), *pins]
    return []


def _between(
    description: Description, layout: Layout, part: Spring | Damper, q: Any
) -> list[Shape]:
    """A coil or a dashpot between two points, beside whatever else is between them."""
    if part.points is None:
        return _spiral(description, layout, part, q) if isinstance(part, Spring) else []
    start, end = (
        _at(q, description, body, point)
        for body, point in zip(part.bodies, part.points, strict=True)
    )
    width = _COIL * layout.size
    span = end - start
    normal = _unit(library_of(span).stack([-span[1], span[0]]))
    shared = [
        other
        for other in (*description.springs, *description.dampers)
        if (other.bodies, other.points) == (part.bodies, part.points)
    ]
    beside = (shared.index(part) - (len(shared) - 1) / 2) * 0.9 * width
    start, end = start + beside * normal, end + beside * normal
    if isinstance(part, Spring):
        return [spring(_point(start), _point(end), 0.75 * width)]
    return [dashpot(_point(start), _point(end), 0.64 * width)]


def _spiral(description: Description, layout: Layout, part: Spring, q: Any) -> list[Shape]:
    """Around the pin between the two bodies, where there is one."""
    for joint in description.joints:
        if joint.type == "revolute" and set(joint.bodies) == set(part.bodies):
            center = _at(q, description, joint.bodies[0], joint.points[0])
            angle = np.linspace(0.0, 5 * np.pi, 60)
            radius = layout.size * (_PIN + 0.03 * angle / angle[-1])
            around = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
            points = center[None] + around
            return [Line(_corners(points))]
    return []


def _ground(description: Description, layout: Layout, q: Any, mu: Parameters) -> Sequence[Shape]:
    shapes: list[Shape] = []
    for joint in description.joints:
        if GROUND not in joint.bodies:
            continue
        if joint.type in ("prismatic", "rolling"):
            shapes.append(_rail(description, layout, joint, q, mu))
        else:
            shapes += _pedestal(description, layout, joint, q)
    for part in (*description.springs, *description.dampers):
        if GROUND in part.bodies and part.points is not None:
            shapes.append(_wall(description, layout, part, q))
    return shapes


def _rail(description: Description, layout: Layout, joint: Joint, q: Any, mu: Parameters) -> Ground:
    """As long as the motion, with some room at both ends."""
    other = joint.bodies[1] if joint.bodies[0] == GROUND else joint.bodies[0]
    point = joint.points[joint.bodies.index(other)]
    path = _at(q, description, other, point)
    along, across = _frame(q[0], description, joint)
    if joint.type == "rolling":
        room, below = 1.5 * mu[f"{joint.name}_radius"], 0.0
        origin = np.array(joint.points[0])
    else:
        room, below = 0.9 * _BLOCK_LENGTH * layout.size, _BLOCK_HEIGHT * layout.size / 2
        origin = path[0]
        # A rail lies below its block.
        above = (across[1] < 0) | ((across[1] == 0) & (across[0] > 0))
        side = library_of(above).where(above, -1.0, 1.0)
        along, across = side * along, side * across
    base = origin - below * across
    reach = (path - base[None]) @ along
    start, end = base + (reach.min() - room) * along, base + (reach.max() + room) * along
    return Ground(_point(start), _point(end), _DEPTH * layout.size)


def _pedestal(description: Description, layout: Layout, joint: Joint, q: Any) -> list[Shape]:
    """A stand under a pivot, or over it where its body hangs down."""
    other = joint.bodies[1] if joint.bodies[0] == GROUND else joint.bodies[0]
    pivot = np.array(joint.points[joint.bodies.index(GROUND)])
    mark = _at(q, description, other, layout.marks[other])[..., 1].mean()
    up = library_of(q).where(mark < pivot[1] - 0.05 * layout.size, 1.0, -1.0)
    half = 0.035 * layout.size
    (x, y), top = pivot, pivot[1] + up * 0.05 * layout.size
    # Hatched on the side away from the pivot.
    start, end = (x + up * 1.6 * half, top), (x - up * 1.6 * half, top)
    return [
        Line(((x - half, top), (x, y), (x + half, top)), color=INK, thickness=1.2),
        Ground(start, end, _DEPTH * layout.size),
        pin((x, y), _PIN * layout.size, fixed=True),
    ]


def _wall(description: Description, layout: Layout, part: Spring | Damper, q: Any) -> Ground:
    """A piece of wall across the end of a spring or damper."""
    assert part.points is not None
    held = part.bodies.index(GROUND)
    foot = np.array(part.points[held])
    away = _at(q[0], description, part.bodies[1 - held], part.points[1 - held]) - foot
    xp = library_of(away)
    away = xp.where(xp.any(away != 0), _unit(away), np.array([0.0, 1.0]))
    half = _COIL * layout.size * xp.stack([away[1], -away[0]])
    return Ground(_point(foot - half), _point(foot + half), _DEPTH * layout.size)


def _traces(description: Description, layout: Layout, t: Any, q: Any, mu: Parameters) -> list[Any]:
    return [_at(q, description, name, layout.marks[name]) for name in layout.traced]
