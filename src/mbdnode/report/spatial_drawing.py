"""How a mechanism in space looks: its shapes, or bars between its joints, over a grid as ground.

The view is a parallel projection, from the side and a little from above, with gravity pointing
down. Bodies farther away are drawn first, in the order that they have where the mechanism is
assembled. As in `drawings`, coordinates may be arrays of NumPy or traced by JAX.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.mechanisms.spatial import SpatialMechanism
from mbdnode.mechanisms.spatial.description import GROUND, Body
from mbdnode.mechanisms.spatial.description import Shape as BodyShape
from mbdnode.mechanisms.spatial.graph import matrix_of, perpendicular
from mbdnode.multibody import consistent_state
from mbdnode.report.drawings import Drawing, Parameters
from mbdnode.report.shapes import Area, Disc, Line, Link, Shape, dashpot, library_of, pin, spring
from mbdnode.report.style import COLORS, FAINT

# The direction from which one looks, against the first horizontal axis and the horizon.
_AZIMUTH, _ELEVATION = np.deg2rad(-58.0), np.deg2rad(20.0)
# Parts of the mechanism's size.
_PIN, _BOB, _COIL, _REACH = 0.012, 0.02, 0.04, 0.25
_LINES, _MOMENTS = 9, 60
# With more names a picture cannot be read.
_MOST_NAMES = 16
_FACES = ((0, 1, 3, 2), (4, 5, 7, 6), (0, 1, 5, 4), (2, 3, 7, 6), (0, 2, 6, 4), (1, 3, 7, 5))


def spatial_drawing(mechanism: SpatialMechanism) -> Drawing:
    """The drawing of a mechanism in space, as `find_drawing` returns it."""
    made = _SpatialDrawing(mechanism)
    colors = tuple(made.color(name) for name, _ in made.traced)
    return Drawing(made.parts, made.ground, made.traces, colors, poses=3, labels=made.labels)


@dataclass(frozen=True)
class _SpatialDrawing:
    mechanism: SpatialMechanism

    @cached_property
    def _up(self) -> np.ndarray:
        """Against gravity; z without any."""
        gravity = np.array(self.mechanism.description.gravity)
        size = np.linalg.norm(gravity)
        return -gravity / size if size else np.array([0.0, 0.0, 1.0])

    @cached_property
    def camera(self) -> np.ndarray:
        """Its right, its up and its depth, as rows."""
        up = self._up
        first, second = perpendicular(up)
        level = np.cos(_AZIMUTH) * first + np.sin(_AZIMUTH) * second
        toward = np.cos(_ELEVATION) * level + np.sin(_ELEVATION) * up
        right = np.cross(up, toward)
        right /= np.linalg.norm(right)
        return np.stack([right, np.cross(toward, right), toward])

    @cached_property
    def marks(self) -> dict[str, list[np.ndarray]]:
        """The points of each body at its joints, the one that carries it first."""
        found: dict[str, list[np.ndarray]] = {b.name: [] for b in self.mechanism.description.bodies}
        for joint in self.mechanism.description.joints:
            for body, frame in zip(reversed(joint.bodies), reversed(joint.frames), strict=True):
                if body != GROUND:
                    found[body].append(np.array(frame.at))
        return found

    @cached_property
    def traced(self) -> list[tuple[str, np.ndarray]]:
        """The points whose paths are shown: outputs, or the ends of bodies that carry no other."""
        given = self.mechanism.description
        points = [(o.body, np.array(o.frame.at)) for o in given.outputs if o.type == "point"]
        leaves = [(b.name, self._end(b)) for b in given.bodies if len(self.marks[b.name]) < 2]
        last = [(given.bodies[-1].name, self._end(given.bodies[-1]))]
        return [p for p in points if p[0] != GROUND] or leaves[:4] or last

    def _end(self, body: Body) -> np.ndarray:
        return (
            self.marks[body.name][-1] if len(self.marks[body.name]) > 1 else np.array(body.center)
        )

    @cached_property
    def _project(self) -> Any:
        """From a configuration to the bodies' places and axes in the camera's axes, compiled."""
        camera = jnp.asarray(self.camera)

        def project(q):
            place, turn = self.mechanism.body_poses(q)
            return place @ camera.T, jnp.einsum("ij,bjk->bik", camera, turn)

        return jax.jit(project)

    def _bodies(self, q: Any) -> dict[str, tuple[Any, Any]]:
        """The place and the axes of each body as the camera sees them; of the ground too."""
        given = [body.name for body in self.mechanism.description.bodies]
        place, turn = self._project(q)
        if not isinstance(q, jax.Array):
            place, turn = np.asarray(place), np.asarray(turn)
        found = {name: (place[k], turn[k]) for k, name in enumerate(given)}
        return {**found, GROUND: (np.zeros(3), self.camera)}

    @staticmethod
    def _at(pose: tuple[Any, Any], point: Any) -> Any:
        """A point of a body, on the picture."""
        return (pose[0] + pose[1] @ np.asarray(point, float))[:2]

    @cached_property
    def _start(self) -> np.ndarray:
        return np.asarray(consistent_state(self.mechanism, {}).q)

    @cached_property
    def size(self) -> float:
        """How large the mechanism is where it is assembled."""
        points = self._reached(self._start)
        return max(float(np.max(np.ptp([*points, np.zeros(3)], axis=0))), 1e-3)

    @cached_property
    def order(self) -> list[Body]:
        """The bodies, those that are farther away first."""
        poses = self._bodies(self._start)
        depth = lambda body: float((poses[body.name][0] + poses[body.name][1] @ body.center)[2])  # noqa: E731
        return sorted(self.mechanism.description.bodies, key=depth)

    def color(self, name: str) -> str:
        """Of a body."""
        names = [body.name for body in self.mechanism.description.bodies]
        return COLORS[names.index(name) % len(COLORS)]

    def parts(self, q: Any, mu: Parameters) -> list[Shape]:
        """What moves."""
        poses, shapes = self._bodies(q), []
        for part in self.mechanism.description.springs:
            if not part.coordinate:
                pairs = zip(part.bodies, part.points, strict=True)
                ends = [self._at(poses[body], point) for body, point in pairs]
                make = spring if part.stiffness else dashpot
                shapes.append(make(*ends, _COIL * self.size))
        for body in self.order:
            color, pose = self.color(body.name), poses[body.name]
            for shape in body.shapes:
                shapes += self._shape(shape, pose, color)
            if not any(shape.type != "mesh" for shape in body.shapes):
                shapes += self._bars(body, pose, color)
        for joint in self.mechanism.description.joints:
            at = self._at(poses[joint.bodies[0]], joint.frames[0].at)
            if joint.type not in ("free", "fixed", "rolling", "blade"):
                shapes.append(pin(at, _PIN * self.size, fixed=GROUND in joint.bodies))
        return shapes

    def _bars(self, body: Body, pose: tuple[Any, Any], color: str) -> list[Shape]:
        """Between the joints of a body; to its mass center where there is one joint or none."""
        marks = self.marks[body.name]
        first = marks[0] if marks else np.array(body.center)
        shapes: list[Shape] = [
            Link(self._at(pose, first), self._at(pose, other), color=color, thickness=4.0)
            for other in marks[1:]
            if not np.allclose(first, other)
        ]
        if not shapes and body.mass:
            if not np.allclose(first, body.center):
                ends = self._at(pose, first), self._at(pose, body.center)
                shapes.append(Link(*ends, color=color, thickness=4.0))
            shapes.append(Disc(self._at(pose, body.center), _BOB * self.size, color))
        return shapes

    def _shape(self, shape: BodyShape, pose: tuple[Any, Any], color: str) -> list[Shape]:
        turn, at = matrix_of(shape.frame)
        if shape.type == "sphere":
            return [Disc(self._at(pose, at), shape.size[0], color)]
        if shape.type in ("capsule", "cylinder"):
            radius, half = shape.size[0], turn[:, 2] * shape.size[1] / 2
            start, end = self._at(pose, at - half), self._at(pose, at + half)
            xp = library_of(start)
            along = end - start
            along = along / xp.maximum(xp.hypot(along[0], along[1]), 1e-9)
            side = radius * xp.stack([-along[1], along[0]])
            corners = [start + side, end + side, end - side, start - side]
            ends = [Disc(point, radius, color) for point in (start, end)]
            return [ends[0], Area(corners, color, color), ends[1]]
        if shape.type == "box":
            signs = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1], indexing="ij")).reshape(3, -1).T
            corners = at + (signs * np.array(shape.size) / 2) @ turn.T
            seen = [self._at(pose, corner) for corner in corners]
            return [Area([seen[k] for k in face], color, color, 0.45) for face in _FACES]
        return []  # A mesh is shown by its joints.

    def ground(self, q: Any, mu: Parameters) -> list[Shape]:
        """A grid under all that a motion reaches."""
        points = np.concatenate(
            [np.stack(self._reached(row)) for row in q[:: max(1, len(q) // _MOMENTS)]]
        )
        points = np.concatenate([points @ self.camera, np.zeros((1, 3))])
        first, second = perpendicular(self._up)
        across = [(axis, points @ axis) for axis in (first, second)]
        room = _REACH * self.size
        spans = [(axis, np.min(x) - room, np.max(x) + room) for axis, x in across]
        base, flat = np.min(points @ self._up) * self._up, self.camera[:2]
        lines: list[Shape] = []
        for (along, low, high), (axis, left, right) in (spans, spans[::-1]):
            for x in np.linspace(left, right, _LINES):
                ends = [flat @ (base + end * along + x * axis) for end in (low, high)]
                lines.append(Line(ends, color=FAINT, thickness=0.8))
        return lines

    def _reached(self, q: np.ndarray) -> list[np.ndarray]:
        """The joints and mass centers of all bodies, in the camera's axes."""
        poses = self._bodies(q)
        return [
            np.asarray(poses[body.name][0] + poses[body.name][1] @ point)
            for body in self.mechanism.description.bodies
            for point in [*self.marks[body.name], np.array(body.center)]
        ]

    def traces(self, t: Any, q: Any, mu: Parameters) -> list[Any]:
        """Where the marked points have been."""
        place, turn = jax.vmap(self._project)(jnp.asarray(q))
        names = [body.name for body in self.mechanism.description.bodies]
        paths = [
            (place[:, names.index(name)] + turn[:, names.index(name)] @ jnp.asarray(point))[:, :2]
            for name, point in self.traced
        ]
        return paths if isinstance(q, jax.Array) else [np.asarray(path) for path in paths]

    def labels(self, q: np.ndarray) -> list[tuple[str, Any, str]]:
        """The names of the bodies, where they are, and their colors."""
        poses = self._bodies(q)
        bodies = [b for b in self.mechanism.description.bodies if b.mass][:_MOST_NAMES]
        return [(b.name, self._at(poses[b.name], b.center), self.color(b.name)) for b in bodies]
