"""A mechanism with the parameter values that were found in data.

It is the mechanism in every other respect: masses, forces, dry friction and constraints are its
own, and the values that were found stand in place of its defaults. So it goes wherever a mechanism
goes, and into a model file as every model does.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import equinox as eqx
import numpy as np

from mbdnode.config import check_types, from_dict
from mbdnode.errors import UserError
from mbdnode.models.base import AbstractModel, check_parameters, minimal_coordinates
from mbdnode.models.capabilities import Capability
from mbdnode.multibody import AbstractMechanism, Coordinate, Input, Parameter, Profile

# Directions of a covariance that are smaller, against the others, are rounding.
_NEGLIGIBLE = 1e-12


@dataclass(frozen=True)
class FittedMechanismConfig:
    """What was found.

    **Arguments:**

    - `names`, `values`: of the parameters.
    - `covariance`: of the values, row by row; empty if it is not known.
    - `interpolation`: of sampled inputs, with which the values were found.
    """

    names: tuple[str, ...] = ()
    values: tuple[float, ...] = ()
    covariance: tuple[float, ...] = ()
    interpolation: str = "constant"

    def __post_init__(self):
        check_types(self)
        count = len(self.names)
        if len(self.values) != count or len(self.covariance) not in (0, count**2):
            raise UserError(
                f"{count} parameters have {len(self.values)} values and a covariance of "
                f"{len(self.covariance)} numbers; there must be {count} and {count**2}."
            )
        if not np.all(np.isfinite([*self.values, *self.covariance])):
            raise UserError("Values and covariance of parameters must be finite.")


class FittedMechanism(AbstractModel, AbstractMechanism):
    """A mechanism with values of its parameters that were found. Make one with `for_system`."""

    kind: ClassVar[str] = "fitted-mechanism"
    settings_type: ClassVar[type] = FittedMechanismConfig
    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability)

    # Nothing of it is trained: its values stand in the settings.
    network: None
    body: AbstractMechanism
    settings: FittedMechanismConfig = eqx.field(static=True)
    minimal: tuple[int, ...] = eqx.field(static=True)
    coordinates: tuple[Coordinate, ...] = eqx.field(static=True, kw_only=True)
    inputs: tuple[Input, ...] = eqx.field(static=True, kw_only=True)
    parameters: tuple[Parameter, ...] = eqx.field(static=True, kw_only=True)

    @classmethod
    def for_system(cls, system: Any, *, seed: Any = 0, **settings: Any) -> "FittedMechanism":
        """A mechanism with other values of its parameters.

        **Arguments:**

        - `system`: the mechanism.
        - `seed`: not used: nothing is random.
        - `settings`: fields of `FittedMechanismConfig`.

        **Returns:**

        A `FittedMechanism`. Raises `UserError` for a system that is no mechanism.
        """
        config = from_dict(FittedMechanismConfig, settings)
        if not isinstance(system, AbstractMechanism):
            raise UserError(
                f"{type(system).__name__} has no masses and forces, so it has no values of them. "
                "Give a mechanism with both."
            )
        check_parameters(system, config.names)
        found = dict(zip(config.names, config.values, strict=True))
        return cls(
            None,
            system,
            config,
            minimal_coordinates(system),
            coordinates=system.coordinates,
            inputs=system.inputs,
            parameters=tuple(
                replace(p, default=found.get(p.name, p.default)) for p in system.parameters
            ),
        )

    @property
    def values(self) -> dict[str, float]:
        """Those that were found, by name."""
        return dict(zip(self.settings.names, self.settings.values, strict=True))

    @property
    def core(self) -> AbstractMechanism:
        """The mechanism, so that one compiled program serves all values."""
        return self.body

    @property
    def interpolation(self) -> str:
        """Of sampled inputs."""
        return self.settings.interpolation

    @property
    def deviations(self) -> dict[str, tuple[float, ...]]:
        """From the covariance `C = D D^T` of the values, the columns of `D` that are not zero."""
        count = len(self.settings.names)
        if not self.settings.covariance:
            return {}
        covariance = np.array(self.settings.covariance).reshape(count, count)
        size = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        unit = np.where(size > 0, size, 1.0)
        strengths, axes = np.linalg.eigh(covariance / np.outer(unit, unit))
        kept = strengths > _NEGLIGIBLE * max(1.0, float(strengths.max(initial=0.0)))
        columns = unit[:, None] * axes[:, kept] * np.sqrt(strengths[kept])
        return {
            name: tuple(map(float, row))
            for name, row in zip(self.settings.names, columns, strict=True)
        }

    def certain(self) -> "FittedMechanism":
        """The same without the covariance: its simulations have no spread and take less time."""
        return replace(self, settings=replace(self.settings, covariance=()))

    @property
    def profiles(self) -> tuple[Profile, ...]:
        """Those of the mechanism."""
        return self.body.profiles

    @property
    def independent(self) -> tuple[str, ...] | None:
        """As the mechanism says."""
        return self.body.independent

    @property
    def reference(self) -> Any:
        """Where the mechanism is assembled."""
        return self.body.reference

    @property
    def allow_redundant(self) -> bool:
        """Whether the mechanism drops constraints that repeat others."""
        return self.body.allow_redundant

    @property
    def conservative(self) -> bool:
        """As the mechanism says."""
        return self.body.conservative

    @property
    def separable(self) -> bool:
        """As the mechanism says."""
        return self.body.separable

    def mass_matrix(self, q, mu):
        """That of the mechanism."""
        return self.body.mass_matrix(q, mu)

    def force(self, t, q, v, u, mu):
        """Those of the mechanism."""
        return self.body.force(t, q, v, u, mu)

    def dry_friction(self, t, q, v, u, mu):
        """That of the mechanism."""
        return self.body.dry_friction(t, q, v, u, mu)

    def constraint(self, t, q, mu):
        """Those of the mechanism."""
        return self.body.constraint(t, q, mu)

    def nonholonomic(self, t, q, mu):
        """Those of the mechanism."""
        return self.body.nonholonomic(t, q, mu)

    def potential_energy(self, q, mu):
        """That of the mechanism."""
        return self.body.potential_energy(q, mu)

    def solution(self, elapsed, q, v, mu):
        """That of the mechanism, if it has one."""
        return self.body.solution(elapsed, q, v, mu)
