"""Coordinate partitioning: which coordinates to integrate, and when to choose again.

Positions and velocities are split separately, because nonholonomic constraints remove velocities
but no positions. A good split has a well-conditioned `C_d`. The first is found by QR with column
pivoting of `C`, which also reveals the rank, or is named by the user.

Along a motion a good split can turn bad: an elbow stretches, a rocker reaches its dead point.
Exchanging dependent coordinate i for independent coordinate j multiplies `|det C_d|` by exactly
`|S_ij|`, where `S = -C_d^-1 C_i` is already at hand as the slope of the tangent. So the rule is:
when the largest entry of `S` passes a limit, exchange that pair. The full state is carried
unchanged, so the motion does not notice.

Coordinates that the constraints give explicitly (see `elimination`) are dependent ones in every
configuration, unless they are named: pivots and exchanges are among the others.
"""

import functools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from jaxtyping import Array, Float

from mbdnode.errors import UserError
from mbdnode.multibody.kinematics import (
    by_shapes,
    compiled,
    constraint_counts,
    constraint_structure,
    position_residual,
    structure_by_shapes,
    velocity_constraints,
    velocity_residual,
)
from mbdnode.multibody.sparsity.elimination import Elimination, pivoted_columns, plan_elimination
from mbdnode.multibody.sparsity.sparse_constraints import SparseConstraints, plan_sparse
from mbdnode.multibody.system import (
    AbstractSystem,
    Coords,
    Params,
    Time,
    is_traced,
    resolve_parameters,
)
from mbdnode.multibody.tangent import Split
from mbdnode.naming import unknown_name

# Rank is decided on rows of unit length in scaled coordinates: below this, a row is a repetition.
_RANK_TOLERANCE = 1e-10
# A pair is exchanged when the dependent coordinate moves this many times faster, in scaled
# coordinates. One would chase the fastest coordinate. At 1.5 a coordinate that follows a circle is
# left 34 degrees before its dead point: a step of half a radian cannot jump over that, and a low
# order integrator does not lose digits on the steep slope.
EXCHANGE_LIMIT = 1.5
# Of what is equal up to this, the first is taken: the choice must not hang on round-off.
TIE = 1e-9
# Degrees of freedom below which full matrices take less time than sparse ones: those of a mass
# matrix that is factored in place (see `small_systems`).
_FEW_DOF = 6
# The length of columns that are pivots before all others, which have entries below one.
_FIRST = 1e3


class UsedRows(NamedTuple):
    """Which constraints are used, by index; the others are redundant.

    **Arguments:**

    - `position`, `velocity`: those that determine positions, and those that determine velocities.
    """

    position: tuple[int, ...]
    velocity: tuple[int, ...]


class Partition(eqx.Module):
    """The splits of positions and velocities.

    **Arguments:**

    - `position`: from the holonomic constraints alone.
    - `velocity`: from all constraints.
    - `scale`: the size of each coordinate: one radian, or the longest length of the mechanism.
    - `redundant`: constraints that repeat others, by index.
    """

    position: Split
    velocity: Split
    scale: Float[Array, " nq"]
    redundant: tuple[int, ...] = eqx.field(static=True, default=())

    @property
    def may_branch(self) -> bool:
        """Whether positions have to be solved for, so that branches of configurations can cross.

        What is an explicit function of the independent coordinates has one branch.
        Constraints on velocities alone have no branches: a pivot that changes its sign under them
        is a matter of the coordinates, and not of the motion.
        """
        return self.position.unknowns > 0

    @property
    def used(self) -> UsedRows:
        """The constraints that are used, of a partition that was chosen at plain numbers."""
        sides = (self.position, self.velocity)
        return UsedRows(*(tuple(map(int, np.asarray(split.rows))) for split in sides))

    @property
    def degrees_of_freedom(self) -> int:
        """How many velocities are independent."""
        return self.velocity.independent.shape[0]


def choose_partition(
    system: AbstractSystem,
    t: Time,
    q: Coords,
    mu: Params,
    independent: Any = None,
    *,
    used: UsedRows | None = None,
) -> Partition:
    """Split the coordinates at a configuration.

    **Arguments:**

    - `system`, `t`, `q`, `mu`: the system and where it is; `q` may be traced.
    - `independent`: names to integrate; `system.independent` by default, and if that is None, the
        choice of a pivoted QR factorization.
    - `used`: of a partition of the same system at plain numbers: which constraints are not
        redundant cannot be known from traced values. By default those that are not where the
        system is assembled by itself, with its default parameters.

    **Returns:**

    A `Partition`. Raises `UserError` if the named coordinates do not determine the others, or
    if constraints are redundant and the system does not allow it.
    """
    holonomic, nonholonomic = constraint_counts(system, mu)
    named = _names(system, independent)
    traced = is_traced(system, q, t, mu)
    if traced:
        scale = coordinate_scale(system, t, q, mu)
        jacobian, _ = velocity_constraints(system, t, q, mu)
    else:
        at_rest = jnp.asarray(np.zeros(np.shape(q)), q.dtype)
        values = constraint_values(system, t, q, at_rest, mu)
        scale, jacobian = jnp.asarray(values.scale, q.dtype), values.jacobian
    elimination = choose_elimination(system, mu, named)
    # Of plain numbers by NumPy: JAX would compile each of these.
    scaled = scaled_rows(jacobian, scale, elimination, jnp if traced else np)
    if traced and system.allow_redundant and used is None:
        used = _usual_rows(system)

    def choose(rows, names, side):
        if not traced:
            return _choose_concrete(system, rows, names, elimination)
        known = None if used is None else np.array(getattr(used, side), int)
        return _choose_traced(system, rows, names, elimination, known), ()

    velocity, redundant = choose(scaled, named, "velocity")
    if nonholonomic == 0:
        partition = Partition(velocity, velocity, scale, redundant)
        return choose_matrices(system, partition, q, mu)
    # Nonholonomic rows take no positions, so those are split by the holonomic rows alone.
    position, _ = choose(scaled[:holonomic], None, "position")
    return Partition(position, velocity, scale, redundant)


def _usual_rows(system: AbstractSystem) -> UsedRows:
    """The constraints that are not redundant where a system is assembled by itself."""
    from mbdnode.multibody.assembly import consistent_state  # Which uses this module.

    way_out = (
        "Call choose_partition outside of jit, vmap or grad and pass its result to simulate as "
        "`independent`."
    )
    if is_traced(system):
        raise UserError(
            f"{type(system).__name__} allows redundant constraints, whose number cannot be known "
            f"from a traced system. {way_out}"
        )
    with jax.ensure_compile_time_eval():
        try:
            state, mu = consistent_state(system, {}), resolve_parameters(system)
        except UserError as error:
            raise UserError(
                f"{type(system).__name__} allows redundant constraints, whose number cannot be "
                f"known from traced values, and it cannot be assembled by itself: {error} {way_out}"
            ) from error
        return choose_partition(system, jnp.zeros(()), state.q, mu).used


def choose_matrices(
    system: AbstractSystem, partition: Partition, q: Coords, mu: Params
) -> Partition:
    """Whether a system is so large that its constraints are better kept joint by joint.

    That needs masses of which all are known to be positive; where they are traced, or one is zero,
    matrices are full.

    **Arguments:**

    - `system`, `q`, `mu`: as in `choose_partition`.
    - `partition`: of the system, with any choice of this.

    **Returns:**

    The partition with that choice.
    """
    split, sparse = partition.velocity, None
    is_regular = (split.rows.shape[0], 0) == constraint_counts(system, mu)
    if partition.degrees_of_freedom >= _FEW_DOF and is_regular:
        sparse = by_shapes(_sparse, system, mu)
        sparse = sparse if sparse is not None and system.core.has_plain_masses(q, mu) else None
    if split.sparse == sparse:
        return partition
    chosen = Split(split.rows, split.dependent, split.independent, split.elimination, sparse)
    return Partition(chosen, chosen, partition.scale, partition.redundant)


@functools.lru_cache(maxsize=256)
def _sparse(structure: Any, kinds: tuple) -> SparseConstraints | None:
    return plan_sparse(*structure_by_shapes.__wrapped__(structure, kinds))


def choose_elimination(
    system: AbstractSystem, mu: Params, named: Sequence[str] | None
) -> Elimination | None:
    """What is eliminated of a system whose independent coordinates are named, or not."""
    kept = () if named is None else tuple(system.coordinate_names.index(n) for n in named)
    return by_shapes(_elimination, system, mu, kept)


@functools.lru_cache(maxsize=256)
def _elimination(structure: Any, kinds: tuple, kept: tuple[int, ...]) -> Elimination | None:
    return plan_elimination(structure_by_shapes.__wrapped__(structure, kinds)[0], kept)


def scaled_rows(jacobian, scale, elimination: Elimination | None, xp=jnp):
    """The rows among which pivots are chosen: of unit length, in scaled coordinates."""
    if elimination is not None:
        jacobian = elimination.row_reduced(jacobian, xp)
    scaled = xp.asarray(jacobian) * xp.asarray(scale)[None, :]
    size = xp.linalg.norm(scaled, axis=1, keepdims=True)
    scaled = scaled / xp.where(size > 0, size, 1.0)
    if elimination is None:
        return scaled
    # Longer than all that is left, so that they are the first pivots.
    weight = np.ones(scaled.shape[1])
    weight[list(elimination.columns)] = _FIRST
    return scaled * xp.asarray(weight)[None, :]


def _names(system: AbstractSystem, independent: Any) -> tuple[str, ...] | None:
    """The named coordinates, checked."""
    if independent is None:
        return system.independent
    if not isinstance(independent, Iterable):
        raise UserError(
            f"independent is {independent!r}; give names of coordinates, such as "
            f"({system.coordinate_names[0]!r},), or None to let the program choose."
        )
    named = (independent,) if isinstance(independent, str) else tuple(independent)
    for name in named:
        if name not in system.coordinate_names:
            raise unknown_name("coordinate", name, system.coordinate_names)
        if named.count(name) > 1:
            raise UserError(f"Independent coordinate {name!r} is named twice; name each once.")
    return named


def coordinate_scale(system: AbstractSystem, t: Time, q: Coords, mu: Params) -> Float[Array, " nq"]:
    """The size of each coordinate: one radian for angles, a length of the mechanism for lengths."""
    return sizes(system, t, q, mu)[0]


@compiled
def sizes(
    system: AbstractSystem, t: Time, q: Coords, mu: Params
) -> tuple[Float[Array, " nq"], Float[Array, " nc"]]:
    """The sizes of the coordinates, and of the constraints when each changes by its own.

    A length is read off the constraints, not off the state, which may stand at the origin: it
    is what turns a radian into a displacement (a row's angle entries over its length entries) or,
    where there are only lengths, the radius of curvature (first over second derivatives). A
    constraint's size counts second derivatives too, since the first vanish where it is singular.
    """
    is_angle = np.array([c.is_angle for c in system.coordinates])
    jacobian = jnp.abs(velocity_constraints(system, t, q, mu)[0])
    # The second derivatives of a row by the columns that it has, one of each color.
    _, coloring = constraint_structure(system, mu)
    phi = lambda x: position_residual(system, t, x, mu)  # noqa: E731
    slopes = lambda x: coloring.derivatives(phi, x)  # noqa: E731
    used, angles = coloring.used, is_angle[coloring.column]
    pairs = used[:, :, None] & used[:, None, :]
    curvature = jnp.where(pairs, jnp.abs(coloring.derivatives(slopes, q)), 0.0)
    both = angles[:, :, None] & angles[:, None, :]
    neither = ~angles[:, :, None] & ~angles[:, None, :]
    others = jnp.zeros(jacobian.shape[0] - used.shape[0], q.dtype)

    def most(values, mask):
        axes = tuple(range(1, values.ndim))
        found = jnp.max(jnp.where(mask, values, 0.0), axis=axes, initial=0.0)
        return found if found.shape == jacobian.shape[:1] else jnp.concatenate([found, others])

    by_length, by_angle = (most(jacobian, mask[None, :]) for mask in (~is_angle, is_angle))
    lever = _ratio(jnp.maximum(by_angle, most(curvature, both)), by_length)
    radius = _ratio(by_length, most(curvature, neither))
    found = jnp.max(jnp.concatenate([lever, radius]), initial=0.0)
    farthest = jnp.max(jnp.where(is_angle, 0.0, jnp.abs(q)), initial=0.0)
    guess = jnp.where(farthest > 0, farthest, 1.0)
    scale = jnp.where(is_angle, 1.0, jnp.where(found > 0, found, guess))
    present = jnp.where(is_angle, 1.0, jnp.where(farthest > 0, farthest, scale))
    own = present[coloring.column]
    bending = jnp.sum(curvature * own[:, :, None] * own[:, None, :], axis=(1, 2))
    return scale, jacobian @ scale + jnp.concatenate([bending, others])


class ConstraintValues(NamedTuple):
    """All that is asked of the constraints at one state.

    **Arguments:**

    - `position`: `Phi`, the holonomic residuals.
    - `jacobian`, `right`: `C` and `c`, of all constraints.
    - `velocity`: the residuals `C v - c`.
    - `scale`, `size`: of the coordinates and of the constraints, as `sizes` has them.
    """

    position: np.ndarray
    jacobian: np.ndarray
    right: np.ndarray
    velocity: np.ndarray
    scale: np.ndarray
    size: np.ndarray


def constraint_values(
    system: AbstractSystem, t: Time, q: Coords, v: Coords, mu: Params
) -> ConstraintValues:
    """The constraints at one state of plain numbers: one program, where each part would be one."""
    if sum(constraint_counts(system, mu)) == 0:
        is_angle, none = np.array([c.is_angle for c in system.coordinates]), np.zeros(0, q.dtype)
        farthest = np.max(np.abs(np.asarray(q))[~is_angle], initial=0.0)
        scale = np.where(is_angle | ~(farthest > 0), 1.0, farthest)
        return ConstraintValues(none, np.zeros((0, len(scale)), q.dtype), none, none, scale, none)
    return ConstraintValues(*map(np.asarray, _constraint_values(system, t, q, v, mu)))


@compiled
def _constraint_values(system: AbstractSystem, t: Time, q: Coords, v: Coords, mu: Params):
    jacobian, right = velocity_constraints(system, t, q, mu)
    moving = velocity_residual(system, t, q, v, mu)
    return position_residual(system, t, q, mu), jacobian, right, moving, *sizes(system, t, q, mu)


def _ratio(above: Float[Array, " n"], below: Float[Array, " n"]) -> Float[Array, " n"]:
    """Zero where there is nothing to divide by."""
    tiny = jnp.finfo(above.dtype).eps * jnp.maximum(above, 1.0)
    return jnp.where(below > tiny, above / jnp.where(below > tiny, below, 1.0), 0.0)


def _choose_concrete(system, jacobian, named, elimination) -> tuple[Split, tuple[int, ...]]:
    matrix = np.asarray(jacobian)
    rank, columns = _rank_and_pivots(matrix)
    _, row_order = _rank_and_pivots(matrix.T)
    redundant = tuple(sorted(int(r) for r in row_order[rank:]))
    if redundant and not system.allow_redundant:
        several = len(redundant) > 1
        which = f"constraint{'s' if several else ''} {', '.join(map(str, redundant))}"
        raise UserError(
            f"The {matrix.shape[0]} constraints have rank {rank} at this configuration: {which} "
            f"(counted from 0) repeat{'' if several else 's'} others, or the mechanism stands at a "
            "singular point. Remove them, start elsewhere, or set `allow_redundant = True` on the "
            "mechanism to solve with the others (the multipliers of the redundant ones are then "
            "zero)."
        )
    if named is not None:
        names = system.coordinate_names
        free = [names.index(n) for n in named]
        columns = np.array([c for c in range(len(names)) if c not in free], dtype=int)
        _check_named(matrix, rank, columns, named, names)
    dependent = columns[:rank]
    row_order = _rank_and_pivots(matrix[:, dependent].T)[1] if rank else row_order
    rest = np.setdiff1d(np.arange(matrix.shape[1]), dependent)
    rows = np.sort(row_order[:rank])
    if elimination is not None:
        rows, dependent = _first(elimination.rows, rows), _first(elimination.columns, dependent)
    rows, dependent, rest = (jnp.asarray(part, int) for part in (rows, dependent, rest))
    return Split(rows, dependent, rest, elimination), redundant


def _first(leading: tuple[int, ...], order: np.ndarray) -> np.ndarray:
    """The leading indices, then the others in their order."""
    return np.concatenate([leading, [i for i in order if i not in set(leading)]]).astype(int)


def _check_named(matrix, rank, columns, named, names) -> None:
    count = len(names) - rank
    if len(named) != count:
        raise _wrong_count(named, count)
    values = np.linalg.svd(matrix[:, columns], compute_uv=False)[:rank]
    if rank and values[-1] <= _RANK_TOLERANCE:
        others = ", ".join(names[c] for c in columns)
        raise UserError(
            f"({', '.join(named)}) do not determine ({others}) at this configuration: the "
            f"smallest singular value of that block is {values[-1]:.1e}. Name other coordinates, "
            "or none to let the program choose."
        )


def _rank_and_pivots(matrix: np.ndarray) -> tuple[int, np.ndarray]:
    if 0 in matrix.shape:
        return 0, np.arange(matrix.shape[1])
    sizes, pivots = pivoted_columns(_biased(matrix))
    return int(np.sum(sizes > _RANK_TOLERANCE)), pivots.astype(int)


def _biased(matrix):
    """Columns of equal length made unequal, so that pivoting takes the first of them."""
    return matrix * (1 - TIE * np.arange(matrix.shape[1], dtype=matrix.dtype))[None, :]


def _choose_traced(system, jacobian, named, elimination, used: np.ndarray | None) -> Split:
    """The same choice on traced values: the rank is that of the `used` rows, or taken as full."""
    size = jacobian.shape[1]
    rows, columns = np.arange(jacobian.shape[0]), np.zeros(0, int)
    if elimination is not None:
        rows, columns = _first(elimination.rows, rows), np.array(elimination.columns, int)
    if used is not None:
        rows = used
    rank = len(rows)
    if named is not None:
        names = system.coordinate_names
        if len(named) != size - rank:
            raise _wrong_count(named, size - rank)
        free = jnp.array(sorted(names.index(n) for n in named), int)
        bound = np.array([c for c in range(size) if names[c] not in named])
        bound = _first(tuple(map(int, columns)), bound)
        return Split(jnp.asarray(rows), jnp.asarray(bound, int), free, elimination)
    if rank == 0:
        return Split(jnp.arange(0), jnp.arange(0), jnp.arange(size))
    pivots = jsl.qr(_biased(jacobian[np.sort(rows)]), mode="r", pivoting=True)[-1].astype(int)
    dependent = jnp.concatenate([jnp.asarray(columns), pivots[len(columns) : rank]])
    return Split(jnp.asarray(rows), dependent, jnp.sort(pivots[rank:]), elimination)


def _wrong_count(named, dof: int) -> UserError:
    return UserError(
        f"{len(named)} independent coordinate(s) named ({', '.join(named) or 'none'}), but the "
        f"system has {dof} degree(s) of freedom. Name {dof}, or none to let the program "
        "choose."
    )


def exchange_gain(
    split: Split, steepness: Float[Array, "nr ni"], scale: Float[Array, " nq"]
) -> Float[Array, "nr ni"]:
    """By what factor `|det C_d|` grows, in coordinates of size `scale`, if a pair is exchanged.

    `steepness` is `S` of the `split`, without a row for coordinates that are eliminated, since
    these are not exchanged.
    """
    above, below = scale[split.independent], scale[split.dependent[split.eliminated :]]
    return jnp.abs(steepness) * above[None, :] / below[:, None]


def exchange(
    split: Split,
    steepness: Float[Array, "nr ni"],
    scale: Float[Array, " nq"],
    limit: float = EXCHANGE_LIMIT,
) -> Split:
    """Swap the pair whose exchange improves the conditioning most, if it improves it by `limit`.

    **Arguments:**

    - `split`: the present choice.
    - `steepness`: that of the tangent at the present configuration.
    - `scale`: the coordinates' sizes.
    - `limit`: smallest factor that `|det C_d|` must gain.

    **Returns:**

    A `Split` of the same shape.
    """
    gain = exchange_gain(split, steepness, scale)
    if gain.size == 0:
        return split
    # The first of equal gains, as a symmetric mechanism has: round-off must not choose.
    best = jnp.argmax(gain.ravel() * (1 - TIE * jnp.arange(gain.size, dtype=gain.dtype)))
    i, j = best // gain.shape[1], best % gain.shape[1]
    swap = gain[i, j] > limit
    i = i + split.eliminated
    leaving, entering = split.dependent[i], split.independent[j]
    return split.replaced(
        split.rows,
        split.dependent.at[i].set(jnp.where(swap, entering, leaving)),
        split.independent.at[j].set(jnp.where(swap, leaving, entering)),
    )


def exchange_factor(
    before: Split, after: Split, steepness: Float[Array, "nr ni"]
) -> Float[Array, ""]:
    """By what `det C_d` was multiplied in an exchange, from the `steepness` `before` it to `after`.

    The column that enters is `-C_d S_j`, so it is `-S_ij`; one if nothing was exchanged.
    """
    left = (before.dependent != after.dependent)[before.eliminated :]
    entered = before.independent != after.independent
    return jnp.prod(jnp.where(left[:, None] & entered[None, :], -steepness, 1.0))
