"""`simulate`: one verb for everything that gives accelerations."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.errors import UserError
from mbdnode.integrators import get_integrator
from mbdnode.multibody import (
    AbstractForecaster,
    AbstractSystem,
    AccelerationFunction,
    Coordinate,
    Partition,
    check_definition,
    check_state,
    choose_partition,
    consistent_state,
    is_traced,
    resolve_parameters,
)
from mbdnode.numerics import check_precision
from mbdnode.simulation.analytic import closed_form
from mbdnode.simulation.domain import Domain
from mbdnode.simulation.ensemble import AbstractEnsemble, rollout_members
from mbdnode.simulation.forecast import forecast
from mbdnode.simulation.rollout import NEEDS_PASSAGE, rollout
from mbdnode.simulation.signals import make_signal
from mbdnode.trajectory import State, Trajectory, check_times, check_trajectory_size

# In place of an integrator's name: the closed form.
ANALYTIC = "analytic"


def simulate(
    system: Any,
    t: Any,
    initial: Any,
    *,
    inputs: Any = None,
    parameters: Mapping[str, Any] | None = None,
    integrator: Any = "rk4",
    interpolation: str = "constant",
    independent: Sequence[str] | str | Partition | None = None,
    repartition: bool = True,
    domain: Domain | None = None,
) -> Trajectory:
    """Run a mechanism, a learned model, an ensemble, or a bare acceleration function.

    The rollout is compiled once for each system, integrator and shape, and reused. It can be
    vmapped over `initial` (as a `State`), `inputs` and `parameters`.

    **Arguments:**

    - `system`: a mechanism, a model, or a function `a(t, q, v, u, mu)`. A model that gives states
        directly (FCNN, LSTM) has no use for `integrator` and what follows it. Of an `Ensemble`,
        each member is run.
    - `t`: increasing times, uniform or not; the first is the start.
    - `initial`: a `State`, or what is known of it by name; the rest is completed. An LSTM goes on
        from a `Trajectory` of its first rows.
    - `inputs`: None for zero, an array with a row for each time (or each step), or `u(t)`; or by
        name, each of them a vector, a function of time, or a constant.
    - `parameters`: values by name; defaults for the rest.
    - `integrator`: a name such as "rk4" or "dopri8", or an integrator; "analytic" for the
        closed form of a system that has one.
    - `interpolation`: of sampled inputs: "constant" over each step, "linear" or "cubic".
    - `independent`: names of the coordinates to integrate, or a `Partition`, if the system's
        choice is not wanted.
    - `repartition`: whether to choose them again where they become ill-conditioned; without it a
        rollout ends at a dead point. This is done
        at the times `t`, so with an adaptive integrator keep them close enough that the mechanism
        does not turn over between two of them.
    - `domain`: where the training data of a model lies, to mark the rows outside it; not under
        `jit` or `vmap`.

    **Returns:**

    A `Trajectory` at the times `t`. It never raises for what happens on the way: a rollout that
    cannot go on ends in `trajectory.status`, and what came before is kept; the status also says
    which singular configurations were passed. Of an ensemble it is
    the mean of the members, with the constraints kept, and `trajectory.spread` is their standard
    deviation; it ends where the first member fails. With a `domain`, `trajectory.outside` says of
    every row whether it is outside the training data.
    """
    check_precision()
    if domain is not None:
        run = simulate(
            system,
            t,
            initial,
            inputs=inputs,
            parameters=parameters,
            integrator=integrator,
            interpolation=interpolation,
            independent=independent,
            repartition=repartition,
        )
        return replace(run, outside=domain.outside(run))
    start = None
    if not is_traced(t):
        check_times(t)
        start = float(np.asarray(t)[0])
    t = jnp.asarray(t, float)
    # The members of an ensemble share all that is looked at here.
    ensemble = system if isinstance(system, AbstractEnsemble) else None
    system = system if ensemble is None else ensemble[0]
    if isinstance(system, AbstractForecaster):
        signal = make_signal(system, t, inputs, interpolation)
        return forecast(system if ensemble is None else ensemble, t, initial, signal)
    if not isinstance(system, AbstractSystem):
        system = _as_system(system, initial)
    check_definition(system)
    check_trajectory_size(t.shape[-1] - 1, 2 * len(system.coordinates) + len(system.inputs))
    closed = isinstance(integrator, str) and integrator.lower() == ANALYTIC
    integrator = get_integrator("rk4" if closed else integrator)
    if integrator.needs_separable and not system.separable:
        raise UserError(
            f"{type(system).__name__} is not declared separable (velocities alone drive positions, "
            "positions alone drive velocities), which lf2, ys4 and fk6 need. Use 'rk4', or "
            "'implicit-midpoint', which is symplectic for any system. If it is separable, say so: "
            "`separable = True` on the class, or AccelerationFunction(..., separable=True)."
        )
    mu = resolve_parameters(system, parameters)
    initial = _as_state(system, initial, start, parameters)
    check_state(system, t[0], initial.q, initial.v, mu)
    signal = make_signal(system, t, inputs, interpolation)
    if closed:
        if inputs is not None:
            raise UserError(
                "The closed form is for zero inputs; leave `inputs` out, or use 'dopri8'."
            )
        return closed_form(system, t, initial, signal, mu)
    if not isinstance(independent, Partition):
        independent = choose_partition(system, t[0], initial.q, mu, independent)
    if ensemble is not None:
        return rollout_members(ensemble, integrator, t, initial, signal, mu, independent)
    repartition = repartition and not system.closed_on_minimal
    asked = (system, integrator, t, initial, signal, mu, independent, repartition)
    # Most motions meet no singular configuration, and compile faster without passages. Inside jit,
    # where even a constant is traced, the status cannot be read.
    if not is_traced(asked, jnp.zeros(())):
        run = rollout(*asked, regular_only=True)
        if int(run.status.code) != NEEDS_PASSAGE:
            return run
    return rollout(*asked)


def _as_state(system: AbstractSystem, initial: Any, start: float | None, parameters: Any) -> State:
    """A `State` of arrays from a `State` or from what is known by name."""
    if isinstance(initial, State):
        return State(jnp.asarray(initial.q, float), jnp.asarray(initial.v, float))
    if not isinstance(initial, Mapping):
        raise TypeError(
            f"The initial state is a {type(initial).__name__}; give a State(q, v), or values by "
            f"name such as {{{system.coordinate_names[0]!r}: 1.0}}."
        )
    if start is None or is_traced(system, initial, parameters):
        raise UserError(
            "An initial state by name needs plain numbers, but something it depends on is traced "
            "(inside jit, vmap or grad). Complete it outside with consistent_state, and pass the "
            "State."
        )
    # Under an outer jit the known values are still plain numbers, and so is what follows from them.
    with jax.ensure_compile_time_eval():
        return consistent_state(system, initial, t=start, parameters=parameters)


def _as_system(function: Any, initial: Any) -> AccelerationFunction:
    """Wrap a bare function; its coordinates are named after the initial state."""
    if isinstance(function, type):
        raise TypeError(
            f"simulate was given the class {function.__name__}; give an instance of it, "
            f"{function.__name__}()."
        )
    if not callable(function):
        raise TypeError(
            f"simulate was given a {type(function).__name__}; it takes a mechanism, a model, or a "
            "function a(t, q, v, u, mu)."
        )
    if isinstance(initial, State):
        names = [f"q{i + 1}" for i in range(initial.q.shape[-1])]
    else:
        names = list(dict.fromkeys(name.removesuffix("_dot") for name in initial))
    return AccelerationFunction(function, tuple(Coordinate(name, unit="") for name in names))
