"""The plant of a closed loop: one step of the controller at a time, compiled once."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from mbdnode.control.state_space import check_controllable_kind
from mbdnode.errors import UserError
from mbdnode.integrators import AbstractIntegrator, get_integrator
from mbdnode.multibody import (
    AbstractSystem,
    Partition,
    check_definition,
    check_state,
    choose_partition,
    consistent_state,
    constraint_counts,
    resolve_parameters,
)
from mbdnode.simulation import AbstractEnsemble
from mbdnode.simulation.rollout import rollout
from mbdnode.simulation.signals import Signal
from mbdnode.status import Status
from mbdnode.trajectory import State


class Plant:
    """A mechanism or a model whose inputs are held over each step.

    **Arguments:**

    - `system`: what moves.
    - `initial`: its start, as a `State` or by name.
    - `dt_s`: the step.
    - `parameters`, `integrator`, `substeps`: as for `closed_loop`.
    """

    def __init__(
        self,
        system: Any,
        initial: Any,
        dt_s: float,
        *,
        parameters: Mapping[str, Any] | None,
        integrator: Any,
        substeps: int,
    ):
        if isinstance(system, AbstractEnsemble):
            raise UserError(
                "The plant is an ensemble, which has no single motion. Use one of its members, "
                "ensemble[i]; the ensemble may be the controller's model."
            )
        check_controllable_kind(system)
        check_definition(system)
        self.system: AbstractSystem = system
        self.mu = resolve_parameters(system, parameters)
        self.start = _as_state(system, initial, parameters)
        check_state(system, jnp.zeros(()), self.start.q, self.start.v, self.mu)
        constrained = sum(constraint_counts(system, self.mu)) > 0
        self._moving = constrained and not system.closed_on_minimal
        self._partition = choose_partition(system, jnp.zeros(()), self.start.q, self.mu)
        self._integrator = get_integrator(integrator)
        self._grid = dt_s * np.linspace(0.0, 1.0, substeps + 1)

    def advance(self, t: float, state: State, u: np.ndarray) -> tuple[State, Status]:
        """The state after one step, and how the step went."""
        if self._moving:
            # Over many steps the first choice may have become a poor one.
            time = jnp.asarray(t, float)
            self._partition = choose_partition(self.system, time, state.q, self.mu)
        grid = t + self._grid
        return _step(
            self.system, self._integrator, grid, state, u, self.mu, self._partition, self._moving
        )


@eqx.filter_jit
def _step(
    system: AbstractSystem,
    integrator: AbstractIntegrator,
    t,
    state: State,
    u,
    mu,
    partition: Partition,
    moving: bool,
) -> tuple[State, Status]:
    """Compiled once for each kind of plant, whichever loop it is in."""
    held = jnp.broadcast_to(u[None], (t.shape[0], u.shape[0]))
    signal = Signal(held, held[:-1, None, :])
    run = rollout(system, integrator, t, state, signal, mu, partition, moving)
    return State(run.q[-1], run.v[-1]), run.status


def _as_state(system: AbstractSystem, initial: Any, parameters: Mapping | None) -> State:
    if not isinstance(initial, (State, Mapping)):
        raise TypeError(
            f"The initial state is a {type(initial).__name__}; give a State(q, v), or values by "
            f"name such as {{{system.coordinate_names[0]!r}: 1.0}}."
        )
    if isinstance(initial, Mapping):
        return consistent_state(system, initial, parameters=parameters)
    state = State(jnp.asarray(initial.q, float), jnp.asarray(initial.v, float))
    for names, values in ((system.coordinate_names, state.q), (system.rate_names, state.v)):
        if values.shape != (len(names),):
            raise UserError(
                f"The initial state has shape {values.shape}; give {len(names)} number(s): "
                f"{', '.join(names)}."
            )
        for name, value in zip(names, values, strict=True):
            if not bool(jnp.isfinite(value)):
                raise UserError(f"The initial {name} is {float(value)}; it must be finite.")
    return state
