"""The cost-quality study: who is on the front, what the marks show, and what a failure does."""

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest
from reproduction.report.samples import chapter, failed_entry, reproduction, row

from mbdnode.report.tables import to_csv, to_markdown
from mbdnode.reproduction.reference import Reference
from mbdnode.reproduction.report.chapters import Entry, make_palette
from mbdnode.reproduction.report.cost_figures import draw_costs, make_cost_plots
from mbdnode.reproduction.report.cost_table import (
    cost_table,
    cost_view,
    find_front,
    gather_costs,
    stairs,
    sum_up,
)

NAME = "single-pendulum"


def trained(recipe, *seeds, model="mbd-node", integrator="rk4"):
    """An entry from the error, training seconds, compile seconds and updates of each seed."""
    model = "law" if recipe in ("fast", "best") else model
    rows = tuple(
        {**row(seed, error), "train_seconds": s, "compile_seconds": c, "updates": updates}
        for seed, (error, s, c, updates) in enumerate(seeds)
    )
    return Entry(model, integrator, recipe, rows)


def study_chapter(**changes):
    entries = (
        trained("paper", (1e-3, 20.0, 1.0, 900), (4e-3, 10.0, 3.0, 900), (2e-3, 60.0, 2.0, 900)),
        trained("fast", (1e-6, 0.5, 4.0, 0)),
        trained("best", (1e-9, 2.0, 5.0, 40)),
        trained("adam-lm", (1e-5, 30.0, 5.0, 700)),
        trained("paper", (3e-1, 8.0, 1.0, 10), model="fcnn", integrator="-"),
    )
    references = (
        Reference("mbd-node", "rk4", 2e-3, "a table"),
        Reference("lstm", "-", 3e-3, "a table"),
        Reference("hnn", "rk4", 1e-2, "a table", incomparable="Another start."),
        Reference("mbd-node", "rk4", 800.0, "another table", "train_seconds"),
    )
    return chapter(NAME, entries, references=references, **changes)


def only_case(*chapters):
    (case,) = gather_costs(reproduction(*chapters))
    return case


def records(table):
    return list(csv.DictReader(io.StringIO(to_csv(table))))


@pytest.mark.parametrize(
    ("points", "on_front"),
    [
        ([(1.0, 1e-2), (2.0, 1e-4), (3.0, 1e-3)], [True, True, False]),
        ([(1.0, 1e-2), (1.0, 1e-3)], [False, True]),
        ([(1.0, 1e-2), (2.0, 1e-2)], [True, False]),
        # Neither of two that are the same is better than the other.
        ([(1.0, 1e-2), (1.0, 1e-2)], [True, True]),
        ([None, (5.0, 1.0)], [False, True]),
        ([None], [False]),
        ([], []),
    ],
)
def test_point_is_on_the_front_if_none_is_as_quick_and_as_accurate(points, on_front):
    assert find_front(points) == on_front


def test_front_is_what_comparing_every_pair_says():
    random = np.random.default_rng(1)
    points = [(float(t), float(e)) for t, e in random.integers(1, 8, (40, 2))]
    expected = []
    for t, e in points:
        beaten = [(t2 < t and e2 <= e) or (t2 <= t and e2 < e) for t2, e2 in points]
        expected.append(not any(beaten))
    assert find_front(points) == expected


def test_point_has_median_least_and_greatest_of_error_and_time():
    point = only_case(study_chapter()).points[0]
    assert point.error is not None
    assert point.training_s is not None
    assert (point.error.median, point.error.min, point.error.max) == (2e-3, 1e-3, 4e-3)
    times = (point.training_s.median, point.training_s.min, point.training_s.max)
    assert times == (20.0, 10.0, 60.0)
    # Compiling is done by the first seed of a process, so that a median would hide it.
    assert (point.compiling_s, point.updates) == (3.0, 900)


def test_front_runs_from_the_quickest_to_the_most_accurate():
    case = only_case(study_chapter())
    assert case.front == [(0.5, 1e-6), (2.0, 1e-9)]
    x, y = stairs(case, view := cost_view([case]))
    # Down at the quickest, level until the next one is done, down again, level forever.
    corners = list(zip(x, y, strict=True))[1:]
    top, end = view.errors[1], view.seconds[1]
    assert corners == [(0.5, top), (0.5, 1e-6), (2.0, 1e-6), (2.0, 1e-9), (end, 1e-9)]


def test_every_recipe_has_a_row_with_all_of_its_cells():
    rows = records(cost_table(reproduction(study_chapter())))
    assert [(r["model"], r["recipe"], r["front"]) for r in rows] == [
        ("MBD-NODE", "paper", "no"),
        ("law", "fast", "yes"),
        ("law", "best", "yes"),
        ("MBD-NODE", "adam-lm", "no"),
        ("FCNN", "paper", "no"),
    ]
    first = rows[0]
    assert [float(first[name]) for name in ("mse", "min", "max")] == [2e-3, 1e-3, 4e-3]
    cells = ("case", "integrator", "seeds", "train [s]", "compile [s]", "updates")
    assert [first[name] for name in cells] == ["Single pendulum", "RK4", "3", "20", "3", "900"]


def test_table_does_not_claim_to_be_the_papers():
    assert "The paper's" not in to_markdown(cost_table(reproduction(study_chapter())))


def test_failed_run_has_a_row_but_no_mark():
    made = study_chapter()
    made = replace(made, entries=(*made.entries[:2], failed_entry()))
    failed = records(cost_table(reproduction(made)))[-1]
    assert (failed["model"], failed["mse"], failed["train [s]"]) == ("FCNN", "", "")
    assert (failed["seeds"], failed["front"]) == ("0 of 2", "no")
    assert [point.entry.model for point, _, _ in only_case(made).placed] == ["mbd-node", "law"]
    assert draw_costs(reproduction(made)) is not None


def test_half_of_the_seeds_without_an_error_is_no_place_on_the_front():
    made = chapter(NAME, (trained("fast", (1e-9, 1.0, 1.0, 0), (None, 1.0, 1.0, 0)),))
    assert only_case(made).front == []
    assert draw_costs(reproduction(made)) is None
    assert sum_up(only_case(made)) == "Single pendulum: no model has an error and a time."


def test_what_is_not_trained_is_no_part_of_the_study():
    numerical = replace(trained("-", (1e-9, 0.0, 0.0, 0)), model="numerical")
    assert gather_costs(reproduction(chapter(NAME, (numerical,)))) == ()


def test_nothing_is_drawn_for_a_case_without_runs():
    others = (chapter("slider-crank", ()), chapter("single-mass-spring", (failed_entry(),)))
    figure = draw_costs(reproduction(study_chapter(), *others))
    assert figure is not None
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["(a)  Single pendulum"]
    assert draw_costs(reproduction(*others)) is None


def marks(axes, shape, fill):
    found = [line for line in axes.get_lines() if line.get_marker() == shape]
    return [
        (line.get_xdata()[0], line.get_ydata()[0])
        for line in found
        if (line.get_markerfacecolor() == "white") == (fill == "open")
    ]


def lines(axes):
    """The lines of two points, as their ends."""
    both = [(line.get_xdata(), line.get_ydata()) for line in axes.get_lines()]
    return [tuple(zip(x, y, strict=True)) for x, y in both if len(x) == 2]


def test_figure_shows_medians_bars_compile_time_and_the_papers_numbers():
    figure = draw_costs(reproduction(study_chapter()))
    assert figure is not None
    (axes,) = figure.axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert marks(axes, "o", "full") == [(20.0, 2e-3), (8.0, 3e-1)]
    assert marks(axes, "o", "open") == [(800.0, 2e-3)]
    drawn = lines(axes)
    assert ((20.0, 1e-3), (20.0, 4e-3)) in drawn  # the seeds' errors
    assert ((10.0, 2e-3), (60.0, 2e-3)) in drawn  # the seeds' times
    assert ((20.0, 2e-3), (23.0, 2e-3)) in drawn  # compiling
    # The LSTM's error is printed without a time; the HNN's is of another problem.
    dotted = [line for line in axes.get_lines() if line.get_linestyle() == ":"]
    assert [line.get_ydata()[0] for line in dotted] == [3e-3]


def test_recipes_differ_in_shape_and_methods_in_color():
    palette = make_palette([study_chapter()])
    laws = [("law", recipe) for recipe in ("fast", "best")]
    methods = [("mbd-node", "paper"), *laws, ("mbd-node", "adam-lm")]
    assert len({palette.mark(method) for method in methods}) == 4
    assert len({palette.color(method) for method in [*methods, ("fcnn", "paper")]}) == 5
    assert palette.mark(("fcnn", "paper")) == palette.mark(("mbd-node", "paper"))


def test_error_of_zero_and_one_beyond_all_measure_stay_in_view():
    made = chapter(
        NAME, (trained("fast", (0.0, 0.0, 0.0, 0)), trained("best", (1e80, 1.0, 0.0, 0)))
    )
    view = cost_view([only_case(made)])
    assert 1e-35 < view.errors[0] < view.errors[1] < 1e6
    assert view.seconds[0] > 0
    assert draw_costs(reproduction(made)) is not None


def test_round_off_is_drawn_as_such_in_a_band_of_its_own():
    entries = (trained("fast", (2e-31, 0.1, 0.0, 0)), trained("best", (7e-26, 1.0, 0.0, 0)))
    made = chapter(NAME, (*entries, trained("adam-lm", (1e-9, 2.0, 0.0, 0))))
    view = cost_view([only_case(made)])
    assert view.round_off == 1e-24
    plots = make_cost_plots([only_case(made)], make_palette([made]))
    heights = [point["error"] for point in plots["cases"][0]["points"]]
    # One height for all that is round-off, within the band.
    assert heights[0] == heights[1]
    assert view.errors[0] < heights[0] < 1e-24
    assert heights[2] == 1e-9
    assert "2.0e-31 (round-off)" in plots["cases"][0]["points"][0]["text"]
    figure = draw_costs(reproduction(made))
    assert figure is not None
    assert "round-off" in [text.get_text() for text in figure.axes[0].texts]


def test_round_off_alone_can_be_drawn(tmp_path):
    # Warnings are errors: labels outside of the axes would leave no room for these.
    figure = draw_costs(reproduction(chapter(NAME, (trained("best", (2e-31, 0.1, 0.0, 0)),))))
    assert figure is not None
    figure.savefig(tmp_path / "costs.png")
    low, high = figure.axes[0].get_ylim()
    assert low < 1e-26 < 1e-22 < high


def test_less_round_off_is_not_more_accurate():
    entries = (trained("fast", (7e-26, 0.1, 0.0, 0)), trained("best", (2e-31, 1.0, 0.0, 0)))
    case = only_case(chapter(NAME, entries))
    assert [point.on_front for point in case.points] == [True, False]
    assert "law RK4, fast" in sum_up(case)
    assert "both the quickest and the most accurate" in sum_up(case)


def test_axis_without_round_off_has_no_band():
    case = only_case(study_chapter())
    assert cost_view([case]).round_off is None


def test_sentence_names_both_ends_of_the_front():
    assert sum_up(only_case(study_chapter())) == (
        "Single pendulum: the quickest is law RK4, fast (mse 1.0e-6, trained in 0.5 s, "
        "compiled in 4 s); the most accurate is law RK4, best (mse 1.0e-9, trained in 2 s, "
        "compiled in 5 s)."
    )
    alone = chapter(NAME, (trained("paper", (1e-3, 10.0, 1.0, 5)),))
    assert sum_up(only_case(alone)) == (
        "Single pendulum: one method alone, MBD-NODE RK4 (mse 1.0e-3, trained in 10 s, compiled "
        "in 1 s)."
    )


def test_plots_of_the_page_hold_the_same_numbers():
    made = study_chapter()
    plots = make_cost_plots([only_case(made)], make_palette([made]))
    json.dumps(plots, allow_nan=False)
    titles = [method["title"] for method in plots["methods"]]
    assert titles == [
        "MBD-NODE, paper",
        "law, fast",
        "law, best",
        "MBD-NODE, adam-lm",
        "FCNN, paper",
    ]
    first = plots["cases"][0]["points"][0]
    assert (first["seconds"], first["error"], first["compiling"]) == (20.0, 2e-3, 3.0)
    assert first["errorRange"] == [1e-3, 4e-3]
    printed = [(one["seconds"], one["error"]) for one in plots["cases"][0]["printed"]]
    assert printed == [(800.0, 2e-3), (None, 3e-3)]
    # What is open is named too, with the color and the shape of its marks.
    named = {one["title"]: (one["place"], one["mark"]) for one in plots["printed"]}
    assert list(named) == ["MBD-NODE, printed in the paper", "LSTM, printed in the paper"]
    shown = [(one["place"], one["mark"]) for one in plots["cases"][0]["printed"]]
    assert shown == list(named.values())


def test_legend_of_the_figure_names_the_papers_open_marks():
    laws = (trained("best", (1e-9, 2.0, 5.0, 40)),)
    figure = draw_costs(reproduction(replace(study_chapter(), entries=laws)))
    assert figure is not None
    (legend,) = figure.legends
    handles = dict(zip([t.get_text() for t in legend.texts], legend.legend_handles, strict=True))
    mark = handles["MBD-NODE, printed in the paper"]
    (axes,) = figure.axes
    (drawn,) = [line for line in axes.get_lines() if line.get_markerfacecolor() == "white"]
    assert (mark.get_marker(), mark.get_color()) == (drawn.get_marker(), drawn.get_color())
    assert mark.get_markerfacecolor() == "white"
