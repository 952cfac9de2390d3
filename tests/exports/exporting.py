"""Exports made in a process of their own, where calls are not checked: tracing takes a tenth."""

import subprocess
import sys
from pathlib import Path

_HEAD = """
import sys
from pathlib import Path

import mbdnode as mbd
from mbdnode.exports import trace_program

folder = Path(sys.argv[1])
"""


def export_in(folder: Path, code: str) -> Path:
    """Run lines of Python that write to `folder`.

    **Arguments:**

    - `folder`: for the files.
    - `code`: which uses `mbd`, `trace_program` and `folder`.

    **Returns:**

    The folder.
    """
    command = [sys.executable, "-c", _HEAD + code, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder
