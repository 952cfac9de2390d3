"""mbdnode: learn, simulate and control constrained multibody systems.

Names are loaded when first used, so that `import mbdnode` and the command line start at once.
"""

import os
import sys
from importlib.metadata import version

import lazy_loader

__version__ = "0.1.0"

# Arrays that a user makes between `import mbdnode` and the first use must be float64 already, and
# JAX makes its thread pool, whose size matters (mbdnode.numerics), at its first computation.
_THREADS = os.environ.get("PJRT_NPROC")
# JAX counts the cores that this process may use, of which a queue gives few of a large machine.
_CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
if _THREADS is None and _CORES < 16:
    os.environ["PJRT_NPROC"] = "16"
# Options of XLA (mbdnode.numerics says why), unless the user has them, or names a file of options:
# XLA takes what does not begin with a dash for one. It ends the process for what it does not know.
_OPTIONS = {"xla_backend_extra_options": "xla_cpu_small_while_loop_byte_threshold=786432"}
if version("jaxlib").startswith("0.10."):
    _OPTIONS["xla_cpu_experimental_ynn_fusion_type"] = ""
_FLAGS = os.environ.get("XLA_FLAGS", "").strip()
if _FLAGS[:1] in ("", "-"):
    _MORE = [f"--{name}={value}" for name, value in _OPTIONS.items() if name not in _FLAGS]
    os.environ["XLA_FLAGS"] = " ".join([_FLAGS, *_MORE]).strip()
if "jax" in sys.modules:
    from mbdnode.numerics import warn_of_few_threads

    warn_of_few_threads(_THREADS, _CORES)
else:
    os.environ.setdefault("JAX_ENABLE_X64", "true")

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
