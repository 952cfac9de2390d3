"""The contract of a mechanism, as checks to run on one's own.

A mechanism promises little in types and much in mathematics: names that can be told apart, a
symmetric mass matrix, constraints that can be differentiated, flags that are true.
`check_mechanism` tries each promise at a few random states near the mechanism's reference and says
which one is broken, where, and by how much.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.errors import UserError
from mbdnode.multibody import (
    AbstractMechanism,
    Params,
    Partition,
    accelerations,
    choose_partition,
    consistent_state,
    constraint_counts,
    gamma,
    position_jacobian,
    position_residual,
    position_time_derivative,
    resolve_parameters,
    tangent_at,
    velocity_constraints,
    velocity_residual,
)
from mbdnode.multibody.kinematics import vector
from mbdnode.trajectory import State

# Identities hold to round-off, relative to their largest term; a margin is left for conditioning.
_ROUND_OFF = 1e-9
# Fourth-order differences over 1e-4 s (or rad, or lengths) are good to about 1e-11, less where
# the motion is fast; a wrong derivative is wrong by its own size.
_STEP, _DIFFERENCES = 1e-4, 1e-6
_TIMES_S = (0.0, 0.3, 0.7)


def check_mechanism(
    mechanism: AbstractMechanism, *, state: State | None = None, seed: int = 0
) -> None:
    """Raise `AssertionError` if a mechanism breaks a rule of the contract.

    **Arguments:**

    - `mechanism`: with its default parameters.
    - `state`: around which to look, for a mechanism that cannot be assembled near its
        `reference`, or to check it elsewhere.
    - `seed`: of the random states.
    """
    _check_names(mechanism)
    _check_parameters(mechanism)
    mu = resolve_parameters(mechanism)
    _check_shapes(mechanism, mu)
    random = np.random.default_rng(seed)
    for t, here in _states(mechanism, state, mu, random):
        _check_at(mechanism, t, here, jnp.asarray(random.normal(size=len(mechanism.inputs))), mu)


class _Rules:
    """Says which mechanism broke which rule, where."""

    def __init__(self, mechanism: AbstractMechanism, where: str = ""):
        self.name, self.where = type(mechanism).__name__, where

    def require(self, holds: Any, rule: str, finding: str) -> None:
        if not holds:
            raise AssertionError(f"{self.name} breaks the rule '{rule}': {finding}{self.where}.")

    def small(self, pair: tuple[Any, Any], rule: str, tolerance: float = _ROUND_OFF) -> None:
        """Of the pair, the error must vanish against the size of the terms it is made of."""
        error, size = (float(np.max(np.abs(np.asarray(x)), initial=0.0)) for x in pair)
        self.require(
            error <= tolerance * size,
            rule,
            f"off by {error:.3g}, where {tolerance * size:.1g} would be round-off",
        )


def _check_names(mechanism: AbstractMechanism) -> None:
    rules = _Rules(mechanism)
    coordinates, rates = mechanism.coordinate_names, mechanism.rate_names
    rules.require(coordinates, "there is at least one coordinate", "`coordinates` is empty")
    for rule, names in (
        (
            "t, coordinates, velocities and inputs have different names",
            ("t", *coordinates, *rates, *mechanism.input_names),
        ),
        ("parameters have different names", mechanism.parameter_names),
    ):
        twice = [repr(name) for name, count in Counter(names).items() if count > 1]
        rules.require(not twice, rule, f"{', '.join(twice)} more than once")
    for attribute, names, known in (
        ("independent", mechanism.independent or (), coordinates),
        ("reference", mechanism.reference, (*coordinates, *rates)),
    ):
        stray = [repr(name) for name in names if name not in known]
        rule = f"`{attribute}` names coordinates"
        rules.require(not stray, rule, f"there is no {', '.join(stray)}")


def _check_parameters(mechanism: AbstractMechanism) -> None:
    for parameter in mechanism.parameters:
        try:
            parameter.check(parameter.default)
        except UserError as error:
            rule = "default parameters obey their own rules"
            _Rules(mechanism).require(False, rule, str(error).rstrip("."))


def _check_shapes(mechanism: AbstractMechanism, mu: Params) -> None:
    """Shapes are found by tracing, so nothing is computed on what may not fit."""
    rules, count = _Rules(mechanism), len(mechanism.coordinates)
    t, q, u = jnp.zeros(()), jnp.zeros(count), jnp.zeros(len(mechanism.inputs))

    def attempt(function: Callable, rule: str) -> Any:
        try:
            return function()
        except Exception as error:  # a user's own code may raise anything
            rules.require(False, rule, f"evaluating it raised {type(error).__name__}: {error}")

    def fits(function: Callable, expected: tuple[int, ...], rule: str) -> None:
        found = attempt(lambda: jax.eval_shape(function), rule)
        if found is not None:
            rules.require(found.shape == expected, rule, f"it is {found.shape}, not {expected}")

    fits(lambda: mechanism.mass(q, mu), (count, count), "M is square, a row for each coordinate")
    rule = "there is one force for each coordinate"
    fits(lambda: vector(mechanism.force(t, q, q, u, mu)), (count,), rule)
    rule = "Phi and b are vectors, A has a row for each b and a column for each coordinate"
    total = sum(attempt(lambda: constraint_counts(mechanism, mu), rule))
    fits(lambda: velocity_constraints(mechanism, t, q, mu)[0], (total, count), rule)
    rule = "the potential energy, where there is one, is one number"
    fits(lambda: mechanism.potential_energy(q, mu), (), rule)
    rule = "a solution, where there is one, gives every coordinate and every velocity"
    stack = lambda pair: None if pair is None else jnp.stack(pair)  # noqa: E731
    fits(lambda: stack(mechanism.solution(t, q, q, mu)), (2, count), rule)


def _states(
    mechanism: AbstractMechanism, state: State | None, mu: Params, random: np.random.Generator
) -> Iterator[tuple[float, State]]:
    """Consistent states around the center, moved along the independent coordinates."""
    for t in _TIMES_S:
        try:
            center = consistent_state(mechanism, {}, t=t) if state is None else state
            partition = choose_partition(mechanism, jnp.asarray(t), center.q, mu)
        except UserError as error:
            rule = "it can be assembled near its reference"
            _Rules(mechanism).require(False, rule, str(error).rstrip("."))
            raise
        yield t, _moved(mechanism, t, center, partition, random)


def _moved(mechanism, t, center: State, partition: Partition, random) -> State:
    names, rates = mechanism.coordinate_names, mechanism.rate_names
    q, size = np.asarray(center.q), np.asarray(partition.scale)
    free = [int(i) for i in partition.position.independent]
    away = random.uniform(-1.0, 1.0, len(free))
    moving = {rates[int(i)]: random.normal() for i in partition.velocity.independent}
    guess = dict(zip(names, q.tolist(), strict=True))
    for reach in (0.3, 0.1, 0.03):  # not every mechanism can go far from there
        known = {names[i]: q[i] + reach * size[i] * s for i, s in zip(free, away, strict=True)}
        with contextlib.suppress(UserError):
            return consistent_state(mechanism, {**known, **moving}, guess=guess, t=t)
    return consistent_state(mechanism, moving, guess=guess, t=t)


def _check_at(mechanism: AbstractMechanism, t: float, state: State, u, mu: Params) -> None:
    time, q, v = jnp.asarray(t), state.q, state.v
    place = ", ".join(f"{n} = {x:.4g}" for n, x in zip(mechanism.coordinate_names, q, strict=True))
    rules = _Rules(mechanism, f" (at t = {t:g}, {place})")
    split = choose_partition(mechanism, time, q, mu).velocity
    found = jax.tree.map(np.asarray, _evaluate(mechanism, split, time, q, v, u, mu))
    mass, reduced = found["mass"], found["reduced mass"]
    rules.require(np.all(np.isfinite(mass)), "M is finite", f"it is {mass.tolist()}")
    rules.small((mass - mass.T, mass), "M is symmetric")
    smallest = np.min(np.linalg.eigvalsh(reduced), initial=np.inf)
    rules.require(
        smallest > 0,
        "no motion is without inertia",
        f"the smallest eigenvalue of the reduced mass matrix is {smallest:.3g}",
    )
    rule = "Phi_q, Phi_t and gamma are the derivatives of Phi and of A v - b"
    for derivative, difference in found["derivatives"]:
        pair = (derivative - difference, np.append(derivative, 1.0))
        rules.small(pair, rule, _DIFFERENCES)
    rule = "accelerations and multipliers solve the equations of motion"
    rules.small(found["equation of motion"], rule)
    if mechanism.separable:
        rules.require(split.rows.size == 0, "a separable mechanism is free", "it has constraints")
        rules.small(found["mass slope"], "a separable mechanism has a constant M")
        rules.small(found["force slope"], "a separable mechanism's forces ignore velocities")
    if mechanism.conservative:
        rules.require(
            "power" in found, "a conservative mechanism has a potential energy", "it is None"
        )
        rules.small(found["power"], "a conservative mechanism keeps its energy without inputs")
    if mechanism.solution(time, q, v, mu) is not None:
        _check_solution(mechanism, rules, time, q, v, 0 * u, mu)


@eqx.filter_jit
def _evaluate(mechanism: AbstractMechanism, split, t, q, v, u, mu: Params) -> dict[str, Any]:
    """Everything that the rules look at, compiled in one piece."""
    mass, force = mechanism.mass(q, mu), vector(mechanism.force(t, q, v, u, mu))
    tangent = tangent_at(mechanism, split, t, q, mu)
    friction = mechanism.friction_force(t, q, v, u, mu, tangent)
    force = force if friction is None else force + friction
    jacobian, _ = velocity_constraints(mechanism, t, q, mu)
    a, multipliers = accelerations(mechanism, split, t, q, v, u, mu)
    right, reaction = gamma(mechanism, t, q, v, mu), jacobian.T @ multipliers
    found: dict[str, Any] = {
        "acceleration": a,
        "mass": mass,
        "reduced mass": _reduced(mechanism, split, t, q, mu, mass),
        "derivatives": _derivatives(mechanism, t, q, v, mu, right),
        "equation of motion": (
            jnp.concatenate([mass @ a + reaction - force, jacobian @ a - right]),
            jnp.concatenate([mass @ a, reaction, force, right, jnp.abs(jacobian) @ jnp.abs(a)]),
        ),
        "mass slope": (jax.jacfwd(mechanism.mass)(q, mu), mass),
        "force slope": (
            jax.jacfwd(lambda w: vector(mechanism.force(t, q, w, u, mu)))(v),
            jnp.append(force, 1.0),
        ),
    }
    if mechanism.potential_energy(q, mu) is not None:
        free, _ = accelerations(mechanism, split, t, q, v, 0 * u, mu)
        found["power"] = _power(mechanism, q, v, free, mu)
    return found


def _reduced(mechanism, split, t, q, mu, mass):
    tangent = tangent_at(mechanism, split, t, q, mu)
    return tangent.reduce(tangent.reduce(mass).T)


def _slope(function: Callable) -> Any:
    """The derivative at zero of a function of one number, by central differences."""
    at = lambda k: function(k * _STEP)  # noqa: E731
    return jax.tree.map(
        lambda a, b, c, d: (8 * (a - b) - (c - d)) / (12 * _STEP), at(1), at(-1), at(2), at(-2)
    )


def _derivatives(mechanism, t, q, v, mu, right) -> list:
    along = jax.vmap(lambda e: _slope(lambda s: position_residual(mechanism, t, q + s * e, mu)))
    leaving = lambda s: velocity_residual(mechanism, t + s, q + s * v, v, mu)  # noqa: E731
    return [
        (position_jacobian(mechanism, t, q, mu), along(jnp.eye(q.shape[0])).T),
        (
            position_time_derivative(mechanism, t, q, mu),
            _slope(lambda s: position_residual(mechanism, t + s, q, mu)),
        ),
        (right, -_slope(leaving)),
    ]


def _power(mechanism, q, v, a, mu):
    """`dE/dt` along the motion, and the size of its parts."""
    kinetic = lambda x, w: 0.5 * w @ mechanism.mass(x, mu) @ w  # noqa: E731
    gained = jax.jvp(kinetic, (q, v), (v, a))[1]
    slope = jax.grad(mechanism.potential_energy)(q, mu)
    return gained + slope @ v, jnp.abs(slope * v).sum() + jnp.abs(v * (mechanism.mass(q, mu) @ a))


def _check_solution(mechanism, rules: _Rules, t, q, v, u, mu: Params) -> None:
    later = jnp.asarray(0.5)
    (x, w), start, rates = _follow(mechanism, later, q, v, mu)
    rules.require(
        np.all(np.isfinite(x)) and np.all(np.isfinite(w)), "a solution is finite", "it is not"
    )
    rules.small((start - np.stack([q, v]), [*q, *v, 1.0]), "a solution starts at its start")
    rule = "a solution keeps the constraints"
    rules.small((position_residual(mechanism, t + later, x, mu), [*x, 1.0]), rule)
    rules.small((velocity_residual(mechanism, t + later, x, w, mu), [*w, 1.0]), rule)
    split = choose_partition(mechanism, t + later, x, mu).velocity
    a = _evaluate(mechanism, split, t + later, x, w, u, mu)["acceleration"]
    rule = "a solution's velocities are the rates of its coordinates"
    rules.small((rates[0] - w, [*w, 1.0]), rule, _DIFFERENCES)
    rule = "a solution obeys the equations of motion"
    rules.small((rates[1] - a, [*a, 1.0]), rule, _DIFFERENCES)


@eqx.filter_jit
def _follow(mechanism, later, q, v, mu):
    """A solution later on, at its start, and its rates of change."""
    at = lambda s: mechanism.solution(s, q, v, mu)  # noqa: E731
    return at(later), jnp.stack(at(0 * later)), _slope(lambda s: at(later + s))
