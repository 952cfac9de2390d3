"""The paper's figures of the systems themselves: the parts with their names, and the motion.

The names are marks on the mechanism's drawing. A new mechanism gets them by one entry in
`LABELED`; without one, its drawing has none.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Arc

from mbdnode.mechanisms import (
    CartPole,
    DoublePendulum,
    SingleMassSpring,
    SingleMassSpringDamper,
    SinglePendulum,
    SliderCrank,
    TripleMassSpringDamper,
)
from mbdnode.multibody import AbstractMechanism, consistent_state
from mbdnode.report import panels
from mbdnode.report.drawings import find_drawing
from mbdnode.report.pictures import (
    draw_pose,
    draw_scenery,
    fill_place,
    parameter_values,
)
from mbdnode.report.shapes import Line, Point
from mbdnode.report.shapes import Word as DrawnWord
from mbdnode.report.style import INK, MUTED, new_figure, styled
from mbdnode.reproduction.report.chapters import Chapter, Exhibit
from mbdnode.reproduction.report.motion_figures import nothing_to_show

Parameters = Mapping[str, float]
_TOP = 20  # Marks cover everything else.


@dataclass(frozen=True)
class Word:
    """A name beside a part."""

    at: Point
    text: str
    color: str = INK

    def draw(self, axes: Axes) -> None:
        """Centered on its place."""
        axes.text(
            *self.at,
            self.text,
            ha="center",
            va="center",
            color=self.color,
            fontsize=12,
            zorder=_TOP,
        )
        # A text does not move the limits of the axes; a point does.
        axes.plot(*self.at, alpha=0.0)


@dataclass(frozen=True)
class Arrow:
    """A direction, with its name at the tip."""

    start: Point
    end: Point
    text: str

    def draw(self, axes: Axes) -> None:
        """A thin arrow."""
        axes.annotate(
            "",
            self.end,
            xytext=self.start,
            arrowprops={"arrowstyle": "-|>", "color": INK, "linewidth": 1.1, "shrinkA": 0},
            zorder=_TOP,
        )
        size = np.subtract(self.end, self.start)
        tip = np.asarray(self.end) + 0.18 * size
        Word((float(tip[0]), float(tip[1])), self.text).draw(axes)


@dataclass(frozen=True)
class Angle:
    """An angle between two directions, in radians from the x axis, with its name."""

    at: Point
    radius: float
    start: float
    end: float
    text: str

    def draw(self, axes: Axes) -> None:
        """A dashed line where it starts, an arc, the name outside."""
        x, y = self.at
        reach = 1.5 * self.radius
        axes.plot(
            [x, x + reach * np.cos(self.start)],
            [y, y + reach * np.sin(self.start)],
            color=MUTED,
            linewidth=0.9,
            linestyle=(0, (4, 3)),
            zorder=_TOP,
        )
        low, high = sorted((np.degrees(self.start), np.degrees(self.end)))
        size = 2 * self.radius
        axes.add_patch(
            Arc(self.at, size, size, theta1=low, theta2=high, color=INK, linewidth=1.1, zorder=_TOP)
        )
        middle = (self.start + self.end) / 2
        far = 1.35 * self.radius
        Word((x + far * np.cos(middle), y + far * np.sin(middle)), self.text).draw(axes)


Mark = Word | Arrow | Angle
_DOWN = -np.pi / 2


@dataclass(frozen=True)
class Labeled:
    """A pose that shows the parts well, and the marks in it.

    **Arguments:**

    - `pose`: what is known of it, by coordinate.
    - `marks`: from the coordinates in that pose and the parameters.
    """

    pose: Mapping[str, float]
    marks: Callable[[np.ndarray, Parameters], Sequence[Mark]]


def _beside(start: Point, end: Point, text: str, distance: float) -> Word:
    """A name at the middle of a rod, to its left as seen from its start."""
    a, b = np.asarray(start), np.asarray(end)
    along = (b - a) / np.hypot(*(b - a))
    at = (a + b) / 2 + distance * np.array([-along[1], along[0]])
    return Word((float(at[0]), float(at[1])), text)


def _single_pendulum(q: np.ndarray, mu: Parameters) -> list[Mark]:
    angle, size = float(q[0]), mu["L"]
    bob = (size * np.sin(angle), -size * np.cos(angle))
    return [
        Angle((0.0, 0.0), 0.36 * size, _DOWN, _DOWN + angle, r"$\theta$"),
        _beside((0.0, 0.0), bob, "$L$", 0.09 * size),
        Word((bob[0] + 0.17 * size, bob[1] + 0.02 * size), "$m$"),
        Arrow((bob[0], bob[1] - 0.12 * size), (bob[0], bob[1] - 0.36 * size), "$mg$"),
    ]


def _double_pendulum(q: np.ndarray, mu: Parameters) -> list[Mark]:
    size = mu["l1"] + mu["l2"]
    first = (mu["l1"] * np.sin(q[0]), -mu["l1"] * np.cos(q[0]))
    second = (first[0] + mu["l2"] * np.sin(q[1]), first[1] - mu["l2"] * np.cos(q[1]))
    return [
        Angle((0.0, 0.0), 0.2 * size, _DOWN, _DOWN + float(q[0]), r"$\theta_1$"),
        Angle(first, 0.2 * size, _DOWN, _DOWN + float(q[1]), r"$\theta_2$"),
        _beside((0.0, 0.0), first, "$l_1$", 0.06 * size),
        _beside(first, second, "$l_2$", 0.06 * size),
        Word((first[0] + 0.1 * size, first[1] + 0.05 * size), "$m_1$"),
        Word((second[0] + 0.1 * size, second[1] + 0.02 * size), "$m_2$"),
    ]


def _cart_pole(q: np.ndarray, mu: Parameters) -> list[Mark]:
    angle, size, x = float(q[0]), mu["l"], float(q[1])
    tip = (x + size * np.sin(angle), size * np.cos(angle))
    up = np.pi / 2
    return [
        Angle((x, 0.0), 0.5 * size, up, up - angle, r"$\theta$"),
        _beside(tip, (x, 0.0), "$l$", 0.11 * size),
        Word((tip[0] + 0.2 * size, tip[1]), "$m$"),
        Word((x - 0.2 * size, -0.12 * size), "$M$", "white"),
        Arrow((x - 0.95 * size, -0.1 * size), (x - 0.5 * size, -0.1 * size), ""),
        Word((x - 0.82 * size, 0.03 * size), "$u$"),
        Arrow((x, -0.62 * size), (x + 0.6 * size, -0.62 * size), "$x$"),
    ]


def _slider_crank(q: np.ndarray, mu: Parameters) -> list[Mark]:
    size = mu["l"]
    pin = (size * float(np.cos(q[2])), size * float(np.sin(q[2])))
    slider = (float(q[6]), float(q[7]))
    return [
        Angle((0.0, 0.0), 0.42 * size, 0.0, float(q[2]), r"$\theta_1$"),
        _beside((0.0, 0.0), pin, "$l$", 0.16 * size),
        _beside(pin, slider, "$r$", 0.16 * size),
        Angle(slider, 0.55 * size, np.pi, np.pi + float(q[5]), r"$\theta_2$"),
        Arrow((slider[0] + 0.36 * size, 0.0), (slider[0] + 0.85 * size, 0.0), "$F$"),
        Word((-0.2 * size, 0.3 * size), "$T$"),
        Word((slider[0], 0.33 * size), "$m_3$"),
    ]


def _masses(count: int, damped: bool) -> Callable[[np.ndarray, Parameters], list[Mark]]:
    """The names of masses in a row, at the places that the drawing gives them."""

    def marks(q: np.ndarray, mu: Parameters) -> list[Mark]:
        names = [""] if count == 1 else [f"_{number}" for number in range(1, count + 1)]
        masses = [mu[f"m{name.strip('_')}"] for name in names]
        relaxed = 2.4 if count == 1 else 1.8
        widths = np.array([1.3 * (mass / max(masses)) ** 0.15 for mass in masses])
        centers = np.cumsum(widths + relaxed) - widths / 2
        low = float(np.min(widths))
        found: list[Mark] = []
        for name, center, width in zip(names, centers, widths, strict=True):
            middle = float(center - width / 2 - relaxed / 2)
            found.append(Word((float(center), float(width / 2)), f"$m{name}$", "white"))
            level = 0.7 * low if damped else 0.5 * low
            found.append(Word((middle, level + (0.42 if count == 1 else 0.6) * low), f"$k{name}$"))
            if damped:
                found.append(Word((middle, -0.5), f"$d{name}$"))
        end = float(centers[-1])
        top = float(widths[-1]) + 0.3
        found.append(Arrow((end, top), (end + 0.9, top), "$x$" if count == 1 else "$x_3$"))
        return found

    return marks


LABELED: dict[type[AbstractMechanism], Labeled] = {
    SingleMassSpring: Labeled({}, _masses(1, damped=False)),
    SingleMassSpringDamper: Labeled({}, _masses(1, damped=True)),
    TripleMassSpringDamper: Labeled({}, _masses(3, damped=True)),
    SinglePendulum: Labeled({"theta": 0.65}, _single_pendulum),
    DoublePendulum: Labeled({"theta1": 0.5, "theta2": 1.05}, _double_pendulum),
    CartPole: Labeled({"theta": 0.5, "x": 0.0}, _cart_pole),
    SliderCrank: Labeled({"theta1": 1.0}, _slider_crank),
}


@styled()
def draw_system(chapter: Chapter, exhibit: Exhibit) -> Figure:
    """The mechanism with its parts named, and beside it how it moves in the test."""
    drawing = find_drawing(chapter.mechanism)
    if drawing is None:
        return nothing_to_show(chapter)
    mu = parameter_values(chapter.mechanism, chapter.parameters)
    truths = [entry.truth for entry in chapter.entries if entry.truth is not None]
    labeled = LABELED.get(type(chapter.mechanism))
    wanted = [part for part, there in (("parts", labeled), ("motion", truths)) if there]
    if not wanted:
        return nothing_to_show(chapter)
    figure = new_figure(4.8 * len(wanted), 3.9)
    places = figure.subplots(1, len(wanted), squeeze=False)[0]
    for number, (axes, part) in enumerate(zip(places, wanted, strict=True)):
        if part == "parts":
            _draw_parts(axes, chapter, mu)
            panels.panel_title(axes, number, "the system")
        else:
            draw_scenery(axes, chapter.mechanism, truths[0], mu)
            panels.panel_title(axes, number, f"its motion, {float(truths[0].kept.t[-1]):g} s")
    figure.supxlabel(_parameter_text(chapter, mu), fontsize=8.5, color=MUTED)
    return figure


def _draw_parts(axes: Axes, chapter: Chapter, mu: dict[str, float]) -> None:
    drawing, labeled = find_drawing(chapter.mechanism), LABELED[type(chapter.mechanism)]
    assert drawing is not None
    state = consistent_state(chapter.mechanism, labeled.pose, parameters=dict(chapter.parameters))
    q = np.asarray(state.q)
    for shape in drawing.ground(q[None], mu):
        if not isinstance(shape, (Line, DrawnWord)):  # Nothing is recorded on the paper.
            shape.draw(axes, 1.0, 2)
    draw_pose(axes, drawing, q, mu)
    for mark in labeled.marks(q, mu):
        mark.draw(axes)
    fill_place(axes, 0.08)


def _parameter_text(chapter: Chapter, mu: dict[str, float]) -> str:
    """The values, a few on a line."""
    known = [
        f"{p.name} = {mu[p.name]:g} {p.unit}".strip()
        for p in chapter.mechanism.parameters
        if p.unit  # What has no unit is a switch.
    ]
    lines = [known[start : start + 6] for start in range(0, len(known), 6)]
    return "\n".join(",  ".join(line) for line in lines)
