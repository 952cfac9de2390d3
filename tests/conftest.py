"""Settings under which every test runs: float64, no silent promotion, checked shapes.

This file is read before any test imports `mbdnode`, so the import hook sees every module of the
package: each annotated shape is then checked at every call. Diffrax and Optimistix are content
with strict promotion, so there are no exceptions to it.
"""

import signal
import sys
from pathlib import Path

import jax
import jaxtyping

# A shell starts what runs in its background with interrupts ignored, and children inherit that;
# the tests of Ctrl-C need what a user at a terminal has.
signal.signal(signal.SIGINT, signal.default_int_handler)

jaxtyping.install_import_hook("mbdnode", "beartype.beartype")

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

# The mechanisms and problems that several folders of tests share are modules beside this file.
sys.path.insert(0, str(Path(__file__).parent))
