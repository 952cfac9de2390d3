"""How JAX is to compute, for every room that uses it.

Float64: constraint residuals of 1e-12 cannot be written in float32, and JAX computes in float32
unless told otherwise before its first array.

A pool of at least 16 threads, asked for when the package is imported: a batch of small linear
solves is cut into parts for XLA's thread pool, and whoever waits for the parts holds a thread of
it. On a machine with few cores all of them come to wait, and the computation never ends (jaxlib
0.10). Sixteen threads compile and simulate batches as fast as two; but XLA cuts the operations of
small networks into as many parts, and on two cores an update takes twice as long as with one
thread, of which nothing can wait for another either: workers that share a machine have one each.

XLA's older code generator for programs without networks (`compiler_options`): it compiles the step
of a constrained mechanism in half the time, and that step then runs as fast within a tenth. An
update of a network takes twice as long with it, so networks are left to the newer one.

Small loops compiled as one function, asked for when the package is imported: XLA calls every
operation of a loop by itself, which for a mechanism of a few coordinates takes several times as
long as the numbers do. Loops over more memory stay as they are. For the same reason programs
without networks have their products of matrices written out, in place of calls of a library.

No optimizer for programs that are called a few times on little data, as those of a search for a law
are: the optimizer takes more than half of the time to compile, and seconds for milliseconds.

Compiled programs kept in a folder from one process to the next, since people wait for compilation
far longer than for the numbers. An existing setting of JAX wins.
"""

import contextlib
import hashlib
import os
import platform
import re
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax

from mbdnode.errors import UserError

# What is kept at most, of all kinds of processors; the programs of a case are half a megabyte.
CACHE_BYTES = 1_000_000_000
# Where `mbdnode.program_cache` keeps its own; None where nothing is to be kept.
programs_folder: Path | None = None
# How the folder of a kind of processor is called.
_PROCESSOR = re.compile(r"\w+-[0-9a-f]{12}")
# A matrix as large as this in both directions is a layer of a network.
_LAYER = 32
# Of programs without networks: the older code generator, and no library for products of matrices.
_WITHOUT_NETWORKS = {
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_experimental_ynn_fusion_type": "",
}
# Of programs for a few calls, up to so many numbers in their arguments: code as it is written.
_UNOPTIMIZED, _LITTLE_DATA = {"xla_backend_optimization_level": 0}, 50_000
# The releases of JAX in which these options were measured.
_MEASURED = ("0.10.",)

jax.config.update("jax_enable_x64", True)


def check_precision() -> None:
    """Raise `UserError` if somebody has taken float64 back since."""
    if not jax.config.jax_enable_x64:  # pyright: ignore[reportAttributeAccessIssue]
        raise UserError(
            "jax_enable_x64 is False, so every number would be cut to float32 and a residual of "
            "1e-12 could not be told from 1e-7. Leave it on, as `import mbdnode` sets it; networks "
            "are trained in float32 by TrainingConfig(precision='float32')."
        )


def warn_of_few_threads(asked: str | None, cores: int) -> None:
    """Say that large batches may hang, if JAX made its thread pool before we could ask for more.

    **Arguments:**

    - `asked`: the value of `PJRT_NPROC` when the package was imported.
    - `cores`: that this process may use.
    """
    bridge = sys.modules.get("jax._src.xla_bridge")  # JAX has no public name for it.
    started = getattr(bridge, "backends_are_initialized", lambda: False)()
    threads = int(asked) if asked and asked.isdigit() else cores
    if started and 1 < threads < 16:
        warnings.warn(
            f"JAX computed before `import mbdnode`, with a pool of {threads} threads; a batch of "
            "thousands of constrained mechanisms can hang on fewer than 16. Import "
            "mbdnode before the first computation, or set PJRT_NPROC=16.",
            RuntimeWarning,
            stacklevel=3,
        )


def compiler_options(arrays: Sequence[Any], *, few_calls: bool = False) -> dict[str, Any]:
    """How XLA is to compile a program.

    **Arguments:**

    - `arrays`: that it is called with.
    - `few_calls`: whether it is called so few times that optimizing takes longer than it saves, if
        the arrays are small.

    **Returns:**

    The options; none for networks, for accelerators and for other releases of JAX. What `XLA_FLAGS`
    names is left to the user.
    """
    if (
        not jax.__version__.startswith(_MEASURED)
        or jax.default_backend() != "cpu"
        or any(x.ndim >= 2 and min(x.shape[-2:]) >= _LAYER for x in arrays)
    ):
        return {}
    options = dict(_WITHOUT_NETWORKS)
    if few_calls and sum(x.size for x in arrays) <= _LITTLE_DATA:
        options |= _UNOPTIMIZED
    flags = os.environ.get("XLA_FLAGS", "")
    return {name: value for name, value in options.items() if name not in flags}


def cache_folder(setting: str | None, home: str | None) -> Path | None:
    """Where compiled programs are kept; None if they are not.

    A folder for each kind of processor: a home is often shared by several, and a program that was
    compiled for one may not run on another.

    **Arguments:**

    - `setting`: of `MBDNODE_CACHE`: a folder, "off", or None for the user's cache folder.
    - `home`: that cache folder's parent, of `XDG_CACHE_HOME`; None for `~/.cache`.
    """
    if setting is not None and setting.lower() in ("", "0", "off", "false", "no"):
        return None
    try:
        if setting is not None:
            root = Path(setting).expanduser()
        elif home and Path(home).is_absolute():  # XDG's own rule: another one does not count.
            root = Path(home) / "mbdnode"
        else:
            root = Path.home() / ".cache" / "mbdnode"
        folder = root / "programs" / _processor()
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # No home, no permission, no space: compile anew, as before.
        return None
    return folder if os.access(folder, os.W_OK | os.X_OK) else None


def _processor() -> str:
    """A name for what this processor can do."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        features = next((x for x in lines if x.startswith(("flags", "Features"))), "")
    except OSError:
        features = platform.processor()
    what = f"{platform.machine()} {features}"
    return f"{platform.machine()}-{hashlib.sha256(what.encode()).hexdigest()[:12]}"


def shrink_cache(*folders: Path, most: int = CACHE_BYTES) -> None:
    """Remove the programs that were not used for longest until the rest fits.

    Other processes may read, write and shrink the same folders: a file that has gone is no error.

    **Arguments:**

    - `folders`: of programs.
    - `most`: bytes of all of them together.
    """
    found = []
    for folder in folders:
        with contextlib.suppress(OSError):
            for entry in os.scandir(folder):
                with contextlib.suppress(OSError):
                    facts = entry.stat()
                    found.append((max(facts.st_atime, facts.st_mtime), facts.st_size, entry.path))
    size = sum(each for _, each, _ in found)
    for _, each, path in sorted(found):
        if size <= most:
            return
        with contextlib.suppress(OSError):
            os.unlink(path)
        size -= each


def processor_folders(programs: Path) -> list[Path]:
    """Those of all kinds of processors.

    **Arguments:**

    - `programs`: what they are in; the user may have chosen it, and have other folders there.

    **Returns:**

    The folders whose names are as `cache_folder` gives them.
    """
    with contextlib.suppress(OSError):
        return [path for path in programs.iterdir() if _PROCESSOR.fullmatch(path.name)]
    return []


def _keep_programs() -> None:
    global programs_folder
    settings = jax.config.values
    wanted = settings["jax_enable_compilation_cache"]
    if not wanted or settings["jax_compilation_cache_dir"] is not None:
        return
    folder = cache_folder(os.environ.get("MBDNODE_CACHE"), os.environ.get("XDG_CACHE_HOME"))
    if folder is None:
        return
    shrink_cache(*processor_folders(folder.parent))
    if os.environ.get("MBDNODE_TRACE", "").lower() not in ("1", "on", "true", "yes"):
        programs_folder = folder
    jax.config.update("jax_compilation_cache_dir", str(folder))
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        # Hundreds of tiny programs take as long as a large one.
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    # A program that cannot be read or kept is compiled, which is all that the user need know.
    warnings.filterwarnings("ignore", message="Error (reading|writing) persistent compilation")


_keep_programs()
