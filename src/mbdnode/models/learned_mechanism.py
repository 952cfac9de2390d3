"""A mechanism learned as one: mass, potential, damping and input map, linear in a basis.

    d/dt (dL/dv) - dL/dq + D v = G u,    L = 1/2 v.M(q).v - V(q)

`M_ij` and `V` are combinations of products of `1, cos, sin` of angles and powers of lengths; `D`
and `G` are constant matrices. The equations are linear and homogeneous in all coefficients, so
they can be found in closed form, up to a factor that cancels. Accelerations follow by one small
solve.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.config import check_types, from_dict
from mbdnode.models.base import AbstractRateModel, minimal_coordinates
from mbdnode.models.basis import Basis, make_basis
from mbdnode.models.capabilities import Capability
from mbdnode.multibody import AbstractSystem, Coordinate, Input, Parameter


@dataclass(frozen=True)
class LearnedMechanismConfig:
    """Which terms there are.

    **Arguments:**

    - `mass_degree`, `potential_degree`: of the bases of `M` and `V`.
    - `kept`: the columns whose coefficients are not zero; None for all.
    """

    mass_degree: int = 1
    potential_degree: int = 2
    kept: tuple[int, ...] | None = None

    def __post_init__(self):
        check_types(self)
        for name in ("mass_degree", "potential_degree"):
            if not 0 <= getattr(self, name) <= 8:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be from 0 to 8.")


class Coefficients(eqx.Module):
    """What is learned."""

    values: Float[Array, " kept"]


class LearnedMechanism(AbstractRateModel):
    """Euler-Lagrange equations with learned coefficients. Make one with `for_system`."""

    kind: ClassVar[str] = "learned-mechanism"
    settings_type: ClassVar[type] = LearnedMechanismConfig
    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability) - {
        Capability.NO_ACCELERATIONS
    }

    network: Coefficients
    mass_basis: Basis
    potential_basis: Basis
    body: AbstractSystem
    settings: LearnedMechanismConfig = eqx.field(static=True)
    minimal: tuple[int, ...] = eqx.field(static=True)
    coordinates: tuple[Coordinate, ...] = eqx.field(static=True, kw_only=True)
    inputs: tuple[Input, ...] = eqx.field(static=True, kw_only=True)
    parameters: tuple[Parameter, ...] = eqx.field(static=True, kw_only=True)

    @classmethod
    def for_system(
        cls, system: Any, *, seed: Any = 0, size: Any = None, **settings: Any
    ) -> "LearnedMechanism":
        """A model with all coefficients zero.

        **Arguments:**

        - `system`: gives the names and the constraints.
        - `seed`: not used: nothing is drawn.
        - `size`: the unit of each minimal length; one if not given.
        - `settings`: fields of `LearnedMechanismConfig`.

        **Returns:**

        A `LearnedMechanism`.
        """
        config = from_dict(LearnedMechanismConfig, settings)
        minimal = minimal_coordinates(system)
        own = tuple(system.coordinates[i] for i in minimal)
        unit = jnp.ones(len(minimal)) if size is None else jnp.asarray(size, float)
        mass = make_basis(own, unit, config.mass_degree)
        potential = make_basis(own, unit, config.potential_degree)
        columns = _count(len(minimal), len(system.inputs), mass, potential)
        kept = tuple(range(columns)) if config.kept is None else config.kept
        if any(not 0 <= k < columns for k in kept) or len(set(kept)) < len(kept):
            raise ValueError(f"kept names columns from 0 to {columns - 1}, each once.")
        return cls(
            Coefficients(jnp.zeros(len(kept))),
            mass,
            potential,
            system,
            LearnedMechanismConfig(config.mass_degree, config.potential_degree, kept),
            minimal,
            coordinates=system.coordinates,
            inputs=system.inputs,
            parameters=system.parameters,
        )

    @property
    def mass_columns(self) -> int:
        """How many of the columns are of the mass."""
        count = len(self.minimal)
        return count * (count + 1) // 2 * len(self.mass_basis)

    def equations(self, z, s, a, u) -> Float[Array, "ns columns"]:
        """The equations of motion as rows, one column for each coefficient."""
        kept = np.array(self.settings.kept)

        def terms(q, v):
            basis = self.mass_basis(q)
            kinetic = [basis * (v[i] * v[j] * (0.5 if i == j else 1.0)) for i, j in _pairs(len(v))]
            return jnp.concatenate([*kinetic, -self.potential_basis(q)[1:]])

        rate = jax.jvp(jax.jacfwd(terms, argnums=1), (z, s), (s, a))[1]
        lagrange = (rate - jax.jacfwd(terms)(z, s)).T
        damping = jnp.kron(jnp.eye(s.shape[0]), s[None, :])
        drive = -jnp.kron(jnp.eye(s.shape[0]), u[None, :])
        return jnp.concatenate([lagrange, damping, drive], axis=1)[:, kept]

    def parts(self) -> tuple[Any, Any, Any, Any]:
        """Coefficients of mass (pairs, terms) and potential, damping and input matrices."""
        count, inputs = len(self.minimal), len(self.inputs)
        mass, rest = self.mass_columns, len(self.potential_basis) - 1
        whole = jnp.zeros(mass + rest + count * (count + inputs), self.network.values.dtype)
        whole = whole.at[np.array(self.settings.kept)].set(self.network.values)
        end = mass + rest
        return (
            whole[:mass].reshape(-1, len(self.mass_basis)),
            whole[mass:end],
            whole[end : end + count**2].reshape(count, count),
            whole[end + count**2 :].reshape(count, inputs),
        )

    def mass(self, z: Float[Array, " nz"]) -> Float[Array, "nz nz"]:
        """`M(q)`, up to the common factor."""
        entries = self.parts()[0] @ self.mass_basis(z)
        count = z.shape[0]
        rows, columns = (np.array(x) for x in zip(*_pairs(count), strict=True))
        upper = jnp.zeros((count, count), entries.dtype).at[rows, columns].set(entries)
        return upper + jnp.triu(upper, 1).T

    def minimal_rates(self, t, z, s, u, mu):
        """Solve the equations of motion."""
        _, potential, damping, drive = self.parts()
        kinetic = lambda q: 0.5 * s @ self.mass(q) @ s  # noqa: E731
        _, turned = jax.jvp(lambda q: self.mass(q) @ s, (z,), (s,))
        stored = lambda q: self.potential_basis(q)[1:] @ potential  # noqa: E731
        force = jax.grad(kinetic)(z) - turned - jax.grad(stored)(z) - damping @ s + drive @ u
        return s, jnp.linalg.solve(self.mass(z), force)

    def independent_acceleration(self, t, q, v, u, mu, tangent):
        """The minimal coordinates' accelerations, from a whole state."""
        index = np.array(self.minimal)
        return self.minimal_rates(t, q[index], v[index], u, mu)[1]


def _pairs(count: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(count) for j in range(i, count)]


def _count(freedoms: int, inputs: int, mass: Basis, potential: Basis) -> int:
    kinetic = freedoms * (freedoms + 1) // 2 * len(mass)
    return kinetic + len(potential) - 1 + freedoms * (freedoms + inputs)
