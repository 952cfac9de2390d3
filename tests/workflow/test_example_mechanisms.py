"""Every example mechanism, from a log to a model and its prediction, on the command line."""

from pathlib import Path

import numpy as np
import pytest

import mbdnode as mbd
from mbdnode.cli import main
from mbdnode.models.base import minimal_coordinates

EXAMPLES = sorted(Path(__file__).parents[2].glob("examples/mechanisms/*.toml"))
T = np.arange(12) * 0.01


def write_log(path, system):
    """A slow motion of the independent coordinates about the assembled state, made by hand."""
    home, names = mbd.consistent_state(system, {}), system.coordinate_names
    chosen = minimal_coordinates(system)
    columns = {"t": T}
    for number, i in enumerate(chosen):
        columns[names[i]] = float(home.q[i]) + 0.01 * np.sin((1 + number) * T)
        columns[f"{names[i]}_dot"] = 0.01 * (1 + number) * np.cos((1 + number) * T)
    table = np.column_stack(list(columns.values()))
    np.savetxt(path, table, delimiter=",", header=",".join(columns), comments="", fmt="%.17g")
    return [f"{name}={name}" for name in columns if name != "t"]


# Each is compiled for itself; test_fit_and_predict.py does the same with a slider-crank.
@pytest.mark.slow
@pytest.mark.parametrize("file", EXAMPLES, ids=lambda path: path.stem)
def test_what_was_fitted_can_be_predicted(file, tmp_path, capsys):
    system = mbd.read_mechanism(file)
    log, fit, out = tmp_path / "log.csv", tmp_path / "fit", tmp_path / "prediction.csv"
    roles = write_log(log, system)
    command = ["fit", log, "--mechanism", file, "--role", "time=t", *roles, "--out", fit]
    command += ["--recipe", "paper", "--epochs", "1", "--holdout", "0"]
    assert main([str(word) for word in command]) == 0
    assert main(["predict", str(fit), "--like", str(log), "--out", str(out)]) == 0
    found = np.genfromtxt(out, delimiter=",", names=True)
    assert len(found) == len(T)
    # All coordinates are there, in the order of the file, and the first row is the log's.
    assert found.dtype.names[1 : 1 + len(system.coordinates)] == system.coordinate_names
    first = np.genfromtxt(log, delimiter=",", names=True)[0]
    for name in (role.partition("=")[0] for role in roles):
        assert found[name][0] == pytest.approx(first[name], abs=1e-12)
