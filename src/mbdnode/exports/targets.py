"""What a model can be exported to: one line in `TARGETS` for each.

A target is a function of a program and a path. Without a suffix the path is an empty folder to
fill; with one, the file to write. Either is put in place as a whole when it is finished, so that
nothing is left half-written.
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
    - `function`: that writes it, as `module:name` in this package.
    - `suffix`: of its file; empty for a folder.
    - `versions`: of the format, the first by default; none for a format that has only one.
    - `entries`: the functions of the model that it is made of; None for all of them.
    - `single_only`: whether it needs the rates of one model, which an ensemble has not.
    - `float64_only`: whether its numbers are float64.
    """

    summary: str
    function: str
    suffix: str = ""
    versions: tuple[int, ...] = ()
    entries: tuple[str, ...] | None = None
    single_only: bool = False
    float64_only: bool = False

    def write(self, program: Any, path: Path, version: int | None = None) -> None:
        """Write a program there."""
        module, _, name = self.function.partition(":")
        function = getattr(importlib.import_module(f"mbdnode.exports.{module}"), name)
        if self.versions:
            function(program, path, self.versions[0] if version is None else version)
        else:
            function(program, path)

    def check(self, model: Any, precision: str, version: int | None) -> None:
        """Raise `UserError` for a model, a precision or a version that it does not have."""
        from mbdnode.simulation import AbstractEnsemble

        self.check_version(version)
        if self.single_only and isinstance(model, AbstractEnsemble):
            raise UserError(
                f"This export is of one model, and this is an ensemble of {len(model)}, whose mean "
                "has no rates of its own. Export it to c or javascript, or one of its members: "
                "`ensemble[0]`."
            )
        if self.float64_only and precision != "float64":
            raise UserError(f"The numbers of this export are float64 and cannot be {precision}.")

    def check_version(self, version: int | None) -> None:
        """Raise `UserError` for a version that there is not."""
        if version is not None and version not in self.versions:
            if not self.versions:
                raise UserError(f"fmi is {version}, but this export is no FMU. Leave it out.")
            known = " or ".join(map(str, self.versions))
            raise UserError(f"There is no FMI {version} here; choose {known}.")


TARGETS: dict[str, Target] = {
    "c": Target("C99 for libm alone: header, source, example, CMake file", "c_folder:write_c"),
    "fmu": Target(
        "Model Exchange and Co-Simulation, FMI 3.0 or 2.0",
        "fmu.archive:write_fmu",
        ".fmu",
        versions=(3, 2),
        entries=("init", "step"),
        single_only=True,
        float64_only=True,
    ),
    "onnx": Target(
        "a graph of ONNX: one step, and the rates",
        "onnx.convert:write_onnx",
        ".onnx",
        entries=("step", "rates"),
        single_only=True,
    ),
    "casadi": Target(
        "external functions of CasADi, with Jacobians",
        "casadi:write_casadi",
        entries=(),
        single_only=True,
        float64_only=True,
    ),
    "simulink": Target(
        "a level-2 S-function of Simulink",
        "simulink:write_simulink",
        entries=("init", "step", "outputs"),
        float64_only=True,
    ),
    "javascript": Target(
        "one script for a page or for node", "languages.javascript:write_javascript", ".js"
    ),
}


def target_for(path: Path, name: str | None) -> tuple[str, Target]:
    """The target that is named, or the one whose suffix the path has; a folder is of C."""
    if name is None:
        found = [key for key, each in TARGETS.items() if each.suffix and each.suffix == path.suffix]
        name = found[0] if found else "c"
    if name not in TARGETS:
        raise unknown_name("target", name, TARGETS)
    target = TARGETS[name]
    if target.suffix and path.suffix != target.suffix:
        raise UserError(
            f"An export to {name} is one file that ends in {target.suffix}, but '{path}' does not. "
            f"Name it like '{path.with_suffix(target.suffix).name}'."
        )
    return name, target
