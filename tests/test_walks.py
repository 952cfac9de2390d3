"""The walks of CONTRIBUTING.md are those of the code: a file stands below one that imports it."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "mbdnode"
WALKS = re.findall(r"```text\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL)


def imported(path):
    """The modules that a file imports, anywhere in it, and the rooms that they are in."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.split()[0])
def test_walk_follows_the_imports(walk):
    above: list[Path] = []
    for line in walk.splitlines():
        depth = (len(line) - len(line.lstrip())) // 4
        path = SOURCE / line.split()[0]
        assert path.exists(), line
        names = ".".join(("mbdnode", *path.relative_to(SOURCE).with_suffix("").parts))
        if depth:
            # A name of a file that its room makes public is imported from the room.
            known = imported(above[depth - 1])
            assert {names, names.rpartition(".")[0]} & (known - {"mbdnode"}), line
        above[depth:] = [path]


def test_all_four_walks_are_drawn():
    drawn = [walk.split()[0] for walk in WALKS]
    assert drawn == ["cli/fit.py", "cli/run.py", "cli/reproduce.py", "cli/simulate.py"]
