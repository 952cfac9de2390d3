"""A learned model: names, a network that training changes, and what it can and cannot do.

A model that gives rates is a system, and `simulate` integrates it. It acts on the minimal
coordinates of a partition that never changes, so a rollout can step those alone and complete the
rest once a step. A model that gives states is a forecaster.
"""

import abc
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from mbdnode.errors import UserError
from mbdnode.models.capabilities import Capability
from mbdnode.multibody import (
    AbstractMechanism,
    AbstractNamed,
    AbstractSystem,
    choose_partition,
    consistent_state,
    constraint_counts,
    resolve_parameters,
    small_solve,
)
from mbdnode.naming import unknown_name


def names_of(system: AbstractNamed) -> dict[str, Any]:
    """The named quantities that a model has in common with its system, as arguments of it."""
    return {name: getattr(system, name) for name in ("coordinates", "inputs", "parameters")}


class AbstractModel(AbstractNamed):
    """What every learned model has in common.

    `network` is what training changes; `body` is the system that it is a model of.
    """

    # The name in files, the dataclass of settings, what it can do.
    kind: ClassVar[str]
    settings_type: ClassVar[type]
    capabilities: ClassVar[frozenset[Capability]]
    # What `fit` makes small: an `AbstractObjective` (`models/objective.py`); None for a model of
    # rates that is trained through the integrator, and for one that is not trained.
    objective: ClassVar[Any] = None
    # How the paper trains it: columns of its tables (`models/paper_settings.py`).
    paper: ClassVar[tuple[Any, ...]] = ()
    # Whether regression finds it: then people read `LAW`, and not the name of a network.
    is_law: ClassVar[bool] = False
    learned: ClassVar[bool] = True

    # Fields of every final class; the type checker would read an AbstractVar as an argument here.
    if TYPE_CHECKING:
        network: ClassVar[Any]
        body: ClassVar[Any]
        settings: ClassVar[Any]
    else:
        network: eqx.AbstractVar[Any]
        body: eqx.AbstractVar[AbstractNamed]
        settings: eqx.AbstractVar[Any]

    @classmethod
    @abc.abstractmethod
    def for_system(cls, system: Any, *, seed: Any = 0, **settings: Any) -> Any:
        """An untrained model of a system."""

    @property
    def config(self) -> Any:
        """What rebuilds the model's shape, as a dataclass."""
        return self.settings

    @property
    def residual_system(self) -> AbstractSystem | None:
        """That of its system, whether it keeps the constraints or not."""
        return self.body.residual_system

    @property
    def history(self) -> int:
        """How many states it starts from."""
        return 1


class AbstractRateModel(AbstractModel, AbstractSystem):
    """A model that gives the rates of its minimal coordinates."""

    closed_on_minimal: ClassVar[bool] = True

    if TYPE_CHECKING:
        minimal: ClassVar[tuple[int, ...]]
    else:
        minimal: eqx.AbstractVar[tuple[int, ...]]

    @property
    def independent(self) -> tuple[str, ...]:
        """The minimal coordinates, by name."""
        return tuple(self.coordinates[i].name for i in self.minimal)

    @property
    def reference(self) -> Mapping[str, float]:
        """Where the system is assembled."""
        return self.body.reference

    @property
    def allow_redundant(self) -> bool:
        """Whether the system drops constraints that repeat others."""
        return self.body.allow_redundant

    @property
    def conservative(self) -> bool:
        """Whether its own energy is constant when the inputs are zero."""
        return False

    @property
    def corrected(self) -> Any:
        """What the model only corrects, a law or a mechanism; None if it stands by itself."""
        return None

    def constraint(self, t, q, mu):
        """Those of the system, kept by partition."""
        return self.body.constraint(t, q, mu)

    def rates_near(self, t, z, s, u, mu, near: Any = None):
        """`minimal_rates`, of a model that may need a configuration near by to give them."""
        return self.minimal_rates(t, z, s, u, mu)

    def potential_energy(self, q: Any, mu: Any) -> Any:
        """`V(q)` of a model that has a `mass(q, mu)` and a potential; None of others."""
        return None


def minimal_coordinates(system: AbstractSystem) -> tuple[int, ...]:
    """The coordinates that a model with hard constraints advances, by index.

    Indices into its coordinates. Raises `UserError` for nonholonomic constraints.
    """
    mu = resolve_parameters(system)
    if has_nonholonomic(system):
        raise UserError(
            f"{type(system).__name__} has nonholonomic constraints, so no minimal coordinates give "
            "its motion, and laws are found in those alone. Train an MBD-NODE, or estimate "
            "parameters of the mechanism."
        )
    state = consistent_state(system, {})
    partition = choose_partition(system, jnp.zeros(()), state.q, mu)
    return tuple(int(i) for i in np.asarray(partition.velocity.independent))


def has_nonholonomic(system: AbstractSystem) -> bool:
    """Whether velocities are constrained where positions are not."""
    return constraint_counts(system, resolve_parameters(system))[1] > 0


def check_parameters(system: AbstractNamed, names: tuple[str, ...]) -> None:
    """Raise `UserError` unless the system has parameters of these names, each named once."""
    for name in names:
        if name not in system.parameter_names:
            raise unknown_name("parameter", name, system.parameter_names)
    if len(set(names)) < len(names):
        raise UserError(f"use_parameters is {names}; name each once.")


def input_force(system: AbstractSystem, t, z, s, u, mu):
    """The generalized force `F_e(u) - F_e(0)` that the inputs cause in a mechanism."""
    assert isinstance(system, AbstractMechanism)
    force = lambda load: jnp.asarray(system.force(t, z, s, load, mu))  # noqa: E731
    return force(u) - force(jnp.zeros_like(u))


def input_acceleration(system: AbstractSystem, t, z, s, u, mu):
    """The acceleration `M^-1 (F_e(u) - F_e(0))`; arguments as for `input_force`."""
    assert isinstance(system, AbstractMechanism)
    caused = input_force(system, t, z, s, u, mu)
    return small_solve(system.mass(z, mu), caused).astype(z.dtype)


def check_added(system: AbstractSystem) -> None:
    """Raise `UserError` unless the accelerations that inputs cause can be added."""
    constrained = sum(constraint_counts(system, resolve_parameters(system))) > 0
    if constrained or not isinstance(system, AbstractMechanism):
        raise UserError(
            "forces='added' needs a mechanism without constraints, whose mass turns a force "
            "into an acceleration. Use forces='inputs'."
        )
