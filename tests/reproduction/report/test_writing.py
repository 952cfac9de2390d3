"""The files of a report: all there, whole, named safely, with nothing from outside run as code."""

import base64
import io
import re
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from reproduction.report.samples import (
    changed,
    chapter,
    entry,
    failed_entry,
    of_recipe,
    pendulum_chapter,
    reproduction,
)

from mbdnode.reproduction.cases.printed import Exhibit
from mbdnode.reproduction.figures import DIAGRAM, DRAWERS
from mbdnode.reproduction.report import diagram, file_name, write_report


def test_every_kind_of_figure_is_drawn_as_png_and_pdf(written):
    exhibits = [e for chapter in reproduction().chapters for e in chapter.case.exhibits]
    assert {e.kind for e in exhibits} == {*DRAWERS, DIAGRAM}
    for exhibit in exhibits:
        if exhibit.kind == DIAGRAM:
            continue
        stem = written / "figures" / file_name(exhibit.label)
        pixels = np.asarray(Image.open(f"{stem}.png").convert("L"))
        assert pixels.shape[1] > 400
        # Something is drawn, on a white ground.
        assert 0.005 < np.mean(pixels < 200) < 0.5
        assert stem.with_suffix(".pdf").read_bytes().startswith(b"%PDF")


def test_committed_drawing_is_a_file_and_on_the_page(tmp_path):
    made = chapter("single-pendulum", (entry("single-pendulum"),))
    label = "fig: MNODE_un"
    made = changed(made, exhibits=(Exhibit(label, DIAGRAM, "The forward pass."),))
    page = write_report(reproduction(made), tmp_path).read_text()
    drawing = (tmp_path / "figures" / "fig-MNODE_un.svg").read_text()
    assert drawing == diagram(label)
    assert drawing in page


def test_cost_quality_study_is_drawn_beside_the_papers_figures(written):
    assert (written / "figures" / "cost-quality.png").stat().st_size > 5_000
    assert (written / "figures" / "cost-quality.pdf").read_bytes().startswith(b"%PDF")


def test_figure_of_other_runs_does_not_stay(tmp_path):
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "cost-quality.png").write_bytes(b"of other runs")
    write_report(reproduction(chapter("single-pendulum", (failed_entry(),))), tmp_path)
    assert list((tmp_path / "figures").iterdir()) == []


def test_tables_are_written_as_markdown_and_csv(written):
    names = {path.name for path in (written / "tables").iterdir()}
    expected = {
        "tab-model_errors",
        "tab-sms_test",
        "tab-time_cost",
        "tab-tests",
        "tab-methods_comparison",
        "tab-model_architecture",
        "tab-hyper_single-pendulum",
        "tab-hyper_single-mass-spring",
        "tab-hyper_slider-crank",
        "cost-quality",
        "laws",
        "studies",
    }
    assert names == {f"{name}.{kind}" for name in expected for kind in ("md", "csv")}


def test_no_part_of_a_file_is_left_behind(written):
    assert [path for path in written.rglob("*") if path.name.startswith(".")] == []


def test_page_says_what_the_tables_say_when_a_number_gets_worse(tmp_path):
    for errors, verdict in (((2e-3,), "reproduced"), ((2e1,), "worse")):
        made = changed(pendulum_chapter(errors), exhibits=())
        page = write_report(reproduction(made), tmp_path).read_text()
        row = page[page.index("MBD-NODE</td>") :]
        assert row.index(f'data-verdict="{verdict}"') < row.index("</tr>")
        assert f"| {verdict}: " in (tmp_path / "tables" / "tab-model_errors.md").read_text()


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>'])
def test_text_from_outside_is_never_code(tmp_path, text):
    page, pngs = page_with_text_everywhere(text, tmp_path / "hostile")
    harmless, _ = page_with_text_everywhere("harmless", tmp_path / "harmless")
    assert text not in page
    assert page.count("<script") == harmless.count("<script")
    # The figure, that of errors and that of costs.
    assert len(pngs) == 3
    assert all(png.stem.replace("-", "").isalnum() for png in pngs)


def page_with_text_everywhere(text, folder):
    """The page of a reproduction in which every text from outside is `text`, and its pictures."""
    made = pendulum_chapter()
    made = changed(
        made,
        (of_recipe(made.results[0], text), failed_entry(text, text)),
        title=text,
        source=text,
        notes=(text,),
        exhibits=(replace(made.case.exhibits[0], caption=text, label=f"fig:{text}"),),
    )
    page = write_report(
        reproduction(made, command=text, machine=text, versions={text: text}), folder
    ).read_text()
    return page, list((folder / "figures").glob("*.png"))


def test_page_defines_its_models_and_recipes_in_a_line_each(written):
    page = (written / "report.html").read_text()
    for name, text in (
        ("recipe paper", "as the paper says"),
        ("recipe best", "a law, by regression"),
        ("law", "equations of motion found by regression, without a network"),
        ("MBD-NODE", "a network for the accelerations of the minimal coordinates"),
    ):
        assert f"<dt>{name}</dt><dd>{text}" in page
    assert "<dt>HNN</dt>" not in page


def test_page_of_laws_has_no_axes_for_a_loss_and_no_word_of_a_network(tmp_path):
    law = chapter("single-pendulum", (entry("single-pendulum", "law", recipe="best"),), ("phase",))
    page = write_report(reproduction(law, seeds=1), tmp_path).read_text()
    shown = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert "training loss" not in page
    assert "most accurate" not in shown
    assert "one method alone, law RK4" in shown
    tables = "".join(path.read_text() for path in (tmp_path / "tables").glob("*.md"))
    assert "| law |" in tables


def test_page_tells_when_settings_were_shortened(written, tmp_path):
    assert "Quick settings." in (written / "report.html").read_text()
    made = reproduction(changed(pendulum_chapter(), exhibits=()))
    assert "Quick settings." not in write_report(made, tmp_path).read_text()


def test_chapter_in_which_everything_failed_still_has_its_place(tmp_path):
    kinds = list(DRAWERS)
    made = chapter("single-pendulum", (failed_entry(),), kinds)
    page = write_report(reproduction(made), tmp_path).read_text()
    assert "the worker died twice" in page
    assert '<div class="film"' not in page
    assert len(list((tmp_path / "figures").glob("*.png"))) == len(kinds)


def test_two_cases_with_the_same_label_keep_both_files(tmp_path):
    made = pendulum_chapter()
    made = changed(made, exhibits=made.case.exhibits[1:2])
    twin = changed(made, name="single-pendulum:twin", title="Twin")
    write_report(reproduction(made, twin), tmp_path)
    names = {path.stem for path in (tmp_path / "figures").glob("fig*.png")}
    assert len(names) == 2
    tables = {path.stem for path in (tmp_path / "tables").glob("tab-hyper*.md")}
    assert tables == {"tab-hyper_single-pendulum", "tab-hyper_single-pendulum-Twin"}


def test_same_data_gives_the_same_files(tmp_path):
    made = pendulum_chapter()
    made = reproduction(changed(made, exhibits=made.case.exhibits[:1]))
    contents = []
    for name in ("first", "second"):
        write_report(made, tmp_path / name)
        files = sorted(path for path in (tmp_path / name).rglob("*") if path.is_file())
        contents.append([path.read_bytes() for path in files])
    assert contents[0] == contents[1]


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("fig: MNODE_con", "fig-MNODE_con"),
        ("tab:sms_test", "tab-sms_test"),
        ("../../etc/passwd", "etc-passwd"),
        ("..", "unnamed"),
        ("", "unnamed"),
    ],
)
def test_labels_become_safe_file_names(label, name):
    assert file_name(label) == name


def test_names_that_differ_only_in_capitals_are_kept_apart():
    assert file_name("fig:A", ["fig-a"]) == "fig-A-2"


def test_pictures_of_the_page_are_the_figures(written):
    page = (written / "report.html").read_text()
    first = page.split("data:image/png;base64,", 1)[1].split('"', 1)[0]
    shown = Image.open(io.BytesIO(base64.b64decode(first))).convert("RGB")
    file = Image.open(written / "figures" / "fig-single-mass-spring-system.png")
    assert shown.size == file.size
    difference = np.asarray(shown, int) - np.asarray(file.convert("RGB"), int)
    assert np.mean(np.abs(difference)) < 3
