"""Implicit methods with a fixed step: backward Euler and the implicit midpoint rule.

Both solve `y1 = y + h f(t + c h, y + c (y1 - y))`, with c = 1 and c = 1/2. The midpoint rule is
symplectic for every Hamiltonian system, separable or not.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from mbdnode.integrators.base import AbstractIntegrator, add


class ImplicitOneStage(AbstractIntegrator):
    """One implicit stage at the fraction `stage` of the step.

    **Arguments:**

    - `stage`: 1/2 is the midpoint rule, 1 backward Euler.
    - `order`, `symplectic`: of the method.
    - `tolerance`: of Newton's method.
    """

    stage: float = eqx.field(static=True)
    order: int = eqx.field(static=True)
    symplectic: bool = eqx.field(static=True, kw_only=True)
    tolerance: float = eqx.field(static=True, default=1e-12)

    def step_towards(self, rate, t, dt, y, known):
        """One evaluation, between the two known states."""
        inside = jax.tree.map(lambda a, b: a + self.stage * (b - a), y, known)
        return add(y, dt, rate(t + self.stage * dt, inside))

    def step(self, rate, t, dt, y):
        """Newton's method from the explicit Euler guess."""
        import optimistix as optx  # Slow to load, for few.

        flat, unravel = ravel_pytree(y)
        if flat.shape[0] == 0:
            return y, jnp.array(True)

        def defect(new, _):
            inside = unravel(flat + self.stage * (new - flat))
            slope, _ = ravel_pytree(rate(t + self.stage * dt, inside))
            return new - flat - dt * slope

        guess, _ = ravel_pytree(add(y, dt, rate(t, y)))
        solver = optx.Newton(rtol=self.tolerance, atol=self.tolerance)
        solution = optx.root_find(defect, solver, guess, throw=False, max_steps=50)
        return unravel(solution.value), solution.result == optx.RESULTS.successful
