"""One interface for every integrator.

A state `y` is a pair `(x, w)`: positions with velocities, or positions with momenta. The
right-hand side is one function `rate(t, y) -> (x', w')`. A step returns the new pair and whether
its own equations, if it has any, were solved.
"""

import abc
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

import mbdnode.numerics  # noqa: F401  (float64 before the first array)

Pair = PyTree[Float[Array, " _"]]
Rate = Callable[[Float[Array, ""], Pair], Pair]


class Tableau(NamedTuple):
    """An explicit Runge-Kutta method in Butcher's form.

    **Arguments:**

    - `stages`: the strictly lower triangular matrix of the stages.
    - `weights`: of the stages' slopes in the step.
    - `times`: of the stages, as fractions of the step.
    """

    stages: np.ndarray
    weights: np.ndarray
    times: np.ndarray


class AbstractIntegrator(eqx.Module):
    """Advances a state by one step.

    **Attributes:**

    - `order`: of convergence, when the step is fixed.
    - `needs_separable`: whether `x'` must depend on `w` alone and `w'` on `x` alone.
    - `symplectic`: whether it keeps the phase-space area of a Hamiltonian system.
    - `controls_error`: whether it divides a step that is too long for its tolerance.
    - `tableau`: of an explicit Runge-Kutta method, if it is one. A rollout with constraints and
        the programs of a search then run the stages in a loop, and what they evaluate is compiled
        once and not for each stage.
    """

    # As in AbstractSystem: the type checker reads an AbstractVar as a constructor's argument.
    if TYPE_CHECKING:
        order: ClassVar[int]
    else:
        order: eqx.AbstractVar[int]
    needs_separable: ClassVar[bool] = False
    symplectic: ClassVar[bool] = False
    controls_error: ClassVar[bool] = False
    tableau: ClassVar[Tableau | None] = None

    @abc.abstractmethod
    def step(
        self, rate: Rate, t: Float[Array, ""], dt: Float[Array, ""], y: Pair
    ) -> tuple[Pair, Bool[Array, ""]]:
        """Advance `y` from `t` to `t + dt`.

        **Arguments:**

        - `rate`: the right-hand side.
        - `t`, `dt`: where the step starts and how long it is.
        - `y`: the pair at `t`.

        **Returns:**

        The pair at `t + dt`, and whether the step was solved.
        """

    def step_towards(
        self, rate: Rate, t: Float[Array, ""], dt: Float[Array, ""], y: Pair, known: Pair
    ) -> Pair:
        """The step as training takes it, where the pair at `t + dt` is already known.

        An implicit method puts the known pair into its own equation and so needs no solve. A step
        that was not solved is not a number, so that training cannot go on from it unnoticed.
        """
        new, solved = self.step(rate, t, dt, y)
        return jax.tree.map(lambda x: jnp.where(solved, x, jnp.nan), new)


def add(y: Pair, factor, k: Pair) -> Pair:
    """`y + factor k`, leaf by leaf."""
    return jax.tree.map(lambda a, b: a + factor * b, y, k)


def stage_slopes(
    tableau: Tableau, t: Float[Array, ""], dt: Float[Array, ""], slope: Callable, like: PyTree
) -> tuple[Float[Array, " stages"], PyTree]:
    """The slopes of an explicit method, its stages in a loop.

    **Arguments:**

    - `tableau`: of the method.
    - `t`, `dt`: where the step starts and how long it is.
    - `slope`: from a stage's time, the weights of the slopes before it, and all slopes so far (zero
        where there is none yet), to its own.
    - `like`: the shapes of a slope.

    **Returns:**

    The weights of the slopes in the step, times its length, and the slopes, one row a stage.
    """
    kind = jnp.result_type(*jax.tree.leaves(like))
    stages, weights, times = (jnp.asarray(x, kind) for x in tableau)

    def one(i, found):
        own = slope(t + times[i] * dt, dt * stages[i], found)
        return jax.tree.map(lambda every, new: every.at[i].set(new), found, own)

    count = len(tableau.times)
    begun = jax.tree.map(lambda x: jnp.zeros((count, *x.shape), x.dtype), like)
    return dt * weights, jax.lax.fori_loop(0, count, one, begun)
