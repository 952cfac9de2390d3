"""`simulate`: one verb for everything that gives accelerations.

What needs no integrator is here too: a system's own closed form, and the states of a forecaster,
up to the first that is not a number.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.errors import UserError
from mbdnode.integrators import get_integrator
from mbdnode.multibody import (
    AbstractForecaster,
    AbstractMechanism,
    AbstractSystem,
    AccelerationFunction,
    Coordinate,
    Parameter,
    Params,
    Partition,
    check_definition,
    check_state,
    choose_matrices,
    choose_partition,
    consistent_state,
    is_traced,
    real_state,
    residuals_along,
    resolve_parameters,
)
from mbdnode.multibody.assembly import OFF_MANIFOLD
from mbdnode.naming import by_name
from mbdnode.numerics import check_precision
from mbdnode.simulation.domain import Domain
from mbdnode.simulation.ensemble import AbstractEnsemble, rollout_members, spread_of
from mbdnode.simulation.rollout import NEEDS_PASSAGE, rollout
from mbdnode.simulation.signals import Signal, make_signal
from mbdnode.simulation.step_error import with_step_error
from mbdnode.status import Outcome, Status, completed
from mbdnode.trajectory import State, Trajectory, check_times, check_trajectory_size

# In place of an integrator's name: the closed form.
ANALYTIC = "analytic"


# How far a traced start may be moved onto the constraints, in scaled coordinates: what is accepted
# of plain numbers, times the steepest dependence on the independent coordinates that is rolled out.
_MOVED = 50.0 * OFF_MANIFOLD


@eqx.filter_jit
def _rolled_out(
    asked: tuple, regular_only: bool, bounds: tuple[Parameter, ...] | None = None
) -> Trajectory:
    """The rollout; with `bounds`, what would be refused of plain numbers ends in the status."""
    run = rollout(*asked, regular_only=regular_only)
    if bounds is None:
        return run
    initial, mu, partition = asked[3], asked[5], asked[6]
    return _with_refusals(run, [*_wrong(run.t, bounds, mu), *_moved(run, initial, partition.scale)])


def simulate(
    system: Any,
    t: Any,
    initial: Any,
    *,
    inputs: Any = None,
    parameters: Any = None,
    integrator: Any = "rk4",
    interpolation: Any = None,
    independent: Any = None,
    repartition: bool = True,
    domain: Any = None,
    check_step: bool = True,
    cross_singular: bool = True,
) -> Trajectory:
    """Run a mechanism, a learned model, an ensemble, or a bare acceleration function.

    The rollout is compiled once for each system, integrator and shape, and reused. It can be
    vmapped over `initial` (as a `State`), `inputs` and `parameters`. `jax.jit` around the `vmap` is
    not needed.

    **Arguments:**

    - `system`: a mechanism, a model, or a function `a(t, q, v, u, mu)`. A model that gives states
        directly (FCNN, LSTM) has no use for `integrator` and what follows it, and refuses other
        `parameters`. Of an `Ensemble`,
        each member is run.
    - `t`: increasing times, uniform or not; the first is the start.
    - `initial`: a `State`, or what is known of it by name; the rest is completed. An LSTM goes on
        from a `Trajectory` of its first rows.
    - `inputs`: None for zero, an array with a row for each time (or each step), or `u(t)`; or by
        name, each of them a vector, a function of time, or a constant. The columns of a frame
        (pandas, Polars, PyArrow) go by name too.
    - `parameters`: values by name; defaults for the rest.
    - `integrator`: a name such as "rk4" or "dopri8", or an integrator; "analytic" for the
        closed form of a system that has one.
    - `interpolation`: of sampled inputs: "constant" over each step, "linear", "cubic" or
        "band-limited" (no frequency above half the sampling rate, at even times); the
        system's own if not given, which is "constant" unless a fit chose another.
    - `independent`: names of the coordinates to integrate, or a `Partition`, if the system's
        choice is not wanted.
    - `repartition`: whether to choose them again where they become ill-conditioned; without it a
        rollout ends at a dead point. This is done
        at the times `t`, so with an adaptive integrator keep them close enough that the mechanism
        does not turn over between two of them.
    - `domain`: where the training data of a model lies, to mark the rows outside it; not under
        `jit` or `vmap`.
    - `check_step`: whether to estimate the error of an integrator with fixed steps, by the motion
        with half the step: the rollout, not its compilation, then takes three times as long. Not
        of an ensemble, and not under `jit` or `vmap`.
    - `cross_singular`: whether a motion goes on through singular configurations. Without it, one
        that comes close to them ends there, and what is compiled under `jit`, `vmap` and `grad`
        is compiled sooner: gradients of 'rk4' in a third of the time. Not for an ensemble.

    **Returns:**

    A `Trajectory` at the times `t`. It never raises for what happens on the way: a rollout that
    cannot go on ends in `trajectory.status`, and what came before is kept; the status also says
    which singular configurations were passed, and how large the integrator's error is if it can be
    seen. Under `jit` and `vmap`, what would be refused ends in the status too. Of an ensemble it is
    the mean of the members, with the constraints kept, and `trajectory.spread` is their standard
    deviation; it ends where the first member fails. Of a model whose parameters were found with a
    covariance, it is what that covariance makes of the motion. With a `domain`,
    `trajectory.outside` says of every row whether it is outside the training data.
    """
    check_precision()
    if domain is not None:
        if not isinstance(domain, Domain):
            raise UserError(f"domain is {domain!r}; give that of training_domain(model, runs).")
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
            check_step=check_step,
            cross_singular=cross_singular,
        )
        return replace(run, outside=domain.outside(run))
    start = None
    if not is_traced(t):
        check_times(t)
        start = float(np.asarray(t)[0])
    t = jnp.asarray(t, float)
    begin = t[0] if start is None else jnp.asarray(np.asarray(start), t.dtype)
    # The members of an ensemble share all that is looked at here.
    ensemble = system if isinstance(system, AbstractEnsemble) else None
    system = system if ensemble is None else ensemble[0]
    if interpolation is None:
        interpolation = system.interpolation if isinstance(system, AbstractSystem) else "constant"
    if isinstance(system, AbstractForecaster):
        _check_unused(system, parameters)
        signal = make_signal(system, t, inputs, interpolation)
        return _forecast_all(system if ensemble is None else ensemble, t, initial, signal)
    initial = by_name(initial)
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
    initial = as_state(system, initial, start, parameters)
    check_state(system, begin, initial.q, initial.v, mu)
    signal = make_signal(system, t, inputs, interpolation)
    if closed:
        if inputs is not None:
            raise UserError(
                "The closed form is for zero inputs; leave `inputs` out, or use 'dopri8'."
            )
        run = _closed_form(system, t, initial, signal, mu)
        traced = is_traced(t, initial, mu)
        return _with_refusals(run, _wrong(t, system.parameters, mu)) if traced else run

    def choose(time, q):
        if isinstance(independent, Partition):
            return choose_matrices(system, independent, q, mu)
        return choose_partition(system, time, q, mu, independent)

    partition = choose(begin, initial.q)
    repartition = bool(repartition) and not system.closed_on_minimal
    traced = is_traced(ensemble, system, integrator, t, begin, initial, signal, mu, partition)
    bounds = system.parameters if traced else None
    if ensemble is not None:
        asked = (ensemble, integrator, t, initial, signal, mu, partition)
        return rollout_members(*asked) if bounds is None else _members_traced(asked, bounds)
    asked = (system.core, integrator, t, initial, signal, mu, partition, repartition)
    # Most motions meet no singular configuration, and compile faster without passages. Inside jit,
    # where even a constant is traced, the status cannot be read.
    if bounds is not None:
        return _rolled_out(asked, not cross_singular, bounds)
    run = _rolled_out(asked, True)
    regular = not cross_singular or int(run.status.code) != NEEDS_PASSAGE
    run = run if regular else _rolled_out(asked, False)
    if check_step and not integrator.controls_error:
        run = _with_step_error(run, system, asked, regular, choose)
    return _with_spread(run, system, asked, regular) if system.deviations else run


def _with_step_error(
    run: Trajectory, system: AbstractSystem, asked: tuple, regular: bool, choose: Callable
) -> Trajectory:
    """The run with the estimate of its integrator's error in its status."""
    core, integrator, t, initial, signal, mu, partition, repartition = asked

    def chosen(time, q):
        try:
            found = choose(time, q)
        except UserError:  # Named coordinates may come to a dead point on the way.
            return partition
        alike = jax.tree.structure(found) == jax.tree.structure(partition)
        return found if alike else partition

    def again(times, state, inputs):
        own = chosen(times[0], state.q) if repartition else partition
        given = (core, integrator, times, state, inputs, mu, own, repartition)
        found = _rolled_out(given, regular)
        return _rolled_out(given, False) if int(found.status.code) == NEEDS_PASSAGE else found

    is_angle = np.array([c.is_angle for c in system.coordinates])
    # Without constraints, rounding is as small as the motion.
    constrained = partition.velocity.dependent.shape[0] > 0
    scale = np.asarray(partition.scale) * constrained
    rubs = isinstance(core, AbstractMechanism) and bool(
        jax.tree.leaves(
            jax.eval_shape(core.contacts, t[0], initial.q, initial.v, signal.samples[0], mu)
        )
    )
    return with_step_error(
        run, again, integrator.order, signal, scale, is_angle, core.learned, rubs
    )


@eqx.filter_jit
def _members_traced(asked: tuple, bounds: tuple[Parameter, ...]) -> Trajectory:
    """`rollout_members`, of which what would be refused of plain numbers ends in the status."""
    run, initial, mu, partition = rollout_members(*asked), asked[3], asked[5], asked[6]
    return _with_refusals(run, [*_wrong(run.t, bounds, mu), *_moved(run, initial, partition.scale)])


def _wrong(t, bounds: tuple[Parameter, ...], mu: Params) -> list[tuple]:
    """Whether times and parameters are wrong, each with the outcome that says so."""
    inside = [jnp.array(True), *(p.contains(mu[p.name]) for p in bounds)]
    return [
        (~jnp.all(jnp.isfinite(t)) | jnp.any(jnp.diff(t) <= 0), Outcome.TIMES_NOT_INCREASING),
        (~jnp.all(jnp.stack(inside)), Outcome.PARAMETER_OUT_OF_BOUNDS),
    ]


def _moved(run: Trajectory, initial: State, scale) -> list[tuple]:
    """Whether a start was moved farther than round-off, with the outcome that says so."""
    q, v = (jnp.abs(a[0] - b) / scale for a, b in ((run.q, initial.q), (run.v, initial.v)))
    fastest = jnp.max(jnp.abs(initial.v) / scale, initial=1.0)
    moved = jnp.any(q > _MOVED) | jnp.any(v > _MOVED * fastest)
    return [
        (run.status.code == Outcome.START_UNSOLVED.value, Outcome.START_UNSOLVED),
        (moved, Outcome.START_OFF_CONSTRAINTS),
    ]


def _with_refusals(run: Trajectory, refused: list[tuple]) -> Trajectory:
    """The rollout, which ends before its first step, by the first reason that is true."""
    status, conditions = run.status, [condition for condition, _ in refused]
    ended = jnp.any(jnp.stack(conditions))
    code = jnp.select(conditions, [outcome.value for _, outcome in refused], status.code)
    late = (jnp.arange(run.t.shape[0]) > 0) & ended
    rows = (run.q, run.v, run.position_residual, run.velocity_residual, run.spread)
    q, v, position, velocity, spread = jax.tree.map(
        lambda x: jnp.where(late if x.ndim == 1 else late[:, None], jnp.nan, x), rows
    )
    ends = lambda s: (s.code, s.step, s.t, s.coordinate)  # noqa: E731
    first = (0, run.t[0], -1)
    found = (jnp.where(ended, a, b) for a, b in zip(first, ends(status)[1:], strict=True))
    status = eqx.tree_at(ends, status, (code, *found))
    return replace(
        run,
        q=q,
        v=v,
        position_residual=position,
        velocity_residual=velocity,
        spread=spread,
        status=status,
    )


def _with_spread(run: Trajectory, system: AbstractSystem, asked: tuple, regular: bool):
    """The run with what the uncertainty of the parameters makes of it.

    Along each direction the motion is simulated one standard deviation to either side; half of the
    difference is that direction's part of the standard deviation of the motion.
    """
    mu = asked[5]
    count = len(next(iter(system.deviations.values())))
    if count == 0:
        return replace(run, spread=State(jnp.zeros_like(run.q), jnp.zeros_like(run.v)))
    bounds = {p.name: p for p in system.parameters}
    sides = {}
    for name, value in mu.items():
        along = np.array(system.deviations.get(name, (0.0,) * count))
        both = float(value) + np.concatenate([along, -along])
        # Of a value whose error reaches past its bound, the bound.
        low = max(bounds[name].at_least, bounds[name].above)
        sides[name] = jnp.asarray(np.clip(both, low, bounds[name].at_most))
    core, integrator, t, initial, signal, _, independent, repartition = asked

    def motion(own):
        given = (core, integrator, t, initial, signal, own, independent, repartition)
        return rollout(*given, regular_only=regular)

    runs = jax.vmap(motion)(sides)
    spread = []
    for found, middle in ((runs.q, run.q), (runs.v, run.v)):
        up, down = np.asarray(found[:count]), np.asarray(found[count:])
        half = (up - down) / 2
        # Where one side ends early, the other tells.
        half = np.where(np.isfinite(half), half, up - np.asarray(middle))
        half = np.where(np.isfinite(half), half, np.asarray(middle) - down)
        spread.append(jnp.asarray(np.sqrt(np.sum(half**2, axis=0))))
    return replace(run, spread=State(*spread))


def as_state(system: AbstractSystem, initial: Any, start: float | None, parameters: Any) -> State:
    """A `State` of arrays from a `State` or from what is known by name."""
    if isinstance(initial, State):
        return real_state(initial)
    initial = by_name(initial)
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
        names = [f"q{i + 1}" for i in range(jnp.shape(initial.q)[-1])]
    elif not isinstance(initial, Mapping) or not initial:
        raise UserError(
            f"The initial state is {initial!r}; the coordinates of a bare function are named after "
            "it. Give a State(q, v), or values by name such as {'x': 1.0}."
        )
    else:
        names = list(dict.fromkeys(name.removesuffix("_dot") for name in initial))
    return AccelerationFunction(function, tuple(Coordinate(name, unit="") for name in names))


def _closed_form(
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
    names = system.coordinate_names
    status = completed(t[-1], jnp.array(t.shape[0] - 1), names)
    residuals = residuals_along(system, t, q, v, mu)
    return Trajectory(
        t, q, v, signal.samples, *residuals, status, names, system.rate_names, system.input_names
    )


def _forecast_all(
    source: AbstractForecaster | AbstractEnsemble, t, initial: Any, signal: Signal
) -> Trajectory:
    """The states at all times at once, of one forecaster or of each of several."""
    members = list(source) if isinstance(source, AbstractEnsemble) else [source]
    past = _past(members[0], initial)
    for member in members:
        member.check_start(t, past)
    _check_inputs(members[0], signal)
    run = _forecast(source, t, past, signal.samples)
    if not is_traced(t, past):
        return run
    known = jnp.all(jnp.stack([member.knows(t, past) for member in members]))
    return _with_refusals(run, [*_wrong(t, (), {}), (~known, Outcome.START_NOT_LEARNED)])


def _past(forecaster: AbstractForecaster, initial: Any):
    """The first rows, positions before velocities."""
    if isinstance(initial, (State, Trajectory)):
        rows = jnp.concatenate([initial.q, initial.v], axis=-1)
        return rows[None] if isinstance(initial, State) else rows
    names = (*forecaster.coordinate_names, *forecaster.rate_names)
    initial = by_name(initial)
    if not isinstance(initial, Mapping) or set(initial) != set(names):
        raise UserError(
            f"{type(forecaster).__name__} starts from a State, from all of {', '.join(names)} by "
            "name, or from a Trajectory of the motion's first rows."
        )
    return jnp.asarray([[float(initial[name]) for name in names]])


def _check_unused(forecaster: AbstractForecaster, parameters: Any) -> None:
    """Raise `UserError` for parameters other than those of the motion that was learned."""
    given = {} if parameters is None else by_name(parameters)
    resolve_parameters(forecaster, given)
    own = {p.name: p.default for p in forecaster.parameters}
    for name, value in given.items():
        if is_traced(value) or float(value) != own[name]:
            raise UserError(
                f"{type(forecaster).__name__} knows one motion, so parameter {name!r} cannot "
                "change what it predicts. Leave it out, or use a model that learns accelerations, "
                "such as MBDNODE."
            )


def _check_inputs(forecaster: AbstractForecaster, signal: Signal) -> None:
    if is_traced(signal.samples) or not np.any(signal.samples):
        return
    raise UserError(
        f"{type(forecaster).__name__} knows one motion and has no inputs, so forces cannot change "
        "what it predicts. Use a model that learns accelerations, such as MBDNODE."
    )


@eqx.filter_jit
def _forecast(source: AbstractForecaster | AbstractEnsemble, t, past, samples) -> Trajectory:
    if not isinstance(source, AbstractEnsemble):
        return _as_trajectory(source, t, source.forecast(t, past), samples)
    members = source.map(lambda member: member.forecast(t, past))
    mean = _as_trajectory(source[0], t, jnp.mean(members, axis=0), samples)
    deviation = jnp.where(jnp.isfinite(mean.q[:, :1]), spread_of(members), jnp.nan)
    count = mean.q.shape[1]
    return replace(mean, spread=State(deviation[:, :count], deviation[:, count:]))


def _as_trajectory(forecaster: AbstractForecaster, t, states, samples) -> Trajectory:
    finite = jnp.isfinite(states)
    good = jnp.cumprod(jnp.all(finite, axis=1)).astype(bool)
    states = jnp.where(good[:, None], states, jnp.nan)
    last = jnp.maximum(jnp.sum(good) - 1, 0)
    count = len(forecaster.coordinates)
    first_bad = jnp.argmin(finite[jnp.minimum(last + 1, len(t) - 1)]) % count
    whole = good[-1]
    q, v = states[:, :count], states[:, count:]
    position, velocity = residuals_along(forecaster, t, q, v, resolve_parameters(forecaster))
    return Trajectory(
        t=t,
        q=q,
        v=v,
        u=samples,
        position_residual=jnp.where(good, position, jnp.nan),
        velocity_residual=jnp.where(good, velocity, jnp.nan),
        status=Status(
            jnp.where(whole, Outcome.COMPLETED.value, Outcome.NOT_FINITE.value),
            last,
            t[last],
            jnp.where(whole, -1, first_bad),
            forecaster.coordinate_names,
        ),
        coordinates=forecaster.coordinate_names,
        rates=forecaster.rate_names,
        inputs=forecaster.input_names,
    )
