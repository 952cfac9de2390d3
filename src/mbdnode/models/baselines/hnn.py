"""HNN: a learned Hamiltonian, and the equations of motion that follow from it.

    q' = dH/dp,    p' = -dH/dq,    p = M(q) v.

The network gives one number, H(q, p); the rates follow by autodiff, so energy in the learned sense
is constant along the exact flow. Momenta are made from velocities by the system's own mass matrix,
and back: a state of the rollout is (q, v) as everywhere, with `v' = M^-1 (p' - M' v)`. Its loss is
the squared error of `q'` and `p'`.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbdnode.config import from_dict
from mbdnode.models.base import AbstractRateModel, names_of
from mbdnode.models.baselines.rates import AbstractRateObjective, Rates
from mbdnode.models.capabilities import Capability, check_capable
from mbdnode.models.network import Activation, Network, NetworkConfig
from mbdnode.models.paper_settings import HyperParameters, in_tables
from mbdnode.multibody import (
    AbstractMechanism,
    Coordinate,
    Input,
    Parameter,
    small_solve,
)

# Every update sees all data, so the printed decay is left out: at 0.98 an update the rate would be
# gone after a few hundred of the 30,000.
_USUAL = HyperParameters(
    "hnn",
    "rk4",
    30_000,
    1e-3,
    0.98,
    "the paper's single mass-spring system",
    training={"batch_size": None, "weight_decay": 1e-4, "decay": 1.0},
    activation="Sigmoid, Tanh",
)
PAPER = (_USUAL, *in_tables(_USUAL, "single-mass-spring"))


class HamiltonianRates(AbstractRateObjective):
    """The squared error of `q'` and `p'`, in units of their spread."""

    @classmethod
    def momenta(cls, model, q, v, mu):
        """By the system's own mass."""
        return jax.vmap(lambda x, w: model.body.mass(x, mu) @ w)(q, v)

    @classmethod
    def scaled(cls, model, power):
        """`dH/dp` is a velocity, so this makes the network's own slopes of order one."""
        return eqx.tree_at(lambda m: m.energy_spread, model, jnp.mean(power))

    def loss(self, model: Any, example: Rates, multipliers):
        """Of one state."""
        q_rate, p_rate = model.canonical_rates(example.q, example.p)
        errors = ((q_rate - example.q_rate) / self.q_unit, (p_rate - example.p_rate) / self.p_unit)
        return jnp.mean(jnp.concatenate(errors) ** 2)


@dataclass(frozen=True)
class HNNConfig(NetworkConfig):
    """The shape of an HNN; the defaults are the paper's.

    **Arguments:**

    - `width`, `hidden_layers`, `activation`, `initialization`: of the network.
    - `scaling`: positions and momenta are shifted and scaled by the training range's own mean and
        spread, and the errors of the rates by their spread.

    Sigmoid and tanh take turns, layer by layer: the table names both, and not which is where.
    """

    activation: Activation = "sigmoid,tanh"


class HNN(AbstractRateModel):
    """A Hamiltonian as a network. Make one with `HNN.for_system`."""

    kind: ClassVar[str] = "hnn"
    objective: ClassVar[Any] = HamiltonianRates
    paper: ClassVar[tuple[HyperParameters, ...]] = PAPER
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
