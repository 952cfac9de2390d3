"""How JAX is to compute, for every room that uses it.

Float64: constraint residuals of 1e-12 cannot be written in float32, and JAX computes in float32
unless told otherwise before its first array.

In the calling thread: on a machine with few cores a computation that is dispatched to XLA's pool
can take the thread that its own parts (batches of small linear solves) are waiting for, and then
it never ends. Run by the caller it leaves the pool to its parts.
"""

import jax

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_cpu_enable_async_dispatch", False)
