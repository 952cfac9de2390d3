"""The examples that learn, on small data."""

import importlib.util
import json
from dataclasses import asdict, replace
from pathlib import Path
from unittest import mock

import matplotlib as mpl
import pytest
from matplotlib import pyplot

import mbdnode as mbd
from mbdnode.reproduction.config import configure

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.slow
def test_learned_family_swings_like_its_unseen_members_inside_the_range(capsys):
    path = EXAMPLES / "learn_pendulum_family.py"
    spec = importlib.util.spec_from_file_location("learn_pendulum_family", path)
    family = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(family)
    errors = family.main(runs=100, epochs=100)
    # A pendulum that hung still would be off by the swing's own mean square, above one.
    assert errors["inside, the middle"] < 0.3
    assert "mse" in capsys.readouterr().out


def test_notebook_learns_the_pendulum_as_the_recipe_does(tmp_path, monkeypatch, capsys):
    cells = json.loads((EXAMPLES / "pendulum.ipynb").read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] or cell["execution_count"] for cell in code)
    asked, name = configure("single-pendulum", recipe="paper-shuffled"), "paper-shuffled"
    few = replace(mbd.RECIPES[name], config=replace(mbd.RECIPES[name].config, epochs=5))
    monkeypatch.chdir(tmp_path)
    mpl.use("agg")
    names = {}
    with mock.patch.dict(mbd.RECIPES, {name: few}):
        for number, cell in enumerate(code, 1):
            exec(compile("".join(cell["source"]), f"code cell {number}", "exec"), names)
    assert len(pyplot.get_fignums()) == 7
    pyplot.close("all")
    assert names["recipe"] == replace(asked.training, epochs=5)
    found = names["model"].settings
    # What is left open is decided by the structure.
    named = {k: v for k, v in asdict(asked.settings).items() if v is not None}
    assert {name: getattr(found, name) for name in named} == named
    # A pendulum that hung still would be off by the swing's own mean square, above one.
    assert mbd.evaluate(names["truth"], names["prediction"]).mse < 0.3
    # What was saved predicts the same.
    assert capsys.readouterr().out.endswith("True\n")
