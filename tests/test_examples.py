"""The examples and the code in the documentation run, and say what is true."""

import contextlib
import enum
import importlib
import importlib.util
import inspect
import os
import re
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import yaml

import mbdnode
from mbdnode.data.logs import formats
from mbdnode.models import KINDS, MBDNODEConfig
from mbdnode.recipes import RECIPES, TrainingConfig
from mbdnode.reproduction.cases import CASES, PAPER_CASES
from mbdnode.reproduction.plan import make_plan

# Every script and every page compiles its own programs. What they show is tested in small by the
# tests of the rooms; that they run as they stand is tested in `make test-all`, but for three pages.
slow = pytest.mark.slow

ROOT = Path(__file__).parent.parent
EXAMPLES, DOCS = ROOT / "examples", ROOT / "docs"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@slow
def test_ladder_leaves_the_wall_at_two_thirds_of_its_first_height(capsys):
    height = load("own_mechanism").main(steps=250)
    # The height is that of the first of 250 steps over 1 s after the moment, and it falls by less
    # than 1.2 of itself a second there.
    assert 2 / 3 - 1.2 / 250 < height <= 2 / 3
    assert "leaves the wall" in capsys.readouterr().out


@slow
def test_many_rollouts_differ_as_their_starts_and_parameters_do():
    spread, turns = load("simulate_many").main(count=3)
    assert spread[0] == pytest.approx(1e-6, rel=1e-6)
    assert spread[-1] > 100 * spread[0]
    assert np.all(np.isfinite(turns))
    assert len(set(turns)) == 3


@slow
def test_do_mpc_brings_a_cart_pole_upright_by_the_exported_step():
    pytest.importorskip("casadi", reason="CasADi, of the extra `bench`, is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # do-mpc tells what else it could do.
        pytest.importorskip("do_mpc", reason="do-mpc, of the extra `bench`, is not installed")
    theta, _, omega, _ = load("control_with_do_mpc").main(steps=75).T
    cart, t = mbdnode.mechanisms.CartPole(), 0.04 * np.arange(76)
    left_alone = mbdnode.simulate(cart, t, {"theta": 0.4})["theta"]
    assert np.max(left_alone) > np.pi / 2
    # Three seconds are several times the 0.3 s in which a pole of 0.5 m falls; an eighth is left.
    assert np.max(np.abs(theta)) < 0.5
    assert np.max(np.abs([theta[-1], omega[-1]])) < 0.05


@slow
def test_guide_carries_a_part_of_what_the_wrist_pin_carries():
    largest = load("reactions").main(steps=50)
    # Across the guide the slider has no acceleration and no other force than the pin's.
    assert 0 < largest["guide"] <= largest["wrist pin"]
    assert largest["crank bearing"] > 0
    assert largest["crank pin"] > 0


def test_every_example_is_tested():
    shown = {path.stem for path in EXAMPLES.iterdir() if path.suffix in (".py", ".ipynb")}
    assert shown == {
        "control_with_do_mpc",
        "own_mechanism",
        "simulate_many",
        "reactions",
        *("learn_pendulum_family", "pendulum"),  # in test_learning_example.py
    }


SITE = [path.relative_to(DOCS).as_posix() for path in sorted(DOCS.rglob("*.md"))]
PAGES = ["README.md", "CONTRIBUTING.md", *(f"docs/{page}" for page in SITE)]
# Commands, tables of measurements, what is made from docstrings, and what other programs run, which
# has tests of its own in `exports`.
NEED_NO_PYTHON = re.compile(
    r"docs/(api/.*|results/.*|install|paper|theory|changelog|history|how-to/(command-line|fmu|playground))\.md"
)


def blocks(page):
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)


def test_pages_that_show_python_are_those_that_need_it():
    without = {page for page in PAGES if not blocks(page)}
    assert without == {page for page in PAGES if NEED_NO_PYTHON.fullmatch(page)}


QUICK = ("README.md", "CONTRIBUTING.md", "docs/how-to/logs.md")


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[slow] * (page not in QUICK))
        for page in PAGES
        if not NEED_NO_PYTHON.fullmatch(page)
    ],
)
def test_code_on_the_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": page}
    # What a page registers must not be there for other tests.
    monkeypatch.setattr(formats, "FORMATS", [*formats.FORMATS])
    with mock.patch.dict(RECIPES), mock.patch.dict(KINDS):
        for number, block in enumerate(blocks(page), 1):
            exec(compile(block, f"{page}, block {number}", "exec"), names)


def test_each_example_of_ones_own_training_has_ten_lines_at_most():
    first, *examples = blocks("docs/how-to/own-training.md")
    assert "import mbdnode" in first
    assert max(len(re.findall(r"^.*\S", block, re.MULTILINE)) for block in examples) <= 10


def test_page_on_extending_shows_the_class_of_the_example():
    script = (EXAMPLES / "own_mechanism.py").read_text()
    shown = next(block for block in blocks("docs/how-to/extend.md") if "class Ladder" in block)
    assert shown[shown.index("class Ladder") :].strip() in script


@pytest.mark.parametrize("page", PAGES)
def test_links_on_the_page_lead_somewhere(page):
    home = (ROOT / page).parent
    for target in re.findall(r"\]\(([^)]+)\)", (ROOT / page).read_text()):
        path, _, anchor = target.partition("#")
        aim = (home / path).resolve() if path else ROOT / page
        assert aim.exists(), target
        # The site holds what is in docs, and nothing else.
        assert not page.startswith("docs/") or aim.is_relative_to(DOCS), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", aim.read_text(), re.MULTILINE)
            slugs = [re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings]
            assert anchor in slugs, target


def leaves(nav):
    """The pages of a table of contents, whatever its depth."""
    if isinstance(nav, str):
        return [nav]
    return [
        page for part in (nav.values() if isinstance(nav, dict) else nav) for page in leaves(part)
    ]


def test_table_of_contents_names_every_page_once():
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    assert sorted(leaves(nav)) == sorted(SITE)


def test_every_public_room_has_a_page_in_the_reference():
    shown = "\n".join(path.read_text() for path in (DOCS / "api").glob("*.md"))
    rooms = {path.parent.name for path in (ROOT / "src" / "mbdnode").glob("*/__init__.py")}
    internal = {"cli", "report"}  # commands say --help; drawings serve the pages that we write
    assert {r for r in rooms - internal if f"::: mbdnode.{r}\n" not in shown} == set()


def test_reference_lists_the_names_at_the_root():
    shown = re.findall(r"`(\w+)`", (DOCS / "api" / "index.md").read_text())
    assert {name for name in mbdnode.__all__ if name not in shown} == set()


@pytest.mark.parametrize("page", [page for page in SITE if page.startswith("api/")])
def test_reference_names_what_a_module_of_the_same_name_hides(page):
    shown = (DOCS / page).read_text()
    for room in re.findall(r"^::: (\S+)$", shown, re.MULTILINE):
        home = ROOT / "src" / room.replace(".", "/")
        names = getattr(importlib.import_module(room), "__all__", ()) if home.is_dir() else ()
        hidden = {name for name in names if (home / f"{name}.py").exists()}
        assert {n for n in hidden if f"::: {room}.{n}.{n}\n" not in shown} == set()


# What the reference explains once, on its first page.
LETTERS = set("tqvauzs") | {"mu"}


def public_names():
    """Every name that the rooms of the reference export, once."""
    shown = "\n".join(path.read_text() for path in (DOCS / "api").glob("*.md"))
    found = {}
    for room in ("mbdnode", *re.findall(r"^::: (\S+)$", shown, re.MULTILINE)):
        with contextlib.suppress(ImportError):  # A single name, not a room.
            module = importlib.import_module(room)
            names = getattr(module, "__all__", ())
            found |= {f"{room}.{name}": getattr(module, name) for name in names}
    return found


def unexplained(what):
    """The arguments that a docstring does not name, or those of what it inherits from."""
    if inspect.isabstract(what) or isinstance(what, enum.EnumType):
        return set()  # Nobody calls them.
    if inspect.isclass(what) and hasattr(what, "for_system"):
        what = what.for_system  # Nobody makes one otherwise.
    homes = what.__mro__ if inspect.isclass(what) else (what,)
    said = "".join(inspect.getdoc(home) or "" for home in homes)
    try:
        names = inspect.signature(what).parameters
    except ValueError:  # An exception, as Python's own.
        names = ()
    return {n for n in names if n[0] != "_" and n not in LETTERS and f"`{n}`" not in said}


def test_every_public_name_is_explained_with_its_arguments():
    shown, lacking = "\n".join(path.read_text() for path in (DOCS / "api").glob("*.md")), {}
    for name, what in public_names().items():
        what = inspect.unwrap(what)  # Compiled ones are wrapped.
        ours = getattr(what, "__module__", "").startswith("mbdnode")
        if ours and (inspect.isclass(what) or inspect.isfunction(what)):
            lacks = unexplained(what) if what.__doc__ else {"docstring"}
        else:
            lacks = set() if f"`{name.rpartition('.')[2]}`" in shown else {"on its page"}
        lacking |= {name: lacks} if lacks else {}
    assert lacking == {}


def test_table_of_the_readme_has_every_case_and_calls_a_law_a_law():
    rows, case = {}, ""
    for line in (ROOT / "README.md").read_text().splitlines():
        words = re.sub(r"\(.*?\)", "", line).split()  # A structure stands in brackets.
        if words and words[0] in CASES:  # The rows below it are of the same case.
            case, words = words[0], words[1:]
        if case and len(words) > 5 and words[2] in RECIPES:
            rows.setdefault(case, {})[words[2]] = words[0]
    assert {case: of["best"] for case, of in rows.items()} == dict.fromkeys(PAPER_CASES, "law")
    for config in [run.config for run in make_plan(quick=True).runs]:
        assert rows[config.case][config.recipe] == config.model


def test_page_on_contributing_names_every_room():
    said = (ROOT / "CONTRIBUTING.md").read_text().partition("Imports go down")[2]
    rooms = {path.stem for path in (ROOT / "src" / "mbdnode").iterdir() if path.stem[0] != "_"}
    assert {room for room in rooms if f"`{room}`" not in said} == set()


ON_THE_PAPER = (DOCS / "paper.md").read_text()


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(mbdnode(?:\.\w+)+)`", ON_THE_PAPER))))
def test_name_on_the_page_on_the_paper_exists(name):
    parts = name.split(".")
    found = mbdnode
    for place in range(1, len(parts)):
        found = getattr(found, parts[place], None) or importlib.import_module(
            ".".join(parts[: place + 1])
        )
    assert found.__doc__


def test_page_on_the_paper_names_its_cases_settings_and_exhibits():
    words = set(re.findall(r"`([^`]+)`", ON_THE_PAPER))
    assert set(CASES) - {"cart-pole:controlled"} <= words | {"cart-pole:controlled"}
    labels = {e.label for case in CASES.values() for e in case.exhibits}
    own = ("control:", "parameters:", "friction:", "vehicle:")
    ours = {label for label in labels if label.startswith(own)}
    assert labels - ours <= words
    settings = {word.partition("=")[0] for word in words if re.fullmatch(r"\w+=\S+", word)}
    known = {*MBDNODEConfig.__dataclass_fields__, *TrainingConfig.__dataclass_fields__}
    assert settings <= known


def test_every_label_of_the_paper_is_on_its_page():
    source = Path(os.environ.get("MBDNODE_PAPER", ROOT.parent / "shared/paper/mbd-node.tex"))
    if not source.is_file():
        pytest.skip("The paper's source is not beside this repository.")
    labels = set(re.findall(r"\\label\{((?:eqn|tab|fig|alg):[^}]+)\}", source.read_text()))
    assert {label for label in labels if f"`{label}`" not in ON_THE_PAPER} == set()
