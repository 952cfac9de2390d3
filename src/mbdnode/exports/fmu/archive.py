"""The file of an FMU: a zip with the description, the sources in C, and a library made from them.

    modelDescription.xml
    binaries/<platform>/<name>.so        the importer loads this one,
    sources/                             or compiles these where there is no library for it

The same model gives the same file: times in the zip are fixed, and the token, by which library and
description know each other, is a hash of all that is in it.
"""

import hashlib
import platform
import sys
import uuid
import zipfile
from importlib import resources
from pathlib import Path

import numpy as np

from mbdnode import __version__
from mbdnode.errors import UserError
from mbdnode.exports.compiling import compiled, find_compiler
from mbdnode.exports.fmu.description import build_description, model_description
from mbdnode.exports.fmu.motion import Motion, motion_of
from mbdnode.exports.fmu.variables import variables_of
from mbdnode.exports.languages.c import c_functions, c_source
from mbdnode.exports.program import Program

# Where a library goes, by version of FMI, operating system and processor.
_FOLDERS = {
    (2, "linux", "x86_64"): "linux64",
    (2, "darwin", "x86_64"): "darwin64",
    (3, "linux", "x86_64"): "x86_64-linux",
    (3, "linux", "aarch64"): "aarch64-linux",
    (3, "darwin", "x86_64"): "x86_64-darwin",
    (3, "darwin", "arm64"): "aarch64-darwin",
}
_ENDINGS = {"linux": ".so", "darwin": ".dylib"}
# Files without a date: the first that a zip can have.
_NO_TIME = (1980, 1, 1, 0, 0, 0)


def write_fmu(program: Program, out: Path, version: int = 3) -> None:
    """Write an FMU of FMI 2 or 3 from the entries "init" and "step".

    Raises `UserError` where there is no C compiler, or for a platform that FMI has no name for.
    """
    folder = _FOLDERS.get((version, sys.platform, platform.machine()))
    if folder is None:
        raise UserError(
            f"FMI {version} has no name for {platform.machine()} under {sys.platform}, so no "
            "library can be put into the file. Export C, or the FMU on Linux or macOS."
        )
    compiler = find_compiler("an FMU")
    files = _texts(program, version)
    sources = {Path(k).name: text for k, text in files.items() if k.startswith("sources/")}
    library = compiled(compiler, sources, "-fvisibility=hidden")
    content = {name: text.encode() for name, text in files.items()}
    content[f"binaries/{folder}/{program.name}{_ENDINGS[sys.platform]}"] = library
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(content.items()):
            entry = zipfile.ZipInfo(name, _NO_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data)


def _texts(program: Program, version: int) -> dict[str, str]:
    """All texts of an FMU, by their names in it."""
    tables, name = program.tables, program.name
    motion = motion_of(program.plant, np.array([p.start for p in tables.parameters]))
    own, moving = c_source(program), c_functions(f"{name}_motion", motion.functions)
    written = {2: ("fmi2.c",), 3: ("fmi3.c", "fmi3_not_provided.h")}[version]
    sources = {
        f"{name}.c": own.source,
        f"{name}.h": own.header,
        f"{name}_motion.c": moving.source,
        f"{name}_motion.h": moving.header,
        **{key: _template(key) for key in ("instance.h", "both_versions.h", *written)},
    }
    listed = [key for key in sources if key.endswith(".c")]
    variables = variables_of(tables, motion, program.dt_s)

    def description(token: str) -> str:
        return model_description(
            version,
            name,
            token,
            variables,
            listed,
            has_rates=motion.has_rates,
            dt_s=program.dt_s,
            generator=f"mbdnode {__version__}",
            summary=f"{program.model}, {program.integrator} steps in Co-Simulation",
        )

    texts = [*sources.items(), ("model_config.h", _config(program, motion, ""))]
    texts += [("modelDescription.xml", description(""))]
    digest = hashlib.sha256("\0".join(f"{k}\0{v}" for k, v in texts).encode()).digest()
    token = f"{{{uuid.UUID(bytes=digest[:16])}}}"
    sources["model_config.h"] = _config(program, motion, token)
    files = {f"sources/{key}": text for key, text in sources.items()}
    files["modelDescription.xml"] = description(token)
    if version == 3:
        files["sources/buildDescription.xml"] = build_description(name, listed)
    return files


def _template(name: str) -> str:
    return resources.files("mbdnode.exports.fmu").joinpath("sources", name).read_text()


def _config(program: Program, motion: Motion, token: str) -> str:
    """The header by which `instance.h` knows the model."""
    name, fields = program.name, {field.name for field in program.state}
    tables = program.tables
    sizes = {
        "NQ": len(tables.coordinates),
        "NU": len(tables.inputs),
        "NP": len(tables.parameters),
        "NY": len(tables.outputs),
        "NZ": motion.positions,
        "NX": motion.size,
        "EXCHANGES": int(motion.exchanges),
        "HAS_RATES": int(motion.has_rates),
        "HAS_SCALE": int("scale" in fields),
        "HAS_TWO_SPLITS": int("position_independent" in fields),
    }
    lines = [
        "/* What instance.h needs to know of the model. */",
        "#ifndef MODEL_CONFIG_H",
        "#define MODEL_CONFIG_H",
        "",
        f'#include "{name}.h"',
        f'#include "{name}_motion.h"',
        "",
        f"#define MODEL(what) {name}_##what",
        f"#define MODEL_MOTION(what) {name}_motion_##what",
        f'#define MODEL_TOKEN "{token}"',
        f"#define MODEL_DT {program.dt_s!r}",
        *(f"#define MODEL_{key} {size}" for key, size in sizes.items()),
        "",
        "/* Dependent, then independent coordinates; dependent, then independent velocities. */",
        _numbers("model_order", motion.order),
        "/* The coordinates' sizes, and those of their velocities. */",
        _numbers("model_nominals", np.asarray(motion.partition.scale)),
        "",
        "#endif",
        "",
    ]
    return "\n".join(lines)


def _numbers(name: str, values: np.ndarray) -> str:
    texts = ", ".join(repr(float(x)) for x in values) or "0.0"
    return f"static const double {name}[{max(len(values), 1)}] = {{{texts}}};"
