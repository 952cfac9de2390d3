"""The paper's figures of motion, and those of what a model has not seen.

Every kind is a function by name in `DRAWERS`: a new kind is one function and one line there.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mbdnode.evaluation import energy
from mbdnode.formatting import error_text
from mbdnode.multibody import AbstractMechanism, Coordinate
from mbdnode.naming import unknown_name
from mbdnode.report import panels
from mbdnode.report.drawings import find_drawing
from mbdnode.report.pictures import parameter_values
from mbdnode.report.scene import draw_scenery
from mbdnode.report.style import COLORS, INK, MUTED, new_figure, styled
from mbdnode.reproduction.cases.printed import Exhibit
from mbdnode.reproduction.chapters import Chapter
from mbdnode.reproduction.costs import make_palette
from mbdnode.reproduction.folder import StoredRun
from mbdnode.reproduction.results import Result, is_papers
from mbdnode.reproduction.run import Probe
from mbdnode.trajectory import Trajectory

RANDOM_FORCE = "random-force"
_KNOWN = {"color": COLORS[4], "linewidth": 5.0, "alpha": 0.3}
_EXACT = "planned with the equations of motion"

Shown = tuple[Result, StoredRun]


def predicted(chapter: Chapter) -> list[Shown]:
    """The results of a chapter that have a motion, with the run that it is of."""
    return [(result, result.shown) for result in chapter.results if result.shown is not None]


def shown_results(chapter: Chapter) -> list[Shown]:
    """Those that the paper's figures show: with a printed error, and better recipes.

    The paper trains one model with several integrators only to time them.
    """
    references = chapter.case.references
    printed = {(r.model, r.integrator) for r in references if r.quantity == "mse"}
    models = {model for model, _ in printed}
    return [
        (result, run)
        for result, run in predicted(chapter)
        if (result.model, result.integrator) in printed
        or result.model not in models
        or not is_papers(result)
    ]


def _runs(one: StoredRun | Probe) -> dict[str, Trajectory]:
    return {"truth": one.truth, "prediction": one.prediction}


def _result_text(result: Result, run: StoredRun) -> str:
    return panels.result_text(result.full_title, run.truth, run.prediction)


def draw_time_rows(chapter: Chapter) -> Figure:
    """A row for each result: its coordinates on the left, its velocities on the right."""
    shown, mechanism = shown_results(chapter), chapter.case.mechanism
    coordinates = panels.moving(mechanism, shown[0][1].truth)
    names, rates = [c.name for c in coordinates], [c.rate for c in coordinates]
    figure = new_figure(9.6, 0.9 + 1.75 * len(shown))
    grid = figure.subplots(len(shown), 2, squeeze=False, sharex=True)
    for number, (row, (result, run)) in enumerate(zip(grid, shown, strict=True)):
        for column, (axes, which) in enumerate(zip(row, (names, rates), strict=True)):
            panels.draw_motion(axes, mechanism, _runs(run), which, chapter.train_end_s)
            title = "" if column else _result_text(result, run)
            panels.panel_title(axes, 2 * number + column, title)
    for axes in grid[-1]:
        axes.set_xlabel("t [s]")
    figure.align_ylabels()
    panels.add_legend(figure, chapter.train_end_s, names if len(names) > 1 else ())
    return figure


def draw_portraits(chapter: Chapter) -> Figure:
    """A row for each result, a column for each coordinate; side by side if there is but one."""
    shown = shown_results(chapter)
    coordinates = panels.moving(chapter.case.mechanism, shown[0][1].truth)
    rows, columns = len(shown), len(coordinates)
    if columns == 1:
        columns = min(rows, 3)
        rows = -(-rows // columns)
    figure = new_figure(max(3.3 * columns, 6.6), 0.8 + 2.7 * rows)
    places = iter(figure.subplots(rows, columns, squeeze=False).flat)
    number = 0
    for result, run in shown:
        for place, coordinate in enumerate(coordinates):
            axes = next(places)
            panels.draw_portrait(axes, [coordinate], _runs(run), chapter.train_end_s)
            panels.panel_title(axes, number, "" if place else _result_text(result, run))
            number += 1
    for axes in places:
        axes.set_axis_off()
    panels.add_legend(figure, chapter.train_end_s)
    return figure


def draw_portrait_and_energy(chapter: Chapter) -> Figure:
    """All results in one phase plot, and the energy of each over time."""
    shown = shown_results(chapter)
    coordinate = panels.moving(chapter.case.mechanism, shown[0][1].truth)[0]
    figure = new_figure(9.6, 4.3)
    portrait, joules = figure.subplots(1, 2, width_ratios=(1.0, 1.25))
    palette = make_palette([chapter])
    runs = {"truth": shown[0][1].truth} | {r.full_title: run.prediction for r, run in shown}
    for axes in (portrait, joules):
        axes.set_prop_cycle(color=[palette.color(result.method) for result, _ in shown])
    panels.draw_portrait(portrait, [coordinate], runs)
    parameters = dict(chapter.case.parameters)
    energies = [
        (title, np.asarray(run.t), np.asarray(energy(chapter.case.mechanism, run, parameters)))
        for title, run in runs.items()
    ]
    panels.draw_energy(joules, energies)
    panels.time_axis(joules, energies[0][1], chapter.train_end_s)
    level = energies[0][2]
    shown_joules = [level, *(_tame(found, level) for _, _, found in energies[1:])]
    panels.keep_in_view(joules.set_ylim, shown_joules, room=0.15, share=0.05)
    joules.set_xlabel("t [s]")
    panels.panel_title(portrait, 0, "phase space")
    panels.panel_title(joules, 1, "energy")
    handles, labels = portrait.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 6))
    return figure


def _tame(found: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """The energies that are not out of all proportion to the truth's."""
    size = max(float(np.max(np.abs(truth))), 1e-12)
    return found[np.isfinite(found) & (np.abs(found) < 3 * size)]


def draw_errors(chapter: Chapter) -> Figure:
    """The squared error of every result over time, and the loss of its training, if any."""
    every = predicted(chapter)
    losses = {r.full_title: run.history for r, run in every if len(run.history)}
    palette = make_palette([chapter])
    figure = new_figure(9.6, 3.6)
    grid = figure.subplots(1, 1 + bool(losses), squeeze=False)[0]
    trained = [one for one in every if len(one[1].history)]
    for axes, drawn in zip(grid, (every, trained), strict=False):
        axes.set_prop_cycle(color=[palette.color(result.method) for result, _ in drawn])
    predictions = {result.full_title: run.prediction for result, run in every}
    panels.draw_error(grid[0], every[0][1].truth, predictions, chapter.train_end_s)
    grid[0].set_xlabel("t [s]")
    panels.panel_title(grid[0], 0, "squared error")
    if losses:
        panels.draw_loss(grid[1], losses)
        grid[1].set_ylabel("loss")
        panels.panel_title(grid[1], 1, "training loss")
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 4))
    return figure


def draw_starts(chapter: Chapter) -> Figure:
    """Portraits of other motions; the states of the training range lie faintly behind."""
    told = [
        (result, run, probe)
        for result, run in shown_results(chapter)
        for probe in run.probes
        if probe.name != RANDOM_FORCE
    ]
    if not told:
        return nothing_to_show(chapter)
    coordinate = panels.moving(chapter.case.mechanism, told[0][2].truth)[0]
    columns = 2 if len(told) > 1 else 1
    rows = -(-len(told) // columns)
    figure = new_figure(4.4 * columns, 0.8 + 3.0 * rows)
    places = iter(figure.subplots(rows, columns, squeeze=False).flat)
    for number, (result, run, probe) in enumerate(told):
        axes = next(places)
        _draw_known(axes, run.truth, chapter, coordinate)
        panels.draw_portrait(axes, [coordinate], _runs(probe), 0.0)
        panels.panel_title(axes, number, _probe_text(result, probe, chapter))
    for axes in places:
        axes.set_axis_off()
    handles = [Line2D([], [], **panels.REFERENCE, label="truth")]
    handles.append(panels.line(":", "prediction", COLORS[0]))
    if chapter.train_end_s > 0:
        handles.append(Line2D([], [], **_KNOWN, label="states of the training range"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure


def _draw_known(axes: Axes, truth: Trajectory, chapter: Chapter, coordinate: Coordinate) -> None:
    inside = np.asarray(truth.t) <= chapter.train_end_s
    q, v = np.asarray(truth[coordinate.name]), np.asarray(truth[coordinate.rate])
    if chapter.train_end_s > 0:
        axes.plot(q[inside], v[inside], **_KNOWN, zorder=1, label="states of the training range")


def draw_forced(chapter: Chapter) -> Figure:
    """The motion under a random force, and the force, one below the other."""
    for result, run in shown_results(chapter):
        for probe in run.probes:
            if probe.name == RANDOM_FORCE:
                mechanism = chapter.case.mechanism
                moving = panels.moving(mechanism, probe.truth)
                names = [*(c.name for c in moving), *(c.rate for c in moving)]
                names += mechanism.input_names
                figure = new_figure(8.4, 0.9 + 1.6 * len(names))
                grid = figure.subplots(len(names), 1, squeeze=False, sharex=True)[:, 0]
                title = _probe_text(result, probe, chapter)
                _draw_columns(grid, mechanism, _runs(probe), names, title)
                grid[-1].set_xlabel("t [s]")
                panels.add_legend(figure, 0.0)
                return figure
    return nothing_to_show(chapter)


def _draw_columns(
    places: Iterable[Axes],
    mechanism: AbstractMechanism,
    runs: panels.Runs,
    names: Sequence[str],
    title: str,
    train_end_s: float = 0.0,
) -> None:
    """A panel for each column, the title above the first."""
    for number, (axes, name) in enumerate(zip(places, names, strict=True)):
        panels.draw_motion(axes, mechanism, runs, [name], train_end_s)
        panels.panel_title(axes, number, "" if number else title)
        axes.figure.align_ylabels()


def draw_driven(chapter: Chapter) -> Figure:
    """The independent coordinates with their velocities, and the inputs, in two columns."""
    mechanism = chapter.case.mechanism
    names = mechanism.independent or mechanism.coordinate_names
    return _draw_some(chapter, names, mechanism.input_names, height=2.1)


def draw_dependent(chapter: Chapter) -> Figure:
    """All other coordinates that move on the left, their velocities on the right."""
    mechanism = chapter.case.mechanism
    independent = mechanism.independent or ()
    names = [name for name in mechanism.coordinate_names if name not in independent]
    return _draw_some(chapter, names, (), height=1.35)


def _draw_some(
    chapter: Chapter, chosen: Sequence[str], inputs: Sequence[str], height: float
) -> Figure:
    """Of the first result: coordinates that move, each beside its velocity, and inputs."""
    (result, run), mechanism = shown_results(chapter)[0], chapter.case.mechanism
    moving = [c for c in panels.moving(mechanism, run.truth) if c.name in chosen]
    names = [name for c in moving for name in (c.name, c.rate)] + [*inputs]
    figure, places = _two_columns(len(names), height)
    title = _result_text(result, run)
    _draw_columns(places, mechanism, _runs(run), names, title, chapter.train_end_s)
    panels.add_legend(figure, chapter.train_end_s)
    return figure


def _two_columns(count: int, height: float) -> tuple[Figure, Sequence[Axes]]:
    rows = max(1, -(-count // 2))
    figure = new_figure(9.6, 0.9 + height * rows)
    grid = figure.subplots(rows, 2, squeeze=False, sharex=True)
    flat = list(grid.flat)
    for axes in flat[count:]:
        axes.set_axis_off()
    for axes in flat[max(0, count - 2) : count]:
        axes.set_xlabel("t [s]")
        axes.tick_params(labelbottom=True)
    return figure, flat[:count]


def _probe_text(result: Result, probe: Probe, chapter: Chapter) -> str:
    several = sum(bool(run.probes) for _, run in shown_results(chapter)) > 1
    who = f"{result.full_title}, " if several else ""
    return f"{who}{probe.title}: mse {error_text(probe.mse)}"


def draw_controlled(chapter: Chapter) -> Figure:
    """Every state and input of the chapter's loop, and by how much the learned ones differ."""
    shown = shown_results(chapter)
    found = {result.full_title: run.prediction for result, run in shown}
    return draw_loops(chapter.case.mechanism, found, shown[0][1].truth)


@styled()
def draw_loops(
    mechanism: AbstractMechanism, found: panels.Runs, exact: Trajectory, title: str = ""
) -> Figure:
    """Closed loops, by what they plan with, beside the one that plans with the mechanism."""
    columns = _loop_columns(mechanism, exact)
    figure, places = _two_columns(len(columns) + bool(found), 2.1)
    _draw_columns(places[: len(columns)], mechanism, {_EXACT: exact, **found}, columns, "")
    if found:
        _draw_difference(places[-1], columns, exact, found)
        panels.panel_title(places[-1], len(columns), "largest difference of all columns")
    _loop_legend(figure, list(found))
    if title:
        figure.suptitle(title[:1].upper() + title[1:], fontsize=12)
    return figure


def draw_control_trials(chapter: Chapter) -> Figure:
    """A column for each of the chapter's other loops."""
    shown = [(result, run) for result, run in shown_results(chapter) if run.probes]
    if not shown:
        return nothing_to_show(chapter)
    trials, mechanism = shown[0][1].probes, chapter.case.mechanism
    columns = [_loop_columns(mechanism, probe.truth) for probe in trials]
    rows = max(map(len, columns))
    figure = new_figure(max(5.4, 4.8 * len(trials)), 0.9 + 1.7 * rows)
    grid = figure.subplots(rows, len(trials), squeeze=False, sharex="col")
    number = 0
    for place, (probe, names) in enumerate(zip(trials, columns, strict=True)):
        found = {
            result.full_title: other.prediction
            for result, run in shown
            for other in run.probes
            if other.name == probe.name
        }
        for axes, name in zip(grid[:, place], names, strict=False):
            panels.draw_motion(axes, mechanism, {_EXACT: probe.truth, **found}, [name], 0.0)
            panels.panel_title(axes, number, probe.title if name == names[0] else "")
            number += 1
        for axes in grid[len(names) :, place]:
            axes.set_axis_off()
        grid[len(names) - 1, place].set_xlabel("t [s]")
    _loop_legend(figure, [result.full_title for result, _ in shown])
    return figure


def _loop_columns(mechanism: AbstractMechanism, truth: Trajectory) -> list[str]:
    """Independent positions, their velocities, and the inputs that are used."""
    names = mechanism.independent or mechanism.coordinate_names
    chosen = [c for c in mechanism.coordinates if c.name in names]
    used = [name for name in mechanism.input_names if np.ptp(np.asarray(truth[name])) > 0]
    return [*(c.name for c in chosen), *(c.rate for c in chosen), *used]


def _draw_difference(
    axes: Axes, names: Sequence[str], truth: Trajectory, found: panels.Runs
) -> None:
    """In percent of each column's range, on a logarithmic scale."""
    t = np.asarray(truth.t)
    for label, loop in found.items():
        parts = [
            np.abs(np.asarray(loop[name]) - np.asarray(truth[name]))
            / max(float(np.ptp(np.asarray(truth[name]))), 1e-12)
            for name in names
        ]
        # Below round-off there is nothing to see, and no logarithm.
        shown = np.maximum(100 * np.max(parts, axis=0), 1e-16)
        axes.plot(t, shown, linewidth=0.9, label=label)
    axes.set_yscale("log")
    axes.axhline(1.0, color=MUTED, linewidth=0.8, linestyle="--")
    axes.set_ylabel("percent of the range")
    panels.time_axis(axes, t, 0.0)


def _loop_legend(figure: Figure, titles: Sequence[str]) -> None:
    handles = [Line2D([], [], **panels.REFERENCE, label=_EXACT)]
    handles += [
        panels.line(":", f"planned with {title}", COLORS[place % len(COLORS)])
        for place, title in enumerate(titles)
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(3, len(handles)))


def draw_system(chapter: Chapter) -> Figure:
    """The mechanism as it moves in the test, with its parameters."""
    case, (_, run) = chapter.case, predicted(chapter)[0]
    if find_drawing(case.mechanism) is None:
        return nothing_to_show(chapter)
    mu = parameter_values(case.mechanism, case.parameters)
    figure = new_figure(6.6, 3.9)
    axes = figure.subplots()
    draw_scenery(axes, case.mechanism, run.truth, mu)
    panels.panel_title(axes, 0, f"its motion, {float(run.truth.kept.t[-1]):g} s")
    # What has no unit is a switch.
    known = [f"{p.name} = {mu[p.name]:g} {p.unit}" for p in case.mechanism.parameters if p.unit]
    lines = [",  ".join(known[start : start + 6]) for start in range(0, len(known), 6)]
    figure.supxlabel("\n".join(lines), fontsize=8.5, color=MUTED)
    return figure


def nothing_to_show(chapter: Chapter) -> Figure:
    """A figure that says why there are no lines in it."""
    figure = new_figure(6.6, 1.4)
    text = f"{chapter.case.title}: no finished run to show."
    figure.text(0.5, 0.5, text, ha="center", va="center", color=INK)
    return figure


DRAWERS: Mapping[str, Callable[[Chapter], Figure]] = {
    "system": draw_system,
    "over-time": draw_time_rows,
    "phase": draw_portraits,
    "phase-energy": draw_portrait_and_energy,
    "errors": draw_errors,
    "starts": draw_starts,
    "forced": draw_forced,
    "driven": draw_driven,
    "dependent": draw_dependent,
    "controlled": draw_controlled,
    "control-trials": draw_control_trials,
}
# What there is only as a drawing in `diagrams/`.
DIAGRAM = "diagram"

_LINES = (
    "Wide lines are the truth; the prediction is dashed in the training range, dotted after it."
)
_WIDE = "The wide line is the truth, the dotted one the prediction."
_PLANT = "The plant is the same; the controllers differ in the model that they plan with."
_EXPLAINED: Mapping[str, str] = {
    "over-time": _LINES,
    "phase": f"{_LINES} A dot marks the start.",
    "phase-energy": "The wide line is the truth.",
    **dict.fromkeys(("starts", "forced", "driven", "dependent"), _WIDE),
    **dict.fromkeys(("controlled", "control-trials"), _PLANT),
}


def full_caption(exhibit: Exhibit) -> str:
    """A figure's caption with how to read its lines."""
    return f"{exhibit.caption} {_EXPLAINED.get(exhibit.kind, '')}".strip()


@styled()
def draw_exhibit(chapter: Chapter, exhibit: Exhibit) -> Figure:
    """One of a chapter's figures. Raises `UserError` for a kind that nobody draws."""
    if exhibit.kind not in DRAWERS:
        raise unknown_name("kind of figure", exhibit.kind, (*DRAWERS, DIAGRAM))
    # Every figure but that of the system shows predictions.
    shown = predicted(chapter) if exhibit.kind in ("system", "errors") else shown_results(chapter)
    return DRAWERS[exhibit.kind](chapter) if shown else nothing_to_show(chapter)
