"""Parameters by regression: the equations of motion are linear in masses and coefficients.

With `v = T v_i + s` (see `multibody.tangent`) the reduced equations `T^T M a = T^T F` are linear in
masses, inertias, first moments, stiffness and damping. Recorded motion has no accelerations, so
the equations are taken in integral form (see `weak_form`): the momentum `p = T^T M v` changes by

    dp/dt = d(T^T M)/dt v + T^T F,

and after multiplication by a test function and integration by parts only positions and velocities
are left. A linear problem has no local minima and needs no guess; noise biases its solution, so it
serves as a start of the search by output error.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy

from mbdnode.data.rows import rows_of
from mbdnode.identification.parameters.unknowns import Unknowns
from mbdnode.identification.regression.weak_form import make_windows
from mbdnode.multibody import (
    AbstractMechanism,
    Partition,
    choose_partition,
    resolve_parameters,
    tangent_at,
)
from mbdnode.multibody.kinematics import vector
from mbdnode.trajectory import Dataset, Trajectory

# What is left of a parameter's column when the others change, if the equations are linear in it.
_LINEAR = 1e-6
# Windows in which a dependent coordinate moves this many times faster than an independent one are
# left out: the equations of motion are badly scaled there.
_STEEPEST = 20.0
# Weight of the start, in standard deviations of the equations: it decides what they leave open.
_RIDGE = 1e-4


def regress_parameters(
    system: Any, runs: list[tuple[Trajectory, dict[str, Any]]], unknowns: Unknowns
) -> np.ndarray | None:
    """Values of the unknown parameters from the equations of motion, without a search.

    The values; as they were for parameters in which the equations are not linear. None if the
    system gives no mass and forces, or the equations say nothing of any of them.
    """
    if not isinstance(system, AbstractMechanism):
        return None
    parts = [_equations(system, run, own, unknowns) for run, own in runs]
    matrices = [matrix for matrix, _ in parts if len(matrix)]
    if not matrices:
        return None
    matrix = np.concatenate(matrices)
    right = np.concatenate([right for _, right in parts])
    useful = np.any(matrix != 0, axis=0)
    if not useful.any() or len(matrix) < np.sum(useful):
        return None
    size = np.linalg.norm(matrix[:, useful] * unknowns.scale[useful], 2)
    ridge = _RIDGE * size / unknowns.scale
    smooth = unknowns.smoothness()
    step = np.zeros(len(unknowns.names))
    # What the equations leave is known after a first solution; profiles are smooth beside it.
    left = 0.0
    for _ in range(2 if len(smooth) else 1):
        found = scipy.optimize.lsq_linear(
            np.vstack([matrix, np.diag(ridge), left * smooth])[:, useful],
            np.concatenate(
                [
                    right - matrix @ unknowns.start,
                    np.zeros(len(ridge)),
                    -left * smooth @ unknowns.start,
                ]
            ),
            bounds=(
                (unknowns.low - unknowns.start)[useful],
                (unknowns.high - unknowns.start)[useful],
            ),
        )
        if not np.all(np.isfinite(found.x)):
            return None
        step[useful] = found.x
        left = float(np.sqrt(np.mean((matrix @ (unknowns.start + step) - right) ** 2)))
    return unknowns.inside(unknowns.start + step)


def _equations(
    system: AbstractMechanism, run: Trajectory, own: dict[str, Any], unknowns: Unknowns
) -> tuple[np.ndarray, np.ndarray]:
    """`matrix @ parameters = right` over the windows of one run, in units of their size."""
    mu = resolve_parameters(system, own)
    split = choose_partition(system, jnp.asarray(run.t[0], float), jnp.asarray(run.q[0]), mu)
    minimal = tuple(int(i) for i in np.asarray(split.velocity.independent))
    windows = make_windows(rows_of(system, minimal, Dataset(run, own), accelerations=False))
    if not len(windows):
        return np.zeros((0, len(unknowns.names))), np.zeros(0)
    rows = tuple(jnp.asarray(x[:-1], float) for x in (run.t, run.q, run.v, run.u))
    start = jnp.asarray(unknowns.start)
    given = system, unknowns.names, split, mu
    (momentum, load, slope), (momentum_by, load_by) = _terms(*given, start, rows)
    _, others = _terms(*given, start + jnp.asarray(unknowns.scale), rows)
    usable = np.max(np.asarray(slope)[windows.index], axis=1) < _STEEPEST
    constant = windows.integral_of_rate(np.asarray(momentum)) - windows.integral(np.asarray(load))
    matrix = windows.integral_of_rate(np.asarray(momentum_by)) - windows.integral(
        np.asarray(load_by)
    )
    changed = windows.integral_of_rate(np.asarray(others[0])) - windows.integral(
        np.asarray(others[1])
    )
    matrix, changed, constant = (x[usable] for x in (matrix, changed, constant))
    matrix, changed = (x.reshape(-1, len(unknowns.names)) for x in (matrix, changed))
    scaled = np.linalg.norm(matrix * unknowns.scale, axis=0)
    linear = np.linalg.norm((changed - matrix) * unknowns.scale, axis=0) <= _LINEAR * scaled
    # The noise of every equation is about that of its own degree of freedom.
    width = constant.shape[1]
    unit = np.tile(_size_of(matrix * unknowns.scale, width), len(constant))
    matrix = np.where(linear, matrix, 0.0)
    right = (matrix @ unknowns.start) - constant.ravel()
    return matrix / unit[:, None], right / unit


def _size_of(matrix: np.ndarray, width: int) -> np.ndarray:
    """The root mean square of the entries for each degree of freedom."""
    size = np.sqrt(np.mean(matrix.reshape(-1, width, matrix.shape[1]) ** 2, axis=(0, 2)))
    return np.where(size > 0, size, 1.0)


@eqx.filter_jit
def _terms(system: AbstractMechanism, names: tuple[str, ...], split: Partition, mu: Any, at, rows):
    """Momentum and load of every row, and their derivatives by the parameters, at some values."""

    def terms(values, t, q, v, u):
        own = {**mu, **{name: values[i] for i, name in enumerate(names)}}

        def momentum(time, place):
            tangent = tangent_at(system, split.velocity, time, place, own)
            return tangent.reduce(system.mass(place, own) @ v)

        along = (jnp.ones_like(t), v)
        now, turning = jax.jvp(momentum, (t, q), along)
        tangent = tangent_at(system, split.velocity, t, q, own)
        force, contacts = vector(system.force(t, q, v, u, own)), system.contacts(t, q, v, u, own)
        if contacts is not None:
            force = force + contacts.sliding_force(jnp.sign(contacts.slip(v)))
        load = turning + tangent.reduce(force)
        scale = split.scale
        ratio = scale[split.velocity.independent][None] / scale[split.velocity.dependent][:, None]
        return now, load, jnp.max(jnp.abs(tangent.full_slope) * ratio, initial=0.0)

    def both(*row):
        return terms(at, *row), jax.jacfwd(lambda p: terms(p, *row)[:2])(at)

    return jax.vmap(both)(*rows)
