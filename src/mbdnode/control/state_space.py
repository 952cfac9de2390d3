"""The minimal state-space form `z' = f(t, z, u)` of a mechanism or a learned model.

`z` is what the constraints leave to choose: the independent positions, then the independent
velocities. The rest of the state is completed from it, so what holds for `z` (a linearization, a
plan) holds on the manifold of the constraints. Of an ensemble, `f` is the mean of its members.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.control.checks import as_number, as_vector
from mbdnode.errors import UserError
from mbdnode.multibody import (
    AbstractForecaster,
    AbstractSystem,
    Coords,
    Params,
    Partition,
    Time,
    check_definition,
    choose_partition,
    complete,
    consistent_state,
    resolve_parameters,
)
from mbdnode.naming import by_name, unknown_name
from mbdnode.simulation import AbstractEnsemble
from mbdnode.simulation.simulate import as_state
from mbdnode.trajectory import State

# States and inputs of the minimal form.
Minimal = Float[Array, " nz"]


class StateSpace(eqx.Module):
    """A model in minimal form.

    Make one with `state_space`.

    **Arguments:**

    - `model`: a mechanism, a learned model, or an ensemble.
    - `partition`: which coordinates are independent.
    - `mu`: the parameters.
    - `home`: a configuration near which the constraints are closed.
    - `held`: every input's value where it is not an argument.
    - `actuated`: which inputs are arguments, by index; `u` has these alone.
    """

    model: AbstractSystem | AbstractEnsemble
    partition: Partition
    mu: Params
    home: Coords
    held: Float[Array, " inputs"]
    actuated: tuple[int, ...] = eqx.field(static=True)

    @property
    def system(self) -> AbstractSystem:
        """The model, or the first of an ensemble: all share names and constraints."""
        return self.model[0] if isinstance(self.model, AbstractEnsemble) else self.model

    @property
    def names(self) -> tuple[str, ...]:
        """The entries of `z`."""
        return minimal_names(self.system, self.partition)

    @property
    def input_names(self) -> tuple[str, ...]:
        """The entries of `u`."""
        return tuple(self.system.input_names[i] for i in self.actuated)

    def all_inputs(self, u: np.ndarray) -> np.ndarray:
        """Every input of the system: those of `u`, and the held ones."""
        everything = np.array(self.held)
        everything[list(self.actuated)] = u
        return everything

    def actuated_of(self, everything: Any) -> np.ndarray:
        """Those of all inputs that `u` holds."""
        return np.asarray(everything)[list(self.actuated)]

    @property
    def positions(self) -> int:
        """How many entries of `z` are positions."""
        return self.partition.position.independent.shape[0]

    @property
    def size(self) -> int:
        """How many entries `z` has."""
        return self.positions + self.partition.velocity.independent.shape[0]

    def minimal(self, state: State) -> np.ndarray:
        """The minimal state of a whole one."""
        places = self.partition.position.independent, self.partition.velocity.independent
        q, v = (
            np.asarray(x)[np.asarray(i)] for x, i in zip((state.q, state.v), places, strict=True)
        )
        return np.concatenate([q, v])

    @eqx.filter_jit  # So that the stages of a step share one trace.
    def rate(self, t: Time, z: Minimal, u: Float[Array, " nu"], near: Coords):
        """`z'` and the whole configuration `q`, of which `near` decides how constraints close."""
        q, v, tangent, _ = complete(
            self.system,
            self.partition,
            t,
            z[: self.positions],
            z[self.positions :],
            near,
            self.mu,
        )
        direct = self.partition.position.take_independent(v)
        load = self.held.at[np.array(self.actuated, int)].set(u)

        def of(model: AbstractSystem):
            if model.closed_on_minimal:
                x, s = z[: self.positions], z[self.positions :]
                return jnp.concatenate(model.minimal_rates(t, x, s, load, self.mu))
            a = model.independent_acceleration(t, q, v, load, self.mu, tangent)
            return jnp.concatenate([direct, a])

        if isinstance(self.model, AbstractEnsemble):
            return jnp.mean(self.model.map(of), axis=0), q
        return of(self.model), q

    def jacobians(self, t: Time, z: Minimal, u: Float[Array, " nu"], near: Coords):
        """`df/dz` and `df/du`, by forward-mode autodiff through the constraints, and `f`."""

        def twice(z, u):
            rate, _ = self.rate(t, z, u, near)
            return rate, rate

        (A, B), rate = jax.jacfwd(twice, argnums=(0, 1), has_aux=True)(z, u)
        return A, B, rate


def state_space(
    model: Any,
    at: Any = None,
    *,
    t: Any = 0.0,
    parameters: Any = None,
    actuated: Any = None,
    held: Any = None,
) -> tuple[StateSpace, Minimal]:
    """A model in minimal form, near a state.

    **Arguments:**

    - `model`: a mechanism, a learned model, or an ensemble.
    - `at`: a `State`; what is known of it, by name; a vector of the minimal coordinates and
        velocities; None for the place where the model is assembled, at rest.
    - `t`: the time, for constraints that depend on it.
    - `parameters`: values other than the defaults.
    - `actuated`: the inputs that `u` holds, by name; all by default.
    - `held`: the values of the other inputs, zero by default.

    **Returns:**

    A `StateSpace`, and `z` at that state.
    """
    system = model[0] if isinstance(model, AbstractEnsemble) else model
    check_controllable(system)
    mu = resolve_parameters(system, parameters)
    t = as_number("The time", t)
    time = jnp.asarray(t, float)
    at = {} if at is None else by_name(at)
    if not isinstance(at, (State, Mapping)):
        at = _by_name(system, at, time, mu, parameters)
    state = as_state(system, at, t, parameters)
    as_vector("The state's q", state.q, system.coordinate_names)
    as_vector("The state's v", state.v, system.rate_names)
    partition = choose_partition(system, time, state.q, mu)
    if not partition.degrees_of_freedom:
        raise UserError(
            f"{type(system).__name__} has no degrees of freedom: its motion is prescribed, and no "
            "input can change it."
        )
    inputs = jnp.asarray(as_vector("The input", {} if held is None else held, system.input_names))
    space = StateSpace(model, partition, mu, state.q, inputs, _indices(system, actuated))
    return space, jnp.asarray(space.minimal(state))


def _indices(system: AbstractSystem, actuated: Any) -> tuple[int, ...]:
    names = system.input_names
    if actuated is None:
        return tuple(range(len(names)))
    if not isinstance(actuated, (str, Sequence)) or not len(actuated):
        raise UserError(
            f"actuated is {actuated!r}; name at least one of the inputs {', '.join(names)}."
        )
    chosen = (actuated,) if isinstance(actuated, str) else tuple(actuated)
    for name in chosen:
        if name not in names:
            raise unknown_name("input", name, names)
        if chosen.count(name) > 1:
            raise UserError(f"Input {name!r} is named twice; name each once.")
    return tuple(names.index(name) for name in chosen)


def check_controllable(system: Any) -> None:
    """Raise for what has no rate that inputs could change, or is not well defined."""
    if isinstance(system, AbstractForecaster):
        raise UserError(
            f"{type(system).__name__} gives states over time and has no rate to linearize, nor "
            "inputs that could change it. Use a model that learns accelerations, such as MBDNODE."
        )
    if not isinstance(system, AbstractSystem):
        raise TypeError(
            f"A mechanism or a model is needed, but this is a {type(system).__name__}. Wrap a bare "
            "function as AccelerationFunction(f, coordinates, inputs=...)."
        )
    check_definition(system)


def _by_name(system: AbstractSystem, at: Any, t, mu: Params, parameters) -> dict[str, float]:
    """A vector of minimal coordinates and velocities, by name."""
    home = consistent_state(system, {}, t=float(t), parameters=parameters)
    names = minimal_names(system, choose_partition(system, t, home.q, mu))
    return dict(zip(names, map(float, as_vector("The state", at, names)), strict=True))


def minimal_names(system: AbstractSystem, partition: Partition) -> tuple[str, ...]:
    """The independent coordinates and velocities, by name."""
    positions = np.asarray(partition.position.independent)
    rates = np.asarray(partition.velocity.independent)
    return (
        *(system.coordinate_names[i] for i in positions),
        *(system.rate_names[i] for i in rates),
    )
