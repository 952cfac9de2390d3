import dataclasses

import matplotlib.image
import numpy as np
import pytest

import mbdnode.reproduction.cases
from mbdnode.reproduction.cases import CASES


@pytest.fixture
def short_cases(monkeypatch):
    """A closed form, a name with a colon and a constrained system, a few steps each."""
    names = ("single-mass-spring", "double-pendulum:released-low", "slider-crank")
    short = {name: dataclasses.replace(CASES[name], steps=12, train_steps=8) for name in names}
    monkeypatch.setattr(mbdnode.reproduction.cases, "CASES", short)
    return short


# Three cases are compiled and drawn; the quick tests draw the gallery of one case below.
@pytest.mark.slow
def test_gallery_prints_a_row_and_draws_a_figure_for_each_case(run, tmp_path, short_cases):
    folder = tmp_path / "new" / "figures"
    result = run("gallery", "--out", folder)
    assert result.code == 0, result.err
    names = [line.split()[0] for line in result.out.splitlines() if line.split()]
    assert [name for name in names if name in short_cases] == list(short_cases)
    table, _ = result.out.split("\n\n")
    assert max(map(len, table.splitlines())) <= 100
    assert str(folder / "overview.png") in result.out
    drawn = {path.stem for path in folder.glob("*.png")}
    assert drawn == {"overview", *(name.replace(":", "-") for name in short_cases)}
    for path in folder.glob("*.png"):
        assert_drawn(path)


def assert_drawn(path):
    """Neither a blank sheet nor a blot: ink on a part of the paper, in several colors."""
    pixels = (255 * matplotlib.image.imread(path)[..., :3]).astype(np.uint8)
    inked = np.mean(np.any(pixels != 255, axis=-1))
    assert 0.01 < inked < 0.6, path
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 50, path
    assert path.stat().st_size < 400_000, path


def test_gallery_does_not_write_into_a_file(run, tmp_path):
    target = tmp_path / "figures"
    target.write_text("precious")
    result = run("gallery", "--out", target)
    assert result.code == 2
    assert "is a file" in result.err
    assert target.read_text() == "precious"


def test_gallery_reports_a_case_that_ends_early(run, tmp_path, monkeypatch):
    lost = dataclasses.replace(CASES["double-pendulum"], integrator="fe1", dt_s=3.0, steps=60)
    good = CASES["single-mass-spring"]
    monkeypatch.setattr(mbdnode.reproduction.cases, "CASES", {lost.name: lost, good.name: good})
    result = run("gallery", "--out", tmp_path)
    assert result.code == 1
    assert "double-pendulum: the rollout diverged (NaN or Inf)" in result.err
    assert sorted(path.stem for path in tmp_path.glob("*.png")) == [
        "overview",
        "single-mass-spring",
    ]
