"""How JAX is to compute, for every room that uses it.

Float64: constraint residuals of 1e-12 cannot be written in float32, and JAX computes in float32
unless told otherwise before its first array.

In the calling thread: on a machine with few cores a computation that is dispatched to XLA's pool
can take the thread that its own parts (batches of small linear solves) are waiting for, and then
it never ends. Run by the caller it leaves the pool to its parts.
"""

import jax

from mbdnode.errors import UserError

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_cpu_enable_async_dispatch", False)


def check_precision() -> None:
    """Raise `UserError` if somebody has taken float64 back since."""
    if not jax.config.jax_enable_x64:  # pyright: ignore[reportAttributeAccessIssue]
        raise UserError(
            "jax_enable_x64 is False, so every number would be cut to float32 and a residual of "
            "1e-12 could not be told from 1e-7. Leave it on, as `import mbdnode` sets it; networks "
            "are trained in float32 by TrainingConfig(precision='float32')."
        )
