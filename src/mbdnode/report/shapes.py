"""The parts of a mechanism's drawing: rods, blocks, plates, springs, dampers, joints, ground.

Every part draws itself in meters on axes of equal aspect. `alpha` below one makes it a ghost, and
`level` says what it covers: a higher level lies on top. The page draws the same parts in the
browser, from their plain form. Numbers are plain, or traced by JAX to be drawn elsewhere.
"""

import abc
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle, FancyBboxPatch, Polygon

from mbdnode.report.style import INK, MUTED

Number = Any
Point = tuple[Number, Number]


def library_of(values: Any) -> Any:
    """The library that computes with these values: `jax.numpy` if JAX traces them, or NumPy."""
    return jnp if isinstance(values, jax.Array) else np


@dataclass(frozen=True)
class Plain:
    """A part as plain data.

    **Arguments:**

    - `look`: what stays the same while it moves: its kind, and colors and counts.
    - `numbers`: where it is, in the order that the page's script reads them.
    """

    look: dict[str, Any]
    numbers: tuple[Number, ...]


class Shape(abc.ABC):
    """One part of a drawing."""

    @abc.abstractmethod
    def plain(self) -> Plain:
        """As data that a browser can draw."""

    @abc.abstractmethod
    def corners(self) -> tuple[Point, Point]:
        """The lower left and the upper right of what it covers."""

    @abc.abstractmethod
    def draw(self, axes: Axes, alpha: float, level: int) -> None:
        """Add it to the axes."""


@dataclass(frozen=True)
class Rod(Shape):
    """A straight link."""

    start: Point
    end: Point
    color: str = INK
    width: float = 2.6

    def plain(self) -> Plain:
        """Its ends."""
        return Plain(
            {"kind": "rod", "color": self.color, "width": self.width}, (*self.start, *self.end)
        )

    def corners(self) -> tuple[Point, Point]:
        """Around both ends."""
        return _around((self.start, self.end), 0.0)

    def draw(self, axes: Axes, alpha: float, level: int) -> None:
        """A thick line."""
        xs, ys = zip(self.start, self.end, strict=True)
        axes.plot(xs, ys, color=self.color, linewidth=self.width, alpha=alpha, zorder=level)


@dataclass(frozen=True)
class Bob(Shape):
    """A point mass."""

    at: Point
    radius: Number
    color: str

    def plain(self) -> Plain:
        """Center and radius."""
        return Plain({"kind": "bob", "color": self.color}, (*self.at, self.radius))

    def corners(self) -> tuple[Point, Point]:
        """Its square."""
        return _around((self.at,), self.radius)

    def draw(self, axes: Axes, alpha: float, level: int) -> None:
        """A filled circle."""
        circle = Circle(
            self.at, self.radius, facecolor=self.color, edgecolor="white", linewidth=0.8
        )
        circle.set(alpha=alpha, zorder=level)
        axes.add_patch(circle)


@dataclass(frozen=True)
class BlockShape(Shape):
    """A body drawn as a box, by its center."""

    at: Point
    width: Number
    height: Number
    color: str

    def plain(self) -> Plain:
        """Center and size."""
        return Plain({"kind": "block", "color": self.color}, (*self.at, self.width, self.height))

    def corners(self) -> tuple[Point, Point]:
        """Itself."""
        (x, y), across, up = self.at, self.width / 2, self.height / 2
        return (x - across, y - up), (x + across, y + up)

    def draw(self, axes: Axes, alpha: float, level: int) -> None:
        """A box with round corners."""
        corner = (self.at[0] - self.width / 2, self.at[1] - self.height / 2)
        rounding = 0.12 * min(self.width, self.height)
        box = FancyBboxPatch(
            (corner[0] + rounding, corner[1] + rounding),
            self.width - 2 * rounding,
            self.height - 2 * rounding,
            boxstyle=f"round,pad={rounding}",
            facecolor=self.color,
            edgecolor="white",
            linewidth=0.8,
        )
        box.set(alpha=alpha, zorder=level)
        axes.add_patch(box)


@dataclass(frozen=True)
class SpringShape(Shape):
    """A zigzag between two points."""

    start: Point
    end: Point
    width: Number
    teeth: int = 7

    def plain(self) -> Plain:
        """Its ends and width."""
        return Plain(
            {"kind": "spring", "color": MUTED, "teeth": self.teeth},
            (*self.start, *self.end, self.width),
        )

    def corners(self) -> tuple[Point, Point]:
        """Around both ends."""
        return _around((self.start, self.end), self.width / 2)

    def draw(self, axes: Axes, alpha: float, level: int) -> None:
        """Straight ends, teeth between."""
        along = np.concatenate([[0.0], np.linspace(0.12, 0.88, 2 * self.teeth), [1.0]])
        across = np.zeros(along.shape)
        across[2:-2] = self.width / 2 * (-1.0) ** np.arange(2 * self.teeth - 2)
        origin, vector = np.array(self.start), np.subtract(self.end, self.start)
        normal = np.array([-vector[1], vector[0]]) / max(float(np.hypot(*vector)), 1e-9)
        points = origin + along[:, None] * vector + across[:, None] * normal
        axes.plot(*points.T, color=MUTED, linewidth=1.1, alpha=alpha, zorder=level)


@dataclass(frozen=True)
class DamperShape(Shape):
    """A dashpot along the horizontal."""

    start: Point
    end: Point
    width: Number

    def plain(self) -> Plain:
        """Its ends and width."""
        return Plain({"kind": "damper", "color": MUTED}, (*self.start, *self.end, self.width))

    def corners(self) -> tuple[Point, Point]:
        """Around both ends."""
        return _around((self.start, self.end), self.width / 2)

    def draw(self, axes: Axes, alpha: float, level: int) -> None:
        """A cup on one rod, a piston on the other."""
        (x0, y), (x1, _) = self.start, self.end
        cup, half = x0 + 0.38 * (x1 - x0), self.width / 2
        deep, piston = cup + 0.3 * (x1 - x0), cup + 0.14 * (x1 - x0)
        lines = (
            ([x0, cup], [y, y]),
            ([deep, cup, cup, deep], [y + half, y + half, y - half, y - half]),
            ([piston, piston], [y + 0.7 * half, y - 0.7 * half]),
            ([piston, x1], [y, y]),
        )
        for xs, ys in lines:
            axes.plot(xs, ys, color=MUTED, linewidth=1.1, alpha=alpha, zorder=level)


@dataclass(frozen=True)
class JointShape(Shape):
    """A pin; filled when it is fixed to the ground."""

    at: Point
    radius: Number
    fixed: bool = False

    def plain(self) -> Plain:
        """Center and radius."""
        return Plain({"kind": "joint", "color": INK, "fixed": self.fixed}, (*self.at, self.radius))

    def corners(self) -> tuple[Point, Point]:
        """Its square."""
        return _around((self.at,), self.radius)

    def draw(self, axes: Axes, alpha: float, level: int) -> None:
        """A small circle."""
        circle = Circle(
            self.at, self.radius, facecolor=INK if self.fixed else "white", edgecolor=INK
        )
        circle.set(linewidth=1.2, alpha=alpha, zorder=level)
        axes.add_patch(circle)


@dataclass(frozen=True)
class Ground(Shape):
    """A line that does not move, hatched on its right-hand side from start to end."""

    start: Point
    end: Point
    depth: Number

    def plain(self) -> Plain:
        """Its ends and depth."""
        return Plain({"kind": "ground", "color": INK}, (*self.start, *self.end, self.depth))

    def corners(self) -> tuple[Point, Point]:
        """With the hatching."""
        return _around((self.start, self.end), self.depth)

    def draw(self, axes: Axes, alpha: float, level: int) -> None:
        """A line and its hatching."""
        origin, vector = np.array(self.start), np.subtract(self.end, self.start)
        size = float(np.hypot(*vector))
        along = vector / size
        right = np.array([along[1], -along[0]])
        for distance in np.arange(self.depth, size + 1e-9, 0.9 * self.depth):
            tip = origin + distance * along
            tail = tip + self.depth * (right - along)
            axes.plot(
                *zip(tip, tail, strict=True),
                color=MUTED,
                linewidth=0.7,
                alpha=alpha,
                zorder=level,
            )
        ends = zip(self.start, self.end, strict=True)
        axes.plot(*ends, color=INK, linewidth=1.2, alpha=alpha, zorder=level)


@dataclass(frozen=True)
class TimeArrow(Shape):
    """The axis of a chart recorder: time runs downwards."""

    top: Point
    length: Number

    def plain(self) -> Plain:
        """Its top and length."""
        return Plain({"kind": "time", "color": MUTED}, (*self.top, self.length))

    def corners(self) -> tuple[Point, Point]:
        """The arrow and its name."""
        x, y = self.top
        return (x - 0.08 * self.length, y - 1.1 * self.length), (x, y)

    def draw(self, axes: Axes, alpha: float, level: int) -> None:
        """A thin arrow with its name."""
        x, y = self.top
        axes.annotate(
            "",
            (x, y - self.length),
            xytext=self.top,
            arrowprops={"arrowstyle": "->", "color": MUTED, "linewidth": 0.8, "shrinkA": 0},
            zorder=level,
        )
        middle = (x, y - self.length / 2)
        axes.annotate(
            "time",
            middle,
            xytext=(-4, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            rotation=90,
            fontsize=8,
            color=MUTED,
            alpha=alpha,
            zorder=level,
        )


def _around(points: tuple[Point, ...], room: Number) -> tuple[Point, Point]:
    xs, ys = zip(*points, strict=True)
    return (min(xs) - room, min(ys) - room), (max(xs) + room, max(ys) + room)


def _numbers(points: tuple[Point, ...]) -> tuple[Number, ...]:
    return tuple(number for point in points for number in point)


@dataclass(frozen=True)
class Plate(Shape):
    """A filled polygon with round corners; `opacity` is that of the fill."""

    points: tuple[Point, ...]
    color: str
    opacity: float = 0.3
    width: float = 2.6

    def plain(self) -> Plain:
        """Its corners."""
        look = {"kind": "plate", "color": self.color, "opacity": self.opacity}
        return Plain({**look, "width": self.width}, _numbers(self.points))

    def corners(self) -> tuple[Point, Point]:
        """Around all of them."""
        return _around(self.points, 0.0)

    def draw(self, axes: Axes, alpha: float, level: int) -> None:
        """White below, so that what lies under it does not show through."""
        common = {"closed": True, "joinstyle": "round", "linewidth": self.width, "zorder": level}
        if alpha == 1.0:
            axes.add_patch(Polygon(self.points, facecolor="white", edgecolor="none", **common))
        fill = Polygon(self.points, facecolor=self.color, edgecolor="none", **common)
        fill.set_alpha(alpha * self.opacity)
        axes.add_patch(fill)
        edge = Polygon(self.points, facecolor="none", edgecolor=self.color, **common)
        edge.set_alpha(alpha)
        axes.add_patch(edge)


@dataclass(frozen=True)
class Line(Shape):
    """A thin line through points."""

    points: tuple[Point, ...]
    color: str = MUTED
    width: float = 1.1

    def plain(self) -> Plain:
        """Its points."""
        look = {"kind": "line", "color": self.color, "width": self.width}
        return Plain(look, _numbers(self.points))

    def corners(self) -> tuple[Point, Point]:
        """Around all of them."""
        return _around(self.points, 0.0)

    def draw(self, axes: Axes, alpha: float, level: int) -> None:
        """As it is."""
        xs, ys = zip(*self.points, strict=True)
        axes.plot(xs, ys, color=self.color, linewidth=self.width, alpha=alpha, zorder=level)
