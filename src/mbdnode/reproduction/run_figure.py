"""The figure in the folder of a run: dashed in the training range, dotted after it."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from mbdnode.multibody import AbstractNamed
from mbdnode.report import panels
from mbdnode.report.style import new_figure, styled
from mbdnode.trajectory import Trajectory

_MOST_SHOWN = 6


@styled()
def draw_run(
    title: str,
    system: AbstractNamed,
    truth: Trajectory,
    prediction: Trajectory,
    train_end_s: float = 0.0,
    history: Sequence[float] = (),
) -> Figure:
    """Up to six coordinates that move, over time and in phase space; error, and loss if any."""
    moving = panels.moving(system, truth)[:_MOST_SHOWN]
    runs = {"truth": truth, "prediction": prediction}
    figure = new_figure(13.0, 1.2 + 2.3 * (len(moving) + 1))
    figure.suptitle(title, fontsize=13)
    places = figure.subplots(len(moving) + 1, 3, squeeze=False, width_ratios=(1.5, 1.5, 1.0))
    for row, coordinate in zip(places, moving, strict=False):
        for axes, name in zip(row, (coordinate.name, coordinate.rate), strict=False):
            panels.draw_motion(axes, system, runs, [name], train_end_s)
        panels.draw_portrait(row[2], [coordinate], runs, train_end_s)
    error, loss, nothing = places[-1]
    panels.draw_error(error, truth, {"prediction": prediction}, train_end_s)
    if history:
        panels.draw_loss(loss, {"training loss": history})
    else:
        loss.set_axis_off()
    nothing.set_axis_off()
    panels.add_legend(figure, train_end_s)
    return figure
