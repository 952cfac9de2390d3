"""Names beyond ASCII where the terminal, or the locale, has no letters for them."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROLES = ["--role", "time=t", "coordinates=θ", "rates=ω"]
# Where a name is from an archive of another time, it is no UTF-8.
LOGS = ("run.csv", os.fsdecode(b"l\xe4ufe.csv"))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("encodings")
    t = np.arange(0, 4, 0.02)
    table = np.column_stack([t, np.cos(3 * t), -3 * np.sin(3 * t)])
    for name in LOGS:
        given = {"header": "t,θ,ω", "comments": "", "delimiter": ",", "encoding": "utf-8"}
        np.savetxt(place / name, table, **given)
    return place


def call(place, words, **variables):
    given = {**os.environ, **variables, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "mbdnode", *words]
    return subprocess.run(command, cwd=place, env=given, capture_output=True)


@pytest.mark.parametrize(
    "variables",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "POSIX", "PYTHONUTF8": "0"},
        {"LC_ALL": "C"},
    ],
    ids=str,
)
@pytest.mark.parametrize("log", LOGS, ids=ascii)
def test_no_command_fails_for_letters_that_cannot_be_shown(place, variables, log):
    for left in ("roles.toml", os.fsdecode("θ.csv".encode())):
        (place / left).unlink(missing_ok=True)
    for words, said in (
        (["inspect", log, "--write", "roles.toml"], True),
        (["fit", log, *ROLES, "--out", "fit"], True),
        (["predict", "fit", "--like", log, "--out", "θ.csv"], False),
        (["cases"], False),
        (["fit", "--help"], False),
    ):
        done = call(place, words, **variables)
        assert done.returncode == 0, done.stderr
        if said:
            assert b"\\u03b8" in done.stdout or "θ" in done.stdout.decode()
    # Files are UTF-8 wherever they are written.
    assert 'coordinates = ["θ"]' in (place / "roles.toml").read_text("utf-8")
    assert "θ" in (place / "fit" / "report.html").read_text("utf-8")
    written = Path(os.fsdecode(os.fsencode(place) + "/θ.csv".encode()))
    assert written.read_text("utf-8").startswith("t,θ,θ_dot,")
