"""The paper's figures of the systems themselves: the parts with their names, and the motion."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mbdnode.multibody import consistent_state, resolve_parameters
from mbdnode.report import panels
from mbdnode.report.chapters import Chapter, Exhibit
from mbdnode.report.drawings import find_drawing
from mbdnode.report.labels import LABELLED
from mbdnode.report.motion_figures import nothing_to_show
from mbdnode.report.scenery import draw_scenery
from mbdnode.report.shapes import TimeArrow
from mbdnode.report.style import MUTED, new_figure, styled


@styled()
def draw_system(chapter: Chapter, exhibit: Exhibit) -> Figure:
    """The mechanism with its parts named, and beside it how it moves in the test."""
    drawing = find_drawing(chapter.mechanism)
    if drawing is None:
        return nothing_to_show(chapter)
    mu = parameter_values(chapter)
    truths = [entry.truth for entry in chapter.entries if entry.truth is not None]
    labelled = LABELLED.get(type(chapter.mechanism))
    wanted = [part for part, there in (("parts", labelled), ("motion", truths)) if there]
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


def parameter_values(chapter: Chapter) -> dict[str, float]:
    """Every parameter's value."""
    mu = resolve_parameters(chapter.mechanism, dict(chapter.parameters))
    return {name: float(value) for name, value in mu.items()}


def _draw_parts(axes: Axes, chapter: Chapter, mu: dict[str, float]) -> None:
    drawing, labelled = find_drawing(chapter.mechanism), LABELLED[type(chapter.mechanism)]
    assert drawing is not None
    state = consistent_state(chapter.mechanism, labelled.pose, parameters=dict(chapter.parameters))
    q = np.asarray(state.q)
    for shape in drawing.ground(q[None], mu):
        if not isinstance(shape, TimeArrow):
            shape.draw(axes, 1.0, 2)
    for level, shape in enumerate(drawing.parts(q, mu), 3):
        shape.draw(axes, 1.0, level)
    for mark in labelled.marks(q, mu):
        mark.draw(axes)
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.08)
    axes.autoscale_view()
    axes.axis("off")


def _parameter_text(chapter: Chapter, mu: dict[str, float]) -> str:
    """The values, a few on a line."""
    known = [
        f"{p.name} = {mu[p.name]:g} {p.unit}".strip()
        for p in chapter.mechanism.parameters
        if p.unit  # What has no unit is a switch.
    ]
    lines = [known[start : start + 6] for start in range(0, len(known), 6)]
    return "\n".join(",  ".join(line) for line in lines)
