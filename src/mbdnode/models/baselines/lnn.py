"""LNN: a learned Lagrangian, and the equations of motion that follow from it.

    d/dt (dL/dv) = dL/dq    gives    (d2L/dv2) a = dL/dq - (d2L/dq dv) v.

The network gives one number, L(q, v), in any coordinates; accelerations follow by autodiff and one
small solve. The matrix `d2L/dv2` plays the part of the mass. Nothing keeps a network's regular: at
first it is near zero, and dividing by it makes training stiff. So the Lagrangian has a fixed
kinetic part beside the network,

    L(q, v) = prior/2 |v/spread|^2 + network(q, v),

which adds a multiple of the identity to `d2L/dv2` in scaled velocities and nothing to the other
terms. Its loss is the squared error of the accelerations. The condition number over the training
data is reported.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.config import from_dict
from mbdnode.errors import UserError
from mbdnode.models.base import AbstractRateModel, names_of
from mbdnode.models.baselines.rates import AbstractRateObjective, Rates
from mbdnode.models.capabilities import Capability, check_capable
from mbdnode.models.network import Activation, Network, NetworkConfig
from mbdnode.models.paper_settings import HyperParameters, in_tables
from mbdnode.multibody import (
    AbstractNamed,
    Coordinate,
    Input,
    Parameter,
    small_solve,
)

# One update for each state, in a new order each epoch. The printed activation is softmax; ours is
# softplus, as in the LNN's own paper.
_USUAL = HyperParameters(
    "lnn",
    "rk4",
    400,
    1e-4,
    0.98,
    "the paper's single mass-spring system",
    training={"shuffle": True},
    activation="Softmax",
)
PAPER = (_USUAL, *in_tables(_USUAL, "single-mass-spring"))


class Accelerations(AbstractRateObjective):
    """The squared error of the accelerations, in units of their spread."""

    @classmethod
    def momenta(cls, model, q, v, mu):
        """A Lagrangian is one of velocities."""
        return v

    def loss(self, model: Any, example: Rates, multipliers):
        """Of one state."""
        error = (model.acceleration(example.q, example.p) - example.p_rate) / self.p_unit
        return jnp.mean(error**2)

    def diagnose(self, model: Any):
        """The worst condition of the mass over the data."""
        masses = np.asarray(jax.vmap(model.mass)(self.examples.q, self.examples.p))
        if not np.all(np.isfinite(masses)):
            return {"mass_condition": float("inf"), "mass_sign_changes": 0.0}
        signs = np.sign(np.linalg.det(masses))
        return {
            "mass_condition": float(np.max(np.linalg.cond(masses))),
            "mass_sign_changes": float(np.sum(signs != signs[0])),
        }


@dataclass(frozen=True)
class LNNConfig(NetworkConfig):
    """The shape of an LNN; the defaults are the paper's.

    **Arguments:**

    - `width`, `hidden_layers`, `activation`, `initialization`: of the network.
    - `scaling`: positions and velocities are shifted and scaled by the training range's own mean
        and spread, and the errors of the accelerations by their spread.
    - `prior`: the weight of the fixed kinetic part; zero leaves the network alone.
    """

    activation: Activation = "softplus"
    prior: float = 1.0

    def __post_init__(self):
        super().__post_init__()
        if not (np.isfinite(self.prior) and self.prior >= 0):
            raise UserError(f"prior is {self.prior}; it must be finite and not negative.")


class LNN(AbstractRateModel):
    """A Lagrangian as a network. Make one with `LNN.for_system`."""

    kind: ClassVar[str] = "lnn"
    objective: ClassVar[Any] = Accelerations
    paper: ClassVar[tuple[HyperParameters, ...]] = PAPER
    settings_type: ClassVar[type] = LNNConfig
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.ENERGY,
            Capability.COORDINATES,
            Capability.LONG,
            Capability.CONTINUOUS,
            Capability.STARTS,
        }
    )

    network: Network
    # Of positions, then of velocities.
    center: Float[Array, " states"]
    spread: Float[Array, " states"]
    body: AbstractNamed
    settings: LNNConfig = eqx.field(static=True)
    minimal: tuple[int, ...] = eqx.field(static=True)
    coordinates: tuple[Coordinate, ...] = eqx.field(static=True, kw_only=True)
    inputs: tuple[Input, ...] = eqx.field(static=True, kw_only=True)
    parameters: tuple[Parameter, ...] = eqx.field(static=True, kw_only=True)

    @classmethod
    def for_system(cls, system: Any, *, seed: Any = 0, **settings: Any) -> "LNN":
        """An untrained model of a system.

        **Arguments:**

        - `system`: gives the names; it must be conservative and without constraints.
        - `seed`: of the network's first weights.
        - `settings`: fields of `LNNConfig`.

        **Returns:**

        An `LNN`.
        """
        check_capable(cls.kind, cls.capabilities, system)
        config = from_dict(LNNConfig, settings)
        count = len(system.coordinates)
        return cls(
            config.make(2 * count, 1, seed),
            jnp.zeros(2 * count),
            jnp.ones(2 * count),
            system,
            config,
            tuple(range(count)),
            **names_of(system),
        )

    def lagrangian(self, q: Float[Array, " n"], v: Float[Array, " n"]) -> Float[Array, ""]:
        """The learned Lagrangian, up to a factor and a total derivative."""
        kind = self.network.weights[0].dtype
        fixed = (self.center, self.spread)
        center, spread = (jax.lax.stop_gradient(x).astype(kind) for x in fixed)
        scaled = (jnp.concatenate([q, v]).astype(kind) - center) / spread
        # About zero velocity, not about the mean: a shift would only add a total derivative.
        kinetic = jnp.sum((v.astype(kind) / spread[q.shape[0] :]) ** 2)
        return 0.5 * self.settings.prior * kinetic + self.network(scaled)[0]

    def mass(self, q, v) -> Float[Array, "n n"]:
        """`d2L/dv2`, as the network has it."""
        return jax.hessian(self.lagrangian, argnums=1)(q, v)

    def acceleration(self, q, v) -> Float[Array, " n"]:
        """Solve the Euler-Lagrange equations."""
        mass = self.mass(q, v)
        force = jax.grad(self.lagrangian)(q, v)
        _, turned = jax.jvp(lambda x: jax.grad(self.lagrangian, argnums=1)(x, v), (q,), (v,))
        return small_solve(mass, (force - turned).astype(mass.dtype))

    def minimal_rates(self, t, z, s, u, mu):
        """The rates of positions and velocities."""
        return s, self.acceleration(z, s).astype(s.dtype)

    def independent_acceleration(self, t, q, v, u, mu, tangent):
        """Every coordinate is independent."""
        return self.acceleration(q, v).astype(v.dtype)
