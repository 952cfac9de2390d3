"""How a mechanism from a file looks: bars, plates, blocks, wheels, springs, dampers and pins.

Everything is drawn from the joints' points, so that any file has a picture without asking, on which
its bodies are named. As in `drawings`, coordinates may be arrays of NumPy or traced by JAX.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mbdnode.mechanisms.planar import AbstractPlanar
from mbdnode.mechanisms.planar.description import GROUND, Damper, Joint, Spring
from mbdnode.report.drawings import Drawing, Parameters
from mbdnode.report.planar_layout import Layout
from mbdnode.report.shapes import (
    Area,
    Disc,
    Ground,
    Line,
    Link,
    Shape,
    box,
    dashpot,
    library_of,
    pin,
    plate,
    spring,
)
from mbdnode.report.style import INK, SHADE

# Parts of the mechanism's size.
_PIN, _BLOCK_LENGTH, _BLOCK_HEIGHT, _DEPTH, _COIL = 0.014, 0.11, 0.065, 0.022, 0.05


def planar_drawing(mechanism: AbstractPlanar) -> Drawing:
    """The drawing of a mechanism from a file, as `find_drawing` returns it."""
    made = _PlanarDrawing(Layout(mechanism.description))
    colors = tuple(made.layout.color(name) for name in made.layout.traced)
    return Drawing(made.parts, made.ground, made.traces, colors, poses=3, labels=made.labels)


def _unit(vector: Any) -> Any:
    xp = library_of(vector)
    return vector / xp.maximum(xp.hypot(vector[0], vector[1]), 1e-9)


@dataclass(frozen=True)
class _PlanarDrawing:
    layout: Layout

    def parts(self, q: Any, mu: Parameters) -> list[Shape]:
        """What moves; plates lie below bars."""
        joints, outlines = self.layout.description.joints, self.layout.outlines
        wheels = {joint.bodies[1] for joint in joints if joint.type == "rolling"}
        shapes: list[Shape] = []
        for part in self.layout.connections:
            shapes += self._between(part, q)
        for joint in joints:
            if joint.type == "rolling":
                shapes += self._wheel(joint, q, mu)
        for name in sorted(outlines, key=lambda name: len(outlines[name]) <= 2):
            if name not in wheels:
                shapes += self._body(name, q)
        shapes += [self._block(joint, q) for joint in joints if joint.type == "prismatic"]
        for joint in joints:
            shapes += self._pin(joint, q)
        return shapes

    def ground(self, q: Any, mu: Parameters) -> list[Shape]:
        """Rails, pedestals and walls."""
        shapes: list[Shape] = []
        for joint in self.layout.description.joints:
            if GROUND in joint.bodies and joint.type in ("prismatic", "rolling"):
                shapes.append(self._rail(joint, q, mu))
            elif GROUND in joint.bodies:
                shapes += self._pedestal(joint, q)
        for part in self.layout.connections:
            if GROUND in part.bodies and part.points is not None:
                shapes.append(self._wall(part, q))
        return shapes

    def labels(self, q: Any) -> list[tuple[str, Any, str]]:
        """The names of the bodies, where their outlines are, and their colors."""
        outlines = self.layout.outlines.items()
        middle = lambda name, outline: np.mean(self.layout.place(q, name, outline), axis=0)  # noqa: E731
        return [(name, middle(name, points), self.layout.color(name)) for name, points in outlines]

    def traces(self, t: Any, q: Any, mu: Parameters) -> list[Any]:
        """Where the bodies farthest from the ground have been."""
        return [self.layout.at(q, name, self.layout.marks[name]) for name in self.layout.traced]

    def _ends(self, part: Joint | Spring | Damper, q: Any) -> list[Any]:
        """Its points on both bodies."""
        assert part.points is not None
        pairs = zip(part.bodies, part.points, strict=True)
        return [self.layout.at(q, body, point) for body, point in pairs]

    def _body(self, name: str, q: Any) -> list[Shape]:
        """A bar or a plate; nothing for a body that its block shows already."""
        color, size = self.layout.color(name), self.layout.size
        corners = self.layout.place(q, name, self.layout.outlines[name])
        if len(corners) > 2:
            return [plate(corners, color)]
        if len(corners) == 1:
            joints = self.layout.description.joints
            blocks = [self.layout.slider(joint) for joint in joints if joint.type == "prismatic"]
            return [] if name in blocks else [Disc(corners[0], 0.035 * size, color)]
        shapes: list[Shape] = [Link(*corners, color=color, thickness=4.0)]
        if name in self.layout.hanging:
            shapes.append(Disc(self.layout.at(q, name, (0.0, 0.0)), 0.03 * size, color))
        return shapes

    def _frame(self, q: Any, joint: Joint) -> tuple[Any, Any]:
        """The direction of a joint's axis in the plane, and its normal."""
        number = self.layout.description.number(joint.bodies[0])
        angle = joint.direction + (q[3 * (number - 1) + 2] if number else 0.0)
        xp = library_of(angle)  # NumPy for an axis of the ground, which is known.
        c, s = xp.cos(angle), xp.sin(angle)
        return xp.stack([c, s]), xp.stack([-s, c])

    def _block(self, joint: Joint, q: Any) -> Area:
        name = self.layout.slider(joint)
        along, across = self._frame(q, joint)
        center = self.layout.at(q, name, joint.points[joint.bodies.index(name)])
        half, high = _BLOCK_LENGTH * self.layout.size / 2, _BLOCK_HEIGHT * self.layout.size / 2
        return plate(box(center, half * along, high * across), self.layout.color(name), 0.75)

    def _wheel(self, joint: Joint, q: Any, mu: Parameters) -> list[Shape]:
        name, radius = joint.bodies[1], mu[f"{joint.name}_radius"]
        color, hub = self.layout.color(name), np.array(joint.points[1])
        center = self.layout.at(q, name, hub)
        shapes: list[Shape] = [Disc(center, radius, color), Disc(center, 0.86 * radius, SHADE)]
        for angle in np.arange(3) * 2 * np.pi / 3:
            spoke = np.array([np.cos(angle), np.sin(angle)])
            rim = center + 0.86 * radius * (self.layout.at(q, name, hub + spoke) - center)
            shapes.append(Link(center, rim, color=color, thickness=2.0))
        return [*shapes, Disc(center, 0.16 * radius, color)]

    def _pin(self, joint: Joint, q: Any) -> list[Shape]:
        first, second = self._ends(joint, q)
        radius = _PIN * self.layout.size
        if joint.type == "revolute":
            return [pin(first, radius, fixed=GROUND in joint.bodies)]
        if joint.type == "fixed":
            half = 0.8 * radius
            return [Area(box(first, (half, 0.0), (0.0, half)), INK, INK)]
        if joint.type == "distance":
            held = [body == GROUND for body in joint.bodies]
            pins = [
                pin(first, 0.8 * radius, fixed=held[0]),
                pin(second, 0.8 * radius, fixed=held[1]),
            ]
            return [Link(first, second, color=INK, thickness=1.6), *pins]
        return []

    def _between(self, part: Spring | Damper, q: Any) -> list[Shape]:
        """A coil or a dashpot between two points, beside whatever else is between them."""
        if part.points is None:
            return self._spiral(part, q) if isinstance(part, Spring) else []
        start, end = self._ends(part, q)
        width, span = _COIL * self.layout.size, end - start
        normal = _unit(library_of(span).stack([-span[1], span[0]]))
        places = part.bodies, part.points
        shared = [one for one in self.layout.connections if (one.bodies, one.points) == places]
        beside = (shared.index(part) - (len(shared) - 1) / 2) * 0.9 * width * normal
        draw, share = (spring, 0.75) if isinstance(part, Spring) else (dashpot, 0.64)
        return [draw(start + beside, end + beside, share * width)]

    def _spiral(self, part: Spring, q: Any) -> list[Shape]:
        """Around the pin between the two bodies, where there is one."""
        for joint in self.layout.description.joints:
            if joint.type == "revolute" and set(joint.bodies) == set(part.bodies):
                angle = np.linspace(0.0, 5 * np.pi, 60)
                radius = self.layout.size * (_PIN + 0.03 * angle / angle[-1])
                around = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
                return [Line(self._ends(joint, q)[0][None] + around)]
        return []

    def _rail(self, joint: Joint, q: Any, mu: Parameters) -> Ground:
        """As long as the motion, with some room at both ends."""
        other = joint.bodies[1] if joint.bodies[0] == GROUND else joint.bodies[0]
        path = self.layout.at(q, other, joint.points[joint.bodies.index(other)])
        along, across = self._frame(q[0], joint)
        if joint.type == "rolling":
            room, below = 1.5 * mu[f"{joint.name}_radius"], 0.0
            origin = np.array(joint.points[0])
        else:
            size, origin = self.layout.size, path[0]
            room, below = 0.9 * _BLOCK_LENGTH * size, _BLOCK_HEIGHT * size / 2
            # A rail lies below its block.
            above = (across[1] < 0) | ((across[1] == 0) & (across[0] > 0))
            side = library_of(above).where(above, -1.0, 1.0)
            along, across = side * along, side * across
        base = origin - below * across
        reach = (path - base[None]) @ along
        start, end = base + (reach.min() - room) * along, base + (reach.max() + room) * along
        return Ground(start, end, _DEPTH * self.layout.size)

    def _pedestal(self, joint: Joint, q: Any) -> list[Shape]:
        """A stand under a pivot, or over it where its body hangs down."""
        size = self.layout.size
        other = joint.bodies[1] if joint.bodies[0] == GROUND else joint.bodies[0]
        x, y = pivot = joint.points[joint.bodies.index(GROUND)]
        mark = self.layout.at(q, other, self.layout.marks[other])[..., 1].mean()
        up = library_of(q).where(mark < y - 0.05 * size, 1.0, -1.0)
        half, top = 0.035 * size, y + up * 0.05 * size
        # Hatched on the side away from the pivot.
        start, end = (x + up * 1.6 * half, top), (x - up * 1.6 * half, top)
        return [
            Line([(x - half, top), pivot, (x + half, top)], color=INK, thickness=1.2),
            Ground(start, end, _DEPTH * size),
            pin(pivot, _PIN * size, fixed=True),
        ]

    def _wall(self, part: Spring | Damper, q: Any) -> Ground:
        """A piece of wall across the end of a spring or damper."""
        held = part.bodies.index(GROUND)
        ends = self._ends(part, q[0])
        foot, away = ends[held], ends[1 - held] - ends[held]
        xp = library_of(away)
        away = xp.where(xp.any(away != 0), _unit(away), np.array([0.0, 1.0]))
        half = _COIL * self.layout.size * xp.stack([away[1], -away[0]])
        return Ground(foot - half, foot + half, _DEPTH * self.layout.size)
