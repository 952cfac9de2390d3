"""A hybrid: the accelerations of a law or a mechanism, and a network for what that misses.

    a = a_known(t, q, v, u, mu) + correction(q, v, u, mu)

The network's last layer starts at zero, so training begins at what is known, to the bit. The
correction is of the minimal coordinates' accelerations, so that the constraints hold as they did;
where a rollout integrates others, the constraints' tangent says what it adds to theirs. Where the
mass is known, the network may give forces, which that turns into accelerations (`joints`).
"""

from dataclasses import replace
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.config import from_dict
from mbdnode.errors import UserError
from mbdnode.models.base import names_of
from mbdnode.models.known import AbstractKnown, KnownMechanism, make_known
from mbdnode.models.mbdnode import (
    NO_MASS,
    AbstractMBDNODE,
    MBDNODEConfig,
    check_settings,
    make_parts,
    minimal_of,
    resolved,
)
from mbdnode.models.network import Network
from mbdnode.models.network_structures import get_structure
from mbdnode.multibody import AbstractSystem, Coordinate, Input, Parameter, small_solve


class Hybrid(AbstractMBDNODE):
    """A network that corrects what is known. Make one with `MBDNODE.for_system`."""

    network: Network
    center: Float[Array, " in"]
    spread: Float[Array, " in"]
    out_center: Float[Array, " out"]
    out_spread: Float[Array, " out"]
    known: AbstractKnown
    body: AbstractSystem
    settings: MBDNODEConfig = eqx.field(static=True)
    minimal: tuple[int, ...] = eqx.field(static=True)
    coordinates: tuple[Coordinate, ...] = eqx.field(static=True, kw_only=True)
    inputs: tuple[Input, ...] = eqx.field(static=True, kw_only=True)
    parameters: tuple[Parameter, ...] = eqx.field(static=True, kw_only=True)

    # A correction is one of accelerations.
    separable: ClassVar[bool] = False

    @classmethod
    def for_system(
        cls,
        system: AbstractSystem,
        *,
        seed: Any = 0,
        correction_of: Any,
        network: Any = "",
        **settings: Any,
    ) -> "Hybrid":
        """An untrained model of a `system`.

        **Arguments:** `seed`, `network` and `settings` as of `MBDNODE.for_system`; `correction_of`
        is the law or the mechanism that the network corrects.
        """
        config = from_dict(MBDNODEConfig, settings)
        minimal = minimal_of(system, config)
        known, form = make_known(system, minimal, correction_of)
        config = resolved(system, replace(config, correction_of=form))
        check_settings(system, config, minimal)
        _check_correction(config)
        if get_structure(config.structure).gives_forces and not known.has_mass:
            raise UserError(NO_MASS.format(structure=config.structure))
        if network:
            raise UserError(
                "network is one of your own, but a hybrid begins at what it corrects, with a last "
                "layer of zeros. Leave one of them out."
            )
        config, made, a, b, c, d = make_parts(system, config, minimal, seed, "")
        made = eqx.tree_at(lambda n: (n.weights[-1], n.biases[-1]), made, replace_fn=jnp.zeros_like)
        return cls(made, a, b, c, d, known, system, config, minimal, **names_of(system))

    @property
    def corrected(self) -> AbstractKnown:
        """What the network only corrects."""
        return self.known

    @property
    def closed_on_minimal(self) -> bool:
        """Whether the minimal coordinates say all: of a mechanism with constraints, they do not."""
        return self.known.closed

    def minimal_rates(self, t, z, s, u, mu):
        """What is known, and the correction."""
        return self.rates_near(t, z, s, u, mu)

    def rates_near(self, t, z, s, u, mu, near=None):
        """The same; `near` says how a mechanism that is corrected is assembled."""
        found = self.learned_acceleration(t, z, s, u, mu, near)
        return s, found + self.known.acceleration(t, z, s, u, mu, near)

    def learned_acceleration(self, t, z, s, u, mu, near=None) -> Float[Array, " nz"]:
        """What the network gives alone."""
        structure = self.structure
        found = structure.acceleration(self.outputs(t, s, u, mu), z, s, u[: structure.inputs])
        if not structure.gives_forces:
            return found
        return small_solve(self.known.mass(t, z, mu, near), found)

    def independent_acceleration(self, t, q, v, u, mu, tangent):
        """The accelerations that a rollout integrates, from a whole state."""
        index = np.array(self.minimal)
        if isinstance(self.known, KnownMechanism) and not self.known.closed:
            learned = self.learned_acceleration(t, q[index], v[index], u, mu, q)
            return self.known.corrected(t, q, v, u, mu, tangent, learned)
        return self.minimal_rates(t, q[index], v[index], u, mu)[1]


def _check_correction(config: MBDNODEConfig) -> None:
    """Raise `UserError` for settings that a correction cannot have."""
    reasons = {
        "order": ("first", "a correction is one of accelerations"),
        "forces": ("added", "what is corrected has the inputs already"),
        "structure": ("lagrangian", "its mass would not be that of the whole"),
    }
    for name, (value, reason) in reasons.items():
        if getattr(config, name) == value:
            raise UserError(f"{name} is {value!r}, but {reason}. Leave {name} out.")
    if config.constraints != "hard":
        raise UserError(
            f"constraints is {config.constraints!r}, but a correction is of the minimal "
            "coordinates, which keep them. Use constraints='hard'."
        )
