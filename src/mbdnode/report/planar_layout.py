"""What of a planar mechanism is to be seen: the points of its bodies, its size, who slides on whom.

All of it follows from the description alone, so that a drawing has the same parts at every moment.
"""

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mbdnode.mechanisms.planar.description import GROUND, Damper, Description, Joint, Spring
from mbdnode.report.shapes import library_of
from mbdnode.report.style import COLORS, INK

_Points = dict[str, list[tuple[float, float]]]


@dataclass(frozen=True)
class Layout:
    """The bodies of a description as they are drawn."""

    description: Description

    def place(self, q: Any, body: str, points: Any) -> Any:
        """Points `(n, 2)` of a body in the plane; of a motion `(m, nq)` they are `(m, n, 2)`."""
        xp, points = library_of(q), np.asarray(points, float)
        number = self.description.number(body)
        if number == 0:
            return np.broadcast_to(points, (*q.shape[:-1], *points.shape))
        x, y, angle = (q[..., 3 * (number - 1) + i, None] for i in range(3))
        c, s = xp.cos(angle), xp.sin(angle)
        px, py = np.reshape(points.T, (2, *[1] * (q.ndim - 1), -1))
        return xp.stack([x + c * px - s * py, y + s * px + c * py], axis=-1)

    def at(self, q: Any, body: str, point: Any) -> Any:
        """One point of a body in the plane."""
        return self.place(q, body, [point])[..., 0, :]

    def color(self, body: str) -> str:
        """Bodies take the colors in turn; the first six can be told apart by anybody."""
        return COLORS[(self.description.number(body) - 1) % 6] if body != GROUND else INK

    @property
    def connections(self) -> tuple[Spring | Damper, ...]:
        """Springs and dampers."""
        return (*self.description.springs, *self.description.dampers)

    @cached_property
    def _pins(self) -> _Points:
        """The points of each body at which joints hold it."""
        pins: _Points = defaultdict(list)
        for joint in self.description.joints:
            for body, point in zip(joint.bodies, joint.points, strict=True):
                # The axis of a guide has no place of its own on the body that it guides.
                if joint.type != "prismatic" or body != GROUND:
                    pins[body].append(point)
        return pins

    @cached_property
    def _points(self) -> _Points:
        """What is attached to each body, and the mass center of what has one point or none."""
        points: _Points = defaultdict(list, {body: [*own] for body, own in self._pins.items()})
        for part in self.connections:
            for body, point in zip(part.bodies, part.points or (), strict=False):
                points[body].append(point)
        for force in self.description.forces:
            points[force.body].append(force.point)
        for body in self.description.bodies:
            if len(set(points[body.name])) < 2:
                points[body.name].append((0.0, 0.0))
        return points

    @cached_property
    def size(self) -> float:
        """The diagonal of what the mechanism covers where the file puts it."""
        bodies, joints = self.description.bodies, self.description.joints
        q = np.array([(*body.center, body.angle) for body in bodies], float).reshape(-1)
        corners = [self.place(q, body, own) for body, own in self._points.items() if own]
        across = float(np.hypot(*np.ptp(np.concatenate(corners), axis=0)))
        size = max([across, *(2 * joint.radius for joint in joints if joint.radius is not None)])
        return size if size > 0 else 1.0

    @cached_property
    def outlines(self) -> dict[str, np.ndarray]:
        """Of each body, in its own coordinates: one point, two, or the corners of a plate."""
        names = [body.name for body in self.description.bodies]
        return {name: _outline(np.array(self._points[name]), self.size) for name in names}

    @cached_property
    def marks(self) -> dict[str, np.ndarray]:
        """The point of each body that leaves a trace: its free end, or else its mass center."""
        marks = {body.name: np.zeros(2) for body in self.description.bodies}
        for name in marks:
            if len(set(self._pins[name])) == 1:
                points = np.array(self._points[name])
                away = np.linalg.norm(points - np.array(self._pins[name][0]), axis=1)
                marks[name] = points[int(np.argmax(away))]
        return marks

    def slider(self, joint: Joint) -> str:
        """The body that is drawn as a block: of two that slide on each other, the shorter."""
        first, second = joint.bodies
        if GROUND in joint.bodies:
            return second if first == GROUND else first
        length = {name: float(np.max(np.ptp(self.outlines[name], axis=0))) for name in joint.bodies}
        return first if length[first] < length[second] else second

    @cached_property
    def hanging(self) -> frozenset[str]:
        """Bodies on a single pin, with their mass center at the other end."""
        return frozenset(
            name
            for name, outline in self.outlines.items()
            if len(set(self._pins[name])) == 1
            and np.any(np.all(np.abs(outline) < 1e-9 * self.size, axis=1))
        )

    @cached_property
    def traced(self) -> tuple[str, ...]:
        """The bodies with the most joints between them and the ground; at most three."""
        depth, ahead = {GROUND: 0}, [GROUND]
        while ahead:
            body = ahead.pop(0)
            for joint in self.description.joints:
                for other in joint.bodies:
                    if body in joint.bodies and other not in depth:
                        depth[other] = depth[body] + 1
                        ahead.append(other)
        depths = {body.name: depth.get(body.name, 1) for body in self.description.bodies}
        return tuple(name for name, value in depths.items() if value == max(depths.values()))[:3]


def _outline(points: np.ndarray, size: float) -> np.ndarray:
    _, different = np.unique(np.round(points / size, 9), axis=0, return_index=True)
    points = points[different]
    spread = points - points.mean(axis=0)
    if len(points) < 3 or np.linalg.svd(spread)[1][1] < 1e-3 * size:
        along = spread @ np.linalg.svd(spread)[2][0]
        ends = points[[int(np.argmin(along)), int(np.argmax(along))]]
        return ends if np.ptp(along) > 1e-6 * size else points[:1]
    from scipy.spatial import ConvexHull, QhullError  # Slow to load, for few.

    try:
        return points[ConvexHull(points).vertices]
    except QhullError:  # Too flat for it after all.
        return points[[0, -1]]
