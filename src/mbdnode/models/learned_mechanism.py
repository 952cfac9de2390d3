"""A mechanism learned as one: mass, potential, damping and input map, linear in a basis.

    d/dt (dL/dv) - dL/dq + D v + R(v) = G(q) u,    L = 1/2 v.M(q).v - V(q)

`M_ij` and `V` are combinations of products of `1, cos, sin` of angles and powers of lengths; `D`
is a constant matrix, and so is `G` unless `input_degree` says otherwise: a force with a fixed
direction, or the acceleration of a moving base, acts on a link by the sine of its angle. With
`angle_springs` there are also springs of angles and twists in `V`, as of a shaft that gives. With
`joint_laws` these are not linear, nor are those of lengths, and `R` holds drag and friction of each
joint.
The equations are linear and homogeneous in all coefficients (the widths of friction apart), so they
can be found in closed form, up to a factor that cancels. Accelerations follow by one small solve.
With `forces="added"` there is no `G`: the acceleration that the inputs cause in the given mechanism
is added instead, so that a law found without inputs can be run with them.
"""

import itertools
from dataclasses import dataclass, replace
from typing import Any, ClassVar

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
    minimal_coordinates,
    names_of,
)
from mbdnode.models.basis import Basis, Joints, Scale, make_angle_springs, make_basis, make_joints
from mbdnode.models.function_library import Forces
from mbdnode.multibody import AbstractSystem, Coordinate, Input, Parameter, length, small_solve
from mbdnode.simulation import Interpolation


@dataclass(frozen=True)
class LearnedMechanismConfig:
    """Which terms there are.

    **Arguments:**

    - `mass_degree`, `potential_degree`: of the bases of `M` and `V`.
    - `use_parameters`: on which parameters masses and potentials depend too, by name.
    - `angle_springs`: whether angles, and the twists between two, have linear springs.
    - `joint_laws`: whether joints have springs, drag and friction of their own.
    - `forces`: "inputs" learns what the inputs do, "added" takes it from the given mechanism.
    - `kept`: the columns whose coefficients are not zero; None for all.
    - `relative_angles`: whether `V` has the products of sines and cosines of every two angles,
        which are those of their sum and difference, whatever its degree.
    - `input_degree`: of the basis of `G`, at most that of `M`; zero for constants.
    - `interpolation`: how sampled inputs go between their samples in a rollout, unless `simulate`
        is told otherwise: as in the data that the law was found in.
    """

    mass_degree: int = 1
    potential_degree: int = 2
    use_parameters: tuple[str, ...] = ()
    angle_springs: bool = False
    joint_laws: bool = False
    forces: Forces = "inputs"
    kept: tuple[int, ...] | None = None
    relative_angles: bool = False
    input_degree: int = 0
    interpolation: Interpolation = "constant"

    def __post_init__(self):
        check_types(self)
        for name in ("mass_degree", "potential_degree"):
            if not 0 <= getattr(self, name) <= 8:
                raise UserError(f"{name} is {getattr(self, name)}; it must be from 0 to 8.")
        if not 0 <= self.input_degree <= self.mass_degree:
            raise UserError(
                f"input_degree is {self.input_degree}; it must be from 0 to mass_degree, which is "
                f"{self.mass_degree}."
            )


class Coefficients(eqx.Module):
    """What is learned: the columns' coefficients, and the speeds over which friction sets in."""

    values: Float[Array, " kept"]
    widths: Float[Array, " joints"]


class LearnedMechanism(AbstractRateModel):
    """Euler-Lagrange equations with learned coefficients. Make one with `for_system`."""

    kind: ClassVar[str] = "learned-mechanism"
    settings_type: ClassVar[type] = LearnedMechanismConfig
    is_law: ClassVar[bool] = True
    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability) - {
        Capability.NO_ACCELERATIONS
    }

    network: Coefficients
    mass_basis: Basis
    potential_basis: Basis
    joints: Joints
    body: AbstractSystem
    settings: LearnedMechanismConfig = eqx.field(static=True)
    minimal: tuple[int, ...] = eqx.field(static=True)
    coordinates: tuple[Coordinate, ...] = eqx.field(static=True, kw_only=True)
    inputs: tuple[Input, ...] = eqx.field(static=True, kw_only=True)
    parameters: tuple[Parameter, ...] = eqx.field(static=True, kw_only=True)

    @classmethod
    def for_system(
        cls, system: Any, *, seed: Any = 0, lengths: Scale | None = None, **settings: Any
    ) -> "LearnedMechanism":
        """A model with all coefficients zero.

        **Arguments:**

        - `system`: gives the names and the constraints.
        - `seed`: not used: nothing is random.
        - `lengths`: their origins and units; as they are if not given.
        - `settings`: fields of `LearnedMechanismConfig`.

        **Returns:**

        A `LearnedMechanism`.
        """
        config = from_dict(LearnedMechanismConfig, settings)
        minimal = minimal_coordinates(system)
        own = tuple(system.coordinates[i] for i in minimal)
        places = own + tuple(length(name) for name in config.use_parameters)
        check_parameters(system, config.use_parameters)
        if config.forces == "added":
            check_added(system)
        mass = make_basis(places, config.mass_degree, lengths)
        potential = make_basis(
            places, config.potential_degree, lengths, pairs=config.relative_angles
        )
        joints = make_angle_springs(own) if config.angle_springs else Joints()
        if config.joint_laws:
            joints = make_joints(own, config.potential_degree, potential.origin[: len(own)])
        acting = len(system.inputs) * _terms(mass, config.input_degree)
        columns = sum(_lengths(len(minimal), acting, mass, potential, joints))
        kept = tuple(range(columns)) if config.kept is None else config.kept
        if any(not 0 <= k < columns for k in kept) or len(set(kept)) < len(kept):
            raise UserError(f"kept names columns from 0 to {columns - 1}, each once.")
        return cls(
            Coefficients(*jax.device_put((np.zeros(len(kept)), np.ones(joints.resisting)))),
            mass,
            potential,
            joints,
            system,
            replace(config, kept=kept),
            minimal,
            **names_of(system),
        )

    def without_zeros(self) -> "LearnedMechanism":
        """The same law with the columns alone that it needs, and positive widths of friction."""
        values, widths = (np.asarray(x) for x in (self.network.values, self.network.widths))
        used, kept = np.flatnonzero(values), np.array(self.settings.kept)
        # Friction is odd in its width: a search may end on either side.
        signs = np.ones(self._columns)
        signs[self._columns - widths.size :] = np.where(widths < 0, -1.0, 1.0)
        return replace(
            self,
            network=Coefficients(*jax.device_put(((signs[kept] * values)[used], np.abs(widths)))),
            settings=replace(self.settings, kept=tuple(int(k) for k in kept[used])),
        )

    def of_columns(self, chosen: np.ndarray) -> "LearnedMechanism":
        """A mechanism of some of the columns, without the functions that none of them needs.

        **Arguments:**

        - `chosen`: which, by number, in order.

        **Returns:**

        A `LearnedMechanism` with their coefficients, to compute columns with.
        """
        kept, size = np.array(self.settings.kept)[chosen], len(self.mass_basis)
        inertial = np.isin(np.arange(size), kept[kept < self.mass_columns] % size)
        inertial[: len(self.input_basis)] = True
        places = self.mass_columns + np.arange(len(self.potential_basis) - 1)
        stored = np.concatenate([[True], np.isin(places, kept)])
        mass, potential = (
            replace(basis, terms=tuple(itertools.compress(basis.terms, present)))
            for basis, present in ((self.mass_basis, inertial), (self.potential_basis, stored))
        )
        present = np.ones(self._columns, bool)
        present[: self.mass_columns] = np.tile(inertial, self.mass_columns // size)
        present[places] = stored[1:]
        number = np.cumsum(present) - 1
        return replace(
            self,
            network=Coefficients(self.network.values[chosen], self.network.widths),
            mass_basis=mass,
            potential_basis=potential,
            settings=replace(self.settings, kept=tuple(int(k) for k in number[kept])),
        )

    @property
    def _columns(self) -> int:
        """How many there are, kept or not."""
        return sum(self._lengths)

    @property
    def _lengths(self) -> tuple[int, ...]:
        acting = len(self.inputs) * len(self.input_basis)
        bases = self.mass_basis, self.potential_basis, self.joints
        return _lengths(len(self.minimal), acting, *bases)

    @property
    def interpolation(self) -> Interpolation:
        """Of sampled inputs, in a rollout that is told nothing else."""
        return self.settings.interpolation

    @property
    def mass_columns(self) -> int:
        """How many of the columns are of the mass."""
        count = len(self.minimal)
        return count * (count + 1) // 2 * len(self.mass_basis)

    def columns_up_to(
        self, mass: int, potential: int, acting: int, springs: bool = True
    ) -> np.ndarray:
        """The columns up to lower degrees of mass, potential and input map.

        All others are among them, but for the springs of joints if `springs` says so.
        """
        inertial = np.array(self.mass_basis.degrees) <= mass
        stored = np.array(self.potential_basis.degrees) <= potential
        if potential:
            stored |= np.array(self.potential_basis.pairs)
        pairs, count = self.mass_columns // len(self.mass_basis), len(self.minimal)
        driven = np.tile(np.array(self.input_basis.degrees) <= acting, count * len(self.inputs))
        twisted, damping = np.full(len(self.joints.springs), springs), np.ones(count**2, bool)
        chosen = [np.tile(inertial, pairs), stored[1:], twisted, damping, driven]
        chosen = np.concatenate(chosen)
        rest = np.ones(self.network.values.size - chosen.size, bool)
        return np.flatnonzero(np.concatenate([chosen, rest]))

    @property
    def input_basis(self) -> Basis:
        """The functions of the position that the entries of `G` are combinations of."""
        terms = self.mass_basis.terms[: _terms(self.mass_basis, self.settings.input_degree)]
        return replace(self.mass_basis, terms=terms)

    def inertia(self, t, z, s, a, u, mu) -> Float[Array, "ns columns"]:
        """`dp/dt` of the equations `dp/dt + f = 0`, one column for each coefficient."""
        return jax.jvp(lambda q, v: self.momenta_and_forces(t, q, v, u, mu)[0], (z, s), (s, a))[1]

    def momenta_and_forces(self, t, z, s, u, mu) -> tuple[Any, Any]:
        """`p` and `f` of the equations `dp/dt + f = 0`, one column for each coefficient."""
        kept = np.array(self.settings.kept)
        terms = lambda q, v: self._energies(q, v, mu)  # noqa: E731
        momenta, slopes = jax.jacfwd(terms, argnums=1)(z, s).T, jax.jacfwd(terms)(z, s).T
        damping = jnp.kron(jnp.eye(s.shape[0]), s[None, :])
        caused, drive = self._of_inputs(t, z, s, u, mu)
        forces = jnp.concatenate([caused - slopes, damping, drive, self.resistances(s)], axis=1)
        still = jnp.zeros((s.shape[0], forces.shape[1] - momenta.shape[1]), z.dtype)
        return jnp.concatenate([momenta, still], axis=1)[:, kept], forces[:, kept]

    @property
    def driven_columns(self) -> np.ndarray:
        """Which of the columns the inputs add something to, by number."""
        kept = np.array(self.settings.kept)
        if self.settings.forces == "added":
            return np.flatnonzero(kept < self.mass_columns)
        first, last = np.cumsum(self._lengths)[2:4]
        return np.flatnonzero((kept >= first) & (kept < last))

    def input_forces(self, t, z, s, u, mu) -> Float[Array, "ns driven"]:
        """What the inputs add to `f`, in the driven columns alone."""
        own = np.array(self.settings.kept)[self.driven_columns]
        caused, drive = self._of_inputs(t, z, s, u, mu)
        if self.settings.forces == "added":
            return caused[:, own]
        return drive[:, own - int(np.cumsum(self._lengths)[2])]

    def _energies(self, q, v, mu):
        """Every term of the kinetic energy, and of the potential with its sign turned."""
        basis = self.mass_basis(self._place(q, mu))
        kinetic = [basis * (v[i] * v[j] * (0.5 if i == j else 1.0)) for i, j in _pairs(len(v))]
        return jnp.concatenate([*kinetic, -self.potentials(q, mu)])

    def _of_inputs(self, t, z, s, u, mu) -> tuple[Any, Any]:
        """What the inputs add to the columns of the energies, and their own columns."""
        acting, caused = u, jnp.zeros((), z.dtype)
        if self.settings.forces == "added":
            # Momenta are linear in the velocities: what the inputs add to `dp/dt` is `p` of the
            # accelerations that they cause.
            acting, added = jnp.zeros_like(u), input_acceleration(self.body, t, z, s, u, mu)
            caused = -jax.jacfwd(lambda v: self._energies(z, v, mu))(added).T
        if self.settings.input_degree:
            acting = jnp.kron(acting, self.input_basis(self._place(z, mu)))
        return caused, -jnp.kron(jnp.eye(s.shape[0]), acting[None, :])

    def _place(self, z, mu):
        """What masses and potentials depend on."""
        own = [mu[name][None].astype(z.dtype) for name in self.settings.use_parameters]
        return jnp.concatenate([z, *own])

    def potentials(self, z: Float[Array, " nz"], mu: Any) -> Float[Array, " potentials"]:
        """Every term of `V`."""
        given = self.potential_basis(self._place(z, mu))[1:]
        if not self.joints.springs:
            return given
        return jnp.concatenate([given, self.joints.potentials(z)])

    def resistances(self, s: Float[Array, " ns"]) -> Float[Array, "ns resistances"]:
        """Every term of `R`, as a column."""
        if not self.joints.resisting:
            return jnp.zeros((s.shape[0], 0), s.dtype)
        return self.joints.resistances(s, self.network.widths)

    def parts(self) -> tuple[Any, Any, Any, Any, Any]:
        """Coefficients of mass (pairs, terms), potential, damping, input map and resistance.

        Those of the input map are `(coordinates, inputs, terms)`.
        """
        count, inputs, terms = len(self.minimal), len(self.inputs), len(self.input_basis)
        bases = self.mass_basis, self.potential_basis, self.joints
        lengths = _lengths(count, inputs * terms, *bases)
        whole, kept = self.network.values, np.array(self.settings.kept, int)
        if kept.size < sum(lengths) or np.any(np.diff(kept) < 0):
            whole = jnp.asarray(np.eye(sum(lengths))[:, kept], whole.dtype) @ whole
        mass, potential, damping, drive, resistance = jnp.split(whole, np.cumsum(lengths)[:-1])
        return (
            mass.reshape(-1, len(self.mass_basis)),
            potential,
            damping.reshape(count, count),
            drive.reshape(count, inputs, terms),
            resistance,
        )

    def mass(self, z: Float[Array, " nz"], mu: Any) -> Float[Array, "nz nz"]:
        """`M(q)`, up to the common factor."""
        return self._full(self.parts()[0] @ self.mass_basis(self._place(z, mu)))

    def _full(self, entries: Float[Array, "pairs *k"]) -> Float[Array, "nz nz *k"]:
        """A symmetric matrix from its entries on and above the diagonal."""
        count = len(self.minimal)
        number = {pair: k for k, pair in enumerate(_pairs(count))}
        place = [number[min(i, j), max(i, j)] for i in range(count) for j in range(count)]
        whole = jnp.asarray(np.eye(len(number))[place], entries.dtype) @ entries
        return whole.reshape(count, count, *entries.shape[1:])

    def minimal_rates(self, t, z, s, u, mu):
        """Solve the equations of motion."""
        inertial, potential, damping, drive, resistance = self.parts()

        def functions(q):
            return self.mass_basis(self._place(q, mu)), self.potentials(q, mu)

        # One evaluation for the functions and all of their derivatives.
        way = jnp.eye(z.shape[0], dtype=z.dtype)
        (basis, _), (turning, pulling) = jax.vmap(
            lambda along: jax.jvp(functions, (z,), (along,)), out_axes=(None, -1)
        )(way)
        mass = self._full(inertial @ basis)
        # `dM/dq` applied to the velocities once: `(dM_ij/dq_k) v_j`.
        turned = jnp.einsum("ijk,j->ik", self._full(inertial @ turning), s)
        # Of constants there is one term.
        acting = (
            drive @ self.input_basis(self._place(z, mu)) if drive.shape[2] > 1 else drive[..., 0]
        )
        force = 0.5 * s @ turned - turned @ s - potential @ pulling - damping @ s + acting @ u
        force = force - self.resistances(s) @ resistance
        found = small_solve(mass, force)
        if self.settings.forces == "added":
            found = found + input_acceleration(self.body, t, z, s, u, mu)
        return s, found

    def independent_acceleration(self, t, q, v, u, mu, tangent):
        """The minimal coordinates' accelerations, from a whole state."""
        index = np.array(self.minimal)
        return self.minimal_rates(t, q[index], v[index], u, mu)[1]


def _pairs(count: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(count) for j in range(i, count)]


def _terms(basis: Basis, degree: int) -> int:
    """How many terms of a basis, which are in order of their degrees, have this one at most."""
    return int(np.sum(np.array(basis.degrees) <= degree))


def _lengths(
    dof: int, acting: int, mass: Basis, potential: Basis, joints: Joints
) -> tuple[int, ...]:
    """How many columns are of the mass, the potential, damping, inputs and resistance."""
    return (
        dof * (dof + 1) // 2 * len(mass),
        len(potential) - 1 + len(joints.springs),
        dof**2,
        dof * acting,
        2 * joints.resisting,
    )
