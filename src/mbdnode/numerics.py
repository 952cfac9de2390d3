"""How JAX is to compute, for every package that uses it.

Float64: constraint residuals of 1e-12 cannot be written in float32, and JAX computes in float32
unless told otherwise before its first array.

A pool of at least 16 threads, asked for when the package is imported. XLA cuts a batch of small
linear solves into parts for its thread pool, and whoever waits for the parts holds a thread of it.
With few threads all of them come to wait, and the computation never ends (jaxlib 0.10). Workers
that share a machine have one thread each, of which nothing can wait for another.

Small loops compiled as one function, and products of small matrices written out in place of calls
of a library, asked for when the package is imported. For a mechanism of a few coordinates each
call takes several times as long as its numbers do: 10,000 steps of the slider-crank take 0.15 s of
processor in place of 1.2 s, and a step of an arm with nine joints 12 microseconds in place of 150.
Loops over more than 768 kB stay as they are: the stages of a step with such an arm move 500 kB, and
those with the paper's network, whose products are better left to a library, 1 MB.

Compiled programs in JAX's persistent cache, since people wait for compilation far longer than for
the numbers. A setting of JAX that is there already wins.
"""

import contextlib
import hashlib
import os
import platform
import warnings
from pathlib import Path

import jax

from mbdnode.errors import UserError

# What is kept at most, of all kinds of processors; the programs of a case are half a megabyte.
# JAX's own bound (`jax_compilation_cache_max_size`) looks at every file for each one that it
# writes, of which a fit writes hundreds; and it needs the package filelock.
CACHE_BYTES = 1_000_000_000

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
    """Warn that large batches may hang, if JAX made its thread pool before `import mbdnode`.

    `asked` is the value of `PJRT_NPROC` when the package was imported; `cores` can be used.
    """
    threads = int(asked) if asked and asked.isdigit() else cores
    if 1 < threads < 16 and _has_computed():
        warnings.warn(
            f"JAX computed before `import mbdnode`, with a pool of {threads} threads; a batch of "
            "thousands of constrained mechanisms can hang on fewer than 16. Import "
            "mbdnode before the first computation, or set PJRT_NPROC=16.",
            RuntimeWarning,
            stacklevel=3,
        )


def _has_computed() -> bool:
    """Whether JAX has made its devices: from then on it refuses another number of them."""
    devices = jax.config.values["jax_num_cpu_devices"]
    try:
        jax.config.update("jax_num_cpu_devices", devices + 2)
    except RuntimeError:
        return True
    jax.config.update("jax_num_cpu_devices", devices)
    return False


def cache_folder(setting: str | None, home: str | None) -> Path | None:
    """Where compiled programs are kept; None if they are not.

    A folder for each kind of processor: a home is often shared by several, and a program that was
    compiled for one may not run on another. `setting` is `MBDNODE_CACHE`: a folder, "off", or None
    for the user's cache folder, in `home` (`XDG_CACHE_HOME`) or `~/.cache`.
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
    except (OSError, RuntimeError):  # No home, no permission, no space: compile anew.
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


def shrink_cache(programs: Path, most: int = CACHE_BYTES) -> None:
    """Remove the programs that were not used for longest until the rest fits.

    Other processes may read, write and shrink the same folder: a file that has gone is no error.
    """
    found = []
    for path in programs.glob("*/*-cache"):
        with contextlib.suppress(OSError):
            facts = path.stat()
            found.append((max(facts.st_atime, facts.st_mtime), facts.st_size, path))
    size = sum(each for _, each, _ in found)
    for _, each, path in sorted(found):
        if size <= most:
            return
        with contextlib.suppress(OSError):
            path.unlink()
        size -= each


def _keep_programs() -> None:
    settings = jax.config.values
    wanted = settings["jax_enable_compilation_cache"]
    if not wanted or settings["jax_compilation_cache_dir"] is not None:
        return
    folder = cache_folder(os.environ.get("MBDNODE_CACHE"), os.environ.get("XDG_CACHE_HOME"))
    if folder is None:
        return
    shrink_cache(folder.parent)
    jax.config.update("jax_compilation_cache_dir", str(folder))
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        # Hundreds of tiny programs take as long as a large one.
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    # A program that cannot be read or kept is compiled, which is all that the user need know.
    warnings.filterwarnings("ignore", message="Error (reading|writing) persistent compilation")


_keep_programs()
