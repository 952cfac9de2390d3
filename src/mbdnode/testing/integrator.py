"""The contract of an integrator, as checks to run on one's own.

The order is measured on problems that are made from their solution: with any smooth `X(t)`,
`W(t)` and any field `f`, the equation `y' = f(y) + Y'(t) - f(Y(t))` is solved by `Y = (X, W)`. So
the test problem can be nonlinear, coupled and dependent on time all at once, and a wrong weight,
a wrong stage or a wrong stage time each spoil it.
"""

import dataclasses
from collections.abc import Callable

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.integrators import AbstractIntegrator, Adaptive
from mbdnode.integrators.base import Pair, Rate

Solution = Callable[[Float[Array, ""]], Pair]

_END_S = 2.0
_MOST_STEPS = 1024
# Errors below this are mixed with round-off and say nothing about the order.
_FLOOR = 1e-14
_ORDER_TOLERANCE = 0.1
# A step's Jacobian is a product of a few matrices of size one; solves inside it leave 1e-13.
_SYMPLECTIC_TOLERANCE = 1e-12


def check_integrator(integrator: AbstractIntegrator) -> None:
    """Raise `AssertionError` if an integrator breaks a rule of the contract.

    The rules: its measured order is the declared one within 0.1 (an adaptive one is measured with
    one step for each interval); if it says that it is symplectic, the Jacobian of a step is; a
    field of zeros changes nothing; it works under `jit`, `vmap` and `grad`, on a state without
    degrees of freedom, and with fewer velocities than positions, as a rolling body has.

    **Arguments:**

    - `integrator`: an instance, such as `RungeKutta4()`.
    """
    _check_order(integrator)
    if integrator.symplectic:
        _check_symplectic(integrator)
    _check_rest(integrator)
    _check_transformations(integrator)
    _check_empty(integrator)


def measured_order(integrator: AbstractIntegrator) -> float:
    """The order of convergence on a nonlinear problem that depends on time.

    **Arguments:**

    - `integrator`: whose; an adaptive one is measured with one step for each interval.

    **Returns:**

    The base-2 logarithm of the ratio of the errors with one step and with half of it, for the
    smallest steps whose errors are not yet round-off.
    """
    integrator = fixed_step(integrator)
    rate, solution = _separable() if integrator.needs_separable else _coupled()

    @jax.jit
    def error(steps):
        dt = _END_S / steps

        def advance(index, carry):
            y, total = carry
            t = index * dt
            y, _ = integrator.step(rate, t, dt, y)
            off = jax.tree.map(lambda a, b: jnp.sum((a - b) ** 2), y, solution(t + dt))
            return y, total + dt * sum(off)

        start = (solution(jnp.zeros(())), jnp.zeros(()))
        return jnp.sqrt(jax.lax.fori_loop(0, steps, advance, start)[1])

    errors, steps = [], 2
    while steps <= _MOST_STEPS and (not errors or errors[-1] > _FLOOR):
        errors.append(float(error(steps)))
        steps *= 2
    errors = [e for e in errors if e > _FLOOR]
    return float(np.log2(errors[-2] / errors[-1])) if len(errors) > 1 else float("nan")


def fixed_step(integrator: AbstractIntegrator) -> AbstractIntegrator:
    """The same integrator with one step for each interval, whatever its error.

    **Arguments:**

    - `integrator`: any; only an `Adaptive` one is changed.

    **Returns:**

    An integrator of the same order.
    """
    if not isinstance(integrator, Adaptive):
        return integrator
    solver = integrator.solver
    if isinstance(solver, diffrax.AbstractImplicitSolver):
        # Its stages are solved to the controller's tolerance, and now there is no controller.
        tight = diffrax.VeryChord(rtol=1e-14, atol=1e-14)
        solver = eqx.tree_at(lambda s: s.root_finder, solver, tight)
    return dataclasses.replace(integrator, solver=solver, rtol=None, atol=None)


def _positions(t):
    return jnp.stack([jnp.cos(t), 0.8 * jnp.sin(1.3 * t + 0.4)])


def _derivative(function, t):
    return jax.jvp(function, (t,), (jnp.ones_like(t),))[1]


def _separable() -> tuple[Rate, Solution]:
    """`x' = arcsinh(w)`, `w' = g(t, x)`."""

    def momenta(t):
        return jnp.sinh(_derivative(_positions, t))

    def pull(x):
        return -jnp.sin(x) - 0.3 * x[::-1] ** 2

    def rate(t, y):
        x, w = y
        return jnp.arcsinh(w), _derivative(momenta, t) + pull(x) - pull(_positions(t))

    return rate, lambda t: (_positions(t), momenta(t))


def _coupled() -> tuple[Rate, Solution]:
    """Both rates depend on time, on positions and on velocities."""

    def velocities(t):
        return jnp.stack([jnp.sin(0.7 * t), 0.5 * jnp.cos(t)])

    def field(x, w):
        return w * (1 + 0.5 * jnp.sin(x[::-1])), -jnp.sin(x) - 0.4 * w * x[::-1]

    def rate(t, y):
        drift, kick = field(*y)
        true_drift, true_kick = field(_positions(t), velocities(t))
        return (
            _derivative(_positions, t) + drift - true_drift,
            _derivative(velocities, t) + kick - true_kick,
        )

    return rate, lambda t: (_positions(t), velocities(t))


def _check_order(integrator: AbstractIntegrator) -> None:
    found = measured_order(integrator)
    assert abs(found - integrator.order) <= _ORDER_TOLERANCE, (
        f"{integrator} declares order {integrator.order}, but converges with order {found:.2f} on "
        "a problem that depends on time. Check its weights and the times of its stages, or "
        "declare the order that it has."
    )


def _check_symplectic(integrator: AbstractIntegrator) -> None:
    def separable(x, p):
        return jnp.sum(p**2) / 2 + jnp.sum(x**2) / 2 + x[0] ** 2 * x[1] - x[1] ** 3 / 3

    def coupled(x, p):
        return separable(x, p) + 0.3 * jnp.sin(x[0]) * p[0] * p[1]

    form = np.block([[np.zeros((2, 2)), np.eye(2)], [-np.eye(2), np.zeros((2, 2))]])
    start, dt = jnp.array([0.3, -0.2, 0.4, 0.1]), jnp.array(0.3)
    for energy in (separable,) if integrator.needs_separable else (separable, coupled):

        def rate(t, y, energy=energy):
            slope = jax.grad(energy, argnums=(0, 1))(*y)
            return slope[1], -slope[0]

        def flow(y, rate=rate):
            (x, p), _ = integrator.step(rate, jnp.zeros(()), dt, (y[:2], y[2:]))
            return jnp.concatenate([x, p])

        jacobian = np.asarray(jax.jit(jax.jacrev(flow))(start))
        off = float(np.max(np.abs(jacobian.T @ form @ jacobian - form)))
        assert off <= _SYMPLECTIC_TOLERANCE, (
            f"{integrator} says that it is symplectic, but the Jacobian J of a step changes the "
            f"symplectic form: |J^T Omega J - Omega| is {off:.1e} for a {energy.__name__} "
            "Hamiltonian. Set `symplectic = False`, or `needs_separable = True` if it is only "
            "symplectic for separable systems."
        )


def _check_rest(integrator: AbstractIntegrator) -> None:
    # Two positions and one velocity: the halves of the pair need not be of one size.
    start = (jnp.array([0.1, -2.0]), jnp.array([3.0]))
    still = lambda t, y: jax.tree.map(jnp.zeros_like, y)  # noqa: E731
    end, solved = jax.jit(lambda y: integrator.step(still, jnp.ones(()), jnp.array(0.1), y))(start)
    assert bool(solved), f"{integrator} reports failure where nothing moves."
    for before, after in zip(start, end, strict=True):
        assert before.shape == after.shape, (
            f"{integrator} turns shape {before.shape} into {after.shape}, given two positions and "
            "one velocity; advance the two leaves of the pair each in its own shape."
        )
        assert np.array_equal(before, after), (
            f"{integrator} moves a state at rest from {before} to {after} in a field of zeros; a "
            "step must add multiples of the rates, and nothing else, to the state."
        )


def _check_transformations(integrator: AbstractIntegrator) -> None:
    def end(shift):
        swing = lambda t, y: (y[1], -jnp.sin(y[0] + t))  # noqa: E731
        start = (jnp.array([0.4, -0.9]) + shift, jnp.array([0.2, 0.5]))
        (x, w), _ = integrator.step(swing, jnp.array(0.3), jnp.array(0.1), start)
        return jnp.sum(x) + 2 * jnp.sum(w)

    compiled, width = jax.jit(jax.value_and_grad(end)), 1e-5
    shifts = jnp.array([-width, 0.0, width, 0.5])
    together = jax.jit(jax.vmap(end))(shifts)
    one_by_one, slopes = np.transpose([compiled(shift) for shift in shifts])
    # Compiled for a batch, the same operations may be fused otherwise and round otherwise.
    assert np.allclose(together, one_by_one, rtol=1e-13, atol=0), (
        f"{integrator} gives {together} under jax.vmap and {one_by_one} one by one; a step must "
        "not depend on what else is in the batch."
    )
    slope, expected = slopes[1], (one_by_one[2] - one_by_one[0]) / (2 * width)
    # Central differences leave 1e-10, and the tolerance of an inner solver over their width.
    assert np.isclose(slope, expected, rtol=1e-5), (
        f"{integrator} has gradient {slope} by jax.grad and {expected} by central differences. "
        "Use jax.numpy and lax control flow that reverse mode can follow."
    )


def _check_empty(integrator: AbstractIntegrator) -> None:
    none = (jnp.zeros(0), jnp.zeros(0))
    same = lambda t, y: y  # noqa: E731
    (x, w), solved = jax.jit(lambda: integrator.step(same, jnp.ones(()), jnp.ones(()), none))()
    unchanged = x.shape == w.shape == (0,) and bool(solved)
    assert unchanged, (
        f"{integrator} does not step a state without degrees of freedom; return it as it is."
    )
