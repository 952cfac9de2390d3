"""One condition for a whole batch.

Under `vmap` a `cond` whose condition differs from member to member evaluates both of its branches.
A condition that is the same for all of them evaluates one.
"""

import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool


@custom_vmap
def any_of_batch(condition: Bool[Array, "..."]) -> Bool[Array, ""]:
    """Whether a condition holds anywhere, in any member of a batch.

    **Arguments:**

    - `condition`: of any shape.

    **Returns:**

    One truth value, which `vmap` does not repeat.
    """
    return jnp.any(condition)


@any_of_batch.def_vmap
def _of_members(size, batched, condition):
    return any_of_batch(condition), False
