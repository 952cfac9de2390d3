"""All cases side by side."""

import math
from collections.abc import Sequence

from matplotlib.figure import Figure

from mbdnode.report.figures import Scene, values
from mbdnode.report.scenery import draw_scenery
from mbdnode.report.style import INK, new_figure, styled


@styled()
def draw_overview(scenes: Sequence[Scene], columns: int = 4) -> Figure:
    """One small drawing for each scene, with the trail of its motion.

    **Arguments:**

    - `scenes`: of mechanisms that have drawings.
    - `columns`: how many stand side by side.

    **Returns:**

    A figure, for `save`.
    """
    rows = math.ceil(len(scenes) / columns)
    figure = new_figure(3.3 * columns, 2.9 * rows)
    for number, scene in enumerate(scenes):
        axes = figure.add_subplot(rows, columns, number + 1)
        draw_scenery(axes, scene.mechanism, scene.trajectory, values(scene))
        axes.set_title(scene.name, fontsize=10, color=INK, pad=6)
    return figure
