"""Starting must feel instant: the command line says what it can do without loading the numerics."""

import json
import subprocess
import sys

import pytest

HEAVY = ("jax", "numpy", "scipy", "matplotlib", "pyarrow", "diffrax", "equinox", "pandas")

# Parts of packages that are slow to load by themselves.
PARTS = ("scipy.linalg", "scipy.optimize")

PROBE = """
import json, sys
from mbdnode.cli import main
code = main({arguments!r})
loaded = [name for name in {heavy!r} if name in sys.modules]
print(json.dumps({{"code": code, "loaded": loaded}}), file=sys.stderr)
"""


def probe(*arguments):
    script = PROBE.format(arguments=list(arguments), heavy=(*HEAVY, *PARTS))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads(done.stderr.splitlines()[-1])


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["cases"],
        ["cases", "--help"],
        ["simulate", "--help"],
        ["reproduce", "--help"],
        ["play", "--help"],
    ],
)
def test_help_loads_no_numerics(arguments):
    shown, result = probe(*arguments)
    assert shown.strip()
    assert result["code"] == 0
    assert result["loaded"] == []


@pytest.mark.parametrize(
    "command", ["run", "mpc", "gallery", "mechanism", "inspect", "fit", "predict"]
)
def test_help_of_every_command_loads_no_numerics(command):
    shown, result = probe(command, "--help")
    assert shown.strip()
    assert (result["code"], result["loaded"]) == (0, [])


def test_simulating_loads_neither_figures_nor_diffrax(tmp_path):
    result = probe("simulate", "cart-pole", "--steps", "3", "--out", str(tmp_path / "a.csv"))[1]
    assert result["code"] == 0
    assert not {"matplotlib", "diffrax", "pandas"} & set(result["loaded"])


def test_simulating_a_loop_of_bodies_loads_no_parts_of_scipy(tmp_path):
    result = probe("simulate", "slider-crank", "--steps", "3", "--out", str(tmp_path / "a.csv"))[1]
    assert result["code"] == 0
    assert not {"scipy.linalg", "scipy.optimize"} & set(result["loaded"])


def test_looking_at_a_log_loads_no_jax(tmp_path):
    rows = "".join(f"{k / 100},{k % 7}\n" for k in range(60))
    (tmp_path / "a.csv").write_text(f"t,theta\n{rows}")
    shown, result = probe("inspect", str(tmp_path / "a.csv"))
    assert "theta" in shown
    unneeded = {"jax", "scipy", "matplotlib", "diffrax", "pandas"}
    assert not unneeded & set(result["loaded"])


# Paths, folders and names that nothing has to be loaded for.
WRONG = [
    "simulate cart-pole --out nowhere/run.csv",
    "simulate cart-pole --out loop.csv",
    "simulate cart-pol --out run.csv",
    "simulate cart-pole --initial x --out run.csv",
    "simulate cart-pole --initial phi=1 --out run.csv",
    "simulate cart-pole --set mass=1 --out run.csv",
    "simulate cart-pole --set m=-1 --out run.csv",
    "simulate cart-pole --set m=nan --out run.csv",
    "simulate cart-pole --initial x=inf --out run.csv",
    "simulate cart-pole --dt -0.01 --out run.csv",
    "simulate cart-pole --steps 0 --out run.csv",
    "simulate cart-pole --steps 1000000000000 --out run.csv",
    "simulate cart-pole --integrator rk5 --out run.csv",
    "simulate cart-pole --seed -1 --out run.csv",
    "run cart-pole --model nod",
    "run cart-pole --model hnn --recipe best",
    "run cart-pole --set epochs=abc",
    "run cart-pole --recipe best --set refined=maybe",
    "run cart-pole --integrator analytic",
    "run cart-pole --seed -1",
    "run cart-pol",
    "run cart-pole --recipe papr",
    "run --config nowhere.json",
    "run cart-pole --out loop",
    "run cart-pole --out file/sub",
    "run cart-pole --out new --resume",
    "run cart-pole --out mine",
    "mpc cart-pol --out new",
    "mpc cart-pole --out mine",
    "mpc cart-pole --model nowhere --out new",
    "mpc slider-crank --model of-cart-pole --out new",
    "mpc cart-pole --horizon 0 --out new",
    "mpc cart-pole --steps 0 --out new",
    "mpc cart-pole --dt 0 --out new",
    "mpc cart-pole --relinearize never --out new",
    "mpc cart-pole --terminal some --out new",
    "reproduce --seeds 0 --out new",
    "reproduce --jobs 0 --out new",
    "reproduce --samples 0 --out new",
    "reproduce --jobs 2 --cluster tcp://127.0.0.1:8786 --out new",
    "reproduce --cluster nowhere --out new",
    "reproduce --models nod --out new",
    "reproduce --recipe papr --out new",
    "reproduce --out mine",
    "reproduce --recipe best --models hnn --out new",
    "reproduce --cases cart-pol --out new",
    "reproduce --resume --out new",
    "gallery --out mine",
    "mechanism nowhere.toml",
    "mechanism file --out mine",
    "mechanism wrong.toml",
    "simulate crank.toml --steps 9 --dt -1 --out run.csv",
    "simulate crank.toml --steps 1000000000000 --out run.csv",
    "mechanism crank.toml --initial phi=1",
    "mechanism crank.toml --set crank_mass=-1",
    "mechanism crank.toml --set m=1",
    "mechanism keys.toml",
    "mechanism joints.toml",
    "mechanism names.toml",
    "inspect nowhere.csv",
    "fit nowhere.csv --role time=t coordinates=x --out new",
    "fit log.csv --role time=t coordinates=x --out mine",
    "fit log.csv --columns nowhere.toml --out new",
    "fit log.csv --role time=t coordinates=x --mechanism nowhere.toml --out new",
    "fit log.csv --role time=t coordinates=x --holdout nowhere.csv --out new",
    "fit log.csv --role time=t coordinates=x --recipe papr --out new",
    "fit log.csv --role time=t coordinates=x --model nod --out new",
    "fit log.csv --role time=t coordinates=x --model hnn --out new",
    "fit log.csv --role time=t coordinates=x --seed -1 --out new",
    "fit log.csv --role time=t coordinates=x --epochs 9 --out new",
    "fit log.csv --role time=t coordinates=x --holdout 1.5 --out new",
    "fit log.csv --role time=t coordinates=x --cluster nowhere --out new",
    "fit log.csv --role time=t coordinates=x --resume --out new",
    "fit log.csv --role time=t coordinates=x --mechanism wrong.toml --out new",
    "fit log.csv --role time=t x=x --mechanism crank.toml --unknown m=2:1 --out new",
    "fit log.csv --role time=t coordinates=x --bootstrap 20 --out new",
    "fit log.csv --role time=t coordinates=x --mechanism crank.toml --bootstrap -1 --out new",
    "fit log.csv --role time=t x=x --mechanism crank.toml --unknown m --out new",
    "fit log.csv --role time=t x=x --mechanism keys.toml --out new",
    "fit log.csv --role time=t coordinates=x --mechanism nosuch --out new",
    "fit log.csv --role time=t coordinates=x --mechanism no/such --out new",
    "fit log.csv --role time=t coordinates=x --structure nope --out new",
    "fit log.csv --role time=t coordinates=x --holdout log.csv --out new",
    "predict nowhere --like log.csv --out run.csv",
    "predict mine --like log.csv --out run.csv",
    "predict fit --like nowhere.csv --out run.csv",
    "simulate fit --initial x=1 --inputs nowhere.csv --out run.csv",
    "predict fit --like log.csv --columns nowhere.toml --out run.csv",
    "predict fit --like log.csv --out nowhere/run.csv",
    "predict fit --like log.csv --out log.csv",
    "predict fit --like log.csv --out fit/new.csv",
    "play cart-pol --out page.html",
    "play cart-pole --out page.csv",
    "play cart-pole --out nowhere/page.html",
    "play nowhere.toml --out page.html",
    "play mine --out page.html",
    "play cart-pole --dt 0 --out page.html",
    "play cart-pole --initial x --out page.html",
    "play cart-pole --initial phi=1 --out page.html",
    "play cart-pole --set m=-1 --out page.html",
    "play cart-pole --integrator dopri5 --out page.html",
    "play wrong.toml --out page.html",
    "play keys.toml --out page.html",
    "play crank.toml --initial phi=1 --out page.html",
    "export cart-pol --to c --out new",
    "export cart-pole --to d --out new",
    "export cart-pole --to c --dt -1 --out new",
    "export cart-pole --to c --integrator rk5 --out new",
    "export cart-pole --to c --integrator dopri5 --out new",
    "export cart-pole --to c --set m=-1 --out new",
    "export cart-pole --to c --set mass=1 --out new",
    "export wrong.toml --to c --out new",
    "export crank.toml --to c --set m=1 --out new",
    "play cart-pole --mechanism module:name --out page.html",
]

# What a log or a file of roles has to be looked at for.
WRONG_IN_FILES = [
    "fit log.csv --out new",
    "fit log.csv --role time=t --out new",
    "fit log.csv --role time=t coordinates=phi --out new",
    "fit log.csv --role time=seconds coordinates=x --out new",
    "fit log.csv --role time=t coordinates=x inputs=force --out new",
    "fit log.csv --role time=t coordinates=x gaps=some --out new",
    "fit log.csv --role time=t coordinates=x units=x:parsec --out new",
    "fit log.csv --role tim=t coordinates=x --out new",
    "fit log.csv --columns wrong.toml --out new",
    "fit words.csv --role time=t coordinates=x --out new",
    "fit log.csv --role time=t phi=x --mechanism crank.toml --out new",
    "inspect log.csv --write log.csv",
]


@pytest.mark.parametrize("wrong", [WRONG, WRONG_IN_FILES], ids=["names", "files"])
def test_what_is_wrong_is_refused_soon_and_in_one_line(wrong, tmp_path):
    """Loading JAX takes the most of it, once; 1.5 s are the budget where nothing else runs."""
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    (tmp_path / "file").write_text("not empty")
    (tmp_path / "log.csv").write_text("t,x\n0,0\n1,1\n2,0\n")
    (tmp_path / "words.csv").write_text("hello\nworld\n")
    (tmp_path / "wrong.toml").write_text("bodies = [\nx =")
    crank = "[bodies.crank]\ncenter = [0.5, 0.0]\nmass = 1.0\ninertia = 0.1\n"
    (tmp_path / "crank.toml").write_text(crank)
    (tmp_path / "keys.toml").write_text(f"{crank}wieght = 1.0\n")
    joint = '[joints.hinge]\ntype = "revolute"\nbodies = ["ground", "arm"]\n'
    (tmp_path / "joints.toml").write_text(f"{crank}{joint}")
    (tmp_path / "names.toml").write_text(f'unknown = ["m"]\n{crank}')
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    for name in ("config.json", "metrics.json", "model.safetensors", "domain.npz"):
        (tmp_path / "fit").mkdir(exist_ok=True)
        (tmp_path / "fit" / name).touch()
    (tmp_path / "of-cart-pole").mkdir()
    (tmp_path / "of-cart-pole" / "config.json").write_text('{"case": "cart-pole"}')
    (tmp_path / "of-cart-pole" / "model.safetensors").touch()
    script = f"""
import sys, time
import typer.main
from mbdnode.cli import main
for words in {wrong!r}:
    began = time.process_time()
    code = main(words.split())
    if code != 2 or time.process_time() - began > 3.0:
        print(words, code, time.process_time() - began)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout == "", done.stdout + done.stderr
    assert done.returncode == 0, done.stderr
    said = done.stderr.splitlines()
    assert len(said) == len(wrong)
    assert all(line.startswith("error: ") for line in said)
    names = {path.name for path in tmp_path.iterdir()}
    files = {"log.csv", "words.csv", "wrong.toml", "crank.toml"}
    files |= {"keys.toml", "joints.toml", "names.toml"}
    assert names == files | {"loop", "loop.csv", "file", "mine", "fit", "of-cart-pole"}


def test_importing_the_package_loads_no_numerics():
    script = f"import sys, mbdnode; print([n for n in {HEAVY!r} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("first", ["jax.numpy", "mbdnode"])
def test_arrays_made_before_the_first_use_are_double(first):
    script = f"import {first}, mbdnode, jax.numpy; print(jax.numpy.array([0.1]).dtype)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "float64", done.stderr
