"""MBD-NODE: the rates of the minimal coordinates as a network of state, inputs, time, parameters.

    d/dt (z, z') = (z', f(z, z', u, t, mu))

With `order="first"` the network gives both rates (a NODE); with "second" the accelerations (a
SONODE). Parameters among its inputs make it a PNODE. External forces enter as inputs of the
network, or, for a system without constraints, as the acceleration `M^-1 (F_e(u) - F_e(0))` added
to the network's own, so that a model trained without forces can be run with them. A `structure`
makes `f` of the parts of equations of motion, which the network then gives (see
`network_structures`). With `correction_of` the model is a hybrid (see `hybrid`).

Nonholonomic constraints bind velocities and leave the positions free, so no fixed set of
independent velocities serves a whole motion: a sleigh's blade turns. The network then gives the
acceleration `f` of every coordinate, and the model's is the nearest one that the constraints
`C a = gamma` allow,

    a = f + C^T (C C^T)^-1 (gamma - C f),

by which a body that nothing drives keeps its speed. A rollout integrates those of the velocities
that are independent at the moment; the others follow from the constraints, to round-off.
"""

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

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
    has_nonholonomic,
    input_acceleration,
    minimal_coordinates,
    names_of,
)
from mbdnode.models.known import CorrectionOf
from mbdnode.models.network import (
    Activation,
    Initialization,
    Network,
    OwnNetwork,
    check_activation,
    make_network,
    make_own_network,
    named_activation,
    precision_of,
)
from mbdnode.models.network_structures import AbstractStructure, Lagrangian, Outputs, get_structure
from mbdnode.models.paper_settings import MBDNODE_COLUMNS, HyperParameters
from mbdnode.multibody import (
    AbstractMechanism,
    AbstractSystem,
    Coordinate,
    Input,
    Parameter,
    gamma,
    small_solve,
    velocity_constraints,
)
from mbdnode.naming import unknown_name

Constraints = Literal["hard", "penalty", "augmented", "none"]


@dataclass(frozen=True)
class MBDNODEConfig:
    """The shape of an MBD-NODE; the defaults are the paper's network.

    **Arguments:**

    - `structure`: what the network gives: "free" accelerations, or the parts of "mechanical" or
        "lagrangian" equations of motion; of a correction also the forces in the "joints".
    - `order`: "second" learns accelerations, "first" all rates of `(z, z')`.
    - `width`, `hidden_layers`, `activation`, `initialization`: of the network; with "joints", of
        each of the small networks.
    - `forces`: "inputs" feeds them to the network, "added" adds their known acceleration,
        "none" leaves them out.
    - `use_velocity`, `use_time`: whether the network reads velocities and time.
    - `use_parameters`: which parameters it reads, by name.
    - `angle_features`: read sine and cosine of the coordinates that are angles; None for every
        structure but "free" and "joints", and for a correction by other than "joints".
    - `angle_pairs`: with `angle_features`, read sine and cosine of the sum and of the difference
        of every two angles too: by these, chains of bodies have simple masses.
    - `affine`: an affine function of what the network reads beside it, trained with it. The network
        starts at nothing. The affine part of a "free" one starts at the least-squares fit of the
        training data's accelerations, others at zero.
    - `scaling`: shift and scale what goes in and comes out, by the training data's own mean and
        spread; None for every structure but "free", and for a correction.
    - `damping`: whether forces that are linear in the velocities are learned, of the structures
        that tell them apart; None where velocities matter, unless the system is declared
        conservative.
    - `constraints`: "hard" by partition, of positions and of velocities; "penalty", "augmented"
        and "none" learn every coordinate and meet the constraints by training, or not at all.
    - `correction_of`: the law, or the mechanism, that the network corrects; None for nothing.
    - `correction_weight`: of the squared correction in the loss, beside the squared errors: what
        the correction adds to the velocities in a step, in the same units.
    - `divisor`: the network's accelerations are divided by these (the paper divides by the mass);
        of a "lagrangian" they multiply the mass.
    - `network`: the name of a network of one's own in place of `width` and what follows it.
    """

    structure: str = "free"
    order: Literal["first", "second"] = "second"
    width: int = 256
    hidden_layers: int = 2
    activation: Activation = "tanh"
    initialization: Initialization = "xavier"
    forces: Literal["inputs", "added", "none"] = "inputs"
    use_velocity: bool = True
    use_time: bool = False
    use_parameters: tuple[str, ...] = ()
    angle_features: bool | None = None
    angle_pairs: bool = False
    affine: bool = False
    scaling: bool | None = None
    damping: bool | None = None
    constraints: Constraints = "hard"
    divisor: tuple[float, ...] = ()
    correction_of: CorrectionOf = None
    correction_weight: float = 1e-6
    network: str = ""

    def __post_init__(self):
        check_types(self)
        check_activation(self.activation)
        if self.network and (self.affine or self.structure == "joints"):
            raise UserError(
                f"network is {self.network}, one of your own, and affine is {self.affine} with "
                f"structure {self.structure!r}, which are made of our layers. Leave one out."
            )
        for name in ("width", "hidden_layers"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} is {getattr(self, name)}; it must be at least 1.")
        if any(not (d > 0 and np.isfinite(d)) for d in self.divisor):
            raise UserError(f"divisor is {self.divisor}; every entry must be above zero.")
        if len(set(self.use_parameters)) < len(self.use_parameters):
            raise UserError(f"use_parameters is {self.use_parameters}; name each once.")
        if not (np.isfinite(self.correction_weight) and self.correction_weight >= 0):
            raise UserError(f"correction_weight is {self.correction_weight}; it must be 0 or more.")
        get_structure(self.structure).check(self)


class AbstractMBDNODE(AbstractRateModel):
    """What an MBD-NODE and a hybrid have in common: a network, its scales and its structure."""

    kind: ClassVar[str] = "mbd-node"
    settings_type: ClassVar[type] = MBDNODEConfig
    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability)

    if TYPE_CHECKING:
        center: ClassVar[Any]
        spread: ClassVar[Any]
        out_center: ClassVar[Any]
        out_spread: ClassVar[Any]
    else:
        center: eqx.AbstractVar[Float[Array, " in"]]
        spread: eqx.AbstractVar[Float[Array, " in"]]
        out_center: eqx.AbstractVar[Float[Array, " out"]]
        out_spread: eqx.AbstractVar[Float[Array, " out"]]

    @property
    def structure(self) -> AbstractStructure:
        """What the network's outputs are."""
        return _structure(self.body, self.settings, self.minimal)

    @property
    def affine_part(self) -> Any:
        """The model without what its layers contribute: the last one's weights are zero.

        The last layer's bias stays, which is the offset of the affine function beside the layers;
        None of a network without one, and of a network of one's own.
        """
        if getattr(self.network, "beside", None) is None:
            return None
        return eqx.tree_at(lambda m: m.network.weights[-1], self, replace_fn=jnp.zeros_like)

    @property
    def conservative(self) -> bool:
        """Whether the learned energy is constant when the inputs are zero."""
        return isinstance(self.structure, Lagrangian) and not self.settings.damping

    def constraint(self, t, q, mu):
        """Those of the system, if they are kept by partition."""
        return self.body.constraint(t, q, mu) if self.settings.constraints == "hard" else ()

    def nonholonomic(self, t, q, mu):
        """Those of the system, if they are kept by partition."""
        hard = self.settings.constraints == "hard"
        return self.body.nonholonomic(t, q, mu) if hard else super().nonholonomic(t, q, mu)

    def mass(self, q: Float[Array, " nq"], mu: Any) -> Float[Array, "nq nq"]:
        """The learned mass, up to a factor: that of the minimal coordinates, which move all others.

        A matrix for all coordinates, zero but for the minimal ones. Raises `UserError` for a
        structure that has no mass.
        """
        structure, index = self.structure, np.array(self.minimal)
        if not isinstance(structure, Lagrangian):
            raise UserError(
                f"structure={self.settings.structure!r} learns accelerations and no mass. Use "
                "structure='lagrangian'."
            )
        still = jnp.zeros_like(q[index]), jnp.zeros(len(self.inputs), q.dtype)
        factor = structure.mass_factor(self.outputs(jnp.zeros(()), *still, mu), q[index])
        own = (factor @ factor.T).astype(q.dtype)
        return jnp.zeros((q.shape[0],) * 2, q.dtype).at[np.ix_(index, index)].set(own)

    def potential_energy(self, q: Float[Array, " nq"], mu: Any) -> Float[Array, ""] | None:
        """The learned potential, up to the mass factor and a constant; None if it has none."""
        structure, z = self.structure, q[np.array(self.minimal)]
        if not isinstance(structure, Lagrangian):
            return None
        still = jnp.zeros_like(z), jnp.zeros(len(self.inputs), q.dtype)
        return structure.potential(self.outputs(jnp.zeros(()), *still, mu), z).astype(q.dtype)

    def outputs(self, t, s, u, mu) -> Outputs:
        """The network's outputs, as a function of the configuration."""
        # The whole of it in the precision of the weights, in which it was trained.
        kind = precision_of(self.network)
        center, spread, out_center, out_spread = (
            jax.lax.stop_gradient(x).astype(kind)
            for x in (self.center, self.spread, self.out_center, self.out_spread)
        )

        def outputs(z):
            scaled = jnp.zeros_like(center)
            if z is not None:
                scaled = (self.features(t, z, s, u, mu).astype(kind) - center) / spread
            return out_center + out_spread * self.structure.shaped(self.network(scaled))

        return outputs

    def features(self, t, z, s, u, mu) -> Float[Array, " in"]:
        """What the network reads, before scaling."""
        parts = []
        for position, index in enumerate(self.minimal):
            if self.settings.angle_features and self.coordinates[index].is_angle:
                parts += [jnp.sin(z[position]), jnp.cos(z[position])]
            else:
                parts.append(z[position])
        for first, second in _angle_pairs(self, self.settings, self.minimal):
            for angle in (z[first] + z[second], z[first] - z[second]):
                parts += [jnp.sin(angle), jnp.cos(angle)]
        if not self.structure.reads_configuration:
            parts += list(s) if self.settings.use_velocity else []
            parts += list(u[: self.structure.inputs])
        parts += [mu[name].astype(z.dtype) for name in self.settings.use_parameters]
        if self.settings.use_time:
            parts.append(t.astype(z.dtype))
        return jnp.stack(parts)


class MBDNODE(AbstractMBDNODE):
    """The paper's model, on the kinematics of a system.

    Make one with `MBDNODE.for_system`.
    """

    paper: ClassVar[tuple[HyperParameters, ...]] = MBDNODE_COLUMNS

    network: Network | OwnNetwork
    center: Float[Array, " in"]
    spread: Float[Array, " in"]
    out_center: Float[Array, " out"]
    out_spread: Float[Array, " out"]
    body: AbstractSystem
    settings: MBDNODEConfig = eqx.field(static=True)
    minimal: tuple[int, ...] = eqx.field(static=True)
    coordinates: tuple[Coordinate, ...] = eqx.field(static=True, kw_only=True)
    inputs: tuple[Input, ...] = eqx.field(static=True, kw_only=True)
    parameters: tuple[Parameter, ...] = eqx.field(static=True, kw_only=True)

    @classmethod
    def for_system(
        cls,
        system: AbstractSystem,
        *,
        seed: Any = 0,
        correction_of: Any = None,
        network: Any = "",
        activation: Any = "tanh",
        **settings: Any,
    ) -> Any:
        """An untrained model of a system.

        **Arguments:**

        - `system`: gives the names and the constraints, and whether it is declared conservative;
            nothing else of it is used, unless `forces="added"`, which uses its mass matrix and
            its input map, or the network is to correct it.
        - `seed`: of the network's first weights.
        - `correction_of`: a law of the system, such as `identify(...).model`, or the mechanism
            itself: the network then learns what that misses.
        - `network`: one's own: a callable Equinox module, or `make(count_in, count_out, seed)` that
            gives one, as `module:name` or as it is. What has no such name cannot be saved.
        - `activation`: by name, or a function of one's own.
        - `settings`: fields of `MBDNODEConfig`.

        **Returns:**

        An `MBDNODE`; a `Hybrid` with `correction_of`.
        """
        settings["activation"] = named_activation(activation)
        if correction_of is not None:
            from mbdnode.models.hybrid import Hybrid  # Which is made of what is above.

            if has_nonholonomic(system):
                raise UserError(
                    f"{type(system).__name__} has nonholonomic constraints, and a correction is "
                    "one of minimal coordinates, which it has not. Leave correction_of out, or "
                    "estimate the mechanism's parameters."
                )
            settings["network"] = network
            return Hybrid.for_system(system, seed=seed, correction_of=correction_of, **settings)
        config = from_dict(MBDNODEConfig, settings)
        if config.constraints == "hard" and has_nonholonomic(system):
            _check_nonholonomic(system, config)
        minimal = minimal_of(system, config)
        config = resolved(system, config)
        if get_structure(config.structure).gives_forces:
            raise UserError(NO_MASS.format(structure=config.structure))
        check_settings(system, config, minimal)
        config, made, a, b, c, d = make_parts(system, config, minimal, seed, network)
        return cls(made, a, b, c, d, system, config, minimal, **names_of(system))

    @property
    def separable(self) -> bool:
        """Whether the acceleration depends on positions alone."""
        return not self.settings.use_velocity and self.settings.order == "second"

    @property
    def closed_on_minimal(self) -> bool:
        """Whether the minimal coordinates say all: not if the rest of a velocity is completed."""
        return not self._binds_velocities

    @property
    def independent(self) -> Any:
        """The minimal coordinates, by name; None where they are chosen along the motion."""
        return None if self._binds_velocities else super().independent

    @property
    def _binds_velocities(self) -> bool:
        return self.settings.constraints == "hard" and has_nonholonomic(self.body)

    def rates_near(self, t, z, s, u, mu, near=None):
        """The same anywhere."""
        return self.minimal_rates(t, z, s, u, mu)

    def minimal_rates(self, t, z, s, u, mu):
        """`f`: evaluate the network, and make accelerations of what it gives."""
        outputs = self.outputs(t, s, u, mu)
        if self.settings.order == "first":
            rates = outputs(z).astype(z.dtype)
            return rates[: z.shape[0]], rates[z.shape[0] :]
        found = self.structure.acceleration(outputs, z, s, u[: self.structure.inputs])
        if self.settings.forces == "added":
            found = found + input_acceleration(self.body, t, z, s, u, mu)
        if self._binds_velocities:
            found = _nearest_allowed(self.body, t, z, s, mu, found)
        return s, found

    def independent_acceleration(self, t, q, v, u, mu, tangent):
        """The minimal coordinates' accelerations, from a whole state."""
        if self._binds_velocities:
            return self.minimal_rates(t, q, v, u, mu)[1][tangent.split.independent]
        index = np.array(self.minimal)
        return self.minimal_rates(t, q[index], v[index], u, mu)[1]


def _nearest_allowed(system: AbstractSystem, t, q, v, mu, acceleration) -> Float[Array, " nq"]:
    """The nearest acceleration with which the constraints of the velocities stay met."""
    matrix, _ = velocity_constraints(system, t, q, mu)
    missing = gamma(system, t, q, v, mu) - matrix @ acceleration
    found = acceleration + matrix.T @ small_solve(matrix @ matrix.T, missing)
    return found.astype(acceleration.dtype)


def _check_nonholonomic(system: AbstractSystem, config: MBDNODEConfig) -> None:
    """Raise `UserError` for settings that do not go with constraints of velocities."""
    reasons = {
        "order": ("first", "the constraints complete velocities, which are then not learned"),
        "structure": ("lagrangian", "its equations lack the forces of these constraints"),
    }
    for setting, (value, reason) in reasons.items():
        if getattr(config, setting) == value:
            raise UserError(
                f"{type(system).__name__} has nonholonomic constraints and {setting} is {value!r}, "
                f"but {reason}. Leave {setting} out."
            )


# Of a structure that gives forces, where no mass is known.
NO_MASS = (
    "structure is {structure!r}, which gives forces, but no mass is known that they accelerate. "
    "Give a mechanism as correction_of, or use structure='free'."
)


def make_parts(
    system: AbstractSystem, config: MBDNODEConfig, minimal: tuple[int, ...], seed: Any, own: Any
) -> tuple[Any, Any, Any, Any, Any, Any]:
    """The parts of an untrained model.

    The configuration with the name of one's own network, the network, and the mean and the spread
    of what goes in and of what comes out.
    """
    count_in = _feature_count(system, config, minimal)
    count_out = _structure(system, config, minimal).count
    reads = _reads(system, config, minimal)
    ends = (count_in, count_out) if reads is None else (len(reads[0]), 1)
    sizes = (ends[0], *[config.width] * config.hidden_layers, ends[1])
    start = config.activation, config.initialization, seed
    if own:
        network, name = make_own_network(own, count_in, count_out, seed)
        config = replace(config, network=name)
    else:
        network = make_network(sizes, *start, affine=config.affine, reads=reads)
    plain = (np.zeros(count_in), np.ones(count_in), np.zeros(count_out), np.ones(count_out))
    return config, network, *jax.device_put(plain)


def resolved(system: AbstractSystem, config: MBDNODEConfig) -> MBDNODEConfig:
    """The configuration with what its structure and the system say where it says nothing."""
    structure, corrects = get_structure(config.structure), bool(config.correction_of)
    own, chosen = structure.reads_configuration, {}
    if config.angle_features is None:
        # A spring that is twisted by a whole turn is not what it was.
        chosen["angle_features"] = own or (corrects and not structure.is_separate)
    if config.scaling is None:
        chosen["scaling"] = own or corrects
    if own and config.damping is None:
        declared = isinstance(system, AbstractMechanism) and system.conservative
        # What a mechanism misses may be its friction.
        chosen["damping"] = config.use_velocity and (corrects or not declared)
    return replace(config, **chosen)


def _structure(
    system: AbstractSystem, config: MBDNODEConfig, minimal: tuple[int, ...]
) -> AbstractStructure:
    kind = get_structure(config.structure)
    learned = len(system.inputs) if config.forces == "inputs" and not kind.is_separate else 0
    return kind(len(minimal), learned, config)


def minimal_of(system: AbstractSystem, config: MBDNODEConfig) -> tuple[int, ...]:
    """The coordinates that the network advances, by index."""
    everything = tuple(range(len(system.coordinates)))
    if config.constraints != "hard" or has_nonholonomic(system):
        return everything
    return minimal_coordinates(system)


def check_settings(system: AbstractSystem, config: MBDNODEConfig, minimal: tuple[int, ...]) -> None:
    """Raise `UserError` for settings that do not fit the system."""
    names = system.parameter_names
    for name in config.use_parameters:
        if name not in names:
            raise unknown_name("parameter", name, names)
    if not minimal:
        raise UserError(f"{type(system).__name__} has no freedom, so there is nothing to learn.")
    if config.divisor and len(config.divisor) != len(minimal):
        raise UserError(
            f"divisor has {len(config.divisor)} entries; there must be one for each of the "
            f"{len(minimal)} minimal coordinate(s), or none."
        )
    if config.forces == "added":
        check_added(system)


def _reads(
    system: AbstractSystem, config: MBDNODEConfig, minimal: tuple[int, ...]
) -> tuple[tuple[int, ...], ...] | None:
    """Which features each of several small networks reads; None for one network of all."""
    if not get_structure(config.structure).is_separate:
        return None
    angles = [bool(config.angle_features and system.coordinates[i].is_angle) for i in minimal]
    ends = np.cumsum([1 + angle for angle in angles])
    # All read as many, so a single feature is read twice where an angle has two.
    rows = [(int(e) - 1 - angle, int(e) - 1) for e, angle in zip(ends, angles, strict=True)]
    first = int(ends[-1])
    if config.use_velocity:
        rows += [(first + place, first + place) for place in range(len(minimal))]
    last = _feature_count(system, config, minimal)
    shared = tuple(range(last - len(config.use_parameters), last))
    return tuple((row if any(angles) else row[:1]) + shared for row in rows)


def _angle_pairs(
    system: AbstractSystem, config: MBDNODEConfig, minimal: tuple[int, ...]
) -> list[tuple[int, int]]:
    """Every two angles among the minimal coordinates, by their places, if they are read."""
    if not (config.angle_features and config.angle_pairs):
        return []
    angles = [place for place, i in enumerate(minimal) if system.coordinates[i].is_angle]
    return list(itertools.combinations(angles, 2))


def _feature_count(system: AbstractSystem, config: MBDNODEConfig, minimal: tuple[int, ...]) -> int:
    structure = _structure(system, config, minimal)
    angles = sum(system.coordinates[i].is_angle for i in minimal) if config.angle_features else 0
    count = len(minimal) + angles + len(config.use_parameters) + config.use_time
    count += 4 * len(_angle_pairs(system, config, minimal))
    if structure.reads_configuration:
        return count
    return count + structure.inputs + (len(minimal) if config.use_velocity else 0)
