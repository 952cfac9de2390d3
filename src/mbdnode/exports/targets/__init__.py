"""What a model can be exported to: one file here and one line in `TARGETS` for each.

A target's module has a function `write(program, path)`. Of a target without a suffix the path is
an empty folder to fill; of one with a suffix, the file to write. Either is put in place as a whole
when it is finished, so that nothing is left half-written.
"""

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mbdnode.errors import UserError
from mbdnode.naming import unknown_name


@dataclass(frozen=True)
class Target:
    """A kind of export.

    **Arguments:**

    - `summary`: what it is, in a few words.
    - `module`: with its `write`, in this package.
    - `suffix`: of its file; empty for a folder.
    - `versions`: of the format, the first by default; none for a format that has only one.
    - `entries`: the functions of the model that it is made of; None for all of them.
    """

    summary: str
    module: str
    suffix: str = ""
    versions: tuple[int, ...] = ()
    entries: tuple[str, ...] | None = None

    def write(self, program: Any, path: Path, version: int | None = None) -> None:
        """Write a program there."""
        module = importlib.import_module(f"{__name__}.{self.module}")
        if self.versions:
            module.write(program, path, self.versions[0] if version is None else version)
        else:
            module.write(program, path)

    def check_version(self, version: int | None) -> None:
        """Raise `UserError` for a version that there is not."""
        if version is not None and version not in self.versions:
            if not self.versions:
                raise UserError(f"fmi is {version}, but this export is no FMU. Leave it out.")
            known = " or ".join(map(str, self.versions))
            raise UserError(f"There is no FMI {version} here; choose {known}.")


TARGETS: dict[str, Target] = {
    "c": Target("C99 for libm alone: header, source, example, CMake file", "c_folder"),
    "fmu": Target(
        "Model Exchange and Co-Simulation, FMI 3.0 or 2.0",
        "fmu_file",
        ".fmu",
        (3, 2),
        entries=("init", "step"),
    ),
    "onnx": Target(
        "a graph of ONNX: one step, and the rates",
        "onnx_file",
        ".onnx",
        entries=("step", "rates"),
    ),
    "casadi": Target("external functions of CasADi, with Jacobians", "casadi_folder", entries=()),
    "simulink": Target(
        "a level-2 S-function of Simulink",
        "simulink_folder",
        entries=("init", "step", "outputs"),
    ),
    "javascript": Target("one script for a page or for node", "javascript_file", ".js"),
}


def get_target(name: str) -> Target:
    """A target by name.

    **Arguments:**

    - `name`: a key of `TARGETS`.

    **Returns:**

    The target. Raises `UserError` for an unknown name.
    """
    if name not in TARGETS:
        raise unknown_name("target", name, TARGETS)
    return TARGETS[name]


def target_for(path: Path, name: str | None) -> tuple[str, Target]:
    """The target that is named, or the one whose suffix the path has; a folder is of C.

    **Arguments:**

    - `path`: where to write.
    - `name`: of a target, or None.

    **Returns:**

    Its name and the target. Raises `UserError` if the path has not the target's suffix.
    """
    if name is None:
        found = [key for key, each in TARGETS.items() if each.suffix and each.suffix == path.suffix]
        name = found[0] if found else "c"
    target = get_target(name)
    if target.suffix and path.suffix != target.suffix:
        raise UserError(
            f"An export to {name} is one file that ends in {target.suffix}, but '{path}' does not. "
            f"Name it like '{path.with_suffix(target.suffix).name}'."
        )
    return name, target
