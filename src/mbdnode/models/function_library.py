"""Accelerations as a combination of given functions of the state.

After coordinate partitioning, a rigid mechanism with configuration-dependent and viscous forces
has accelerations of the form

    a = g(q) + D(q) v + Gamma(q)[v, v] + G(q) u,

with functions of the configuration that are expanded in a basis: linear in the unknowns. Beside
it may stand random features of the whole state (tanh), for what this form cannot say.

What is known of the system can be given: with its mass the same form is that of the forces, and
with the whole mechanism that of the forces that it lacks. With `forces="added"` the inputs act as
they do in the mechanism, so that a law found without them can be run with them.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.config import check_types, from_dict
from mbdnode.errors import UserError
from mbdnode.models.base import (
    AbstractRateModel,
    Capability,
    check_added,
    check_parameters,
    input_acceleration,
    input_force,
    minimal_coordinates,
    names_of,
)
from mbdnode.models.basis import Basis, Scale, make_basis
from mbdnode.multibody import (
    AbstractMechanism,
    AbstractSystem,
    Coordinate,
    Input,
    Parameter,
    constraint_counts,
    length,
    resolve_parameters,
    small_solve,
)
from mbdnode.simulation import Interpolation

Known = Literal["nothing", "mass", "mechanism"]
Forces = Literal["inputs", "added"]


@dataclass(frozen=True)
class LibraryConfig:
    """Which functions there are.

    **Arguments:**

    - `degree`: of the basis of the configuration.
    - `quadratic`: whether products of two velocities are among them; if not, velocities and inputs
        come with constant coefficients.
    - `use_parameters`: on which parameters the functions depend too, by name.
    - `known`: "nothing"; the "mass" of the system, whose forces are then learned; or the whole
        "mechanism", whose missing forces are. The last two are for systems without constraints.
    - `forces`: "inputs" learns what the inputs do, "added" takes it from the mechanism.
    - `features`: how many random features.
    - `scale`: how steep these are, in standard deviations of the training data.
    - `interpolation`: how sampled inputs go between their samples in a rollout, unless `simulate`
        is told otherwise: as in the data that the law was found in.
    """

    degree: int = 1
    quadratic: bool = True
    use_parameters: tuple[str, ...] = ()
    known: Known = "nothing"
    forces: Forces = "inputs"
    features: int = 0
    scale: float = 1.0
    interpolation: Interpolation = "constant"

    def __post_init__(self):
        check_types(self)
        for name, most in (("degree", 64), ("features", 100_000)):
            if not 0 <= getattr(self, name) <= most:
                raise UserError(f"{name} is {getattr(self, name)}; it must be from 0 to {most}.")
        if not (np.isfinite(self.scale) and self.scale > 0):
            raise UserError(f"scale is {self.scale}; it must be above zero.")


class Combination(eqx.Module):
    """What is learned: one row for each acceleration."""

    weights: Float[Array, "ns columns"]


class Library(AbstractRateModel):
    """A combination of given functions. Make one with `Library.for_system`."""

    kind: ClassVar[str] = "library"
    settings_type: ClassVar[type] = LibraryConfig
    is_law: ClassVar[bool] = True
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
        cls, system: Any, *, seed: Any = 0, lengths: Scale | None = None, **settings: Any
    ) -> "Library":
        """A model with all coefficients zero.

        **Arguments:**

        - `system`: gives the names and the constraints.
        - `seed`: of the random features.
        - `lengths`: their origins and units; as they are if not given.
        - `settings`: fields of `LibraryConfig`.

        **Returns:**

        A `Library`.
        """
        config = from_dict(LibraryConfig, settings)
        minimal = minimal_coordinates(system)
        own = tuple(system.coordinates[i] for i in minimal)
        check_parameters(system, config.use_parameters)
        check_known(system, config.known)
        if config.forces == "added":
            check_added(system)
        places = own + tuple(length(name) for name in config.use_parameters)
        basis = make_basis(places, config.degree, lengths)
        dof, inputs = len(minimal), len(system.inputs)
        states = 2 * dof + sum(c.is_angle for c in own) + inputs
        random = np.random.default_rng(seed)
        slopes = random.normal(size=(config.features, states)) * config.scale / np.sqrt(states)
        offsets = random.uniform(-1, 1, config.features) * config.scale
        per_configuration = dof + inputs + dof * (dof + 1) // 2
        count = (
            len(basis) * (1 + per_configuration) if config.quadratic else len(basis) + dof + inputs
        )
        return cls(
            Combination(jax.device_put(np.zeros((dof, count + config.features)))),
            basis,
            jax.device_put(np.zeros(states)),
            jax.device_put(np.ones(states)),
            jax.device_put(slopes),
            jax.device_put(offsets),
            system,
            config,
            minimal,
            **names_of(system),
        )

    @property
    def interpolation(self) -> Interpolation:
        """Of sampled inputs, in a rollout that is told nothing else."""
        return self.settings.interpolation

    def states(self, z, s, u) -> Float[Array, " states"]:
        """What the random features read, before scaling."""
        parts = []
        for position, index in enumerate(self.minimal):
            angle = self.coordinates[index].is_angle
            parts += [jnp.sin(z[position]), jnp.cos(z[position])] if angle else [z[position]]
        return jnp.stack([*parts, *s, *self._learned_inputs(u)])

    def columns(self, z, s, u, mu) -> Float[Array, " columns"]:
        """Every function's value."""
        own = [mu[name][None].astype(z.dtype) for name in self.settings.use_parameters]
        basis = self.basis(jnp.concatenate([z, *own]))
        linear = jnp.concatenate([s, self._learned_inputs(u)])
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
        """Combine the functions, and add what is known."""
        combined = self.network.weights @ self.columns(z, s, u, mu)
        if self.settings.known == "nothing":
            return s, combined + self._known_acceleration(t, z, s, u, mu)
        mass, force = self._known(t, z, s, u, mu)
        return s, small_solve(mass, force + combined)

    def wanted(self, t, z, s, u, mu, a) -> Float[Array, " ns"]:
        """What the functions must add up to, for the acceleration to be `a`."""
        if self.settings.known == "nothing":
            return a - self._known_acceleration(t, z, s, u, mu)
        mass, force = self._known(t, z, s, u, mu)
        return mass @ a - force

    def momentum_and_rest(self, t, z, s, u, mu) -> tuple[Any, Any]:
        """`p` and `r` for which the functions must add up to `dp/dt + r`, whatever `a` is."""
        if self.settings.known == "nothing":
            return s, -self._known_acceleration(t, z, s, u, mu)
        mass, force = self._known(t, z, s, u, mu)
        turned = jax.jvp(lambda q: self._known(t, q, s, u, mu)[0] @ s, (z,), (s,))[1]
        return mass @ s, -force - turned

    def _learned_inputs(self, u):
        """The inputs whose effect is learned: none, where it is added."""
        return jnp.zeros_like(u) if self.settings.forces == "added" else u

    def _known_acceleration(self, t, z, s, u, mu):
        """The accelerations that need not be learned, where the mass is not known."""
        if self.settings.forces == "added":
            return input_acceleration(self.body, t, z, s, u, mu)
        return jnp.zeros_like(s)

    def _known(self, t, z, s, u, mu):
        """The mass and the forces that need not be learned."""
        body = self.body
        assert isinstance(body, AbstractMechanism)
        if self.settings.known == "mechanism":
            return body.mass(z, mu), jnp.stack(list(body.force(t, z, s, u, mu)))
        force = body.quadratic_velocity_force(z, s, mu)
        if self.settings.forces == "added":
            force = force + input_force(body, t, z, s, u, mu)
        return body.mass(z, mu), force

    def independent_acceleration(self, t, q, v, u, mu, tangent):
        """The minimal coordinates' accelerations, from a whole state."""
        index = np.array(self.minimal)
        return self.minimal_rates(t, q[index], v[index], u, mu)[1]


def check_known(system: AbstractSystem, known: Known) -> None:
    """Raise `UserError` unless this much can be known of the system."""
    if known == "nothing":
        return
    if not isinstance(system, AbstractMechanism):
        raise UserError(
            f"known is {known!r}, but {type(system).__name__} has no mass matrix and no forces to "
            "give. Describe what is known as a mechanism, or leave it out."
        )
    if sum(constraint_counts(system, resolve_parameters(system))):
        raise UserError(
            f"known is {known!r}, but {type(system).__name__} has constraints; what is known can "
            "be given for a system in minimal coordinates only. Leave it out."
        )
