"""Float64 for every room that computes.

Constraint residuals of 1e-12 cannot be written in float32, and JAX computes in float32 unless
told otherwise before its first array. Importing this module tells it.
"""

import jax

jax.config.update("jax_enable_x64", True)
