"""A model that is named on the command line: a fit, a run, a case, a mechanism file."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mbdnode.cli.early_checks import check_mechanism_file
from mbdnode.data.files import check_path, read_marker
from mbdnode.data.folders import CONFIG, MODEL, find_result
from mbdnode.errors import UserError
from mbdnode.reproduction.cases import check_case

# What a model can be given as; folders are called by the command that wrote them.
CASE, MECHANISM, FIT, RUN = "case", "mechanism", "fit", "run"


@dataclass(frozen=True)
class NamedModel:
    """A model, and what goes with it.

    **Arguments:**

    - `model`: a mechanism or a learned model.
    - `label`: a short name for it.
    - `dt_s`, `integrator`: as the case has them; None if nothing is said.
    - `parameters`: values that the case has in place of defaults.
    - `initial`: where the case starts, by name.
    """

    model: Any
    label: str
    dt_s: float | None = None
    integrator: str | None = None
    parameters: dict[str, float] = field(default_factory=dict)
    initial: dict[str, float] = field(default_factory=dict)


def check_model(name: str) -> str:
    """What a model is given as; nothing is loaded.

    **Arguments:**

    - `name`: the folder of a fit or a run, a TOML file, or a case.

    **Returns:**

    `CASE`, `MECHANISM`, `FIT` or `RUN`. Raises `UserError` where there is no model of this name.
    """
    path = Path(name)
    if name.endswith(".toml"):
        check_mechanism_file(name)
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
    try:
        check_case(name)
    except UserError as error:
        raise UserError(
            f"{error} Else name the folder of a fit, or a mechanism file such as crank.toml."
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
    if name.endswith(".toml"):
        from mbdnode.mechanisms.planar import read_mechanism

        return NamedModel(read_mechanism(path), path.stem)
    if path.is_dir():
        marker = read_marker(path)
        assert marker is not None
        label = path.resolve().name
        if marker["kind"] == FIT:
            from mbdnode.workflow.folder import read_folder
            from mbdnode.workflow.systems import find_system

            known = find_system(mechanism) if mechanism else None
            return NamedModel(read_folder(path, known).model, label)
        from mbdnode.models import load
        from mbdnode.reproduction.cases import get_case
        from mbdnode.reproduction.folder import read_config

        case = get_case(read_config(path / CONFIG).case)
        return _of_case(case, load(path / MODEL), label)
    from mbdnode.reproduction.cases import get_case

    case = get_case(name)
    return _of_case(case, case.mechanism, name)


def _of_case(case: Any, model: Any, label: str) -> NamedModel:
    given = (dict(case.parameters), dict(case.initial))
    return NamedModel(model, label, case.dt_s, case.integrator, *given)
