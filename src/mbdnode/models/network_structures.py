"""What the outputs of a network are: accelerations, or the parts of equations of motion.

| structure | the network reads | and gives |
|---|---|---|
| `free` | positions, velocities, inputs | `a` |
| `mechanical` | the configuration | `g`, `D`, `Gamma`, `G` of `a = g + D v + Gamma[v, v] + G u` |
| `lagrangian` | the configuration | `L`, `P`, `V`, `K`, `G` of the Euler-Lagrange equations |
| `joints` | one position or velocity each | forces that a hybrid's mechanism misses |

    M a = dT/dq - M' v - dV/dq - D v + G u,  T = v.M v/2,  M = L L^T + P P^T,  D = K K^T

The two others say how accelerations depend on velocities and inputs, so that the network is a
function of the configuration alone (and of parameters, where it reads them). The accelerations of
every rigid mechanism with viscous forces are of the second form, and those of one with a potential
of the third. There `L` is lower triangular, with a diagonal that is positive whatever the weights
are, so the mass is positive definite; the damping is not negative, so that the energy `T + V` never
grows unless inputs do work. All of it is known up to one common factor, which cancels.

`L` alone could be any mass, but for a chain of bodies it is a root of sines and cosines. What the
bodies of a planar chain add to the kinetic energy is `|P^T v|^2/2`, where a column of `P` is the
derivative of a position along one axis: sines and cosines of the angles themselves, which a network
with an affine part has from the start, and which it extrapolates. Two columns for each coordinate
but one are enough for a chain, as `L` adds to the diagonal.

What a mechanism misses (see `hybrid`) is often in its joints: springs, drag, friction. With
`joints` the missing force on each coordinate is `f_i(q_i) + r_i(v_i)`, with a small network for
each of these functions, and the mechanism's own mass turns the forces into accelerations. One
motion shows little of a function of all positions and velocities, but of a function of one it shows
all that it meets.

A new structure is one class in this file and one entry of `STRUCTURES`.
"""

import abc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from mbdnode.errors import UserError
from mbdnode.naming import unknown_name

# The network's scaled outputs at a configuration; at the middle of the training data for None.
Outputs = Callable[[Float[Array, " nz"] | None], Float[Array, " out"]]

# Of the diagonal of `L`: one where the network gives zero, and never below this.
_LEAST = 1e-3
_OFFSET = float(np.log(np.expm1(1.0 - _LEAST)))


class Scales(NamedTuple):
    """Sizes of the training data, one for each minimal coordinate or input.

    **Arguments:**

    - `rate_mean`, `rate_spread`: of what a free network would have to give.
    - `position`: standard deviation, at most one for an angle.
    - `velocity`, `inputs`: root mean squares.
    """

    rate_mean: Float[Array, " rates"]
    rate_spread: Float[Array, " rates"]
    position: Float[Array, " nz"]
    velocity: Float[Array, " nz"]
    inputs: Float[Array, " nu"]

    @property
    def rate(self) -> Float[Array, " rates"]:
        """The root mean square of the rates."""
        return jnp.sqrt(self.rate_mean**2 + self.rate_spread**2)


@dataclass(frozen=True)
class AbstractStructure(abc.ABC):
    """How accelerations follow from a network's outputs.

    **Arguments:**

    - `dof`: how many accelerations.
    - `inputs`: how many inputs are learned.
    - `settings`: of the MBD-NODE.
    """

    dof: int
    inputs: int
    settings: Any

    # Whether the network reads the configuration alone, and not velocities and inputs.
    reads_configuration: ClassVar[bool] = True
    # Whether it gives forces, which a known mass turns into accelerations; and whether it is made
    # of small networks, each of which reads one coordinate or velocity.
    gives_forces: ClassVar[bool] = False
    is_separate: ClassVar[bool] = False

    @classmethod
    def check(cls, settings: Any) -> None:
        """Raise `UserError` for settings that do not go with the structure."""
        _refuse(settings, order="second")
        if settings.damping and not settings.use_velocity:
            raise UserError(
                "damping is True and use_velocity is False, but damping forces depend on the "
                "velocities. Leave one of them out."
            )

    @property
    @abc.abstractmethod
    def groups(self) -> dict[str, int]:
        """The outputs in order: the name of each group, and how many it has."""

    @property
    def count(self) -> int:
        """How many outputs there are."""
        return sum(self.groups.values())

    def parts(self, outputs: Float[Array, "*n out"]) -> dict[str, Float[Array, "*n group"]]:
        """The outputs of each group."""
        edges = np.cumsum(list(self.groups.values()))[:-1]
        return dict(zip(self.groups, jnp.split(outputs, edges, axis=-1), strict=True))

    def shaped(self, raw: Float[Array, " out"]) -> Float[Array, " out"]:
        """What the network gives, before it is scaled."""
        return raw

    @property
    def squared(self) -> Bool[np.ndarray, " out"]:
        """Which outputs count by their products alone, so that from zero nothing leads away."""
        return np.zeros(self.count, bool)

    @abc.abstractmethod
    def units(self, scales: Scales) -> tuple[Float[Array, " out"], Float[Array, " out"]]:
        """Where the outputs are centered, and how large they are, by the training data."""

    @abc.abstractmethod
    def acceleration(
        self, outputs: Outputs, z: Float[Array, " nz"], s: Float[Array, " nz"], u: Array
    ) -> Float[Array, " nz"]:
        """The acceleration of the minimal coordinates."""


class Free(AbstractStructure):
    """The network gives the accelerations themselves, or all rates."""

    reads_configuration: ClassVar[bool] = False

    @classmethod
    def check(cls, settings: Any) -> None:
        """Damping is not told apart from other forces."""
        _refuse(settings, damping=None)

    @property
    def groups(self) -> dict[str, int]:
        """One rate for each coordinate and velocity, or for each velocity alone."""
        return {"rates": self.dof * (2 if self.settings.order == "first" else 1)}

    def units(self, scales: Scales):
        """Those of the rates."""
        return scales.rate_mean, scales.rate_spread

    def acceleration(self, outputs, z, s, u):
        """As the network says."""
        return _divided(outputs(z).astype(z.dtype), self.settings.divisor)


class Mechanical(AbstractStructure):
    """The form that coordinate partitioning gives every rigid mechanism with viscous forces."""

    @property
    def groups(self) -> dict[str, int]:
        """Accelerations at rest, what is linear and quadratic in velocities, the inputs' map."""
        dof, moving = self.dof, self.settings.use_velocity
        return {
            "g": dof,
            "D": dof * dof if self.settings.damping else 0,
            "Gamma": dof * (dof * (dof + 1) // 2) if moving else 0,
            "G": dof * self.inputs,
        }

    def units(self, scales: Scales):
        """Every term is as large as the accelerations are."""
        rate, turn = scales.rate[:, None], scales.velocity
        first, second = np.triu_indices(self.dof)
        spread = {
            "g": rate,
            "D": rate / turn[None, :],
            "Gamma": rate / (turn[first] * turn[second])[None, :],
            "G": rate / scales.inputs[None, :],
        }
        kept = [spread[name].reshape(-1) for name, size in self.groups.items() if size]
        joined = jnp.concatenate(kept)
        return jnp.zeros_like(joined), joined

    def acceleration(self, outputs, z, s, u):
        """Add the terms."""
        value = outputs(z)
        s, u = s.astype(value.dtype), u.astype(value.dtype)
        parts = self.parts(value)
        found = parts["g"]
        if self.settings.damping:
            found = found + parts["D"].reshape(self.dof, -1) @ s
        if self.settings.use_velocity:
            first, second = np.triu_indices(self.dof)
            found = found + parts["Gamma"].reshape(self.dof, -1) @ (s[first] * s[second])
        if self.inputs:
            found = found + parts["G"].reshape(self.dof, -1) @ u
        return _divided(found.astype(z.dtype), self.settings.divisor)


class Lagrangian(AbstractStructure):
    """The Euler-Lagrange equations of a learned mass, potential, damping and input map.

    Without velocities in the accelerations (`use_velocity=False`) the mass is a constant: that of
    the middle of the training data.
    """

    @classmethod
    def check(cls, settings: Any) -> None:
        """Mass and potential do not depend on time."""
        super().check(settings)
        _refuse(settings, use_time=False)

    @property
    def groups(self) -> dict[str, int]:
        """The factors of the mass row by row, the potential, the damping's factor, the inputs."""
        triangle = self.dof * (self.dof + 1) // 2
        return {
            "L": triangle,
            "P": self.dof * self._columns,
            "V": 1,
            "K": triangle if self.settings.damping else 0,
            "G": self.dof * self.inputs,
        }

    @property
    def _columns(self) -> int:
        """Of `P`; a constant mass needs none."""
        return 2 * (self.dof - 1) if self.settings.use_velocity else 0

    @property
    def squared(self) -> Bool[np.ndarray, " out"]:
        """Those of `P` and `K`."""
        return np.repeat([name in ("P", "K") for name in self.groups], list(self.groups.values()))

    def shaped(self, raw):
        """The diagonal of `L` is positive."""
        rows, columns = np.tril_indices(self.dof)
        diagonal = np.zeros(self.count, bool)
        diagonal[: len(rows)] = rows == columns
        positive = jax.nn.softplus(raw + _OFFSET) + _LEAST
        return jnp.where(jnp.asarray(diagonal), positive, raw)

    def units(self, scales: Scales):
        """The kinetic energy is about one, and forces are what accelerates such a mass."""
        row = np.tril_indices(self.dof)[0]
        velocity, rate = scales.velocity, scales.rate
        # A divisor multiplies the mass, and is in the rates that a free network would give.
        divisor = jnp.asarray(self.settings.divisor or np.ones(self.dof), velocity.dtype)
        rate = rate / divisor
        force = rate / velocity**2
        unit = 1 / (velocity * jnp.sqrt(divisor))
        spread = {
            "L": unit[row],
            "P": jnp.repeat(unit, self._columns),
            "V": jnp.mean(force * scales.position)[None],
            "K": jnp.sqrt(force / velocity)[row],
            "G": force[:, None] / scales.inputs[None, :],
        }
        kept = [spread[name].reshape(-1) for name, size in self.groups.items() if size]
        joined = jnp.concatenate(kept)
        return jnp.zeros_like(joined), joined

    def mass_factor(self, outputs: Outputs, z: Float[Array, " nz"]) -> Float[Array, "nz k"]:
        """`L` and `P` beside each other: the mass is the product with the transpose."""
        place = z if self.settings.use_velocity else None
        return self._mass_factor(self.parts(outputs(place)))

    def potential(self, outputs: Outputs, z: Float[Array, " nz"]) -> Float[Array, ""]:
        """`V`, up to a constant."""
        return self.parts(outputs(z))["V"][0]

    def acceleration(self, outputs, z, s, u):
        """Solve the equations of motion."""
        # Forward mode: one pass for each coordinate gives every derivative that is needed.
        slopes, value = jax.jacfwd(lambda q: (outputs(q),) * 2, has_aux=True)(z)
        kind = value.dtype
        s, u = s.astype(kind), u.astype(kind)
        parts, derived = self.parts(value), self.parts(slopes.astype(kind).T)
        force = -derived["V"][:, 0]
        if self.settings.use_velocity:
            factor = self._mass_factor(parts)
            along = self._mass_factor(derived)  # Its derivative by each coordinate.
            half = factor.T @ s
            turned = jnp.einsum("k,kij->ij", s, along)
            # dT/dq - M' v, with T = |F^T v|^2 / 2, where F is the factor.
            force = force + jnp.einsum("kij,i,j->k", along, s, half)
            force = force - turned @ half - factor @ (turned.T @ s)
        else:
            factor = self.mass_factor(outputs, z)
        if self.settings.damping:
            damper = _triangle(parts["K"], self.dof)
            force = force - damper @ (damper.T @ s)
        if self.inputs:
            force = force + parts["G"].reshape(self.dof, -1) @ u
        return _solve(_cholesky(factor), force).astype(z.dtype)

    def _mass_factor(self, parts: dict[str, Any]) -> Float[Array, "*n nz k"]:
        found = _triangle(parts["L"], self.dof)
        if self._columns:
            added = parts["P"].reshape(*found.shape[:-1], self._columns)
            found = jnp.concatenate([found, added], axis=-1)
        if not self.settings.divisor:
            return found
        unit = np.sqrt(np.asarray(self.settings.divisor))
        return found * jnp.asarray(np.broadcast_to(unit[:, None], found.shape), found.dtype)


class JointForces(AbstractStructure):
    """A force on each coordinate: a function of its position, and one of its velocity."""

    reads_configuration: ClassVar[bool] = False
    gives_forces: ClassVar[bool] = True
    is_separate: ClassVar[bool] = True

    @classmethod
    def check(cls, settings: Any) -> None:
        """What is in the joints depends on neither time nor inputs."""
        _refuse(settings, order="second", damping=None, use_time=False, divisor=())

    @property
    def groups(self) -> dict[str, int]:
        """Functions of the positions, and of the velocities."""
        return {"springs": self.dof, "resistances": self.dof * self.settings.use_velocity}

    def units(self, scales: Scales):
        """Each function is as large as the forces are."""
        force = jnp.tile(scales.rate, self.count // self.dof)
        return jnp.zeros_like(force), force

    def acceleration(self, outputs, z, s, u):
        """The forces: what they accelerate is known elsewhere."""
        each = outputs(z).reshape(-1, self.dof)
        return jnp.sum(each, axis=0).astype(z.dtype)


STRUCTURES: dict[str, type[AbstractStructure]] = {
    "free": Free,
    "mechanical": Mechanical,
    "lagrangian": Lagrangian,
    "joints": JointForces,
}


def get_structure(name: str) -> type[AbstractStructure]:
    """A structure by name.

    **Arguments:**

    - `name`: a key of `STRUCTURES`.

    **Returns:**

    Its class. Raises `UserError` for a name that is not known.
    """
    if name not in STRUCTURES:
        raise unknown_name("structure", name, STRUCTURES)
    return STRUCTURES[name]


def _refuse(settings: Any, **needed: Any) -> None:
    """Raise `UserError` unless the settings have these values."""
    for name, value in needed.items():
        if getattr(settings, name) != value:
            raise UserError(
                f"{name} is {getattr(settings, name)!r}, which structure={settings.structure!r} "
                f"does not go with: it needs {name}={value!r}. Leave one of them out."
            )


def _divided(found: Float[Array, " nz"], divisor: tuple[float, ...]) -> Float[Array, " nz"]:
    return found / jnp.asarray(divisor, found.dtype) if divisor else found


def _triangle(entries: Float[Array, "*n triangle"], dof: int) -> Float[Array, "*n dof dof"]:
    """Lower triangular matrices; a product with a constant compiles faster than a scatter."""
    rows, columns = np.tril_indices(dof)
    places = np.zeros((len(rows), dof * dof))
    places[np.arange(len(rows)), rows * dof + columns] = 1.0
    found = entries @ jnp.asarray(places, entries.dtype)
    return found.reshape(*entries.shape[:-1], dof, dof)


def _cholesky(factor: Float[Array, "n k"]) -> Float[Array, "n n"]:
    """The lower triangle whose product with its transpose is that of the factor, written out."""
    count, columns = factor.shape
    if columns == count:
        return factor
    product = factor @ factor.T
    found: list[list[Any]] = []
    for i in range(count):
        row: list[Any] = []
        for j in range(i + 1):
            above = row if i == j else found[j]
            known = sum(
                (a * b for a, b in zip(row, above, strict=False)), jnp.zeros((), factor.dtype)
            )
            left = product[i, j] - known
            row.append(jnp.sqrt(left) if i == j else left / found[j][j])
        found.append(row)
    entries = jnp.stack([value for row in found for value in row])
    return _triangle(entries, count)


def _solve(factor: Float[Array, "n n"], right: Float[Array, " n"]) -> Float[Array, " n"]:
    """Solve `factor factor^T x = right` by substitution, written out: the matrices are small."""
    count = right.shape[0]
    half: list[Any] = []
    for i in range(count):
        known = sum((factor[i, j] * half[j] for j in range(i)), jnp.zeros((), right.dtype))
        half.append((right[i] - known) / factor[i, i])
    found: list[Any] = [None] * count
    for i in reversed(range(count)):
        known = sum(
            (factor[j, i] * found[j] for j in range(i + 1, count)), jnp.zeros((), right.dtype)
        )
        found[i] = (half[i] - known) / factor[i, i]
    return jnp.stack(found)
