"""Mechanism files that are written read back as the same mechanism."""

from pathlib import Path

import pytest

import mbdnode as mbd
from mbdnode.mechanisms import from_text

FILES = sorted((Path(__file__).parents[3] / "examples" / "mechanisms").glob("*.toml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_written_file_reads_back_as_the_same_mechanism(path):
    mechanism = mbd.read_mechanism(path)
    again = from_text(mechanism.to_toml(), name=mechanism.description.name)
    assert again.description == mechanism.description


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_parameter_finds_its_place(path):
    mechanism = mbd.read_mechanism(path)
    values = {p.name: p.default + 0.125 for p in mechanism.parameters}
    again = from_text(mechanism.to_toml(values), name=mechanism.description.name)
    assert {p.name: p.default for p in again.parameters} == pytest.approx(values, rel=1e-15)


def test_unknown_parameters_are_refused():
    with pytest.raises(mbd.UserError, match="Unknown parameter 'mass'"):
        mbd.read_mechanism(FILES[0]).to_toml({"mass": 1.0})
