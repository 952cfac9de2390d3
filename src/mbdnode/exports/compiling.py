"""The C compiler of this machine, for exports that hold a library."""

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from mbdnode.errors import UserError

_FLAGS = ("-std=c99", "-O1", "-fPIC", "-shared", "-ffp-contract=off")


def find_compiler(what: str) -> str:
    """The path of a C compiler; `UserError` where there is none. `what` needs it."""
    for name in ("cc", "gcc", "clang"):
        found = shutil.which(name)
        if found is not None:
            return found
    raise UserError(
        f"There is no C compiler (cc, gcc or clang), which makes the library of {what}. Install "
        "one, or export C."
    )


def compiled(compiler: str, sources: Mapping[str, str], *flags: str) -> bytes:
    """The bytes of a shared library of C sources, by file name."""
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
