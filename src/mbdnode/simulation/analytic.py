"""Closed-form motion, for the systems that have one."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbdnode.errors import UserError
from mbdnode.multibody import AbstractMechanism, AbstractSystem, Params
from mbdnode.simulation.signals import Signal
from mbdnode.status import completed
from mbdnode.trajectory import State, Trajectory


def closed_form(
    system: AbstractSystem, t: Float[Array, " n"], initial: State, signal: Signal, mu: Params
) -> Trajectory:
    """Evaluate the system's own `solution` at the times `t`."""
    elapsed = t - t[0]

    def solve(s):
        if not isinstance(system, AbstractMechanism):
            return None
        return system.solution(s, initial.q, initial.v, mu)

    if solve(elapsed[0]) is None:
        raise UserError(
            f"{type(system).__name__} has no closed-form solution. Use an integrator such as "
            "'dopri8'."
        )
    q, v = jax.vmap(solve)(elapsed)  # pyright: ignore[reportGeneralTypeIssues]
    none = jnp.zeros(t.shape)
    names = system.coordinate_names
    status = completed(t[-1], jnp.array(t.shape[0] - 1), names)
    return Trajectory(
        t, q, v, signal.samples, none, none, status, names, system.rate_names, system.input_names
    )
