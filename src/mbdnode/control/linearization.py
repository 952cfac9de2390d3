"""Linearization by autodiff, and exact discretization.

About a state and input, `z' = f(z, u)` is `dz' = A dz + B du`, with `A = df/dz` and `B = df/du`.
When `u` is held over a step `h`, the solution is exact at its end:

    dz(t + h) = Ad dz(t) + Bd du,    [Ad Bd; 0 1] = exp([A B; 0 0] h).

Good rollouts with bad Jacobians are the known way in which control with a learned model fails: a
small ripple in `f` is a small error in the motion and a large one in `df/dz`. So `jacobian_error`
measures that of a model.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Array, Float

from mbdnode.control.checks import as_positive, as_vector, real_rows
from mbdnode.control.state_space import StateSpace, state_space
from mbdnode.errors import UserError


class Linearization(eqx.Module):
    """A linear model `dz' = A dz + B du`, `y = C dz + D du` about a point.

    It unpacks into `A, B, C, D`, so `control.ss(*linearization)` of python-control and
    `scipy.signal.StateSpace(*linearization)` take it as it is.

    **Arguments:**

    - `A`, `B`: `df/dz` and `df/du`, in continuous time.
    - `C`, `D`: of the outputs, which are the states: the identity, and zero.
    - `z`, `u`: the point.
    - `states`, `inputs`: what the entries of `z` and `u` are called.
    """

    A: Float[Array, "nz nz"]
    B: Float[Array, "nz nu"]
    C: Float[Array, "nz nz"]
    D: Float[Array, "nz nu"]
    z: Float[Array, " nz"]
    u: Float[Array, " nu"]
    states: tuple[str, ...] = eqx.field(static=True)
    inputs: tuple[str, ...] = eqx.field(static=True)

    def __iter__(self) -> Iterator[Array]:
        return iter((self.A, self.B, self.C, self.D))


def linearize(
    model: Any,
    z: Any = None,
    u: Any = None,
    *,
    parameters: Any = None,
    t: Any = 0.0,
) -> Linearization:
    """Linearize a mechanism or a learned model, in continuous time.

    Of a constrained system the state is the minimal one: the independent coordinates, then their
    velocities, as the system names them.

    **Arguments:**

    - `model`: a mechanism, a learned model, or an ensemble of such.
    - `z`: where: a vector of the minimal coordinates and velocities, values by name, or a `State`;
        by default where the system is assembled, at rest.
    - `u`: the inputs there, as a vector or by name; zero by default.
    - `parameters`: values other than the defaults.
    - `t`: the time, for a system that depends on it.

    **Returns:**

    A `Linearization`: `A, B, C, D = linearize(...)`, or `linearize(...).A`.
    """
    space, z = state_space(model, z, t=t, parameters=parameters)
    u = jnp.asarray(as_vector("The input", {} if u is None else u, space.input_names))
    A, B, _ = jacobians_at(space, t, z, u)
    return Linearization(
        A=A,
        B=B,
        C=jax.device_put(np.eye(space.size)),
        D=jax.device_put(np.zeros(B.shape)),
        z=z,
        u=u,
        states=space.names,
        inputs=space.input_names,
    )


def jacobians_at(space: StateSpace, t: Any, z: Any, u: Any):
    """`A`, `B` and the rate of a model in minimal form, near its home."""
    return _jacobians(space, *(jnp.asarray(x, float) for x in (t, z, u)))


@eqx.filter_jit
def _jacobians(space: StateSpace, t, z, u):
    return space.jacobians(t, z, u, space.home)


def discretize(A: Any, B: Any, dt: Any) -> tuple[Float[Array, "nz nz"], Float[Array, "nz nu"]]:
    """The exact step of `z' = A z + B u` when `u` is held over it.

    **Arguments:**

    - `A`, `B`: in continuous time.
    - `dt`: the step in seconds.

    **Returns:**

    `Ad` and `Bd` of `z(t + dt) = Ad z(t) + Bd u`.
    """
    A, B = real_rows("A", A), real_rows("B", B)
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise UserError(f"A has shape {A.shape}; it must be square.")
    if B.ndim != 2 or B.shape[0] != A.shape[0]:
        raise UserError(
            f"B has shape {B.shape}; it must have the {A.shape[0]} rows of A and a column for "
            "each input."
        )
    dt_s = as_positive("dt", dt)
    if not (np.all(np.isfinite(A)) and np.all(np.isfinite(B))):
        raise UserError("A or B has entries that are not finite; they must be.")
    # One matrix: compiling the library's exponential would take seconds.
    block = np.zeros((A.shape[0] + B.shape[1],) * 2)
    block[: A.shape[0]] = np.concatenate([A, B], axis=1)
    step = scipy.linalg.expm(block * dt_s)[: A.shape[0]]
    return jax.device_put(step[:, : A.shape[0]]), jax.device_put(step[:, A.shape[0] :])


def _augmented(A, B):
    """`[A B; 0 0]`, also of a batch."""
    states, inputs = B.shape[-2:]
    block = jnp.concatenate([A, B], axis=-1)
    return jnp.concatenate([block, jnp.zeros((*A.shape[:-2], inputs, states + inputs))], axis=-2)


def discretize_all(A, B, dt):
    """`discretize` for a batch of models, compiled.

    The library's exponential tries every order for each matrix of a batch. This one takes the
    series to the eighth power at a norm of at most 1/16, where the rest is below round-off, and
    squares as often as the largest matrix of the batch needs.
    """
    states = A.shape[-1]
    block = _augmented(A, B) * dt
    norm = jnp.max(jnp.sum(jnp.abs(block), axis=-1))
    doublings = jnp.clip(jnp.ceil(jnp.log2(norm)) + 4, 0, 60)
    # What is not finite stays so, in as many squarings as any.
    doublings = jnp.where(jnp.isfinite(doublings), doublings, 0.0)
    M = block / 2.0**doublings
    one = jnp.broadcast_to(jnp.eye(block.shape[-1]), block.shape)
    M2 = M @ M
    M3, M4 = M2 @ M, M2 @ M2
    series = (
        one + M + M2 / 2 + M3 / 6 + M4 @ (one / 24 + M / 120 + M2 / 720 + M3 / 5040 + M4 / 40320)
    )
    step = jax.lax.fori_loop(0, doublings.astype(int), lambda _, X: X @ X, series)
    return step[..., :states, :states], step[..., :states, states:]


@dataclass(frozen=True)
class JacobianError:
    """The relative errors, in the Frobenius norm, of a model's `A`, df/dz, and `B`, df/du."""

    A: float
    B: float


def jacobian_error(
    model: Any,
    truth: Any,
    z: Any = None,
    u: Any = None,
    *,
    parameters: Any = None,
) -> JacobianError:
    """Compare a learned model's linearization with that of the mechanism.

    **Arguments:**

    - `model`: what was learned.
    - `truth`: the mechanism.
    - `z`, `u`, `parameters`: where, as for `linearize`.

    **Returns:**

    A `JacobianError`.
    """
    found = linearize(model, z, u, parameters=parameters)
    exact = linearize(truth, z, u, parameters=parameters)
    error = lambda a, b: float(np.linalg.norm(np.subtract(a, b)) / np.linalg.norm(b))  # noqa: E731
    return JacobianError(error(found.A, exact.A), error(found.B, exact.B))
