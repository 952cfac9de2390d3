"""What a hybrid starts from: accelerations that are known.

What is known is a law that was found in data, or a mechanism. A law gives accelerations from the
minimal coordinates, and so does a mechanism without constraints. One with constraints needs all of
them: they are completed from a configuration near by, as in every simulation of it. A mechanism,
and a law that is one, know the mass as well.
"""

import abc
from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbdnode.errors import UserError
from mbdnode.models.base import AbstractRateModel
from mbdnode.models.function_library import Library, LibraryConfig
from mbdnode.models.learned_mechanism import LearnedMechanism, LearnedMechanismConfig
from mbdnode.multibody import (
    AbstractMechanism,
    AbstractSystem,
    Coords,
    Partition,
    choose_partition,
    complete,
    consistent_state,
    resolve_parameters,
    tangent_at,
)

# What a configuration says of it: the form of a law, or that it is the mechanism itself.
MECHANISM = "mechanism"
CorrectionOf = LibraryConfig | LearnedMechanismConfig | Literal["mechanism"] | None
_LAWS = {LibraryConfig: Library, LearnedMechanismConfig: LearnedMechanism}


class AbstractKnown(eqx.Module):
    """Accelerations that need not be learned."""

    @property
    @abc.abstractmethod
    def closed(self) -> bool:
        """Whether the minimal coordinates say all."""

    @abc.abstractmethod
    def acceleration(self, t, z, s, u, mu, near: Coords | None = None) -> Float[Array, " nz"]:
        """Of the minimal coordinates.

        **Arguments:**

        - `near`: a configuration near by, for a mechanism with constraints; None for the one in
            which it is assembled.
        """

    @property
    @abc.abstractmethod
    def has_mass(self) -> bool:
        """Whether the mass is known too."""

    @abc.abstractmethod
    def mass(self, t, z, mu, near: Coords | None = None) -> Float[Array, "nz nz"]:
        """That the minimal coordinates move, if it is known. Arguments as above."""


class KnownLaw(AbstractKnown):
    """Those of a law."""

    law: AbstractRateModel

    @property
    def closed(self) -> bool:
        """A law is one of the minimal coordinates."""
        return True

    def acceleration(self, t, z, s, u, mu, near=None):
        """As the law says."""
        return self.law.minimal_rates(t, z, s, u, mu)[1]

    @property
    def has_mass(self) -> bool:
        """Of a law that is a mechanism."""
        return isinstance(self.law, LearnedMechanism)

    def mass(self, t, z, mu, near=None):
        """Up to a factor, which is that of the forces as well."""
        assert isinstance(self.law, LearnedMechanism)
        return self.law.mass(z, mu)


class KnownMechanism(AbstractKnown):
    """Those of a mechanism.

    **Arguments:**

    - `mechanism`: which.
    - `partition`: with the model's minimal coordinates as the independent ones.
    - `home`: where it is assembled.
    """

    mechanism: AbstractMechanism
    partition: Partition
    home: Coords

    @property
    def closed(self) -> bool:
        """Without constraints, all coordinates are minimal."""
        return self.partition.velocity.dependent.shape[0] == 0

    def acceleration(self, t, z, s, u, mu, near=None):
        """Complete the state, and solve the equations of motion."""
        guess = self.home.astype(z.dtype) if near is None else near
        q, v, tangent, _ = complete(self.mechanism, self.partition, t, z, s, guess, mu)
        found = self.mechanism.independent_acceleration(t, q, v, u, mu, tangent)
        return found.astype(s.dtype)

    @property
    def has_mass(self) -> bool:
        """A mechanism has one."""
        return True

    def mass(self, t, z, mu, near=None):
        """Reduced to the minimal coordinates, which move all others."""
        guess = self.home.astype(z.dtype) if near is None else near
        still = jnp.zeros_like(z)
        q, _, tangent, _ = complete(self.mechanism, self.partition, t, z, still, guess, mu)
        found = self.mechanism.mass(q, mu)
        if not self.closed:
            found = tangent.reduce(tangent.reduce(found).T)
        return found.astype(z.dtype)

    def corrected(self, t, q, v, u, mu, tangent, correction) -> Float[Array, " ni"]:
        """The accelerations that a rollout integrates, with what a correction adds to them."""
        found = self.mechanism.independent_acceleration(t, q, v, u, mu, tangent)
        own = tangent_at(self.mechanism, self.partition.velocity, t, q, mu)
        added = own.split.merge(own.slope @ correction, correction)
        return found + tangent.split.take_independent(added)


def make_known(
    system: AbstractSystem, minimal: tuple[int, ...], given: Any
) -> tuple[AbstractKnown, CorrectionOf]:
    """What a hybrid starts from.

    **Arguments:**

    - `given`: a law; the mechanism itself, or "mechanism"; the settings of a law, whose numbers are
        then still blank.

    **Returns:**

    It, and what a configuration says of it. Raises `UserError` for what is of another system.
    """
    if isinstance(given, tuple(_LAWS)):
        fields = {name: getattr(given, name) for name in given.__dataclass_fields__}
        given = _LAWS[type(given)].for_system(system, **fields)
    if isinstance(given, tuple(_LAWS.values())):
        _check_same(system, given.body, given)
        return KnownLaw(given), given.settings
    named = isinstance(given, str) and given == MECHANISM
    if not named and not isinstance(given, AbstractMechanism):
        raise UserError(
            f"correction_of is {given!r}; it must be a law, such as mbd.identify(...).model, or "
            "the mechanism itself."
        )
    if not isinstance(system, AbstractMechanism):
        raise UserError(
            f"correction_of is a mechanism, but {type(system).__name__} has no masses and forces "
            "to start from. Give the mechanism as the system too."
        )
    if not named:
        _check_same(system, given, given)
    mu = resolve_parameters(system)
    home = consistent_state(system, {}).q
    names = tuple(system.coordinate_names[i] for i in minimal)
    partition = choose_partition(system, jnp.zeros(()), home, mu, names)
    return KnownMechanism(system, partition, home), MECHANISM


def _check_same(system: AbstractSystem, own: Any, given: Any) -> None:
    if type(own) is not type(system) or not eqx.tree_equal(own, system):
        raise UserError(
            f"correction_of is a {type(given).__name__} of a {type(own).__name__}, but the system "
            f"is another {type(system).__name__}. Make both for one system."
        )
