"""The six shapes of every drawing: links, lines, areas, discs, ground and words.

A shape has a look, which stays, and numbers, which change as it moves. It is drawn here by
Matplotlib, and in the browser from its look and numbers by `drawing_parts.js`. Lengths are in
meters, thicknesses in pixels. Numbers are plain, or traced by JAX to be drawn elsewhere.

Rods, springs, dashpots, bobs, pins and blocks are made of these shapes by the functions below.
"""

import abc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.patches import Circle, PathPatch
from matplotlib.path import Path

from mbdnode.report.style import INK, MUTED, NAMED, PAPER

Number = Any
Array = np.ndarray | jax.Array
# Two numbers: a tuple or an array.
Point = Any


def library_of(values: Any) -> Any:
    """The library that computes with these values: `jax.numpy` if JAX traces them, or NumPy."""
    return jnp if isinstance(values, jax.Array) else np


class Shape(abc.ABC):
    """One part of a drawing.

    A subclass names its fields that change as it moves: points, and then perhaps a length.
    """

    moving: ClassVar[tuple[str, ...]]

    @property
    def numbers(self) -> tuple[Number, ...]:
        """Where it is, in the order that the page's script reads them."""
        return tuple(_flat([getattr(self, name) for name in self.moving]))

    @property
    def look(self) -> dict[str, Any]:
        """What stays the same while it moves, as plain data, with the `count` of its numbers."""
        named = {f.name: getattr(self, f.name) for f in fields(self)}  # pyright: ignore
        stays = {key: value for key, value in named.items() if key not in self.moving}
        for key in {"color", "edge"} & set(stays):
            stays[key] = NAMED.get(stays[key], stays[key])
        return {"kind": type(self).__name__.lower(), **stays, "count": len(self.numbers)}

    @property
    def reach(self) -> Number:
        """How far beyond its points it reaches."""
        return 0.0

    def corners(self) -> tuple[Point, Point]:
        """The lower left and the upper right of what it covers."""
        numbers = self.numbers
        xs, ys = numbers[: len(numbers) // 2 * 2 : 2], numbers[1::2]
        return (min(xs) - self.reach, min(ys) - self.reach), (
            max(xs) + self.reach,
            max(ys) + self.reach,
        )

    @abc.abstractmethod
    def draw(self, axes: Axes, alpha: float, level: int) -> None:
        """Add it to axes of equal aspect.

        **Arguments:**

        - `axes`: to draw on.
        - `alpha`: below one for a ghost.
        - `level`: a higher one lies on top.
        """


def _stroke(axes: Axes, points: Any, color: str, width: float, alpha: float, level: int) -> None:
    axes.plot(*zip(*points, strict=True), color=color, linewidth=width, alpha=alpha, zorder=level)


def _flat(values: Any) -> Iterator[Number]:
    for value in values:
        if isinstance(value, (tuple, list)) or getattr(value, "ndim", 0):
            yield from _flat(value)
        else:
            yield value


@dataclass(frozen=True)
class Link(Shape):
    """What spans two points: a rod, a spring or a dashpot.

    **Arguments:**

    - `start`, `end`: the points.
    - `color`, `thickness`: of its lines.
    - `held`: whether a hand can hold it.
    - `width`: of its pattern.
    - `pattern`: lines of points, each in parts of the length and of the width.
    """

    start: Point
    end: Point
    color: str = INK
    thickness: float = 2.6
    held: bool = True
    width: Number = 0.0
    pattern: tuple[tuple[Point, ...], ...] = (((0.0, 0.0), (1.0, 0.0)),)

    moving = ("start", "end", "width")

    @property
    def reach(self) -> Number:
        """Half of its width."""
        return self.width / 2

    def draw(self, axes: Axes, alpha: float, level: int) -> None:
        """Every line of the pattern."""
        origin, vector = np.array(self.start), np.subtract(self.end, self.start)
        normal = np.array([-vector[1], vector[0]]) / max(float(np.hypot(*vector)), 1e-9)
        for piece in self.pattern:
            points = [origin + a * vector + b * self.width * normal for a, b in piece]
            _stroke(axes, points, self.color, self.thickness, alpha, level)


@dataclass(frozen=True)
class Line(Shape):
    """A line through points."""

    points: Sequence[Point] | Array
    color: str = MUTED
    thickness: float = 1.1

    moving = ("points",)

    def draw(self, axes: Axes, alpha: float, level: int) -> None:
        """As it is."""
        _stroke(axes, self.points, self.color, self.thickness, alpha, level)


@dataclass(frozen=True)
class Area(Shape):
    """A filled polygon, with `rounding` of its corners in parts of its shortest side."""

    points: Sequence[Point] | Array
    color: str
    edge: str
    opacity: float = 1.0
    thickness: float = 0.8
    rounding: float = 0.0
    held: bool = True

    moving = ("points",)

    def draw(self, axes: Axes, alpha: float, level: int) -> None:
        """White below, so that what lies under it does not show through."""
        path = self._outline()
        if alpha == 1.0:
            axes.add_patch(PathPatch(path, facecolor=PAPER, edgecolor="none", zorder=level))
        face, edge = to_rgba(self.color, alpha * self.opacity), to_rgba(self.edge, alpha)
        look = {"joinstyle": "round", "linewidth": self.thickness, "zorder": level}
        axes.add_patch(PathPatch(path, facecolor=face, edgecolor=edge, **look))

    def _outline(self) -> Path:
        corners = np.array(self.points, float)
        sides = np.roll(corners, -1, axis=0) - corners
        lengths = np.hypot(*sides.T)
        along = self.rounding * np.min(lengths) * sides / lengths[:, None]
        # Every corner is reached from the one before, and left toward the next.
        points = np.stack([corners - np.roll(along, 1, axis=0), corners, corners + along], axis=1)
        codes = [Path.LINETO, Path.CURVE3, Path.CURVE3] * len(corners)
        whole = np.concatenate([points.reshape(-1, 2), points[0, :1]])
        return Path(whole, [Path.MOVETO, *codes[1:], Path.CLOSEPOLY])


@dataclass(frozen=True)
class Disc(Shape):
    """A filled circle; `held` says whether a hand can hold it."""

    at: Point
    radius: Number
    color: str
    edge: str = PAPER
    thickness: float = 0.8
    held: bool = True

    moving = ("at", "radius")

    @property
    def reach(self) -> Number:
        """Its radius."""
        return self.radius

    def draw(self, axes: Axes, alpha: float, level: int) -> None:
        """A circle."""
        look = {"facecolor": self.color, "edgecolor": self.edge, "linewidth": self.thickness}
        axes.add_patch(Circle(self.at, self.radius, alpha=alpha, zorder=level, **look))


@dataclass(frozen=True)
class Ground(Shape):
    """A line that does not move, hatched on its right-hand side from start to end."""

    start: Point
    end: Point
    depth: Number
    color: str = INK

    moving = ("start", "end", "depth")

    @property
    def reach(self) -> Number:
        """The depth of the hatching."""
        return self.depth

    def draw(self, axes: Axes, alpha: float, level: int) -> None:
        """A line and its hatching."""
        origin, vector = np.array(self.start), np.subtract(self.end, self.start)
        size = float(np.hypot(*vector))
        along = vector / size
        right = np.array([along[1], -along[0]])
        for distance in np.arange(self.depth, size + 1e-9, 0.9 * self.depth):
            tip = origin + distance * along
            tail = tip + self.depth * (right - along)
            _stroke(axes, (tip, tail), MUTED, 0.7, alpha, level)
        _stroke(axes, (self.start, self.end), self.color, 1.2, alpha, level)


@dataclass(frozen=True)
class Word(Shape):
    """A word below a point."""

    at: Point
    text: str
    color: str = MUTED

    moving = ("at",)

    def draw(self, axes: Axes, alpha: float, level: int) -> None:
        """In small letters."""
        look = {"ha": "center", "va": "top", "fontsize": 8, "color": self.color}
        axes.text(self.at[0], self.at[1], self.text, alpha=alpha, zorder=level, **look)


_TEETH = 14
_ZIGZAG = (
    (0.0, 0.0),
    *(
        (0.12 + 0.76 * i / (_TEETH - 1), 0.0 if i in (0, _TEETH - 1) else 0.5 if i % 2 else -0.5)
        for i in range(_TEETH)
    ),
    (1.0, 0.0),
)
# A cup on one rod, a piston on the other.
_DASHPOT = (
    ((0.0, 0.0), (0.38, 0.0)),
    ((0.68, 0.5), (0.38, 0.5), (0.38, -0.5), (0.68, -0.5)),
    ((0.52, 0.35), (0.52, -0.35)),
    ((0.52, 0.0), (1.0, 0.0)),
)


def spring(start: Point, end: Point, width: Number) -> Link:
    """A zigzag between two points."""
    return Link(start, end, MUTED, 1.2, False, width, (_ZIGZAG,))


def dashpot(start: Point, end: Point, width: Number) -> Link:
    """A damper between two points."""
    return Link(start, end, MUTED, 1.2, False, width, _DASHPOT)


def pin(at: Point, radius: Number, *, fixed: bool = False) -> Disc:
    """A revolute joint; filled when it is fixed to the ground."""
    return Disc(at, radius, INK if fixed else PAPER, edge=INK, thickness=1.2, held=not fixed)


def plate(points: Sequence[Point] | Array, color: str, opacity: float = 0.3) -> Area:
    """A body with an outline."""
    return Area(points, color, color, opacity, thickness=2.6)


def box(at: Point, along: Point, across: Point) -> list[Point]:
    """The corners of a box, by its center and the halves of its sides as vectors."""
    (x, y), (ax, ay), (bx, by) = at, along, across
    signs = ((-1, -1), (1, -1), (1, 1), (-1, 1))
    return [(x + a * ax + b * bx, y + a * ay + b * by) for a, b in signs]


def block(at: Point, width: Number, height: Number, color: str) -> Area:
    """A body drawn as a box with round corners, by its center."""
    return Area(box(at, (width / 2, 0.0), (0.0, height / 2)), color, PAPER, rounding=0.12)
