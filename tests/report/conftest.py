"""One report for all tests of its files and its page, since drawing takes seconds."""

import shutil

import pytest
from report.browser import Browser
from report.samples import reproduction

from mbdnode.reproduction.report.writing import write_report


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """The folder of a whole report."""
    folder = tmp_path_factory.mktemp("report")
    write_report(reproduction(quick=True), folder)
    return folder


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """A headless Chromium, ended when the tests are done."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip(
            "there is no `chromium` on the PATH, so the page is not tried in a browser; "
            "`apt-get install chromium`, or what your system has, brings one"
        )
    with Browser(program, tmp_path_factory.mktemp("chromium")) as running:
        yield running
