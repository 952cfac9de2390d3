"""The paper's two diagrams of the forward pass, as blocks and arrows."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from mbdnode.report.style import COLORS, INK, MUTED, SHADE, new_figure, styled
from mbdnode.reproduction.report.chapters import Chapter, Exhibit

_BLUE, _ORANGE, _GREEN = COLORS[:3]


@dataclass(frozen=True)
class Box:
    """A step of the diagram, by its center.

    **Arguments:**

    - `at`, `size`: in the diagram's own units.
    - `text`: its lines.
    - `color`: of the frame.
    - `fill`: of the inside.
    """

    at: tuple[float, float]
    size: tuple[float, float]
    text: str
    color: str = MUTED
    fill: str = "white"

    def draw(self, axes: Axes) -> None:
        """A box with round corners and its text."""
        (x, y), (width, height) = self.at, self.size
        axes.add_patch(
            FancyBboxPatch(
                (x - width / 2 + 0.12, y - height / 2 + 0.12),
                width - 0.24,
                height - 0.24,
                boxstyle="round,pad=0.12",
                facecolor=self.fill,
                edgecolor=self.color,
                linewidth=1.3,
                zorder=3,
            )
        )
        axes.text(x, y, self.text, ha="center", va="center", fontsize=10, color=INK, zorder=4)

    def side(self, name: str) -> tuple[float, float]:
        """The middle of one of its sides: left, right, top or bottom."""
        (x, y), (width, height) = self.at, self.size
        across = {"left": -0.5, "right": 0.5}.get(name, 0.0)
        along = {"bottom": -0.5, "top": 0.5}.get(name, 0.0)
        return x + across * width, y + along * height


def _arrow(axes: Axes, start, end, text: str = "", bend: str = "arc3") -> None:
    axes.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle="-|>",
            mutation_scale=12,
            linewidth=1.2,
            color=INK,
            connectionstyle=bend,
            shrinkA=1,
            shrinkB=1,
            zorder=2,
        )
    )
    if text:
        x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
        axes.text(x, y + 0.16, text, ha="center", va="bottom", fontsize=10, color=INK)


def _loop(axes: Axes, start, end, low: float, text: str) -> None:
    """Back to the beginning, below everything."""
    xs = [start[0], start[0], end[0], end[0]]
    axes.plot(xs, [start[1], low, low, end[1] - 0.25], color=MUTED, linewidth=1.2, zorder=1)
    axes.add_patch(
        FancyArrowPatch(
            (end[0], end[1] - 0.3),
            end,
            arrowstyle="-|>",
            mutation_scale=12,
            linewidth=1.2,
            color=MUTED,
            shrinkB=1,
            zorder=2,
        )
    )
    axes.text(
        (start[0] + end[0]) / 2,
        low,
        text,
        ha="center",
        va="center",
        fontsize=9,
        color=MUTED,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 3},
    )


def _canvas(boxes: Sequence[Box], width: float, low: float, high: float) -> tuple[Figure, Axes]:
    figure = new_figure(0.78 * width, 0.78 * (high - low))
    axes = figure.add_subplot()
    axes.set_xlim(0.0, width)
    axes.set_ylim(low, high)
    axes.set_aspect("equal")
    axes.axis("off")
    for box in boxes:
        box.draw(axes)
    return figure, axes


@styled()
def draw_forward_pass(chapter: Chapter, exhibit: Exhibit) -> Figure:
    """The general pass: inputs enter the network, and constraints complete the state."""
    state = Box((1.35, 3.0), (2.3, 1.3), "state at $t_n$\n$\\mathbf{z}_n,\\ \\dot{\\mathbf{z}}_n$")
    given = Box(
        (1.35, 1.2), (2.3, 1.3), "inputs, time,\nparameters\n$\\mathbf{u}_n,\\ t_n,\\ \\mu$"
    )
    network = Box((5.0, 3.0), (2.6, 1.5), "network\n$f(\\cdot\\,;\\Theta)$\nMBD-NODE", _BLUE, SHADE)
    step = Box((8.9, 3.0), (2.3, 1.5), "integrator\n$\\Phi$, step $\\Delta t$", _ORANGE, "#fdf3ea")
    after = Box(
        (12.5, 3.0),
        (2.5, 1.3),
        "state at $t_{n+1}$\n$\\mathbf{z}_{n+1},\\ \\dot{\\mathbf{z}}_{n+1}$",
    )
    complete = Box(
        (12.5, 5.2),
        (4.6, 1.4),
        "dependent coordinates from\n"
        "$\\phi(\\mathbf{q}) = 0$,   $\\phi_{\\mathbf{q}}\\,\\dot{\\mathbf{q}} = 0$",
        _GREEN,
        "#edf6f2",
    )
    figure, axes = _canvas((state, given, network, step, after, complete), 15.0, -0.4, 6.1)
    _arrow(axes, state.side("right"), network.side("left"))
    _arrow(axes, given.side("right"), (4.6, 2.25), bend="angle3,angleA=0,angleB=90")
    _arrow(axes, network.side("right"), step.side("left"), "$\\ddot{\\mathbf{z}}_n$")
    _arrow(axes, step.side("right"), after.side("left"))
    _arrow(axes, after.side("top"), complete.side("bottom"))
    _loop(axes, after.side("bottom"), (0.9, given.side("bottom")[1]), 0.0, "$n \\to n+1$")
    return figure


@styled()
def draw_forward_pass_with_forces(chapter: Chapter, exhibit: Exhibit) -> Figure:
    """Without constraints: the known acceleration of the forces is added to the network's."""
    state = Box((1.35, 3.4), (2.3, 1.3), "state at $t_n$\n$\\mathbf{z}_n,\\ \\dot{\\mathbf{z}}_n$")
    given = Box((1.35, 1.2), (2.3, 1.2), "external\nforces $\\mathbf{u}_n$")
    network = Box((5.2, 3.4), (2.6, 1.5), "network\n$f(\\cdot\\,;\\Theta)$\nMBD-NODE", _BLUE, SHADE)
    known = Box((5.2, 1.2), (2.6, 1.2), "known mass\n$M^{-1} F(\\mathbf{u}_n)$", _GREEN, "#edf6f2")
    total = Box((8.4, 3.4), (0.8, 0.8), "+")
    step = Box((11.3, 3.4), (2.3, 1.5), "integrator\n$\\Phi$, step $\\Delta t$", _ORANGE, "#fdf3ea")
    after = Box(
        (14.7, 3.4),
        (2.5, 1.3),
        "state at $t_{n+1}$\n$\\mathbf{z}_{n+1},\\ \\dot{\\mathbf{z}}_{n+1}$",
    )
    boxes = (state, given, network, known, total, step, after)
    figure, axes = _canvas(boxes, 16.2, -0.5, 4.6)
    _arrow(axes, state.side("right"), network.side("left"))
    _arrow(axes, given.side("right"), known.side("left"))
    _arrow(axes, network.side("right"), total.side("left"), "$\\ddot{\\mathbf{z}}_{int,n}$")
    _arrow(axes, known.side("right"), total.side("bottom"), bend="angle3,angleA=0,angleB=90")
    axes.text(7.3, 1.36, "$\\ddot{\\mathbf{z}}_{ext,n}$", ha="center", va="bottom", color=INK)
    _arrow(axes, total.side("right"), step.side("left"), "$\\ddot{\\mathbf{z}}_n$")
    _arrow(axes, step.side("right"), after.side("left"))
    _loop(axes, after.side("bottom"), (0.9, given.side("bottom")[1]), -0.1, "$n \\to n+1$")
    return figure
