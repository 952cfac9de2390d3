"""`export` and `mbdnode export`: folders, files, names, and what is refused."""

import subprocess

import jax
import pytest

import mbdnode as mbd
from mbdnode.cli import main
from mbdnode.exports.names import identifiers
from mbdnode.exports.program import trace_program
from mbdnode.multibody import RecordedSystem
from tests.exports.harness import CC, WARNINGS, needs_cc

PENDULUM = mbd.mechanisms.SinglePendulum()


@needs_cc
def test_the_folder_of_a_model_compiles_and_runs(tmp_path):
    folder = mbd.export(PENDULUM, tmp_path / "swing")
    names = {"swing.c", "swing.h", "main.c", "CMakeLists.txt", "README.md", "mbdnode.json"}
    assert {file.name for file in folder.iterdir()} == names
    command = [CC, *WARNINGS, "-O1", "swing.c", "main.c", "-o", "run", "-lm"]
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    out = subprocess.run([folder / "run"], capture_output=True, text=True)
    assert out.returncode == 0
    assert len(out.stdout.splitlines()) == 1_002
    assert out.stdout.startswith("t,theta\n0,")


def test_a_case_is_exported_by_the_command(tmp_path, capsys):
    out = tmp_path / "pendulum.js"
    assert main(["export", "single-pendulum", "--out", str(out)]) == 0
    assert out.read_text().count("const pendulum = (") == 1
    assert "bytes" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere", "--out", "{}/m"], "Unknown case 'nowhere'"),
        (["single-pendulum", "--out", "{}/m", "--to", "fortran"], "Unknown target 'fortran'"),
        (["single-pendulum", "--out", "{}/m", "--name", "while"], "cannot be the name"),
        (["single-pendulum", "--out", "{}/m", "--name", "3d"], "cannot be the name"),
        (["single-pendulum", "--out", "{}/m", "--to", "javascript"], "ends in .js"),
        (["single-pendulum", "--out", "{}/mine"], "holds notes.txt"),
        (["single-pendulum", "--out", "{}/no/where/m.js"], "is not a directory"),
        (["single-pendulum", "--out", "{}/m", "--precision", "half"], "float64 or float32"),
        (["single-pendulum", "--out", "{}/m", "--integrator", "dopri5"], "chooses its own steps"),
        (["single-pendulum", "--out", "{}/m", "--dt", "-1"], "must be above zero"),
    ],
)
def test_a_wrong_request_is_refused_and_nothing_is_written(arguments, words, tmp_path, capsys):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    assert main(["export", *(a.format(tmp_path) for a in arguments)]) == 2
    assert words in capsys.readouterr().err
    assert {p.name for p in tmp_path.rglob("*")} == {"mine", "notes.txt"}


def test_a_model_with_an_unknown_primitive_is_refused_and_nothing_is_written(tmp_path):
    def acceleration(t, q, v, u, mu):
        return jax.lax.lgamma(q)

    system = mbd.AccelerationFunction(acceleration, (mbd.Coordinate("x", unit="m"),))
    with pytest.raises(mbd.UserError, match="lgamma"):
        mbd.export(system, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_forecasters_are_refused():
    with pytest.raises(mbd.UserError, match="has no rates"):
        trace_program(mbd.FCNN.for_system(PENDULUM))


@needs_cc
def test_residuals_of_unknown_constraints_are_no_output(tmp_path):
    system = RecordedSystem(coordinates=(mbd.length("x"),))
    folder = mbd.export(mbd.MBDNODE.for_system(system, width=3), tmp_path / "log")
    assert "_NY 0 " in (folder / "log.h").read_text()
    command = [CC, *WARNINGS, "log.c", "main.c", "-o", "run", "-lm"]
    assert subprocess.run(command, cwd=folder).returncode == 0


def test_names_that_are_no_identifiers_are_renamed_and_the_table_says_so(tmp_path):
    names = ["double", "a b", "a_b", "3", "A_B", "théta", "x"]
    found = identifiers(names)
    assert len({word.upper() for word in found}) == len(names)
    assert all(word.isidentifier() and word.isascii() for word in found)
    assert found[-1] == "x"

    def acceleration(t, q, v, u, mu):
        return -q

    names = (mbd.Coordinate("double", unit="m"), mbd.Coordinate("a*/b", unit="m"))
    folder = mbd.export(mbd.AccelerationFunction(acceleration, names), tmp_path / "m")
    assert "- double is `double_2`" in (folder / "README.md").read_text()
    assert "a*/b" not in (folder / "m.h").read_text()


@pytest.mark.parametrize(
    ("model", "entries"),
    [
        (PENDULUM, ("step", "rates")),
        (mbd.mechanisms.SinglePendulumCartesian(), ("init", "step")),
    ],
)
def test_single_precision_has_no_doubles(model, entries):
    from mbdnode.exports.languages.c import c_source

    program = trace_program(model, precision="float32", entries=entries)
    body = c_source(program).source
    assert "double" not in body
    assert "sinf(" in body or "sqrtf(" in body
