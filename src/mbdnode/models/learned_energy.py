"""HNN and LNN: one learned function of the state, and the equations of motion that follow from it.

A learned Hamiltonian,

    q' = dH/dp,    p' = -dH/dq,    p = M(q) v.

The network gives one number, H(q, p); the rates follow by autodiff, so energy in the learned sense
is constant along the exact flow. Momenta are made from velocities by the system's own mass matrix,
and back: a state of the rollout is (q, v) as everywhere, with `v' = M^-1 (p' - M' v)`.

A learned Lagrangian,

    d/dt (dL/dv) = dL/dq    gives    (d2L/dv2) a = dL/dq - (d2L/dq dv) v.

The network gives one number, L(q, v), in any coordinates; accelerations follow by autodiff and one
small solve. The matrix `d2L/dv2` plays the part of the mass. Nothing keeps a network's regular: at
first it is near zero, and dividing by it makes training stiff. So the Lagrangian has a fixed
kinetic part beside the network,

    L(q, v) = prior/2 |v/spread|^2 + network(q, v),

which adds a multiple of the identity to `d2L/dv2` in scaled velocities and nothing to the other
terms. The condition number over the training data is reported.
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
from mbdnode.models.base import AbstractRateModel, Capability, check_capable, names_of
from mbdnode.models.network import Activation, Network, NetworkConfig
from mbdnode.multibody import (
    AbstractMechanism,
    AbstractNamed,
    Coordinate,
    Input,
    Parameter,
    small_solve,
)


@dataclass(frozen=True)
class HNNConfig(NetworkConfig):
    """The shape of an HNN; the defaults are the paper's.

    **Arguments:**

    - `width`, `hidden_layers`, `activation`, `initialization`: of the network.
    - `scaling`: positions and momenta are shifted and scaled by the training range's own mean and
        spread, and the errors of the rates by their spread.
    """


class HNN(AbstractRateModel):
    """A Hamiltonian as a network. Make one with `HNN.for_system`."""

    kind: ClassVar[str] = "hnn"
    objective: ClassVar[str] = "rates"
    settings_type: ClassVar[type] = HNNConfig
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {Capability.ENERGY, Capability.LONG, Capability.CONTINUOUS, Capability.STARTS}
    )

    network: Network
    # Of positions, then of momenta; then of the Hamiltonian.
    center: Float[Array, " states"]
    spread: Float[Array, " states"]
    energy_spread: Float[Array, ""]
    body: AbstractMechanism
    settings: HNNConfig = eqx.field(static=True)
    minimal: tuple[int, ...] = eqx.field(static=True)
    coordinates: tuple[Coordinate, ...] = eqx.field(static=True, kw_only=True)
    inputs: tuple[Input, ...] = eqx.field(static=True, kw_only=True)
    parameters: tuple[Parameter, ...] = eqx.field(static=True, kw_only=True)

    @classmethod
    def for_system(cls, system: Any, *, seed: Any = 0, **settings: Any) -> "HNN":
        """An untrained model of a system.

        **Arguments:**

        - `system`: gives the names and the mass matrix; it must be conservative and without
            constraints.
        - `seed`: of the network's first weights.
        - `settings`: fields of `HNNConfig`.

        **Returns:**

        An `HNN`.
        """
        check_capable(cls.kind, cls.capabilities, system)
        config = from_dict(HNNConfig, settings)
        count = len(system.coordinates)
        return cls(
            config.make(2 * count, 1, seed),
            jnp.zeros(2 * count),
            jnp.ones(2 * count),
            jnp.ones(()),
            system,
            config,
            tuple(range(count)),
            **names_of(system),
        )

    def hamiltonian(self, q: Float[Array, " n"], p: Float[Array, " n"]) -> Float[Array, ""]:
        """The learned energy, up to a constant."""
        kind = self.network.weights[0].dtype
        fixed = (self.center, self.spread, self.energy_spread)
        center, spread, size = (jax.lax.stop_gradient(x).astype(kind) for x in fixed)
        state = jnp.concatenate([q, p]).astype(kind)
        return size * self.network((state - center) / spread)[0]

    def canonical_rates(self, q, p) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """Hamilton's equations."""
        dq, dp = jax.grad(self.hamiltonian, argnums=(0, 1))(q, p)
        return dp, -dq

    def minimal_rates(self, t, z, s, u, mu):
        """The rates of positions and velocities."""

        def momentum(q, v):
            return (self.body.mass(q, mu) @ v).astype(v.dtype)

        q_rate, p_rate = self.canonical_rates(z, momentum(z, s))
        _, turned = jax.jvp(lambda q: momentum(q, s), (z,), (q_rate,))
        mass = self.body.mass(z, mu).astype(s.dtype)
        return q_rate, small_solve(mass, p_rate - turned)

    def independent_acceleration(self, t, q, v, u, mu, tangent):
        """The rates of the velocities: every coordinate is independent."""
        return self.minimal_rates(t, q, v, u, mu)[1]


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
    objective: ClassVar[str] = "rates"
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
