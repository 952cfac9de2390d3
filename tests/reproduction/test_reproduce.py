"""The whole: what is left to do, what is written, what is refused."""

import csv
import dataclasses
import json
from pathlib import Path
from unittest.mock import Mock

import pytest

from mbdnode.data.folders import open_folder
from mbdnode.errors import UserError
from mbdnode.reproduction.cases import get_case
from mbdnode.reproduction.chapters import gather
from mbdnode.reproduction.dispatch import run_here
from mbdnode.reproduction.plan import Request, make_plan
from mbdnode.reproduction.reproduce import (
    KIND,
    Workplace,
    command_line,
    is_reported,
    read_results,
    report,
    run_plan,
    unfinished,
)

HERE = Workplace()


def nothing(sign):
    pass


@pytest.fixture(scope="module")
def finished(tiny_plan, tmp_path_factory):
    """A folder with all of it: runs, results, report."""
    out = tmp_path_factory.mktemp("whole") / "out"
    left = unfinished(tiny_plan, out, resume=False)
    rows = run_plan(tiny_plan, left, out, HERE, nothing)
    return out, report(tiny_plan, rows, out, HERE)


def test_results_are_a_row_for_each_run_as_in_its_folder(finished, tiny_plan):
    out, _ = finished
    (result,) = read_results(out)
    assert [row["seed"] for row in result.rows] == [0, 1]
    for row, run in zip(result.rows, tiny_plan.runs, strict=True):
        stored = json.loads((out / "runs" / run.name / "metrics.json").read_text())
        assert row == {**stored, "quick": False}
    assert json.loads((out / "plan.json").read_text())["seeds"] == 2
    assert is_reported(out)
    assert any((out / "tables").iterdir())
    assert any((out / "figures").iterdir())


def test_chapter_is_read_from_the_folders(finished):
    out, reproduction = finished
    (chapter,) = reproduction.chapters
    case = get_case(chapter.case.name)
    shown = chapter.case
    assert (shown.references, shown.exhibits) == (case.references, case.exhibits)
    (result,) = chapter.results
    assert (result.model, result.integrator, result.recipe) == ("mbd-node", "fe1", "paper")
    with open(out / "runs" / "tiny-0" / "truth.csv", newline="") as file:
        positions = [float(row["x"]) for row in csv.DictReader(file)]
    assert result.shown.truth.q[:, 0].tolist() == pytest.approx(positions)
    assert len(result.shown.history) == 3
    times = [row["train_seconds"] + row["compile_seconds"] for row in result.rows]
    assert reproduction.seconds == pytest.approx(sum(times))


def test_shown_motion_is_that_of_the_median_seed(finished, tiny_plan, tiny_run, tmp_path):
    runs = (*tiny_plan.runs, tiny_run("better", seed=2, epochs="300", learning_rate="0.01"))
    plan = dataclasses.replace(tiny_plan, runs=runs)
    run_here(runs, tmp_path, nothing)
    (result,) = gather(plan, {}, tmp_path, command="").results
    errors = {row["mse"]: row["seed"] for row in result.rows}
    middle, run = sorted(errors)[1], result.shown
    shown = run.prediction.q - run.truth.q, run.prediction.v - run.truth.v
    mse = sum(float((part**2).mean()) for part in shown) / 2
    assert mse == pytest.approx(middle, rel=1e-6)
    assert result.median() == pytest.approx(middle)


def test_failed_run_is_a_row_and_not_a_motion(tiny_run, tiny_plan, tmp_path):
    bad = tiny_run("bad", window="100000")
    plan = dataclasses.replace(tiny_plan, runs=(bad,))
    left = unfinished(plan, tmp_path, resume=False)
    rows = run_plan(plan, left, tmp_path, HERE, nothing)
    reproduction = report(plan, rows, tmp_path, HERE)
    (result,) = reproduction.results
    assert result.shown is None
    assert read_results(tmp_path)[0].rows[0]["outcome"] == "failed"
    # It can be tried again, but not by accident.
    with pytest.raises(ValueError, match="--resume"):
        unfinished(plan, tmp_path, resume=False)
    assert unfinished(plan, tmp_path, resume=True) == [bad]


def test_finished_plan_leaves_nothing_to_do(finished, tiny_plan):
    out, _ = finished
    assert unfinished(tiny_plan, out, resume=False) == []
    assert unfinished(tiny_plan, out, resume=True) == []


def test_resume_does_what_is_left(finished, tiny_plan, tmp_path):
    first, second = tiny_plan.runs
    alone = dataclasses.replace(tiny_plan, runs=(first,))
    run_plan(alone, [first], tmp_path, HERE, nothing)
    before = (tmp_path / "runs" / first.name / "metrics.json").stat().st_mtime_ns
    with pytest.raises(ValueError, match=r"1 of 2 runs are not finished. Go on with --resume"):
        unfinished(tiny_plan, tmp_path, resume=False)
    left = unfinished(tiny_plan, tmp_path, resume=True)
    assert left == [second]
    run_plan(tiny_plan, left, tmp_path, HERE, nothing)
    assert unfinished(tiny_plan, tmp_path, resume=False) == []
    assert (tmp_path / "runs" / first.name / "metrics.json").stat().st_mtime_ns == before


def test_result_of_a_stopped_training_is_not_finished(finished, tiny_plan, tmp_path):
    run_plan(tiny_plan, list(tiny_plan.runs), tmp_path, HERE, nothing)
    metrics = tmp_path / "runs" / "tiny-0" / "metrics.json"
    metrics.write_text(metrics.read_text().replace('"completed"', '"interrupted"'))
    assert unfinished(tiny_plan, tmp_path, resume=True) == [tiny_plan.runs[0]]


def test_folder_of_another_request_is_refused(finished, tiny_plan):
    out, _ = finished
    other = dataclasses.replace(
        tiny_plan, request=dataclasses.replace(tiny_plan.request, quick=True)
    )
    for resume in (False, True):
        with pytest.raises(ValueError, match="another request"):
            unfinished(other, out, resume=resume)


def test_folder_of_a_run_with_other_settings_is_refused(finished, tiny_plan, tiny_run):
    out, _ = finished
    runs = (tiny_run("tiny-0", epochs="4"), tiny_plan.runs[1])
    with pytest.raises(ValueError, match=r"tiny-0.*other settings"):
        unfinished(dataclasses.replace(tiny_plan, runs=runs), out, resume=True)


def test_places_that_must_not_be_written_to_are_refused(tiny_plan, tmp_path):
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(ValueError, match="is a file"):
        unfinished(tiny_plan, file, resume=False)
    with pytest.raises(UserError, match="file' is not a directory"):
        unfinished(tiny_plan, file / "below", resume=False)
    with pytest.raises(ValueError, match="holds file, and no "):
        unfinished(tiny_plan, tmp_path, resume=False)
    with pytest.raises(ValueError, match="nothing to resume"):
        unfinished(tiny_plan, tmp_path / "new", resume=True)
    assert file.read_text() == "mine"


def test_damaged_plan_is_refused(tiny_plan, tmp_path):
    open_folder(tmp_path, KIND, ["plan.json"])
    (tmp_path / "plan.json").write_text("{")
    with pytest.raises(UserError, match="is not JSON"):
        unfinished(tiny_plan, tmp_path, resume=True)


def test_folder_without_permission_is_refused(tiny_plan, tmp_path, monkeypatch):
    # Root may write anywhere, so the system's answer is given for it.
    monkeypatch.setattr(Path, "touch", Mock(side_effect=PermissionError(13, "Permission denied")))
    with pytest.raises(UserError, match="cannot be written to"):
        unfinished(tiny_plan, tmp_path / "out", resume=False)
    assert not (tmp_path / "out").exists()


def test_place_is_one_of_three():
    with pytest.raises(ValueError, match="give one of the two"):
        Workplace(2, "tcp://127.0.0.1:8786")
    with pytest.raises(ValueError, match="--jobs is 0"):
        Workplace(0)


def test_command_repeats_the_request(tmp_path):
    place = Workplace(jobs=2)
    asked = {"recipes": ["paper"], "seeds": 2, "quick": True, "samples": 5_000}
    plan = make_plan(cases=["slider-crank"], **asked)
    line = command_line(plan.request, place, tmp_path / "my results", resume=True)
    assert line == (
        "mbdnode reproduce --cases slider-crank --recipe paper --seeds 2 --quick --samples 5000 "
        "--jobs 2 --resume "
        f"--out '{tmp_path}/my results'"
    )
    short = command_line(make_plan(quick=True).request, HERE, tmp_path)
    assert short == f"mbdnode reproduce --quick --out {tmp_path}"
    some = Request(cases=("cart-pole",), models=("mbd-node",))
    assert "--models mbd-node" in command_line(some, HERE, tmp_path)
