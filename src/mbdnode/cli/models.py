"""A model that is named on the command line: a case, a mechanism, a fit, a run."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mbdnode.data.files import check_path, must_be_file, read_marker
from mbdnode.data.folders import CONFIG, MODEL, find_result
from mbdnode.errors import UserError
from mbdnode.mechanisms import is_mechanism_file
from mbdnode.reproduction.cases import LISTED, check_case

if TYPE_CHECKING:
    from mbdnode.data.logs import Columns

# What a model can be given as; folders are called by the command that wrote them.
CASE, MECHANISM, PYTHON, FIT, RUN = "case", "mechanism", "module:name", "fit", "run"


@dataclass(frozen=True)
class NamedModel:
    """A model, and what goes with it.

    **Arguments:**

    - `model`: a mechanism or a learned model.
    - `label`: a short name for it.
    - `dt_s`, `integrator`: as the case has them; None if nothing is said.
    - `parameters`: values that the case has in place of defaults.
    - `initial`: where the case starts, by name.
    - `steps`: of the case; None if nothing is said.
    - `make_inputs`: those of the case, from the number of steps and a seed; None for zero.
    - `stored`: the fit, if it is one.
    """

    model: Any
    label: str
    dt_s: float | None = None
    integrator: str | None = None
    parameters: dict[str, float] = field(default_factory=dict)
    initial: dict[str, float] = field(default_factory=dict)
    steps: int | None = None
    make_inputs: Callable[[int, int], Any] | None = None
    stored: Any = None

    @property
    def columns(self) -> "Columns":
        """Of a log of its inputs: those of the fit, else times by the name of t."""
        from mbdnode.data.logs import Columns

        if self.stored is not None:
            return self.stored.config.columns
        # What goes on from a recorded motion has no names.
        return Columns("t", coordinates=getattr(self.model, "coordinate_names", ()))


def check_model(name: str) -> str:
    """What a model is given as; nothing is loaded.

    **Arguments:**

    - `name`: a case, a TOML, URDF or MJCF file, `module:name`, or the folder of a fit or a run.

    **Returns:**

    `CASE`, `MECHANISM`, `PYTHON`, `FIT` or `RUN`. Raises `UserError` where there is no model of
    this name.
    """
    path = Path(name)
    if is_mechanism_file(name):
        must_be_file(path)
        return MECHANISM
    check_path(path)
    if path.is_dir():
        found = read_marker(path)
        kind = None if found is None else found["kind"]
        if kind not in (FIT, RUN):
            raise UserError(
                f"'{path}' holds no model: name a folder that `mbdnode fit` or `mbdnode run` "
                "wrote, a mechanism file, or a case."
            )
        find_result(path, kind, [CONFIG, MODEL])
        return kind
    if os.path.sep in name or path.exists():
        raise UserError(
            f"'{path}' is neither the folder of a fit nor a mechanism file such as crank.toml."
        )
    module, colon, _ = name.partition(":")
    if colon and name not in LISTED and all(part.isidentifier() for part in module.split(".")):
        return PYTHON
    try:
        check_case(name)
    except UserError as error:
        raise UserError(
            f"{error} Else name the folder of a fit, a mechanism file such as crank.toml, or "
            "module:name."
        ) from None
    return CASE


def find_model(name: str, mechanism: str = "") -> NamedModel:
    """The model of that name.

    **Arguments:**

    - `name`: as for `check_model`, which it passed.
    - `mechanism`: that of a fit, if it is in Python: `module:name`.

    **Returns:**

    A `NamedModel`.
    """
    path = Path(name)
    kind = check_model(name)
    if kind in (MECHANISM, PYTHON):
        from mbdnode.workflow.systems import find_system

        return NamedModel(find_system(name), path.stem if kind == MECHANISM else name)
    if kind == FIT:
        from mbdnode.workflow.folder import read_folder
        from mbdnode.workflow.systems import find_system

        stored = read_folder(path, find_system(mechanism) if mechanism else None)
        return NamedModel(stored.model, path.resolve().name, stored=stored)
    from mbdnode.reproduction.cases import get_case

    if kind == CASE:
        case = get_case(name)
        return _of_case(case, case.mechanism, name)
    from mbdnode.models import load
    from mbdnode.reproduction.folder import read_config

    case = get_case(read_config(path / CONFIG).case)
    return _of_case(case, load(path / MODEL), path.resolve().name)


def _of_case(case: Any, model: Any, label: str) -> NamedModel:
    return NamedModel(
        model,
        label,
        case.dt_s,
        case.integrator,
        dict(case.parameters),
        dict(case.initial),
        case.steps,
        None if case.inputs is None else case.make_inputs,
    )
