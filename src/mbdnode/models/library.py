"""Accelerations as a combination of given functions of the state.

After coordinate partitioning, a rigid mechanism with configuration-dependent and viscous forces
has accelerations of the form

    a = g(q) + D(q) v + Gamma(q)[v, v] + G(q) u,

with functions of the configuration that are expanded in a basis: linear in the unknowns. Beside
it may stand tanh features with drawn weights, of the whole state, for what this form cannot say.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.config import check_types, from_dict
from mbdnode.models.base import AbstractRateModel, minimal_coordinates
from mbdnode.models.basis import Basis, make_basis
from mbdnode.models.capabilities import Capability
from mbdnode.multibody import AbstractSystem, Coordinate, Input, Parameter


@dataclass(frozen=True)
class LibraryConfig:
    """Which functions there are.

    **Arguments:**

    - `degree`: of the basis of the configuration.
    - `quadratic`: whether products of two velocities are among them; if not, velocities and inputs
        come with constant coefficients.
    - `features`: how many drawn features.
    - `scale`: how steep these are, in spreads of the training data.
    """

    degree: int = 1
    quadratic: bool = True
    features: int = 0
    scale: float = 1.0

    def __post_init__(self):
        check_types(self)
        for name, most in (("degree", 64), ("features", 100_000)):
            if not 0 <= getattr(self, name) <= most:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be from 0 to {most}.")
        if not (np.isfinite(self.scale) and self.scale > 0):
            raise ValueError(f"scale is {self.scale}; it must be above zero.")


class Combination(eqx.Module):
    """What is learned: one row for each acceleration."""

    weights: Float[Array, "ns columns"]


class Library(AbstractRateModel):
    """A combination of given functions. Make one with `Library.for_system`."""

    kind: ClassVar[str] = "library"
    settings_type: ClassVar[type] = LibraryConfig
    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability) - {
        Capability.NO_ACCELERATIONS
    }

    network: Combination
    basis: Basis
    # Of angles' sine and cosine, lengths, velocities and inputs; then the features' own.
    center: Float[Array, " states"]
    spread: Float[Array, " states"]
    slopes: Float[Array, "features states"]
    offsets: Float[Array, " features"]
    body: AbstractSystem
    settings: LibraryConfig = eqx.field(static=True)
    minimal: tuple[int, ...] = eqx.field(static=True)
    coordinates: tuple[Coordinate, ...] = eqx.field(static=True, kw_only=True)
    inputs: tuple[Input, ...] = eqx.field(static=True, kw_only=True)
    parameters: tuple[Parameter, ...] = eqx.field(static=True, kw_only=True)

    @classmethod
    def for_system(
        cls, system: Any, *, seed: Any = 0, size: Any = None, **settings: Any
    ) -> "Library":
        """A model with all coefficients zero.

        **Arguments:**

        - `system`: gives the names and the constraints.
        - `seed`: of the drawn features.
        - `size`: the unit of each minimal length; one if not given.
        - `settings`: fields of `LibraryConfig`.

        **Returns:**

        A `Library`.
        """
        config = from_dict(LibraryConfig, settings)
        minimal = minimal_coordinates(system)
        own = tuple(system.coordinates[i] for i in minimal)
        unit = jnp.ones(len(minimal)) if size is None else jnp.asarray(size, float)
        basis = make_basis(own, unit, config.degree)
        freedoms, inputs = len(minimal), len(system.inputs)
        states = 2 * freedoms + sum(c.is_angle for c in own) + inputs
        random = np.random.default_rng(seed)
        slopes = random.normal(size=(config.features, states)) * config.scale / np.sqrt(states)
        offsets = random.uniform(-1, 1, config.features) * config.scale
        per_configuration = freedoms + inputs + freedoms * (freedoms + 1) // 2
        count = (
            len(basis) * (1 + per_configuration)
            if config.quadratic
            else len(basis) + freedoms + inputs
        )
        return cls(
            Combination(jnp.zeros((freedoms, count + config.features))),
            basis,
            jnp.zeros(states),
            jnp.ones(states),
            jnp.asarray(slopes),
            jnp.asarray(offsets),
            system,
            config,
            minimal,
            coordinates=system.coordinates,
            inputs=system.inputs,
            parameters=system.parameters,
        )

    def states(self, z, s, u) -> Float[Array, " states"]:
        """What the drawn features read, before scaling."""
        parts = []
        for position, index in enumerate(self.minimal):
            angle = self.coordinates[index].is_angle
            parts += [jnp.sin(z[position]), jnp.cos(z[position])] if angle else [z[position]]
        return jnp.stack([*parts, *s, *u])

    def columns(self, z, s, u) -> Float[Array, " columns"]:
        """Every function's value."""
        basis = self.basis(z)
        linear = jnp.concatenate([s, u])
        if self.settings.quadratic:
            squares = jnp.stack([s[i] * s[j] for i in range(len(s)) for j in range(i, len(s))])
            factors = jnp.concatenate([jnp.ones(1, z.dtype), linear, squares])
            given = jnp.outer(factors, basis).reshape(-1)
        else:
            given = jnp.concatenate([basis, linear])
        if not self.settings.features:
            return given
        scaled = (self.states(z, s, u) - self.center) / self.spread
        return jnp.concatenate([given, jnp.tanh(self.slopes @ scaled + self.offsets)])

    def minimal_rates(self, t, z, s, u, mu):
        """Combine the functions."""
        return s, self.network.weights @ self.columns(z, s, u)

    def independent_acceleration(self, t, q, v, u, mu, tangent):
        """The minimal coordinates' accelerations, from a whole state."""
        index = np.array(self.minimal)
        return self.minimal_rates(t, q[index], v[index], u, mu)[1]
