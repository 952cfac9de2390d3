"""A fit that is written over another one: the old one or the new one, never a mixture."""

import os
from dataclasses import replace

import numpy as np
import pytest

import mbdnode as mbd
from mbdnode.data.files import replace_file
from mbdnode.data.logs import Columns
from mbdnode.errors import UserError
from mbdnode.identification import Identified
from mbdnode.mechanisms import SingleMassSpring
from mbdnode.models.function_library import Library
from mbdnode.multibody import Input
from mbdnode.simulation import simulate
from mbdnode.training import Fit
from mbdnode.workflow import folder as fits
from mbdnode.workflow.config import FitConfig
from mbdnode.workflow.fit import fit_and_score, read_and_check
from mbdnode.workflow.folder import make_report_data, read_folder, write_folder
from mbdnode.workflow.play import make_fit_play


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Of an oscillator without damping."""
    log = tmp_path_factory.mktemp("logs") / "spring.csv"
    t = np.arange(0.0, 6.0, 0.05)
    table = np.column_stack([t, np.cos(t), -np.sin(t)])
    np.savetxt(log, table, delimiter=",", header="t,x,v", comments="", fmt="%.17g")
    columns = Columns("t", ["x"], ["v"])
    config = FitConfig(logs=(str(log),), columns=columns, recipe="paper", epochs=1, holdout=0.3)
    return fit_and_score(read_and_check(config))


@pytest.fixture(autouse=True)
def blank_page(monkeypatch):
    """Drawing is not what is tested here, and takes long."""

    def write_page(report, path):
        replace_file(path, lambda file: file.write(report.command.encode()))

    monkeypatch.setattr(fits, "write_fit_page", write_page)


def _held(path):
    return {entry.name: entry.read_bytes() for entry in path.iterdir()}


def test_full_disk_at_any_file_leaves_the_old_fit_and_the_fit_can_be_repeated(
    fitted, tmp_path, monkeypatch
):
    out, sync = tmp_path / "fit", os.fsync
    write_folder(out, fitted, "the first command")
    before = _held(out)
    calls = 0

    def full_at(number):
        def count(handle):
            nonlocal calls
            calls += 1
            if calls == number:
                raise OSError(28, "No space left on device")
            sync(handle)

        return count

    for number in range(1, len(before) + 1):
        calls = 0
        monkeypatch.setattr(os, "fsync", full_at(number))
        with pytest.raises(OSError, match="What it held is as it was"):
            write_folder(out, fitted, "the second command")
        assert _held(out) == before
        assert [path.name for path in tmp_path.iterdir()] == ["fit"]
    monkeypatch.setattr(os, "fsync", sync)
    write_folder(out, fitted, "the second command")
    assert (out / "report.html").read_text() == "the second command"
    assert read_folder(out).config == fitted.prepared.config


def test_nothing_of_the_old_fit_is_left(fitted, tmp_path):
    write_folder(tmp_path / "fit", fitted, "")
    names = sorted(_held(tmp_path / "fit"))
    (tmp_path / "fit" / "held-out-0-truth.csv").rename(tmp_path / "fit" / "held-out-9-truth.csv")
    marker = (tmp_path / "fit" / "mbdnode.json").read_text()
    (tmp_path / "fit" / "mbdnode.json").write_text(marker.replace("0-truth", "9-truth"))
    write_folder(tmp_path / "fit", fitted, "")
    assert sorted(_held(tmp_path / "fit")) == names


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ({"points": np.array([object()])}, "plain arrays of numbers"),
        ({"points": np.zeros((2, 3))}, "no array 'center'"),
    ],
)
def test_domain_that_is_no_array_of_numbers_is_refused(fitted, tmp_path, content, why):
    write_folder(tmp_path / "fit", fitted, "")
    with np.load(tmp_path / "fit" / "domain.npz") as stored:
        arrays = {name: stored[name] for name in stored.files}
    if "center" in why:
        del arrays["center"]
    np.savez(tmp_path / "fit" / "domain.npz", **{**arrays, **content})
    with pytest.raises(UserError, match=why) as caught:
        read_folder(tmp_path / "fit")
    assert "domain.npz' is not as `mbdnode fit` wrote it" in str(caught.value)


def test_domain_that_would_expand_is_refused(fitted, tmp_path):
    write_folder(tmp_path / "fit", fitted, "")
    np.savez_compressed(tmp_path / "fit" / "domain.npz", points=np.zeros((1000, 1000)))
    with pytest.raises(UserError, match="compressed"):
        read_folder(tmp_path / "fit")


@pytest.mark.parametrize("text", ["", "[" * 100_000, "{}"])
def test_damaged_configuration_is_refused(fitted, tmp_path, text):
    write_folder(tmp_path / "fit", fitted, "")
    (tmp_path / "fit" / "config.json").write_text(text)
    with pytest.raises(UserError):
        read_folder(tmp_path / "fit")


def test_report_warns_of_a_held_out_run_whose_step_is_too_long(fitted):
    # A mechanism whose equations are known; a network may have made up for its step.
    one = fitted.held_out[0]
    t = 0.64 * np.arange(len(one.truth))
    for check in (True, False):
        long = simulate(SingleMassSpring(), t, {"x": 1.0}, check_step=check)
        found = replace(fitted, held_out=(replace(one, prediction=long),))
        told = [
            line for line in make_report_data(found, "").warnings if "the step is too long" in line
        ]
        assert len(told) == check
    assert not any("step is too long" in line for line in make_report_data(fitted, "").warnings)


def test_page_warns_once_of_what_lies_outside_and_of_a_law_that_does_not_predict(fitted):
    runs = tuple(replace(one, outside=np.ones(len(one.outside), bool)) for one in fitted.held_out)
    law = Identified(None, (), "chose a law", "completed", 0.0, 0.0, {"predicts_well": False})
    report = fits._warnings(replace(fitted, held_out=runs, fit=law))
    assert sum("outside the training data" in text for text in report) == 1
    assert "No law was found that predicts this motion well." in report
    assert "no law was found" in replace(fitted, held_out=runs, fit=law).status


def test_recipe_of_a_law_with_a_network_names_both():
    pendulum = mbd.mechanisms.SinglePendulum()
    for model, words in (
        (mbd.MBDNODE.for_system(pendulum, correction_of="mechanism"), "fast for the law, then ad"),
        (mbd.MBDNODE.for_system(pendulum), "adam-lm: "),
    ):
        fit = Fit(model, [], "", "completed", 0, 0.0, 0.0)
        told = fits._recipe(FitConfig(("run.csv",)), fit, "")
        assert told.startswith(words)
        assert "no network" not in told
    refined = Identified(None, (), "", "completed", 0.0, 0.0)
    assert fits._recipe(FitConfig(("run.csv",)), refined, "refined law").startswith("best: ")


def test_try_it_opens_inside_the_training_data():
    # A motor that was never without torque, and a held-out run that comes from far away.
    motor = mbd.AccelerationFunction(
        lambda t, q, v, u, mu: u - v, (mbd.length("x"),), inputs=(Input("T"),)
    )
    t = np.linspace(0.0, 5.0, 201)
    push = (3.0 + 0.2 * np.sin(3 * t))[:, None]
    seen = [mbd.simulate(motor, t, {"x_dot": 2.0 + 0.2 * k}, inputs=push) for k in range(5)]
    far = mbd.simulate(motor, t, {"x_dot": 30.0}, inputs=push)
    domain = mbd.training_domain(motor, seen)
    given = {"title": "", "label": "law", "integrator": "rk4", "domain": domain, "parameters": {}}
    play = make_fit_play(Library.for_system(motor), motions=[far, *seen], **given)
    opened = mbd.simulate(
        motor, t[:2], play.initial, inputs=np.full((2, 1), play.held.get("T", 0.0))
    )
    assert domain.outside(far)[0]
    assert not domain.outside(opened)[0]
    # Where the data has rest without inputs, it opens without them.
    free = [mbd.simulate(motor, t, {"x_dot": 2.0 + 0.2 * k}) for k in range(5)]
    at_rest = mbd.training_domain(motor, free)
    assert make_fit_play(
        Library.for_system(motor), motions=free, **{**given, "domain": at_rest}
    ).held == {"T": 0.0}
