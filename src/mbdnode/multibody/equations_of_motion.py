"""A constrained multibody system: mass, forces, constraints; the rest follows by autodiff.

The equations of motion are the paper's first equation,

    [ M   C^T ] [  a     ]   [ F_e   ]
    [ C   0   ] [ lambda ] = [ gamma ],

where `C` stacks `Phi_q` and the nonholonomic rows, and `F_e` holds applied forces and quadratic
velocity terms. Substituting `a = T a_i + s` (see `tangent`) removes the multipliers:

    (T^T M T) a_i = T^T (F_e - M s),

a system as small as the number of degrees of freedom, and regular when constraints are redundant.
"""

import abc
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.multibody.dependent_coordinates import tangent_at
from mbdnode.multibody.friction_law import Contacts, contacts_of, held_forces
from mbdnode.multibody.kinematics import (
    compiled,
    gamma,
    sparse_jacobian,
    vector,
    velocity_constraints,
)
from mbdnode.multibody.small_systems import mass_solve
from mbdnode.multibody.sparsity.sparse_constraints import SparseSlope
from mbdnode.multibody.system import (
    AbstractSystem,
    Coords,
    Inputs,
    Params,
    Time,
    is_traced,
)
from mbdnode.multibody.tangent import Split, Tangent


class AbstractMechanism(AbstractSystem):
    """A multibody system in redundant or minimal coordinates.

    A subclass names its coordinates and says what its mass and forces are; constraints, inputs,
    parameters and a potential energy where it has them. `docs/how-to/extend.md` shows one in full.

    Methods are traced and compiled once. A Python value that they take from outside is a constant
    from then on; a value that may change is one of the `parameters`, or a field.
    """

    # Whether energy is constant when the inputs are zero.
    conservative: ClassVar[bool] = False

    @abc.abstractmethod
    def mass_matrix(self, q: Coords, mu: Params) -> Any:
        """`M(q)`, symmetric; a vector is read as a diagonal."""

    @abc.abstractmethod
    def force(self, t: Time, q: Coords, v: Coords, u: Inputs, mu: Params) -> Any:
        """`F_e`: applied forces and quadratic velocity terms."""

    def dry_friction(
        self, t: Time, q: Coords, v: Coords, u: Inputs, mu: Params
    ) -> tuple[Any, Any] | None:
        """Directions and limits of dry friction (see `mbdnode.multibody.friction_law`), or None.

        The directions have a row for each contact, whose slip velocity is that row times `v`. The
        limit is the force or torque up to which it holds and against which it slips; a pair is
        that of backward and of forward slip. It may depend on the state: on the position as in a
        worn guide, on the slip as in the Stribeck effect.
        """
        return None

    def contacts(self, t: Time, q: Coords, v: Coords, u: Inputs, mu: Params) -> Contacts | None:
        """What `dry_friction` says, in one form."""
        return contacts_of(self.dry_friction(t, q, v, u, mu), q.shape[0])

    def potential_energy(self, q: Coords, mu: Params) -> Float[Array, ""] | None:
        """`V(q)`, or None for a mechanism that has no energy to speak of."""
        return None

    def solution(
        self, elapsed: Time, q: Coords, v: Coords, mu: Params
    ) -> tuple[Coords, Coords] | None:
        """The unforced motion in closed form, a time `elapsed` after `(q, v)`, or None."""
        return None

    def mass(self, q: Coords, mu: Params) -> Float[Array, "nq nq"]:
        """`M(q)` as a full matrix."""
        given = self.given_mass(q, mu)
        return jnp.diag(given) if given.ndim == 1 else given

    def given_mass(self, q: Coords, mu: Params) -> Float[Array, "nq *nq"]:
        """`M(q)` as it is stated: a matrix, or the vector of a diagonal."""
        given = self.mass_matrix(q, mu)
        if isinstance(given, (tuple, list)):
            nested = isinstance(given[0], (tuple, list))
            return jnp.stack([vector(row) for row in given]) if nested else vector(given)
        return jnp.asarray(given)

    def has_plain_masses(self, q, mu):
        """Whether the mass matrix is a diagonal, of which all entries are known to be positive."""
        if is_traced(self, mu):
            return False
        with jax.ensure_compile_time_eval():
            anywhere = jnp.asarray(np.zeros(q.shape)) if is_traced(q) else q
            mass = np.asarray(masses(self, anywhere, mu))
        return mass.ndim == 1 and bool(np.all(mass > 0))

    def quadratic_velocity_force(self, q: Coords, v: Coords, mu: Params) -> Coords:
        """Centrifugal and Coriolis terms of a configuration-dependent mass matrix.

        With kinetic energy `T = v.M(q).v/2` they are `dT/dq - (dM/dt) v`. A mechanism whose `M`
        depends on `q` adds them to its forces.
        """
        momentum = lambda x: self.mass(x, mu) @ v  # noqa: E731
        kinetic = lambda x: 0.5 * v @ self.mass(x, mu) @ v  # noqa: E731
        return jax.grad(kinetic)(q) - jax.jvp(momentum, (q,), (v,))[1]

    def independent_acceleration(self, t, q, v, u, mu, tangent):
        """Solve the reduced equations of motion."""
        force = vector(self.force(t, q, v, u, mu))
        friction = self.friction_force(t, q, v, u, mu, tangent)
        force = force if friction is None else force + friction
        return self.accelerations_under(t, q, v, mu, tangent, force)

    def friction_force(
        self,
        t: Time,
        q: Coords,
        v: Coords,
        u: Inputs,
        mu: Params,
        tangent: Tangent,
        step: tuple[Any, Coords] | None = None,
    ) -> Coords | None:
        """The generalized force of dry friction at a state; None where there is none.

        What slips slips on; what does not is held, as far as its limit allows. Over a `step`, the
        signs of the slip at its start decide which, and the velocities there the limits that hold.
        """
        contacts = self.contacts(t, q, v, u, mu)
        if contacts is None:
            return None
        resting, signs = contacts, jnp.sign(contacts.slip(v))
        if step is not None:
            signs, velocities = step
            resting = self.contacts(t, q, velocities, u, mu)
            assert resting is not None
        sliding = contacts.sliding_force(signs)
        force = vector(self.force(t, q, v, u, mu)) + sliding
        free = self.accelerations_under(t, q, v, mu, tangent, force)
        low = jnp.where(signs == 0, -resting.backward, 0.0)
        high = jnp.where(signs == 0, resting.forward, 0.0)
        reduced, response = self.mobility(contacts, t, q, mu, tangent)
        held = held_forces(reduced, response, free, low, high)
        return sliding - held @ contacts.directions

    def accelerations_under(
        self, t: Time, q: Coords, v: Coords, mu: Params, tangent: Tangent, force: Coords
    ) -> Float[Array, " ni"]:
        """Of the independent coordinates, under these forces."""
        if tangent.split.dependent.shape[0] == 0:
            given = self.given_mass(q, mu)
            return force / given if given.ndim == 1 else mass_solve(given, force)
        mass = self.given_mass(q, mu)
        if self._is_sparse(tangent, mass):
            right = gamma(self, t, q, v, mu)
            return self._sparse_accelerations(t, q, mu, mass, tangent, force, right)
        own, offset = tangent.split.dependent, tangent.curve(gamma(self, t, q, v, mu))
        # `T^T M s`, of which `s` has nothing in the independent coordinates.
        if mass.ndim == 1:
            load = tangent.full_slope.T @ (mass[own] * offset)
        else:
            load = tangent.reduce(mass[:, own] @ offset)
        return mass_solve(reduced_mass(mass, tangent), tangent.reduce(force) - load)

    @staticmethod
    def _is_sparse(tangent: Tangent, mass: Float[Array, "nq *nq"]) -> bool:
        """Whether to solve joint by joint; not across singular configurations, where slopes are
        known and constraints have lost a rank.
        """
        return tangent.split.sparse is not None and tangent.offset is None and mass.ndim == 1

    def _sparse_accelerations(self, t, q, mu, mass, tangent: Tangent, force, right):
        """The same joint by joint, for a diagonal mass matrix (see `sparse_constraints`)."""
        sparse = tangent.split.sparse
        assert sparse is not None
        if isinstance(tangent.slope, SparseSlope):
            entries = tangent.slope.entries
        else:
            entries = sparse_jacobian(self, sparse, t, q, mu)
        free = force / mass
        missing = sparse.times(entries, free) - sparse.in_blocks(right)
        held = sparse.transposed_times(entries, sparse.multipliers(entries, 1 / mass, missing))
        return tangent.split.take_independent(free - held / mass)

    def mobility(self, contacts: Contacts, t: Time, q: Coords, mu: Params, tangent: Tangent):
        """`W_i`, and how the independent coordinates respond to each contact: `M_i^-1 W_i^T`."""
        reduced, mass = tangent.reduce(contacts.directions.T).T, self.given_mass(q, mu)
        if not self._is_sparse(tangent, mass):
            return reduced, mass_solve(reduced_mass(mass, tangent), reduced.T)
        respond = lambda force: self._sparse_accelerations(  # noqa: E731
            t, q, mu, mass, tangent, force, jnp.zeros(tangent.split.rows.shape[0], q.dtype)
        )
        return reduced, jax.vmap(respond, out_axes=1)(contacts.directions)


@compiled
def masses(mechanism: AbstractMechanism, q: Coords, mu: Params) -> Float[Array, "nq *nq"]:
    """`given_mass`, compiled for plain numbers."""
    return mechanism.given_mass(q, mu)


def reduced_mass(mass: Float[Array, "nq *nq"], tangent: Tangent) -> Float[Array, "ni ni"]:
    """`T^T M T`, where a vector is the diagonal of `M`."""
    split = tangent.split
    if split.dependent.shape[0] == 0:
        return jnp.diag(mass) if mass.ndim == 1 else mass
    if mass.ndim == 2:
        return tangent.reduce(tangent.reduce(mass).T)
    slope = tangent.full_slope
    heavy = mass[split.dependent][:, None] * slope
    return jnp.diag(mass[split.independent]) + slope.T @ heavy


def kkt(
    mechanism: AbstractMechanism, t: Time, q: Coords, v: Coords, u: Inputs, mu: Params
) -> tuple[Float[Array, "n n"], Float[Array, " n"]]:
    """The matrix and the right-hand side of the paper's first equation, for a `mechanism`."""
    jacobian, _ = velocity_constraints(mechanism, t, q, mu)
    count = jacobian.shape[0]
    matrix = jnp.block([[mechanism.mass(q, mu), jacobian.T], [jacobian, jnp.zeros((count, count))]])
    right = [vector(mechanism.force(t, q, v, u, mu)), gamma(mechanism, t, q, v, mu)]
    return matrix, jnp.concatenate(right)


def accelerations(
    mechanism: AbstractMechanism,
    split: Split,
    t: Time,
    q: Coords,
    v: Coords,
    u: Inputs,
    mu: Params,
) -> tuple[Coords, Float[Array, " nc"]]:
    """Accelerations and multipliers at a consistent state.

    **Arguments:**

    - `mechanism`, `t`, `q`, `v`, `u`, `mu`: what, where, under which inputs.
    - `split`: the partition's split of the velocities.

    **Returns:**

    `a` and `lambda`, with one multiplier for each constraint in the order holonomic then
    nonholonomic, zero for redundant ones. The force of the constraints on the coordinates is
    `-C^T lambda`.
    """
    tangent = tangent_at(mechanism, split, t, q, mu)
    independent = mechanism.independent_acceleration(t, q, v, u, mu, tangent)
    right = gamma(mechanism, t, q, v, mu)
    a = tangent.acceleration(independent, right)
    return a, _multipliers(mechanism, tangent, right.shape[0], t, q, v, u, mu, a)


def _multipliers(mechanism, tangent: Tangent, count: int, t, q, v, u, mu, a):
    if tangent.split.dependent.shape[0] == 0:
        return jnp.zeros(count)
    mass = mechanism.given_mass(q, mu)
    inertia = mass * a if mass.ndim == 1 else mass @ a
    load = vector(mechanism.force(t, q, v, u, mu)) - inertia
    friction = mechanism.friction_force(t, q, v, u, mu, tangent)
    load = load if friction is None else load + friction
    # C^T lambda = F_e - M a; its dependent rows are C_d^T lambda, square and regular.
    solved = tangent.solve_transposed(load[tangent.split.dependent])
    return jnp.zeros(count, solved.dtype).at[tangent.split.used_rows(count)].set(solved)
