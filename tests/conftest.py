"""Settings under which every test runs: float64, no silent promotion, checked shapes.

This file is read before any test imports `mbdnode`, so the import hook sees every module of the
package: each annotated shape is then checked at every call. Diffrax and Optimistix are content
with strict promotion, so there are no exceptions to it.

Most of the time goes into compiling programs that run for milliseconds, so XLA is asked for less
optimization, as in JAX's own tests: a quarter of the time is saved. The processes that tests start
inherit that. `make test-all` sets the variable to 0, and compiles as users do. What one process has
compiled the others take from a folder beside the tests, not from the user's.
"""

import gc
import os
import shutil
import signal
import sys
from contextlib import contextmanager
from pathlib import Path

os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
if os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] == "1":
    # XLA's older code generator compiles such programs in half the time.
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false")
os.environ.setdefault("MBDNODE_CACHE", str(Path(__file__).parents[1] / ".pytest_cache" / "mbdnode"))
# Tests compile thousands of programs once: writing the small ones takes longer than it saves.
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.5")

import jax
import jaxtyping
import pytest

# A shell starts what runs in its background with interrupts ignored, and children inherit that;
# the tests of Ctrl-C need what a user at a terminal has.
signal.signal(signal.SIGINT, signal.default_int_handler)


def _checked(package="mbdnode"):
    """The modules whose annotations are checked at every call.

    Those that print code are left out: they have no shapes to check, and make millions of short
    calls, which would take twenty times as long.
    """
    printing = [
        "builder",
        "ir",
        "languages",
        "jaxpr_to_ir",
        "pruning",
        "placement",
        "primitive_rules",
        "values",
    ]
    room = Path(__file__).parents[1] / "src" / package
    names = [f"{package}.{path.stem}" for path in room.iterdir() if path.stem != "exports"]
    exports = [path.stem for path in (room / "exports").iterdir()]
    return names + [f"{package}.exports.{name}" for name in exports if name not in printing]


jaxtyping.install_import_hook(_checked(), "beartype.beartype")

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

# The mechanisms and problems that several folders of tests share are modules beside this file.
sys.path.insert(0, str(Path(__file__).parent))


def pytest_collection_finish():
    """What was imported is never garbage, so the collector need not look at it again and again."""
    gc.freeze()


# Linux lets a process map 65,530 pieces of memory, every compiled program takes several, and LLVM
# crashes at the limit.
MANY_MAPS = 8_000


@pytest.fixture(autouse=True, scope="module")
def _memory_of_few_programs():
    """What a file has compiled goes when there is much of it: files share little of that."""
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > MANY_MAPS:
        jax.clear_caches()
        gc.collect()


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """A headless Chromium, ended when the tests are done."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip(
            "there is no `chromium` on the PATH, so the page is not tried in a browser; "
            "`apt-get install chromium`, or what your system has, brings one"
        )
    from browser import Browser

    with Browser(program, tmp_path_factory.mktemp("chromium")) as running:
        yield running


@pytest.fixture(scope="session")
def dask_processes(tmp_path_factory):
    """Start a scheduler; whatever was started ends with the block."""
    from dask_processes import DaskProcesses

    @contextmanager
    def start(**settings):
        processes = DaskProcesses(tmp_path_factory.mktemp("dask"), **settings)
        try:
            yield processes
        finally:
            processes.end()

    return start
