"""Adaptive methods from Diffrax, one solve for each interval between output times.

Solving interval by interval lets inputs jump at the output times and lets the choice of
independent coordinates change there; inside an interval the step is the controller's.
"""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp

from mbdnode.errors import UserError
from mbdnode.integrators.base import AbstractIntegrator


class Adaptive(AbstractIntegrator):
    """A Diffrax solver under a PID controller, or with one fixed step for each interval.

    **Arguments:**

    - `solver`: any Diffrax solver for ordinary differential equations.
    - `order`: its order.
    - `rtol`, `atol`: tolerances; None for both takes exactly one step for each interval.
    - `max_steps`: for one interval; more end the rollout with a status.
    - `adjoint`: how Diffrax differentiates. The default is for reverse mode (`jax.grad`);
        `diffrax.DirectAdjoint()` also allows forward mode (`jax.jacfwd`).
    """

    solver: diffrax.AbstractSolver
    order: int = eqx.field(static=True)
    rtol: float | None = eqx.field(static=True, default=None)
    atol: float | None = eqx.field(static=True, default=None)
    max_steps: int = eqx.field(static=True, default=4096)
    adjoint: diffrax.AbstractAdjoint = diffrax.RecursiveCheckpointAdjoint()

    def __check_init__(self):
        if (self.rtol is None) != (self.atol is None):
            raise UserError(
                f"rtol is {self.rtol} and atol is {self.atol}; give both for an adaptive step, or "
                "neither for one fixed step in each interval."
            )

    @property
    def controls_error(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Unless it takes one fixed step for each interval."""
        return self.rtol is not None

    def step(self, rate, t, dt, y):
        """Solve from `t` to `t + dt`."""
        controller = (
            diffrax.ConstantStepSize()
            if self.rtol is None or self.atol is None
            else diffrax.PIDController(self.rtol, self.atol)
        )
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda s, z, _: rate(jnp.asarray(s), z)),
            self.solver,
            t,
            t + dt,
            dt,
            y,
            stepsize_controller=controller,
            saveat=diffrax.SaveAt(t1=True),
            adjoint=self.adjoint,
            max_steps=self.max_steps,
            throw=False,
        )
        last = jax.tree.map(lambda leaf: leaf[-1], solution.ys)
        return last, solution.result == diffrax.RESULTS.successful
