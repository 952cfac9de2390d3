"""What a mechanism says at given states: accelerations, masses, forces, poses, what sensors see.

Each function takes a `State`, or a `Trajectory` with a row for each time, and gives an array, or a
row for each time. With the constraints `C a = gamma` and the forces `F(u)` of the inputs `u`,

    accelerations       a             of  M a + C^T lambda = F(u)
    inverse_dynamics    Q             with  T^T Q = T^T (M a - F(0)),

where `T` maps independent velocities to all of them. Without constraints `Q = M a - F(0)`: the
forces and torques at the joints that give a robot a motion.
"""

from collections.abc import Iterable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.errors import UserError
from mbdnode.mechanisms.spatial import SpatialMechanism
from mbdnode.multibody import (
    AbstractMechanism,
    AbstractSystem,
    Params,
    UsedRows,
    choose_partition,
    gamma,
    resolve_parameters,
    tangent_at,
)
from mbdnode.multibody.kinematics import vector
from mbdnode.naming import by_name, unknown_name
from mbdnode.simulation.signals import make_signal
from mbdnode.trajectory import State, Trajectory


def accelerations(
    system: AbstractSystem,
    state: Any,
    *,
    inputs: Any = None,
    parameters: Any = None,
    t: float = 0.0,
) -> Float[Array, "*n nq"]:
    """The acceleration of every coordinate.

    **Arguments:**

    - `system`: a mechanism or a learned model.
    - `state`: a `State` that meets the constraints, or a `Trajectory`.
    - `inputs`: by name, or as an array; those of the trajectory, or zero, by default.
    - `parameters`: values other than the defaults.
    - `t`: the time of a `State`.

    **Returns:**

    An array with one value for each coordinate, and a row for each time of a trajectory.
    """
    rows = _Rows(system, state, inputs, parameters, t)
    return rows.shaped(_accelerations(system, rows.used, rows.t, rows.q, rows.v, rows.u, rows.mu))


def mass_matrix(
    mechanism: AbstractMechanism, state: Any, *, parameters: Any = None
) -> Float[Array, "*n nq nq"]:
    """The mass matrix of all coordinates.

    **Arguments:**

    - `mechanism`: whose.
    - `state`: a `State` or a `Trajectory`.
    - `parameters`: values other than the defaults.

    **Returns:**

    A matrix, or one for each time.
    """
    _require_mechanism(mechanism, "mass_matrix")
    rows = _Rows(mechanism, state, None, parameters, 0.0)
    return rows.shaped(_masses(mechanism, rows.q, rows.mu))


def inverse_dynamics(
    mechanism: AbstractMechanism,
    motion: Any,
    accelerations: Any = None,
    *,
    at: Iterable[str] | None = None,
    parameters: Any = None,
    t: float = 0.0,
) -> Float[Array, "*n forces"]:
    """The forces and torques along coordinates that give a mechanism a motion.

    They act beside the mechanism's own loads; its inputs are zero, and so is dry friction.

    **Arguments:**

    - `mechanism`: which moves.
    - `motion`: a `State` or a `Trajectory`.
    - `accelerations`: of every coordinate, a row for each time; of a trajectory by default the
        derivative of the cubic spline through its velocities.
    - `at`: the coordinates that are driven, by name; all of them by default. With constraints
        there are many such forces, and those of the least norm are given.
    - `parameters`: values other than the defaults.
    - `t`: the time of a `State`.

    **Returns:**

    One value for each coordinate of `at`, and a row for each time of a trajectory.
    """
    _require_mechanism(mechanism, "inverse_dynamics")
    rows = _Rows(mechanism, motion, None, parameters, t)
    names = mechanism.coordinate_names
    chosen = names if at is None else tuple([at] if isinstance(at, str) else at)
    for name in chosen:
        if name not in names:
            raise unknown_name("coordinate", name, names)
    if accelerations is None:
        if rows.single:
            raise UserError(
                "A State says nothing of accelerations. Give them, one for each coordinate: "
                "inverse_dynamics(mechanism, state, accelerations)."
            )
        import scipy.interpolate

        spline = scipy.interpolate.CubicSpline(np.asarray(rows.t), np.asarray(rows.v))
        accelerations = spline(np.asarray(rows.t), 1)
    given = np.asarray(accelerations, float)
    given = given[None] if rows.single else given
    if given.shape != rows.q.shape:
        raise UserError(
            f"The accelerations have shape {np.shape(accelerations)}; there must be one for each "
            f"of {len(names)} coordinates, and a row for each state."
        )
    places = np.array([names.index(name) for name in chosen], int)
    found, missing = _inverse(mechanism, rows.used, places, rows.t, rows.q, rows.v, given, rows.mu)
    worst, size = np.max(np.abs(missing)), np.max(np.abs(found), initial=1.0)
    if worst > 1e-6 * size:
        raise UserError(
            f"Forces at {', '.join(chosen)} alone cannot give this motion: {worst:.3g} is missing "
            "along the independent coordinates. Name more coordinates."
        )
    return rows.shaped(found)


def poses(
    mechanism: SpatialMechanism, state: Any
) -> dict[str, tuple[Float[Array, "*n 3"], Float[Array, "*n 3 3"]]]:
    """Where the bodies of a mechanism in space are.

    **Arguments:**

    - `mechanism`: in space.
    - `state`: a `State` or a `Trajectory`.

    **Returns:**

    For each body by name the place of its origin, and the matrix that turns its axes into the
    world's; with a row for each time of a trajectory.
    """
    if not isinstance(mechanism, SpatialMechanism):
        raise UserError(
            f"poses is of mechanisms in space, and {type(mechanism).__name__} is not one. The "
            "coordinates of a planar mechanism are the poses of its bodies."
        )
    rows = _Rows(mechanism, state, None, None, 0.0)
    place, turn = jax.vmap(mechanism.body_poses)(rows.q)
    return {
        body.name: (rows.shaped(place[:, k]), rows.shaped(turn[:, k]))
        for k, body in enumerate(mechanism.description.bodies)
    }


def outputs(
    system: AbstractSystem,
    state: Any,
    *,
    inputs: Any = None,
    parameters: Any = None,
    t: float = 0.0,
) -> dict[str, Float[Array, "*n"]]:
    """What the sensors of a system see.

    **Arguments:**

    - `system`: whose `outputs`.
    - `state`: a `State` or a `Trajectory`.
    - `inputs`, `parameters`, `t`: as in `accelerations`, which accelerometers need.

    **Returns:**

    A value for each output by name, or one for each time.
    """
    rows = _Rows(system, state, inputs, parameters, t)
    found = _measured(system, rows.used, rows.t, rows.q, rows.v, rows.u, rows.mu)
    return {one.name: rows.shaped(found[:, k]) for k, one in enumerate(system.outputs)}


class _Rows:
    """States as rows, whether one or many were given."""

    def __init__(self, system: Any, state: Any, inputs: Any, parameters: Any, t: float):
        if not isinstance(state, (State, Trajectory)):
            raise TypeError(
                f"A State or a Trajectory is needed, but this is a {type(state).__name__}. Use "
                "consistent_state to complete what is known by name."
            )
        self.mu: Params = resolve_parameters(system, parameters)
        self.single = isinstance(state, State)
        if isinstance(state, Trajectory):
            state.require_single("this function")
            state.require_columns_of(system, "this function")
            self.t = state.t
        count = jnp.shape(state.q)[-1:]
        if count != (len(system.coordinates),):
            raise UserError(
                f"The state has {count[0] if count else 1} coordinates; "
                f"{type(system).__name__} has {len(system.coordinates)}."
            )
        if isinstance(state, State):
            self.q, self.v = jnp.atleast_2d(state.q), jnp.atleast_2d(state.v)
            self.t = jnp.asarray([float(t)])
        else:
            self.q, self.v = state.q, state.v
        self.u = self._inputs(system, state, inputs)
        self.used = choose_partition(system, self.t[0], self.q[0], self.mu).used

    def _inputs(self, system: Any, state: Any, inputs: Any):
        if inputs is None and isinstance(state, Trajectory) and state.inputs == system.input_names:
            return state.u
        if not self.single:
            return make_signal(system, self.t, inputs, "linear").samples
        given = np.zeros(len(system.inputs))
        if inputs is not None:
            named = by_name(inputs)
            if hasattr(named, "items"):
                for name, value in named.items():
                    if name not in system.input_names:
                        raise unknown_name("input", name, system.input_names)
                    given[system.input_names.index(name)] = float(value)
            else:
                given = np.asarray(inputs, float)
        if given.shape != (len(system.inputs),):
            raise UserError(
                f"The inputs have shape {given.shape}; give one value for each of "
                f"{', '.join(system.input_names) or 'none'}, or values by name."
            )
        return jnp.asarray(given)[None]

    def shaped(self, values: Any) -> Any:
        """Without the axis of rows, for one state."""
        return values[0] if self.single else values


def _require_mechanism(mechanism: Any, what: str) -> None:
    if not isinstance(mechanism, AbstractMechanism):
        raise UserError(
            f"{what} is of mechanisms, whose masses are known; {type(mechanism).__name__} is none."
        )


def _tangent(system: Any, used: UsedRows, t, q, mu):
    split = choose_partition(system, t, q, mu, used=used).velocity
    return tangent_at(system, split, t, q, mu)


def _acceleration(system: Any, used: UsedRows, t, q, v, u, mu):
    tangent = _tangent(system, used, t, q, mu)
    own = system.independent_acceleration(t, q, v, u, mu, tangent)
    return tangent.acceleration(own, gamma(system, t, q, v, mu))


@eqx.filter_jit
def _accelerations(system, used, t, q, v, u, mu):
    return jax.vmap(lambda *row: _acceleration(system, used, *row, mu))(t, q, v, u)


@eqx.filter_jit
def _masses(mechanism: AbstractMechanism, q, mu):
    return jax.vmap(lambda x: mechanism.mass(x, mu))(q)


@eqx.filter_jit
def _inverse(mechanism: AbstractMechanism, used, places, t, q, v, a, mu):
    def one(time, x, w, change):
        still = jnp.zeros(len(mechanism.inputs))
        load = mechanism.mass(x, mu) @ change - vector(mechanism.force(time, x, w, still, mu))
        tangent = _tangent(mechanism, used, time, x, mu)
        right = tangent.reduce(load)
        driven = jnp.eye(x.shape[0])[places]
        matrix = tangent.reduce(driven.T)
        found = jnp.linalg.lstsq(matrix, right)[0]
        return found, matrix @ found - right

    return jax.vmap(one)(t, q, v, a)


@eqx.filter_jit
def _measured(system, used, t, q, v, u, mu):
    def one(time, x, w, load):
        return system.measure(time, x, w, _acceleration(system, used, time, x, w, load, mu), mu)

    return jax.vmap(one)(t, q, v, u)
