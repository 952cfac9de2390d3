"""One report for all tests of its files and its page, since drawing takes seconds."""

import pytest
from reproduction.report.samples import reproduction

from mbdnode.reproduction.report import write_report


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """The folder of a whole report."""
    folder = tmp_path_factory.mktemp("report")
    write_report(reproduction(quick=True), folder)
    return folder
