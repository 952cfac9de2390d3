"""The paper's figures of motion, and those of what a model has not seen.

A figure is a list of panels in rows. Every kind is a function by name in `DRAWERS`: a new kind is
one function and one line there.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain, repeat, zip_longest

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mbdnode.evaluation import energy
from mbdnode.formatting import error_text
from mbdnode.multibody import AbstractMechanism
from mbdnode.naming import unknown_name
from mbdnode.report import panels
from mbdnode.report.drawings import find_drawing
from mbdnode.report.panels import Panel, lay_out
from mbdnode.report.pictures import parameter_values
from mbdnode.report.scene import draw_scenery
from mbdnode.report.style import COLORS, INK, MUTED, new_figure, styled
from mbdnode.reproduction.cases.printed import Exhibit
from mbdnode.reproduction.chapters import Chapter
from mbdnode.reproduction.folder import StoredRun
from mbdnode.reproduction.palette import make_palette
from mbdnode.reproduction.results import Result, is_papers
from mbdnode.reproduction.run import Probe
from mbdnode.trajectory import Trajectory

RANDOM_FORCE = "random-force"
_KNOWN = {"color": COLORS[4], "linewidth": 5.0, "alpha": 0.3}
_EXACT = "planned with the equations of motion"

Shown = Sequence[tuple[Result, StoredRun]]


def predicted(chapter: Chapter) -> Shown:
    """The results of a chapter that have a motion, with the run that it is of."""
    return [(result, result.shown) for result in chapter.results if result.shown is not None]


def shown_results(chapter: Chapter) -> Shown:
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


def _motions(
    mechanism: AbstractMechanism,
    runs: panels.Runs,
    names: Sequence[str],
    title: str = "",
    train_end_s: float = 0.0,
) -> list[Panel]:
    """A panel over time for each column, the title above the first."""
    titles = chain([title], repeat(""))
    return [
        Panel(title, panels.draw_motion, (mechanism, runs, [name], train_end_s))
        for title, name in zip(titles, names, strict=False)
    ]


def _draw_time_rows(chapter: Chapter, shown: Shown) -> Figure:
    """A row for each result: its coordinates on the left, its velocities on the right."""
    mechanism, end_s = chapter.case.mechanism, chapter.train_end_s
    coordinates = panels.moving(mechanism, shown[0][1].truth)
    names, rates = [c.name for c in coordinates], [c.rate for c in coordinates]
    drawn = [
        Panel(title, panels.draw_motion, (mechanism, _runs(run), columns, end_s))
        for result, run in shown
        for title, columns in ((_result_text(result, run), names), ("", rates))
    ]
    figure = lay_out(drawn, 2, 1.75, same_x=True)
    panels.add_legend(figure, end_s, names if len(names) > 1 else ())
    return figure


def _draw_portraits(chapter: Chapter, shown: Shown) -> Figure:
    """A row for each result, a column for each coordinate; side by side if there is but one."""
    coordinates = panels.moving(chapter.case.mechanism, shown[0][1].truth)
    drawn = [
        Panel(title, panels.draw_portrait, ([coordinate], _runs(run), chapter.train_end_s))
        for result, run in shown
        for title, coordinate in zip_longest([_result_text(result, run)], coordinates, fillvalue="")
    ]
    columns = len(coordinates) if len(coordinates) > 1 else min(len(shown), 3)
    figure = lay_out(drawn, columns, 2.7, max(3.3 * columns, 6.6), 0.8)
    panels.add_legend(figure, chapter.train_end_s)
    return figure


def _draw_portrait_and_energy(chapter: Chapter, shown: Shown) -> Figure:
    """All results in one phase plot, and the energy of each over time."""
    mechanism, truth = chapter.case.mechanism, shown[0][1].truth
    runs = {"truth": truth} | {r.full_title: run.prediction for r, run in shown}
    colors, coordinates = _colors(chapter, shown), panels.moving(mechanism, truth)[:1]
    drawn = [
        Panel("phase space", panels.draw_portrait, (coordinates, runs), colors),
        Panel("energy", _draw_energies, (chapter, runs), colors),
    ]
    figure = lay_out(drawn, 2, 4.3, beside_in=0.0, widths=(1.0, 1.25))
    _legend(figure, figure.axes[0].get_legend_handles_labels()[0], 6)
    return figure


def _colors(chapter: Chapter, shown: Shown) -> list[str]:
    palette = make_palette([chapter])
    return [palette.color(result.method) for result, _ in shown]


def _draw_energies(axes: Axes, chapter: Chapter, runs: panels.Runs) -> None:
    """In view is all that is not out of all proportion to the truth's."""
    mechanism, parameters = chapter.case.mechanism, chapter.case.parameters
    t = np.asarray(runs["truth"].t)
    found = {title: np.asarray(energy(mechanism, run, parameters)) for title, run in runs.items()}
    panels.draw_energy(axes, [(title, t, joules) for title, joules in found.items()])
    panels.time_axis(axes, t, chapter.train_end_s)
    truth, *others = found.values()
    most = 3 * max(float(np.max(np.abs(truth))), 1e-12)
    tame = [joules[np.isfinite(joules) & (np.abs(joules) < most)] for joules in others]
    panels.keep_in_view(axes.set_ylim, [truth, *tame], room=0.15, share=0.05)


def _legend(figure: Figure, handles: Sequence[Artist], columns: int) -> None:
    ncols = min(len(handles), columns)
    figure.legend(handles=handles, loc="outside lower center", ncols=ncols)


def _draw_errors(chapter: Chapter, shown: Shown) -> Figure:
    """The squared error of every result over time, and the loss of its training, if any."""
    trained = [(result, run) for result, run in shown if run.history]
    errors = {result.full_title: run.prediction for result, run in shown}
    given = shown[0][1].truth, errors, chapter.train_end_s
    drawn = [Panel("squared error", panels.draw_error, given, _colors(chapter, shown))]
    if trained:
        losses = {result.full_title: run.history for result, run in trained}
        colors = _colors(chapter, trained)
        drawn.append(Panel("training loss", panels.draw_loss, (losses, "loss"), colors))
    figure = lay_out(drawn, len(drawn), 3.6, beside_in=0.0)
    _legend(figure, figure.axes[0].get_legend_handles_labels()[0], 4)
    return figure


def _draw_starts(chapter: Chapter, shown: Shown) -> Figure:
    """Portraits of other motions; the states of the training range lie faintly behind."""
    drawn = [
        Panel(_probe_text(result, probe, shown), _draw_start, (chapter, run, probe))
        for result, run in shown
        for probe in run.probes
        if probe.name != RANDOM_FORCE
    ]
    if not drawn:
        return nothing_to_show(chapter)
    columns = 2 if len(drawn) > 1 else 1
    figure = lay_out(drawn, columns, 3.0, 4.4 * columns, 0.8)
    handles = [Line2D([], [], **panels.REFERENCE, label="truth")]
    handles.append(panels.line(":", "prediction", COLORS[0]))
    if chapter.train_end_s > 0:
        handles.append(Line2D([], [], **_KNOWN, label="states of the training range"))
    _legend(figure, handles, 3)
    return figure


def _draw_start(axes: Axes, chapter: Chapter, run: StoredRun, probe: Probe) -> None:
    coordinate = panels.moving(chapter.case.mechanism, probe.truth)[0]
    inside = np.asarray(run.truth.t) <= chapter.train_end_s
    if chapter.train_end_s > 0:
        q, v = (np.asarray(run.truth[name])[inside] for name in (coordinate.name, coordinate.rate))
        axes.plot(q, v, **_KNOWN, zorder=1)
    panels.draw_portrait(axes, [coordinate], _runs(probe), 0.0)


def _probe_text(result: Result, probe: Probe, shown: Shown) -> str:
    several = sum(bool(run.probes) for _, run in shown) > 1
    who = f"{result.full_title}, " if several else ""
    return f"{who}{probe.title}: mse {error_text(probe.mse)}"


def _draw_forced(chapter: Chapter, shown: Shown) -> Figure:
    """The motion under a random force, and the force, one below the other."""
    mechanism = chapter.case.mechanism
    for result, run in shown:
        for probe in run.probes:
            if probe.name == RANDOM_FORCE:
                moving = panels.moving(mechanism, probe.truth)
                names = [*(c.name for c in moving), *(c.rate for c in moving)]
                names += mechanism.input_names
                title = _probe_text(result, probe, shown)
                drawn = _motions(mechanism, _runs(probe), names, title)
                figure = lay_out(drawn, 1, 1.6, 8.4, same_x=True)
                panels.add_legend(figure, 0.0)
                return figure
    return nothing_to_show(chapter)


def _draw_driven(chapter: Chapter, shown: Shown) -> Figure:
    """The independent coordinates with their velocities, and the inputs, in two columns."""
    mechanism = chapter.case.mechanism
    names = mechanism.independent or mechanism.coordinate_names
    return _draw_some(chapter, shown, names, mechanism.input_names, height_in=2.1)


def _draw_dependent(chapter: Chapter, shown: Shown) -> Figure:
    """All other coordinates that move on the left, their velocities on the right."""
    mechanism = chapter.case.mechanism
    independent = mechanism.independent or ()
    names = [name for name in mechanism.coordinate_names if name not in independent]
    return _draw_some(chapter, shown, names, (), height_in=1.35)


def _draw_some(
    chapter: Chapter, shown: Shown, chosen: Sequence[str], inputs: Sequence[str], height_in: float
) -> Figure:
    """Of the first result: coordinates that move, each beside its velocity, and inputs."""
    (result, run), mechanism = shown[0], chapter.case.mechanism
    moving = [c for c in panels.moving(mechanism, run.truth) if c.name in chosen]
    names = [name for c in moving for name in (c.name, c.rate)] + [*inputs]
    title = _result_text(result, run)
    drawn = _motions(mechanism, _runs(run), names, title, chapter.train_end_s)
    figure = lay_out(drawn, 2, height_in, same_x=True)
    panels.add_legend(figure, chapter.train_end_s)
    return figure


def _draw_controlled(chapter: Chapter, shown: Shown) -> Figure:
    """Every state and input of the chapter's loop, and by how much the learned ones differ."""
    found = {result.full_title: run.prediction for result, run in shown}
    return draw_loops(chapter.case.mechanism, found, shown[0][1].truth)


@styled()
def draw_loops(
    mechanism: AbstractMechanism, found: panels.Runs, exact: Trajectory, title: str = ""
) -> Figure:
    """Closed loops, by what they plan with, beside the one that plans with the mechanism."""
    columns = _loop_columns(mechanism, exact)
    drawn = _motions(mechanism, {_EXACT: exact, **found}, columns)
    if found:
        title_of_all = "largest difference of all columns"
        drawn.append(Panel(title_of_all, _draw_difference, (columns, exact, found)))
    figure = lay_out(drawn, 2, 2.1, same_x=True)
    _loop_legend(figure, list(found))
    if title:
        figure.suptitle(title[:1].upper() + title[1:], fontsize=12)
    return figure


def _draw_control_trials(chapter: Chapter, shown: Shown) -> Figure:
    """A column for each of the chapter's other loops."""
    shown = [(result, run) for result, run in shown if run.probes]
    if not shown:
        return nothing_to_show(chapter)
    mechanism, columns = chapter.case.mechanism, []
    for exact in shown[0][1].probes:
        found = {
            result.full_title: probe.prediction
            for result, run in shown
            for probe in run.probes
            if probe.name == exact.name
        }
        names = _loop_columns(mechanism, exact.truth)
        columns.append(_motions(mechanism, {_EXACT: exact.truth, **found}, names, exact.title))
    drawn = [panel for row in zip_longest(*columns) for panel in row]
    figure = lay_out(drawn, len(columns), 1.7, max(5.4, 4.8 * len(columns)), same_x=True)
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
    exact = np.stack([np.asarray(truth[name]) for name in names])
    width = np.maximum(np.ptp(exact, axis=1, keepdims=True), 1e-12)
    for label, loop in found.items():
        away = np.abs(np.stack([np.asarray(loop[name]) for name in names]) - exact) / width
        # Below round-off there is nothing to see, and no logarithm.
        shown = np.maximum(100 * np.max(away, axis=0), 1e-16)
        axes.plot(np.asarray(truth.t), shown, linewidth=0.9, label=label)
    axes.set_yscale("log")
    axes.axhline(1.0, color=MUTED, linewidth=0.8, linestyle="--")
    axes.set_ylabel("percent of the range")
    panels.time_axis(axes, np.asarray(truth.t), 0.0)


def _loop_legend(figure: Figure, titles: Sequence[str]) -> None:
    handles = [Line2D([], [], **panels.REFERENCE, label=_EXACT)]
    handles += [
        panels.line(":", f"planned with {title}", COLORS[place % len(COLORS)])
        for place, title in enumerate(titles)
    ]
    _legend(figure, handles, 3)


def _draw_system(chapter: Chapter, shown: Shown) -> Figure:
    """The mechanism as it moves in the test, with its parameters."""
    case, truth = chapter.case, shown[0][1].truth
    if find_drawing(case.mechanism) is None:
        return nothing_to_show(chapter)
    mu = parameter_values(case.mechanism, case.parameters)
    title = f"its motion, {float(truth.kept.t[-1]):g} s"
    figure = lay_out([Panel(title, draw_scenery, (case.mechanism, truth, mu))], 1, 3.9, 6.6, 0.0)
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


_LINES = (
    "Wide lines are the truth; the prediction is dashed in the training range, dotted after it."
)
_WIDE = "The wide line is the truth, the dotted one the prediction."
_PLANT = "The plant is the same; the controllers differ in the model that they plan with."
# Every kind: the function, and how to read its lines.
DRAWERS: Mapping[str, tuple[Callable[[Chapter, Shown], Figure], str]] = {
    "system": (_draw_system, ""),
    "over-time": (_draw_time_rows, _LINES),
    "phase": (_draw_portraits, f"{_LINES} A dot marks the start."),
    "phase-energy": (_draw_portrait_and_energy, "The wide line is the truth."),
    "errors": (_draw_errors, ""),
    "starts": (_draw_starts, _WIDE),
    "forced": (_draw_forced, _WIDE),
    "driven": (_draw_driven, _WIDE),
    "dependent": (_draw_dependent, _WIDE),
    "controlled": (_draw_controlled, _PLANT),
    "control-trials": (_draw_control_trials, _PLANT),
}
# What there is only as a drawing in `diagrams/`.
DIAGRAM = "diagram"


def full_caption(exhibit: Exhibit) -> str:
    """A figure's caption with how to read its lines."""
    explained = "" if exhibit.kind == DIAGRAM else DRAWERS[exhibit.kind][1]
    return f"{exhibit.caption} {explained}".strip()


@styled()
def draw_exhibit(chapter: Chapter, exhibit: Exhibit) -> Figure:
    """One of a chapter's figures. Raises `UserError` for a kind that nobody draws."""
    if exhibit.kind not in DRAWERS:
        raise unknown_name("kind of figure", exhibit.kind, (*DRAWERS, DIAGRAM))
    # Every figure but that of the system shows predictions.
    shown = predicted(chapter) if exhibit.kind in ("system", "errors") else shown_results(chapter)
    draw, _ = DRAWERS[exhibit.kind]
    return draw(chapter, shown) if shown else nothing_to_show(chapter)
