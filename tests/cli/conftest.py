from typing import NamedTuple

import pytest

from mbdnode.cli import main


class Result(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys, monkeypatch):
    """Call the command line as a terminal of 100 columns would."""
    monkeypatch.setenv("COLUMNS", "100")

    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        return Result(code, *capsys.readouterr())

    return call
