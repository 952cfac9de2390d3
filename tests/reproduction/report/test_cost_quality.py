"""The cost-quality study: who is on the front, what the marks show, and what a failure does."""

import csv
import io
import json

import numpy as np
import pytest
from reproduction.report.samples import changed, chapter, failed_entry, reproduction, result, row

from mbdnode.report.tables import to_csv, to_markdown
from mbdnode.reproduction.cases.printed import Reference
from mbdnode.reproduction.costs import draw_costs, has_trained, placed, sum_up
from mbdnode.reproduction.palette import make_palette
from mbdnode.reproduction.plots import read_figure
from mbdnode.reproduction.results import is_on_front
from mbdnode.reproduction.tables import cost_table

NAME = "single-pendulum"


def trained(recipe, *seeds, model="mbd-node", integrator="rk4"):
    """An entry from the error, training seconds, compile seconds and updates of each seed."""
    model = "law" if recipe in ("fast", "best") else model
    rows = tuple(
        {**row(seed, error), "train_seconds": s, "compile_seconds": c, "updates": updates}
        for seed, (error, s, c, updates) in enumerate(seeds)
    )
    return result(NAME, model, integrator, recipe, rows)


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


def study_figure(*chapters):
    figure = draw_costs(chapters)
    assert figure is not None
    return figure


def front(made):
    return sorted(r.cost for r in made.results if r.on_front)


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
    assert [is_on_front(point, points) for point in points] == on_front


def test_front_is_what_comparing_every_pair_says():
    random = np.random.default_rng(1)
    points = [(float(t), float(e)) for t, e in random.integers(1, 8, (40, 2))]
    expected = []
    for t, e in points:
        beaten = [(t2 < t and e2 <= e) or (t2 <= t and e2 < e) for t2, e2 in points]
        expected.append(not any(beaten))
    assert [is_on_front(point, points) for point in points] == expected


def test_cost_is_the_median_of_time_and_error():
    first = study_chapter().results[0]
    assert first.cost == (20.0, 2e-3)
    # Compiling is done by the first seed of a process, so that a median would hide it.
    assert (first.compile_seconds, first.median("updates")) == (3.0, 900)


def test_front_runs_from_the_quickest_to_the_most_accurate():
    made = study_chapter()
    assert front(made) == [(0.5, 1e-6), (2.0, 1e-9)]
    (axes,) = study_figure(made).axes
    (line,) = [line for line in axes.get_lines() if line.get_drawstyle() == "steps-post"]
    # Down at the quickest, level until the next one is done, down again, level forever.
    corners = list(zip(*line.get_data(), strict=True))
    top, end = axes.get_ylim()[1], axes.get_xlim()[1]
    assert corners == [(0.5, top), (0.5, 1e-6), (2.0, 1e-9), (end, 1e-9)]


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
    cells = ("case", "integrator", "seeds", "training [s]", "compiling [s]", "updates")
    assert [first[name] for name in cells] == ["Single pendulum", "RK4", "3", "20", "3", "900"]


def test_table_does_not_claim_to_be_the_papers():
    assert "The paper's" not in to_markdown(cost_table(reproduction(study_chapter())))


def test_failed_run_has_a_row_but_no_mark():
    made = study_chapter()
    made = changed(made, (*made.results[:2], failed_entry()))
    failed = records(cost_table(reproduction(made)))[-1]
    assert (failed["model"], failed["mse"], failed["training [s]"]) == ("FCNN", "", "")
    assert (failed["seeds"], failed["front"]) == ("0 of 2", "no")
    assert [result.model for result in placed(made)] == ["mbd-node", "law"]
    assert draw_costs([made]) is not None


def test_half_of_the_seeds_without_an_error_is_no_place_on_the_front():
    made = chapter(NAME, (trained("fast", (1e-9, 1.0, 1.0, 0), (None, 1.0, 1.0, 0)),))
    assert front(made) == []
    assert draw_costs([made]) is None
    assert sum_up(made) == "Single pendulum: no model has an error and a time."


def test_what_is_not_trained_is_no_part_of_the_study():
    made = chapter(NAME, (trained("-", (1e-9, 0.0, 0.0, 0), model="numerical"),))
    assert not has_trained(made)
    assert cost_table(reproduction(made)).rows == ()


def test_nothing_is_drawn_for_a_case_without_runs():
    others = (chapter("slider-crank", ()), chapter("single-mass-spring", (failed_entry(),)))
    figure = study_figure(study_chapter(), *others)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["(a)  Single pendulum"]
    assert draw_costs(others) is None


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
    (axes,) = study_figure(study_chapter()).axes
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
    (axes,) = study_figure(made).axes
    assert 1e-35 < axes.get_ylim()[0] < axes.get_ylim()[1] < 1e6
    assert axes.get_xlim()[0] > 0


def test_round_off_is_drawn_as_such_in_a_band_of_its_own():
    entries = (trained("fast", (2e-31, 0.1, 0.0, 0)), trained("best", (7e-26, 1.0, 0.0, 0)))
    made = chapter(NAME, (*entries, trained("adam-lm", (1e-9, 2.0, 0.0, 0))))
    (axes,) = study_figure(made).axes
    palette = make_palette([made])
    shapes = [palette.mark(result.method) for result in made.results]
    (fast,), (best,), (network,) = (marks(axes, shape, "full") for shape in shapes)
    # One height for all that is round-off, within the band.
    assert fast[1] == best[1]
    assert axes.get_ylim()[0] < fast[1] < 1e-24
    assert network[1] == 1e-9
    assert "round-off" in [text.get_text() for text in axes.texts]
    told = [line.get_gid() for line in axes.get_lines() if line.get_marker() == shapes[0]]
    assert "2.0e-31 (round-off)" in told[0]


def test_round_off_alone_can_be_drawn(tmp_path):
    # Warnings are errors: labels outside of the axes would leave no room for these.
    figure = study_figure(chapter(NAME, (trained("best", (2e-31, 0.1, 0.0, 0)),)))
    figure.savefig(tmp_path / "costs.png")
    low, high = figure.axes[0].get_ylim()
    assert low < 1e-26 < 1e-22 < high


def test_less_round_off_is_not_more_accurate():
    entries = (trained("fast", (7e-26, 0.1, 0.0, 0)), trained("best", (2e-31, 1.0, 0.0, 0)))
    made = chapter(NAME, entries)
    assert [result.on_front for result in made.results] == [True, False]
    assert "law RK4, fast" in sum_up(made)
    assert "both the quickest and the most accurate" in sum_up(made)


def test_axis_without_round_off_has_no_band():
    assert not study_figure(study_chapter()).axes[0].texts


def test_sentence_names_both_ends_of_the_front():
    assert sum_up(study_chapter()) == (
        "Single pendulum: the quickest is law RK4, fast (mse 1.0e-6, trained in 0.5 s, "
        "compiled in 4 s); the most accurate is law RK4, best (mse 1.0e-9, trained in 2 s, "
        "compiled in 5 s)."
    )
    alone = chapter(NAME, (trained("paper", (1e-3, 10.0, 1.0, 5)),))
    assert sum_up(alone) == (
        "Single pendulum: one method alone, MBD-NODE RK4 (mse 1.0e-3, trained in 10 s, compiled "
        "in 1 s)."
    )


def test_plots_of_the_page_hold_the_same_numbers():
    figure = study_figure(study_chapter())
    figure.draw_without_rendering()
    plot = read_figure(figure)
    assert plot is not None
    json.dumps(plot, allow_nan=False)
    assert set(plot["names"]) == {
        "Pareto front",
        "MBD-NODE, printed in the paper",
        "LSTM, printed in the paper",
        "MBD-NODE, paper",
        "law, fast",
        "law, best",
        "MBD-NODE, adam-lm",
        "FCNN, paper",
    }
    (panel,) = plot["panels"]
    points = {
        line["text"].partition(" (")[0]: (line["x"], line["y"], line["mark"])
        for line in panel["lines"]
        if line["mark"]
    }
    assert points["MBD-NODE RK4, paper"] == ([20.0], [2e-3], "circle")
    assert points["The paper's MBD-NODE RK4, mse 2.0e-3, training 13 min 20 s"] == (
        [800.0],
        [2e-3],
        "circle-open",
    )


def test_legend_of_the_figure_names_the_papers_open_marks():
    laws = (trained("best", (1e-9, 2.0, 5.0, 40)),)
    figure = study_figure(changed(study_chapter(), laws))
    (legend,) = figure.legends
    handles = dict(zip([t.get_text() for t in legend.texts], legend.legend_handles, strict=True))
    mark = handles["MBD-NODE, printed in the paper"]
    (axes,) = figure.axes
    (drawn,) = [line for line in axes.get_lines() if line.get_markerfacecolor() == "white"]
    assert (mark.get_marker(), mark.get_color()) == (drawn.get_marker(), drawn.get_color())
    assert mark.get_markerfacecolor() == "white"
