"""The tables as Markdown and CSV, with verdicts that follow the numbers."""

import csv
import io
from dataclasses import replace

import pytest
from reproduction.report.samples import (
    changed,
    chapter,
    crank_chapter,
    entry,
    failed_entry,
    mass_spring_chapter,
    of_recipe,
    pendulum_chapter,
    reproduction,
)

from mbdnode.formatting import short_number
from mbdnode.report.tables import Table, Verdict, to_csv, to_markdown
from mbdnode.reproduction.cases.printed import Reference
from mbdnode.reproduction.config import configure
from mbdnode.reproduction.settings_tables import (
    architecture_table,
    cases_table,
    hyperparameter_table,
    methods_table,
)
from mbdnode.reproduction.tables import (
    cost_table,
    error_table,
    judged,
    mass_spring_table,
    study_table,
    time_table,
)


def records(table):
    return list(csv.DictReader(io.StringIO(to_csv(table))))


def test_numbers_are_short_in_markdown_and_whole_in_csv():
    table = Table("tab:x", "A table", ("a", "b"), ((0.000123456, True), (None, "plain")))
    assert "| 1.2e-4 | yes |" in to_markdown(table)
    assert "| - | plain |" in to_markdown(table)
    assert to_csv(table) == "a,b\n0.000123456,yes\n,plain\n"


def test_text_cannot_break_a_row_of_markdown():
    table = Table("tab:x", "A\ntitle", ("a",), (("one | two\nthree",),))
    assert "| one \\| two three |" in to_markdown(table)
    assert "# A title\n" in to_markdown(table)


def test_row_of_the_wrong_length_is_refused():
    with pytest.raises(ValueError, match="one for each heading"):
        Table("tab:x", "A table", ("a", "b"), ((1.0,),))


def test_error_table_has_median_min_and_max_of_the_seeds():
    row = records(error_table(reproduction(pendulum_chapter((1e-3, 4e-3, 2e-3)))))[0]
    assert [float(row[name]) for name in ("paper", "mse", "min", "max")] == [
        2e-3,
        2e-3,
        1e-3,
        4e-3,
    ]
    # Half, twice and four times the mse, in the samples.
    companions = [float(row[name]) for name in ("mse_id", "mse_ood", "mse_sum")]
    assert companions == [1e-3, 4e-3, 8e-3]
    assert (row["verdict"], row["seeds"]) == ("reproduced", "3")


@pytest.mark.parametrize(
    ("errors", "verdict"),
    [
        ((1e-3, 2e-3, 4e-3), "reproduced"),
        ((1e-1, 2e-1, 4e-1), "worse"),
        ((1e-6, 2e-6, 4e-6), "better"),
        ((1e-3, None, None), "failed"),
    ],
)
def test_verdict_follows_the_numbers(errors, verdict):
    table = error_table(reproduction(pendulum_chapter(errors)))
    assert records(table)[0]["verdict"] == verdict
    assert f"| {verdict}: " in to_markdown(table).splitlines()[6]


def test_failed_seed_counts_as_worse_than_any():
    row = records(error_table(reproduction(pendulum_chapter((1e-3, 4e-3, None)))))[0]
    assert float(row["mse"]) == 4e-3
    assert row["seeds"] == "2 of 3"


def test_failed_runs_are_rows_that_say_so():
    table = error_table(reproduction(pendulum_chapter()))
    failed = next(row for row in records(table) if row["model"] == "FCNN")
    assert (failed["verdict"], failed["mse"], failed["seeds"]) == ("failed", "", "0 of 2")
    assert "Single pendulum: FCNN, seeds 0, 1: the worker died twice" in table.notes
    assert "Single pendulum: LSTM, seed 0: diverged (NaN or Inf)" in table.notes


def test_what_was_not_run_is_said_once_and_has_no_rows():
    references = (Reference("hnn", "rk4", 1.9e-2, "a table"),)
    made = reproduction(chapter("single-pendulum", (), (), references))
    table = error_table(made)
    assert not table.rows
    assert "Of the paper's 1 errors and times of these cases, 1 are of" in table.notes[0]
    assert "(HNN)" in table.notes[0]
    assert "mbdnode reproduce" in table.notes[0]
    assert hyperparameter_table(made.chapters[0]) is None
    assert not any("not run" in note for note in error_table(reproduction(crank_chapter())).notes)


def test_number_that_cannot_be_compared_says_why():
    row = records(error_table(reproduction(crank_chapter())))[0]
    assert (row["verdict"], row["verdict reason"]) == ("not comparable", "Another size.")


def test_every_recipe_has_its_own_row_and_verdict():
    rows = records(mass_spring_table(mass_spring_chapter()))
    assert [(row["recipe"], row["verdict"]) for row in rows] == [
        ("paper", "better"),
        ("best", "better"),
    ]
    assert rows[0]["paper's coordinates"] == "generalized"


def test_printed_number_stands_beside_what_it_is_of():
    rows = records(mass_spring_table(mass_spring_chapter()))
    assert [
        (row["model"], row["integrator"], row["recipe"], row["paper's model"]) for row in rows
    ] == [
        ("MBD-NODE", "LF2", "paper", "MBD-NODE LF2"),
        ("law", "RK4", "best", "MBD-NODE LF2"),
    ]
    assert rows[1]["verdict reason"] == "round-off: below 1e-24"


def test_no_row_of_a_law_bears_the_name_of_a_network():
    made = reproduction(mass_spring_chapter())
    for table in (error_table(made), time_table(made), cost_table(made)):
        named = {(row["recipe"], row["model"]) for row in records(table)}
        assert ("best", "law") in named
        assert ("best", "MBD-NODE") not in named
    assert records(cases_table(made))[0]["run here"].endswith("law RK4 (best)")


def test_every_study_has_a_verdict_and_counts():
    chapters = [pendulum_chapter(), crank_chapter()]
    table = study_table(chapters)
    assert table is not None
    assert [(row["study"], row["NRMSE [%]"], row["verdict"]) for row in records(table)] == [
        ("from (1, 0)", "2", "accurate"),
        ("from (-1, 0)", "", "failed"),
        ("under a random force", "20", "inaccurate"),
        ("at a constant speed", "1", "accurate"),
    ]
    assert [row["controller"] for row in records(table)][-1] == (
        "25 steps of 0.04 s; terminal cost: none"
    )
    assert sum(len(r.studies) for made in chapters for r in made.results) == 4
    assert study_table([mass_spring_chapter()]) is None
    plain = study_table([pendulum_chapter()])
    assert plain is not None
    assert "controller" not in plain.headings


def test_error_without_a_printed_number_is_judged_by_itself():
    rows = records(error_table(reproduction(mass_spring_chapter())))
    found = [(r["verdict"], r["paper"]) for r in rows if r["integrator"] == "YS4"]
    assert found == [("accurate", "")]


RECIPES = ("paper", "fast", "best", "adam-lm")
MODEL = {"paper": "mbd-node", "fast": "law", "best": "law", "adam-lm": "mbd-node"}


def chapter_with_recipes():
    """Other recipes than the paper's choose an integrator of which the paper prints nothing."""
    name = "single-mass-spring"
    entries = [
        entry(name, MODEL[recipe], "lf2" if recipe == "paper" else "rk4", recipe=recipe)
        for recipe in RECIPES
    ]
    references = (
        Reference("mbd-node", "lf2", 1.3e-6, "a table"),
        Reference("mbd-node", "lf2", 500.0, "another table", "train_seconds"),
        Reference("mbd-node", "ys4", 900.0, "another table", "train_seconds"),
    )
    return chapter(name, entries, (), references)


@pytest.mark.parametrize("make", [error_table, time_table])
def test_every_recipe_has_one_row_with_its_own_integrator_in_every_table(make):
    rows = [
        r for r in records(make(reproduction(chapter_with_recipes()))) if r["recipe"] in RECIPES
    ]
    assert [(row["recipe"], row["integrator"]) for row in rows] == [
        ("paper", "LF2"),
        ("fast", "RK4"),
        ("best", "RK4"),
        ("adam-lm", "RK4"),
    ]


def test_time_of_another_recipe_is_compared_with_that_of_the_error_it_answers():
    rows = records(time_table(reproduction(chapter_with_recipes())))
    assert [(row["paper [s]"], row["recipe"]) for row in rows] == [
        *(("500", recipe) for recipe in RECIPES),
    ]


def test_time_that_the_paper_does_not_print_is_a_row_all_the_same():
    rows = records(time_table(reproduction(crank_chapter())))
    assert [(r["paper [s]"], r["training [s]"], r["paper / training"]) for r in rows] == [
        ("", "10", "")
    ]


def test_affine_part_that_says_nearly_all_is_named_with_the_error_it_leaves():
    made = pendulum_chapter()
    names = [("free", 1e-10), ("free", 0.5), ("lagrangian", 0.5)]
    entries = []
    for place, (structure, error) in enumerate(names):
        more = {"structure": structure, "nrmse_without_layers": error, "mse_without_layers": 5e-24}
        rows = tuple({**row, **more} for row in made.results[0].rows)
        recipe = ("adam-lm", "paper", "x")[place]
        entries.append(of_recipe(replace(made.results[0], rows=rows), recipe))
    table = error_table(reproduction(changed(made, entries)))
    rows = {row["recipe"]: row for row in records(table)}
    assert rows["adam-lm"]["model"] == "MBD-NODE (free, affine)"
    assert float(rows["adam-lm"]["mse without layers"]) == 5e-24
    assert rows["paper"]["model"] == "MBD-NODE (free)"
    assert rows["x"]["model"] == "MBD-NODE (lagrangian)"
    assert "affine part says nearly all" in " ".join(table.notes)
    assert "mse without layers" not in error_table(reproduction(made)).headings


def test_settings_tables_name_the_recipes_where_there_are_several():
    (row,) = records(cases_table(reproduction(chapter_with_recipes())))
    assert row["run here"] == "MBD-NODE LF2 (paper), law RK4 (fast, best), MBD-NODE RK4 (adam-lm)"


def test_recipe_with_settings_has_a_column_and_one_without_is_named():
    made = chapter_with_recipes()
    other = configure("single-mass-spring", recipe="adam-lm")
    results = [replace(r, config=other) if r.recipe == "adam-lm" else r for r in made.results]
    table = hyperparameter_table(replace(made, results=tuple(results)))
    assert table is not None
    assert table.headings == ("hyper-parameter", "MBD-NODE", "MBD-NODE, adam-lm")
    rows = {name: values for name, *values in table.rows}
    assert rows["Max. epochs"] == ["450", f"{other.training.epochs}"]
    assert table.notes[1:] == (
        "A regression has no such settings, so there are no columns for 'fast', 'best'.",
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [(1254.13, "1254"), (11.0, "11"), (0.0912, "0.0912"), (0.000412345, "0.000412"), (0.0, "0")],
)
def test_times_have_three_digits_and_no_exponent(value, text):
    assert short_number(value) == text


def test_number_of_one_table_does_not_stand_in_another():
    errors = records(error_table(reproduction(mass_spring_chapter())))
    assert "Numerical" not in [row["model"] for row in errors]


def test_tally_counts_what_the_error_table_judges():
    kinds = [result.verdict.kind for result in judged(reproduction().results)]
    assert sorted(kinds) == [
        "accurate",
        "better",
        "better",
        "failed",
        "failed",
        "not comparable",
        "reproduced",
    ]


def test_time_table_keeps_compiling_apart():
    row = records(time_table(reproduction(pendulum_chapter())))[0]
    assert row["paper [s]"] == "800"
    assert (row["training [s]"], row["compiling [s]"]) == ("11", "2")
    assert float(row["paper / training"]) == pytest.approx(800 / 11, rel=1e-2)


def test_times_of_shortened_runs_are_not_passed_off_as_the_recipes():
    whole, quick = (time_table(reproduction(pendulum_chapter(), quick=q)) for q in (False, True))
    assert not any("shortened" in note for note in whole.notes)
    assert any("shortened" in note for note in quick.notes)


def test_cases_table_names_what_was_run():
    row = records(cases_table(reproduction(pendulum_chapter())))[0]
    assert row["models in the paper"] == "MBD-NODE, LSTM, FCNN"
    assert row["run here"] == "MBD-NODE RK4, LSTM, FCNN"
    assert row["runs"] == "6"


def test_integrator_alone_is_no_model_of_the_paper():
    (row,) = records(cases_table(reproduction(mass_spring_chapter())))
    assert row["models in the paper"] == "MBD-NODE"


def test_case_without_a_printed_error_names_the_model_of_its_table():
    (row,) = records(cases_table(reproduction(chapter("slider-crank", ()))))
    assert row["models in the paper"] == "MBD-NODE"


def test_hyperparameters_stand_in_rows_with_the_papers_words():
    table = hyperparameter_table(pendulum_chapter())
    assert table is not None
    assert table.headings == ("hyper-parameter", "MBD-NODE", "LSTM", "FCNN")
    rows = {name: values for name, *values in table.rows}
    assert rows["Max. epochs"] == ["400", "400", "600"]
    assert rows["Batch size"] == ["1", "16", "1"]


def test_integrators_of_the_same_settings_share_a_column():
    name = "single-mass-spring-damper"
    made = [
        replace(entry("single-mass-spring", integrator=i), config=configure(name, integrator=i))
        for i in ("rk4", "mp2")
    ]
    table = hyperparameter_table(chapter("single-mass-spring", made))
    assert table is not None
    assert table.rows[0] == ("integrator", "RK4, MP2")


def test_architecture_has_the_layers_that_were_run():
    name = "slider-crank"
    made = entry(name, recipe="adam-lm")
    made = replace(made, rows=({**made.rows[0], "layers": [5, 64, 1]},))
    table = architecture_table(reproduction(pendulum_chapter(), chapter(name, (made,))))
    rows = records(table)
    layers = ("input", "hidden 1", "hidden 2", "output")
    assert [(row["case"], row["model"], *(row[x] for x in layers)) for row in rows[1:]] == [
        ("Single pendulum", "MBD-NODE, paper", "3", "256", "256", "1"),
        ("Slider crank", "MBD-NODE, adam-lm", "5", "64", "", "1"),
    ]
    assert (rows[1]["activation"], rows[1]["initialization"]) == ("tanh", "xavier")


def test_law_has_no_layers():
    made = chapter("single-pendulum", (entry("single-pendulum", "law", recipe="best"),))
    table = architecture_table(reproduction(made))
    assert [row[0] for row in table.rows] == ["in the paper"]
    assert table.notes == ("No MBD-NODE was run: a law has no network and no layers.",)


def test_difference_to_the_papers_marks_has_a_footnote():
    table = methods_table()
    marks = {row[0]: dict(zip(table.headings, row, strict=True)) for row in table.rows}
    assert marks["Works with constraints"]["MBD-NODE"] == "yes"
    assert marks["Works on dissipative systems"]["HNN"] == "no"
    assert marks["Takes forces that change with time"]["FCNN"] == "no"
    assert marks["No need for second-order derivatives"]["LNN"] == "no [1]"
    assert table.notes[1].startswith(
        "[1] LNN, no need for second-order derivatives: the paper says yes. It is trained on acc"
    )


def test_verdict_is_a_verdict_and_no_text():
    cells = [row[-1] for row in error_table(reproduction(pendulum_chapter())).rows]
    assert all(isinstance(cell, Verdict) for cell in cells)


def test_entries_of_failed_runs_have_no_median():
    assert failed_entry().median() is None
    assert failed_entry().median("train_seconds") is None
    assert entry("single-pendulum", errors=(1.0, 3.0)).median() == 2.0
