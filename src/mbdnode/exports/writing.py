"""`export`: a model as code that runs without Python."""

from pathlib import Path
from typing import Any

from mbdnode.config import as_path
from mbdnode.data.files import check_destination, replace_file
from mbdnode.data.folders import check_folder, replace_folder
from mbdnode.exports.entries import ENTRIES
from mbdnode.exports.names import KIND, check_identifier, identifier_of
from mbdnode.exports.program import trace_program
from mbdnode.exports.targets import target_for


def export(
    model: Any,
    path: str | Path,
    target: str | None = None,
    *,
    name: str | None = None,
    integrator: Any = "rk4",
    dt_s: float = 0.01,
    parameters: Any = None,
    precision: str = "float64",
    fmi: int | None = None,
) -> Path:
    """Write a mechanism or a learned model as code that runs without Python.

    **Arguments:**

    - `model`: a mechanism, a law, a network, a hybrid, or an ensemble of such.
    - `path`: a folder for "c"; a file for the others, which its ending chooses.
    - `target`: a key of `mbdnode.exports.targets.TARGETS`; by default what the path says.
    - `name`: with which all names in the code begin; by default that of the path.
    - `integrator`: of the step.
    - `dt_s`: the usual step in seconds, a constant of the code; a step may have any length.
    - `parameters`: defaults other than the model's.
    - `precision`: "float64" or "float32".
    - `fmi`: the version of an FMU, 3 or 2; 3 by default.

    **Returns:**

    The path. Raises `UserError`, with nothing written, for what cannot be exported or written.
    """
    path = as_path(path)
    _, chosen = target_for(path, target)
    chosen.check(model, precision, fmi)
    name = identifier_of(path) if name is None else name
    check_identifier(name)
    if chosen.suffix:
        check_destination(path, (chosen.suffix,))
    else:
        check_folder(path, KIND)
    program = trace_program(
        model,
        name=name,
        integrator=integrator,
        dt_s=dt_s,
        parameters=parameters,
        precision=precision,
        entries=ENTRIES if chosen.entries is None else chosen.entries,
    )
    if not chosen.suffix:
        replace_folder(path, KIND, lambda folder: chosen.write(program, folder))
        return path

    def fill(file: Any) -> None:
        import tempfile

        with tempfile.TemporaryDirectory() as scratch:
            made = Path(scratch) / f"{name}{chosen.suffix}"
            chosen.write(program, made, fmi)
            file.write(made.read_bytes())

    replace_file(path, fill)
    return path
