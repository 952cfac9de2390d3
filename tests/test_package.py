"""What is given away is whole: wheel, sdist, and how to cite both the software and the paper."""

import re
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

import mbdnode

ROOT = Path(__file__).parent.parent


def files(folder):
    found = (path for path in (ROOT / folder).rglob("*") if path.is_file())
    return {
        path.relative_to(ROOT).as_posix()
        for path in found
        if not {"__pycache__", ".ipynb_checkpoints"} & set(path.parts) and path.suffix != ".pyc"
    }


@pytest.fixture
def hatchling(monkeypatch):
    """The build backend, as `pip` calls it, but without an environment of its own."""
    build = pytest.importorskip("hatchling.build", reason="hatchling is not installed")
    monkeypatch.chdir(ROOT)
    return build


def test_wheel_holds_every_file_of_the_package_and_nothing_else(hatchling, tmp_path):
    with zipfile.ZipFile(tmp_path / hatchling.build_wheel(str(tmp_path))) as wheel:
        held = {f"src/{name}" for name in wheel.namelist() if ".dist-info/" not in name}
        entry = next(name for name in wheel.namelist() if name.endswith("entry_points.txt"))
        assert "mbdnode = mbdnode.cli:main" in wheel.read(entry).decode()
    assert held == files("src/mbdnode")
    assert {Path(name).suffix for name in held} >= {
        ".py",
        ".pyi",
        ".c",
        ".h",
        ".js",
        ".css",
        ".j2",
        ".svg",
    }


def test_sdist_holds_what_its_tests_and_documentation_need(hatchling, tmp_path):
    with tarfile.open(tmp_path / hatchling.build_sdist(str(tmp_path))) as sdist:
        held = {name.partition("/")[2] for name in sdist.getnames()}
    folders = ("src", "tests", "examples", "docs", "benchmarks")
    expected = set().union(*map(files, folders)) | {
        *("pyproject.toml", "constraints.txt", "Makefile", "mkdocs.yml"),
        *("README.md", "CONTRIBUTING.md", "LICENSE", "CITATION.cff"),
    }
    assert expected - held == set()


def test_citation_and_bibtex_name_the_same_paper_and_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    (paper,) = citation["references"]
    assert citation["version"] == mbdnode.__version__
    # Titles have braces around what must keep its case.
    bibtex = re.sub("[{}]", "", (ROOT / "docs" / "index.md").read_text())
    assert f"title = {paper['title']}," in bibtex
    authors = " and ".join(f"{a['family-names']}, {a['given-names']}" for a in paper["authors"])
    assert f"author = {authors}," in bibtex
    assert f"arXiv:{re.search('eprint = (.*),', bibtex)[1]}" == paper["identifiers"][0]["value"]
    assert f"version = {mbdnode.__version__}," in bibtex
