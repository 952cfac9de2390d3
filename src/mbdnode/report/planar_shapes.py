"""Two more parts of a drawing, for bodies of any outline: a plate and a line through points."""

from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.patches import Polygon

from mbdnode.report.shapes import Plain, Point, Shape
from mbdnode.report.style import MUTED


def _around(points: tuple[Point, ...]) -> tuple[Point, Point]:
    xs, ys = zip(*points, strict=True)
    return (min(xs), min(ys)), (max(xs), max(ys))


def _numbers(points: tuple[Point, ...]) -> tuple[float, ...]:
    return tuple(number for point in points for number in point)


@dataclass(frozen=True)
class Plate(Shape):
    """A filled polygon with round corners; `opacity` is that of the fill."""

    points: tuple[Point, ...]
    colour: str
    opacity: float = 0.3
    width: float = 2.6

    def plain(self) -> Plain:
        """Its corners."""
        look = {"kind": "plate", "colour": self.colour, "opacity": self.opacity}
        return Plain({**look, "width": self.width}, _numbers(self.points))

    def corners(self) -> tuple[Point, Point]:
        """Around all of them."""
        return _around(self.points)

    def draw(self, axes: Axes, alpha: float, level: int) -> None:
        """White below, so that what lies under it does not show through."""
        common = {"closed": True, "joinstyle": "round", "linewidth": self.width, "zorder": level}
        if alpha == 1.0:
            axes.add_patch(Polygon(self.points, facecolor="white", edgecolor="none", **common))
        fill = Polygon(self.points, facecolor=self.colour, edgecolor="none", **common)
        fill.set_alpha(alpha * self.opacity)
        axes.add_patch(fill)
        edge = Polygon(self.points, facecolor="none", edgecolor=self.colour, **common)
        edge.set_alpha(alpha)
        axes.add_patch(edge)


@dataclass(frozen=True)
class Line(Shape):
    """A thin line through points."""

    points: tuple[Point, ...]
    colour: str = MUTED
    width: float = 1.1

    def plain(self) -> Plain:
        """Its points."""
        look = {"kind": "line", "colour": self.colour, "width": self.width}
        return Plain(look, _numbers(self.points))

    def corners(self) -> tuple[Point, Point]:
        """Around all of them."""
        return _around(self.points)

    def draw(self, axes: Axes, alpha: float, level: int) -> None:
        """As it is."""
        xs, ys = zip(*self.points, strict=True)
        axes.plot(xs, ys, color=self.colour, linewidth=self.width, alpha=alpha, zorder=level)
