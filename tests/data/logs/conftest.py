"""Logs of known motions in every form, written by the tests themselves."""

import jaxtyping
import numpy as np
import pytest


@pytest.fixture
def swing():
    """A sum of two sines, and its exact derivative, by name: t, theta, omega, torque."""
    t = np.arange(400) * 0.02
    theta = np.sin(2 * t) + 0.2 * np.cos(5 * t)
    omega = 2 * np.cos(2 * t) - np.sin(5 * t)
    return {"t": t, "theta": theta, "omega": omega, "torque": np.sign(np.sin(3 * t))}


@pytest.fixture
def write_csv(tmp_path):
    """Write columns to a file, by name, and give its path."""

    def write(
        columns, name="run.csv", *, heading=None, delimiter=",", decimal=".", encoding="utf-8"
    ):
        lines = [delimiter.join(columns) if heading is None else heading]
        for row in zip(*columns.values(), strict=True):
            values = [x if isinstance(x, str) else repr(float(x)) for x in row]
            lines.append(delimiter.join(x.replace(".", decimal) for x in values))
        path = tmp_path / name
        path.write_bytes("\n".join([line for line in lines if line] + [""]).encode(encoding))
        return path

    return write


@pytest.fixture
def untyped(monkeypatch):
    """Values of any type come to the program's own checks, as they do for a user."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
