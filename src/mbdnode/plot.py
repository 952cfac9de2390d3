"""What everybody plots, each by one function, as Matplotlib axes.

A function draws on `ax` and returns it. Without `ax` it makes a figure by `matplotlib.pyplot`, with
a legend where there is more than one line; on axes of your own call `ax.legend()`, since all lines
have labels. Colors are those of the axes' cycle. Lines are labeled, and axes have their units.

`runs` is a trajectory; a truth and its prediction; or several trajectories by name. The first of
several is the reference: a broad, pale line that the limits of the axes are made for.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from mbdnode import evaluation
from mbdnode.errors import UserError
from mbdnode.formatting import error_text
from mbdnode.multibody import AbstractNamed, Coordinate
from mbdnode.naming import unknown_name
from mbdnode.report import panels
from mbdnode.trajectory import Trajectory

__all__ = ["energy", "error", "loss", "motion", "phase_portrait", "residual"]

Runs = Trajectory | Sequence[Trajectory] | Mapping[str, Trajectory]


def loss(fit: Any, ax: Axes | None = None) -> Axes:
    """The loss of every epoch, and that of the validation split where there is one.

    **Arguments:**

    - `fit`: a `Fit`, or its `history`.
    - `ax`: to draw on; new ones if None.

    **Returns:**

    The axes, the vertical one logarithmic.
    """
    history = getattr(fit, "history", fit)
    if not isinstance(history, Sequence) or not all(
        isinstance(row, Mapping) and "loss" in row for row in history
    ):
        raise UserError(
            f"plot.loss was given a {type(fit).__name__}. It takes a Fit, or its history: a row "
            "with 'loss' for each epoch."
        )
    if not history:
        raise UserError(
            "The history has no epochs, so there is no loss to plot. A law has none: it is found "
            "by regression."
        )
    losses = {"training loss": [row["loss"] for row in history]}
    if any("validation_loss" in row for row in history):
        losses["validation loss"] = [row.get("validation_loss", np.nan) for row in history]
    axes = _axes(ax)
    panels.draw_loss(axes, losses)
    return _finished(axes, ax)


def motion(
    system: AbstractNamed,
    runs: Runs,
    columns: str | Sequence[str] | None = None,
    ax: Axes | None = None,
    *,
    train_end_s: float | None = None,
) -> Axes:
    """Coordinates, velocities or inputs over time.

    **Arguments:**

    - `system`: a mechanism or a model, whose coordinates have the units.
    - `runs`: one or several trajectories.
    - `columns`: a name, or several; the independent coordinates if None, or all that move. Color
        tells the column, or of a single column the run.
    - `ax`: to draw on; new ones if None.
    - `train_end_s`: where the training range ends. It is shaded, and predictions are dashed in it
        and dotted after it.

    **Returns:**

    The axes.
    """
    named = _by_name(runs)
    first = next(iter(named.values()))
    names = [columns] if isinstance(columns, str) else list(columns or ())
    for name in names:
        if name not in first.columns:
            raise unknown_name("column", name, first.columns)
    usual = _usual(system, first)
    axes = _axes(ax)
    chosen = names or [c.name for c in usual]
    panels.draw_motion(axes, system, named, chosen, train_end_s)
    return _finished(axes, ax)


def phase_portrait(
    system: AbstractNamed,
    runs: Runs,
    coordinate: str | None = None,
    ax: Axes | None = None,
    *,
    train_end_s: float | None = None,
) -> Axes:
    """Velocity over coordinate, with a dot at the start.

    An angle of more than one turn is folded into one.

    **Arguments:**

    - `system`: a mechanism or a model, whose coordinates have the units.
    - `runs`: one or several trajectories.
    - `coordinate`: which; the first independent one if None, or the first that moves.
    - `ax`: to draw on; new ones if None.
    - `train_end_s`: where the training range ends. Predictions are dashed in it and dotted after.

    **Returns:**

    The axes.
    """
    named = _by_name(runs)
    known = {c.name: c for c in system.coordinates}
    if coordinate is not None and coordinate not in known:
        raise unknown_name("coordinate", coordinate, known)
    usual = _usual(system, next(iter(named.values())))
    axes = _axes(ax)
    chosen = usual[0] if coordinate is None else known[coordinate]
    panels.draw_portrait(axes, [chosen], named, train_end_s)
    return _finished(axes, ax)


def error(
    truth: Trajectory,
    prediction: Runs,
    ax: Axes | None = None,
    *,
    train_end_s: float | None = None,
) -> Axes:
    """The squared error over time, the mean over all coordinates and velocities.

    Its mean over time is the `mse` of `evaluate`, which the label tells.

    **Arguments:**

    - `truth`: what the predictions are compared with.
    - `prediction`: one, or several by name, at the same times.
    - `ax`: to draw on; new ones if None.
    - `train_end_s`: where the training range ends, which is shaded.

    **Returns:**

    The axes, the vertical one logarithmic. Errors that are round-off are drawn in a band.
    """
    named = {"prediction": prediction} if isinstance(prediction, Trajectory) else prediction
    named = _by_name(named)
    labeled = {}
    for name, run in named.items():
        mse = evaluation.evaluate(truth, run).mse
        shown = error_text(mse if np.isfinite(mse) else None)
        labeled[f"{name}: mse {shown}"] = run
    axes = _axes(ax)
    panels.draw_error(axes, truth, labeled, train_end_s)
    return _finished(axes, ax, at_least=1)


def energy(
    system: Any,
    runs: Runs,
    parameters: Mapping[str, Any] | None = None,
    ax: Axes | None = None,
    *,
    train_end_s: float | None = None,
) -> Axes:
    """The energy over time, of a system with a potential.

    **Arguments:**

    - `system`: which defines the masses and the potential, as for `mbdnode.energy`.
    - `runs`: one or several trajectories.
    - `parameters`: those of the rollouts, if not the defaults.
    - `ax`: to draw on; new ones if None.
    - `train_end_s`: where the training range ends. It is shaded, and predictions are dashed in it
        and dotted after it.

    **Returns:**

    The axes.
    """
    curves = [
        (name, np.asarray(run.t), np.asarray(evaluation.energy(system, run, parameters)))
        for name, run in _by_name(runs).items()
    ]
    axes = _axes(ax)
    panels.draw_energy(axes, curves, train_end_s)
    return _finished(axes, ax)


def residual(runs: Runs, ax: Axes | None = None) -> Axes:
    """By how much the constraints of positions and of velocities are broken over time.

    **Arguments:**

    - `runs`: one or several trajectories of `simulate`. Those that were read from files know no
        residuals, which are zero.
    - `ax`: to draw on; new ones if None.

    **Returns:**

    The axes, the vertical one logarithmic.
    """
    named = _by_name(runs)
    axes = _axes(ax)
    panels.draw_residuals(axes, named)
    return _finished(axes, ax)


def _by_name(runs: Any) -> dict[str, Trajectory]:
    """The trajectories, single ones with the same columns, by their labels."""
    if isinstance(runs, Trajectory):
        runs = {"": runs}
    elif isinstance(runs, Sequence) and len(runs) == 2:
        runs = dict(zip(("truth", "prediction"), runs, strict=True))
    if not isinstance(runs, Mapping) or not runs:
        raise UserError(
            f"A plot was given a {type(runs).__name__}. It takes a trajectory, a truth with its "
            "prediction, or several by name: {'truth': truth, 'ours': run}."
        )
    first = None
    for name, run in runs.items():
        if not isinstance(run, Trajectory):
            raise UserError(f"{name!r} is a {type(run).__name__}; a plot takes trajectories.")
        run.require_single("A plot")
        first = first or run
        if run.columns != first.columns:
            raise UserError(
                f"{name!r} has columns {', '.join(run.columns)}, but the first trajectory has "
                f"{', '.join(first.columns)}. Plot one system at a time."
            )
    return dict(runs)


def _usual(system: AbstractNamed, run: Trajectory) -> list[Coordinate]:
    """The independent coordinates where the system names them, or those that move."""
    if not isinstance(system, AbstractNamed):
        raise UserError(
            f"The system is a {type(system).__name__}. Give the mechanism or the model whose "
            "motion it is: its coordinates have the units."
        )
    if system.coordinate_names != run.coordinates:
        raise UserError(
            f"{type(system).__name__} has the coordinates {', '.join(system.coordinate_names)}, "
            f"but the trajectory has {', '.join(run.coordinates)}. Give the system that made it."
        )
    independent = getattr(system, "independent", None)
    if independent:
        return [c for c in system.coordinates if c.name in independent]
    return panels.moving(system, run)


def _axes(ax: Axes | None) -> Axes:
    if ax is None:
        # It makes figures that notebooks show, and is none of an import's business.
        from matplotlib import pyplot

        return pyplot.subplots(layout="constrained")[1]
    if not isinstance(ax, Axes):
        raise UserError(
            f"ax is a {type(ax).__name__}; it must be Matplotlib axes, such as "
            "matplotlib.pyplot.subplots()[1]."
        )
    return ax


def _finished(axes: Axes, ax: Axes | None, at_least: int = 2) -> Axes:
    """With a legend on axes of our own, where one line is not told by the axis."""
    if ax is None and len(axes.get_legend_handles_labels()[1]) >= at_least:
        axes.legend()
    return axes
