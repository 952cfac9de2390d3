"""Starting must feel instant: the command line says what it can do without loading the numerics."""

import json
import subprocess
import sys

import pytest

HEAVY = ("jax", "numpy", "scipy", "matplotlib", "pyarrow", "diffrax")

PROBE = """
import json, sys, time
began = time.perf_counter()
from mbdnode.cli import main
code = main({arguments!r})
seconds = time.perf_counter() - began
loaded = [name for name in {heavy!r} if name in sys.modules]
print(json.dumps({{"code": code, "loaded": loaded, "seconds": seconds}}), file=sys.stderr)
"""


def probe(*arguments):
    script = PROBE.format(arguments=list(arguments), heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads(done.stderr.splitlines()[-1])


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["cases", "--help"],
        ["simulate", "--help"],
        ["reproduce", "--help"],
    ],
)
def test_help_loads_no_numerics(arguments):
    shown, result = probe(*arguments)
    assert shown.strip()
    assert result["code"] == 0
    assert result["loaded"] == []


def test_looking_at_a_log_loads_no_jax(tmp_path):
    rows = "".join(f"{k / 100},{k % 7}\n" for k in range(60))
    (tmp_path / "a.csv").write_text(f"t,theta\n{rows}")
    shown, result = probe("inspect", str(tmp_path / "a.csv"))
    assert "theta" in shown
    assert not {"jax", "scipy", "matplotlib", "diffrax"} & set(result["loaded"])


def test_help_is_quick(capsys):
    seconds = min(probe("--help")[1]["seconds"] for _ in range(3))
    with capsys.disabled():
        print(f"\nmbdnode --help takes {seconds:.3f} s after Python has started")
    # The aim is 0.3 s with Python's own start; a loaded machine gets some room.
    assert seconds < 2.0


def test_importing_the_package_loads_no_numerics():
    script = f"import sys, mbdnode; print([n for n in {HEAVY!r} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("first", ["jax.numpy", "mbdnode"])
def test_arrays_made_before_the_first_use_are_double(first):
    script = f"import {first}, mbdnode, jax.numpy; print(jax.numpy.array([0.1]).dtype)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "float64", done.stderr
