"""Singular configurations: where the constraints lose a rank, and how a motion passes them.

When all bars of a parallelogram lie in line, a second branch of the constraint manifold crosses
the first, and `C` loses a rank. Each branch by itself is smooth, and the motion continues along its
own. On it the dependent coordinates, the slope `S`, the drift `r` and the acceleration offset `s`
(see `tangent`) are smooth functions of time and the independent coordinates. But computed with
`C_d^-1` at a distance d from the crossing they have errors of about

    eps/d  (positions),    eps/d^2  (slope),    eps/d^3  (offset),

so close to it they are interpolated between eight configurations along the direction of motion,
four behind and four ahead, at multiples of a spacing w. Degree seven has an error of `w^8/70` of an
eighth derivative. It is used within `w/2` of the crossing, so `C_d^-1` is only used farther from it
than that.

The interpolants of degree three, five and seven must converge geometrically. They do not where no
smooth branch leads on: where two branches come close without crossing, at the apex of a cone (seen
in the offset for a second direction of motion), at a dead point of the split. Such a configuration
is not passed, and the caller is told.

`det C_d` changes its sign across a crossing, and nowhere else. This tells before a step that it
leads to one, and after it that one was skipped.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from mbdnode.multibody.batching import any_of_batch
from mbdnode.multibody.dependent_coordinates import complete_position, tangent_at
from mbdnode.multibody.kinematics import gamma
from mbdnode.multibody.partition import Partition
from mbdnode.multibody.system import AbstractSystem, Coords, Params, Time
from mbdnode.multibody.tangent import Tangent

# The spacing w, as an arc of the motion in scaled coordinates (radians, lengths of the mechanism).
# A larger one costs accuracy of the interpolation, a smaller one that of what it is made of: at
# 0.03 the offset is known to about 1e-10, and degree seven adds less.
SPACING = 0.03
_NODES = np.array([-4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0])
# The values at zero of the polynomials of degree three, five and seven through those nodes. The
# one in the middle is where the crossing may be: it serves only if it is not.
_WEIGHTS = np.array(
    [
        np.array([0, 0, -1, 4, 0, 4, -1, 0, 0]) / 6,
        np.array([0, 1, -6, 15, 0, 15, -6, 1, 0]) / 20,
        np.array([-1, 8, -28, 56, 0, 56, -28, 8, -1]) / 70,
    ]
)
_MIDDLE = 4
# The tolerances of positions, slope and offset, in scaled coordinates. An error of the offset acts
# only for the time that the motion takes for one spacing, hence the looser bound.
_ALLOWED = (1e-10, 1e-10, 1e-8)
# The error estimate takes degree seven to be as much better than degree five as that is than degree
# three, but at most ten times.
_FALLING = 0.1
# Between two branches that come close and do not cross, `C_d^-1` is used if `det C_d` is at least
# this part of what it is one spacing away.
_REGULAR = 0.03
# At how many places of a step `det C_d` is evaluated.
_LOOKS = 16


class Crossing(NamedTuple):
    """A state near or in a singular configuration.

    **Arguments:**

    - `q`, `v`, `tangent`: as `complete` gives them.
    - `determinant`: `det C_d`, which means nothing if `passing`.
    - `passing`: whether they were interpolated along the branch, without `C_d`.
    - `solved`: whether they were found. If not, no smooth branch leads on, and `q` is NaN.
    """

    q: Array
    v: Array
    tangent: Tangent
    determinant: Array
    passing: Array
    solved: Array


class MotionPath(NamedTuple):
    """The path of a motion near a configuration, to first order.

    **Arguments:**

    - `direction`: the change of the coordinates for each unit of arc. An arc of one is about one
        radian, or one length of the mechanism.
    - `rate`: arc for each unit of time; zero at rest.
    - `crossing`: the arc from here to a singular configuration.
    """

    direction: Array
    rate: Array
    crossing: Array

    def ahead(self, t, q, arc):
        """Time and configuration at an arc from `t` and `q`."""
        moving = self.rate > 0
        return t + jnp.where(moving, arc / jnp.where(moving, self.rate, 1.0), 0.0), (
            q + arc * self.direction
        )


def complete_across(
    system: AbstractSystem,
    partition: Partition,
    t: Time,
    positions: Float[Array, " nz"],
    velocities: Float[Array, " ns"],
    guess: Coords,
    mu: Params,
    path: MotionPath,
) -> Crossing:
    """The whole state from the independent part, near or in a singular configuration.

    **Arguments:**

    - `system`, `partition`, `t`, `positions`, `velocities`, `guess`, `mu`: as in `complete`.
    - `path`: that of the motion, from here.

    **Returns:**

    A `Crossing`, at up to nine times the cost of `complete`.
    """
    position = partition.position
    path = jax.lax.stop_gradient(path)
    inside = jnp.abs(path.crossing) < SPACING / 2
    speed = jnp.where(path.rate > 0, path.rate, 1.0)

    def branch(place):
        time, near = path.ahead(t, guess, place)
        z = positions + place * position.take_independent(path.direction)
        return _on_branch(system, partition, time, z, velocities, near, mu, speed)

    # Farther from the crossing all nodes are the configuration itself, and one evaluation serves
    # for all. They are evaluated in a loop, which compiles once.
    places = jnp.where(inside, SPACING * jnp.asarray(_NODES), 0.0)
    needed = (jnp.arange(len(_NODES)) == 0) | any_of_batch(inside)

    def visit(last, node):
        place, needed = node
        found = jax.lax.cond(needed, lambda: branch(place), lambda: last)
        return found, found

    none = jnp.zeros_like(_units(partition, speed)), jnp.zeros_like(speed), jnp.array(False)
    _, (nodes, determinants, reached) = jax.lax.scan(visit, none, (places, needed))
    cubic, quintic, septic = jnp.asarray(_WEIGHTS) @ nodes
    first, second = jnp.max(jnp.abs(quintic - cubic)), jnp.max(jnp.abs(septic - quintic))
    error = second * jnp.clip(second / jnp.maximum(first, 1e-300), _FALLING, 1.0)
    others = jnp.all(reached | (jnp.arange(len(_NODES)) == _MIDDLE))
    passing = inside & others & (error < 1)
    sizes = jnp.abs(determinants)
    regular = sizes[_MIDDLE] > _REGULAR * jnp.maximum(sizes[_MIDDLE - 1], sizes[_MIDDLE + 1])
    solved = passing | (reached[_MIDDLE] & regular)
    packed = jnp.where(passing, septic, nodes[_MIDDLE])
    dependent, slope, drift, offset, _ = _unpack(partition, packed, speed)
    q = jnp.where(solved, position.merge(dependent, positions), jnp.nan)
    tangent = Tangent(partition.velocity, slope, drift, offset=offset)
    v = tangent.velocity(velocities)
    return Crossing(q, v, tangent, determinants[_MIDDLE], passing, solved)


def find_crossing(
    system: AbstractSystem,
    partition: Partition,
    t: Time,
    q: Coords,
    mu: Params,
    path: MotionPath,
    arc: Float[Array, ""],
) -> tuple[Bool[Array, ""], Float[Array, ""]]:
    """Whether `det C_d` vanishes near the path ahead, and at which arc.

    **Arguments:**

    - `system`, `partition`, `t`, `q`, `mu`: where the path starts, and the split.
    - `path`: the path; its `crossing` is not used.
    - `arc`: its length.

    **Returns:**

    The answer along the path's tangent, from a spacing before `q` to as much beyond its end as the
    path may curve away from it; and the arc of the first change of sign, or of the smallest value,
    infinite if there is none.
    """
    t, q, mu, path, arc = jax.lax.stop_gradient((t, q, mu, path, arc))
    margin = SPACING + arc**2
    places = -margin + jnp.linspace(0.0, 1.0, _LOOKS) * (arc + 2 * margin)

    def look(place):
        time, there = path.ahead(t, q, place)
        return tangent_at(system, partition.velocity, time, there, mu).determinant

    found = jax.lax.map(look, places)
    changes = jnp.sign(found[:-1]) * jnp.sign(found[1:]) < 0
    first = jnp.argmax(changes)
    low, high = found[first], found[first + 1]
    part = low / jnp.where(low == high, 1.0, low - high)
    size = jnp.abs(found)
    # Where two crossings fall together, the sign stays.
    dips = jnp.min(size) < 0.1 * jnp.minimum(size[0], size[-1])
    place = jnp.where(
        jnp.any(changes),
        places[first] + part * (places[1] - places[0]),
        places[jnp.argmin(size)],
    )
    crosses = jnp.any(changes) | dips
    return crosses, jnp.where(crosses, place, jnp.inf)


def _on_branch(system, partition: Partition, t, positions, velocities, near, mu, speed):
    """What is interpolated, at one of the nodes; `det C_d` there, and whether it was solved."""
    split = partition.velocity
    q, solved = complete_position(
        system, partition.position, t, positions, near, partition.scale, mu
    )
    tangent = tangent_at(system, split, t, q, mu)

    def offset(independent):
        v = tangent.velocity(independent)
        return tangent.curve(gamma(system, t, q, v, mu))

    here = other = offset(velocities)
    if split.independent.shape[0] > 1:  # A second direction, special to no mechanism.
        generic = jnp.cos(jnp.arange(1.0, split.independent.shape[0] + 1) ** 2)
        other = offset(speed * generic * partition.scale[split.independent])
    parts = (q[partition.position.dependent], tangent.full_slope, tangent.drift, here, other)
    packed = jnp.concatenate([x.ravel() for x in parts]) / _units(partition, speed)
    return packed, tangent.determinant, solved & ~tangent.singular


def _units(partition: Partition, speed) -> Float[Array, " n"]:
    """The tolerance of each packed number."""
    scale, split = partition.scale, partition.velocity
    position, slope, offset = _ALLOWED
    rates = scale[split.dependent] * speed
    ratios = scale[split.dependent][:, None] / scale[split.independent][None, :]
    offsets = offset * rates * speed
    return jnp.concatenate(
        [
            position * scale[partition.position.dependent],
            slope * ratios.ravel(),
            slope * rates,
            offsets,
            offsets,
        ]
    )


def _unpack(partition: Partition, packed, speed):
    """Dependent coordinates, slope, drift and offsets."""
    count, split = partition.position.dependent.shape[0], partition.velocity
    rows, columns = split.dependent.shape[0], split.independent.shape[0]
    ends = np.cumsum([count, rows * columns, rows, rows])
    parts = jnp.split(packed * _units(partition, speed), ends)
    parts[1] = parts[1].reshape(rows, columns)
    return parts
