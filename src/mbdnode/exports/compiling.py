"""The C compiler of this machine, for exports that hold a library."""

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from mbdnode.errors import UserError

_FLAGS = ("-std=c99", "-O1", "-fPIC", "-shared", "-ffp-contract=off")


def find_compiler(what: str) -> str:
    """A C compiler.

    **Arguments:**

    - `what`: needs it, as the end of a sentence.

    **Returns:**

    Its path. Raises `UserError` where there is none.
    """
    for name in ("cc", "gcc", "clang"):
        found = shutil.which(name)
        if found is not None:
            return found
    raise UserError(
        f"There is no C compiler (cc, gcc or clang), which makes the library of {what}. Install "
        "one, or export C."
    )


def compiled(compiler: str, sources: Mapping[str, str], *flags: str) -> bytes:
    """A shared library of C sources.

    **Arguments:**

    - `compiler`: of `find_compiler`.
    - `sources`: texts by file name; what ends in `.c` is compiled.
    - `flags`: further ones.

    **Returns:**

    The bytes of the library.
    """
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name, text in sources.items():
            (folder / name).write_text(text)
        files = sorted(name for name in sources if name.endswith(".c"))
        done = subprocess.run(
            [compiler, *_FLAGS, *flags, *files, "-o", "library", "-lm"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{compiler} did not compile an export: {done.stderr[:2000]}")
        return (folder / "library").read_bytes()
