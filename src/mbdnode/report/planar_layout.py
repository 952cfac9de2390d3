"""What of a planar mechanism is to be seen: the points of its bodies, its size, who slides on whom.

All of it follows from the description alone, so that a drawing has the same parts at every moment.
"""

from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from mbdnode.mechanisms.planar.description import GROUND, Description, Joint
from mbdnode.report.shapes import library_of


@dataclass(frozen=True)
class Layout:
    """The seen of a description.

    **Arguments:**

    - `size`: of the whole, from which the sizes of pins and hatching follow.
    - `outlines`: of each body, in its own coordinates: one, two, or the corners of a plate.
    - `marks`: the point of each body that leaves a trace.
    - `sliders`: by prismatic joint, the body that is drawn as a block.
    - `wheels`: bodies that roll.
    - `hanging`: bodies on a single pin, with their mass center at the other end.
    - `traced`: the bodies farthest from the ground.
    """

    size: float
    outlines: dict[str, np.ndarray]
    marks: dict[str, np.ndarray]
    sliders: dict[str, str]
    wheels: frozenset[str]
    hanging: frozenset[str]
    traced: tuple[str, ...]


def place(q: Any, description: Description, body: str, points: np.ndarray) -> Any:
    """Points `(n, 2)` of a body in the plane; of a motion `(m, nq)` they are `(m, n, 2)`."""
    xp = library_of(q)
    number = description.number(body)
    if number == 0:
        return np.broadcast_to(points, (*q.shape[:-1], *np.shape(points)))
    x, y, angle = (q[..., 3 * (number - 1) + i, None] for i in range(3))
    c, s = xp.cos(angle), xp.sin(angle)
    px, py = np.reshape(np.asarray(points).T, (2, *[1] * (q.ndim - 1), -1))
    return xp.stack([x + c * px - s * py, y + s * px + c * py], axis=-1)


@lru_cache(maxsize=64)
def layout_of(description: Description) -> Layout:
    """What of a mechanism is to be seen."""
    points = _points(description)
    size = _size(description, points)
    pins = _pins(description)
    outlines = {
        body.name: _outline(np.array(points[body.name]), size) for body in description.bodies
    }
    wheels = frozenset(j.bodies[1] for j in description.joints if j.type == "rolling")
    sliders = {j.name: _slider(j, outlines) for j in description.joints if j.type == "prismatic"}
    marks = {
        body.name: _mark(np.array(points[body.name]), pins[body.name])
        for body in description.bodies
    }
    hanging = frozenset(
        name
        for name, outline in outlines.items()
        if len(set(pins[name])) == 1 and np.any(np.all(np.abs(outline) < 1e-9 * size, axis=1))
    )
    return Layout(size, outlines, marks, sliders, wheels, hanging, _farthest(description))


def _pins(description: Description) -> dict[str, list[tuple[float, float]]]:
    """The points of each body at which joints hold it."""
    pins: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for joint in description.joints:
        for body, point in zip(joint.bodies, joint.points, strict=True):
            # The axis of a guide has no place of its own on the body that it guides.
            if joint.type != "prismatic" or body != GROUND:
                pins[body].append(point)
    return pins


def _points(description: Description) -> dict[str, list[tuple[float, float]]]:
    """All points of each body that something is attached to, and the mass center of the rest."""
    points = _pins(description)
    for part in (*description.springs, *description.dampers):
        for body, point in zip(part.bodies, part.points or (), strict=False):
            points[body].append(point)
    for force in description.forces:
        points[force.body].append(force.point)
    for body in description.bodies:
        if len(set(points[body.name])) < 2:
            points[body.name].append((0.0, 0.0))
    return points


def _size(description: Description, points) -> float:
    """The diagonal of what the mechanism covers where the file puts it."""
    q = np.array([(*body.center, body.angle) for body in description.bodies], float).reshape(-1)
    everything = [place(q, description, body, np.array(own)) for body, own in points.items() if own]
    corners = np.concatenate(everything)
    radii = [2 * joint.radius for joint in description.joints if joint.radius is not None]
    size = max([float(np.hypot(*np.ptp(corners, axis=0))), *radii])
    return size if size > 0 else 1.0


def _outline(points: np.ndarray, size: float) -> np.ndarray:
    """A single point, the two ends of a bar, or the corners of a plate."""
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


def _slider(joint: Joint, outlines: dict[str, np.ndarray]) -> str:
    """Of two bodies that slide on each other, the shorter is the block."""
    first, second = joint.bodies
    if GROUND in joint.bodies:
        return second if first == GROUND else first
    length = lambda name: float(np.max(np.ptp(outlines[name], axis=0)))  # noqa: E731
    return first if length(first) < length(second) else second


def _mark(points: np.ndarray, pins: list[tuple[float, float]]) -> np.ndarray:
    """The free end of a body that hangs on one pin, and the mass center of any other."""
    if len(set(pins)) != 1:
        return np.zeros(2)
    away = np.linalg.norm(points - np.array(pins[0]), axis=1)
    return points[int(np.argmax(away))]


def _farthest(description: Description, most: int = 3) -> tuple[str, ...]:
    """The bodies with the most joints between them and the ground."""
    depth = {GROUND: 0}
    ahead = [GROUND]
    while ahead:
        body = ahead.pop(0)
        for joint in description.joints:
            if body in joint.bodies:
                other = joint.bodies[1] if joint.bodies[0] == body else joint.bodies[0]
                if other not in depth:
                    depth[other] = depth[body] + 1
                    ahead.append(other)
    depths = {body.name: depth.get(body.name, 1) for body in description.bodies}
    deepest = max(depths.values())
    return tuple(name for name, value in depths.items() if value == deepest)[:most]
