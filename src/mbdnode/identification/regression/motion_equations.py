"""The equations of motion along the data, linear in the coefficients of a form.

From accelerations; in integral form (`weak_form`) where noise or inputs that change leave none.
Those of noisy data are also kept window by window, with the mass matrix and the noise of each
coordinate, for `noisy_laws` to weight them.
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.data.rows import Rows, spread_of_accelerations, trust
from mbdnode.factors import Factor
from mbdnode.identification.problem import Problem
from mbdnode.identification.regression.least_squares import (
    Chunks,
    factor_of_rows,
    nodes,
    parts_of,
)
from mbdnode.identification.regression.noisy_laws import WeightedEquations, linearized
from mbdnode.identification.regression.null_vector import HomogeneousEquations, compress
from mbdnode.identification.regression.weak_form import (
    WeakFormWindows,
    independent_windows,
    make_windows,
    samples_per_period,
    smoothed,
)
from mbdnode.models.learned_mechanism import LearnedMechanism

# Numbers in the equations that are weighted, over evenly many windows: more tell a law no better.
_MOST_NUMBERS = 100_000
# Gauss-Newton steps over all chunks, at most: from the law of a sample the first is nearly all of
# the way. A further one would be by about the square of the last, relative to the coefficients; if
# that is less than this part of their standard errors, it is not worth a pass.
_STEPS, _ENOUGH = 2, 0.1
# A mass matrix that is worse than this is no mass matrix.
_SINGULAR = 1e8
# A law that leaves this part of the accelerations unexplained is none.
_UNEXPLAINED = 0.1


def equations_along(
    problem: Problem,
    model: LearnedMechanism,
    rows: Rows,
    chunks: Chunks | None = None,
    support: np.ndarray | None = None,
) -> HomogeneousEquations:
    """The equations along all rows, or all chunks.

    Of more than fit in memory only the triangles are kept.

    **Arguments:**

    - `chunks`: of which the rows are a sample; the rows alone if None.
    """
    masses = np.arange(model.network.values.size) < model.mass_columns
    if support is not None:
        model, masses = model.of_columns(support), masses[support]
    make = partial(_blocks, problem, model, samples_per_period(rows))
    columns = masses.size * rows.z.shape[1]
    found = factor_of_rows(make, rows, columns) if chunks is None else chunks.factor(make, columns)
    return compress(found[0], found[1], masses)


def _blocks(problem: Problem, model: LearnedMechanism, period: int, rows: Rows) -> Factor:
    """The whole equations, and their inertia."""
    found = _whole_and_inertia(problem, model, rows, period)
    return tuple(x.reshape(-1, model.network.values.size) for x in found)


def weighted_equations(
    problem: Problem, model: LearnedMechanism, rows: Rows, times: int
) -> tuple[WeightedEquations, HomogeneousEquations] | None:
    """The equations of noisy data over windows, to be weighted by the noise.

    Them, and the same ones without weights; None where no run is as long as a window.
    """
    count, period = model.network.values.size, samples_per_period(rows)
    if not problem.by_steps:
        rows = smoothed(rows, problem.noise, problem.measured)
    found = [
        _over_windows(problem, model, part, make_windows(part, period, times))
        for part in parts_of(rows, count * rows.z.shape[1])
    ]
    whole, inertia, mass = (np.concatenate([one[k] for one in found]) for k in range(3))
    if not len(whole):
        return None
    noise = _noise_of_windows(problem, make_windows(rows, period, times))
    independent = independent_windows(rows, period, times) * rows.z.shape[1]
    masses = np.arange(count) < model.mass_columns
    most = min(len(whole), max(1, _MOST_NUMBERS // whole[0].size))
    some = np.unique(np.linspace(0, len(whole) - 1, most).astype(int))
    flat = lambda x: x.reshape(-1, count)  # noqa: E731
    plain = compress(flat(whole), flat(inertia), masses)
    return WeightedEquations(whole[some], mass[some], masses, noise, independent), plain


def _noise_of_windows(problem: Problem, windows: WeakFormWindows) -> np.ndarray:
    of_rates, of_positions = windows.noise_gains()
    return np.where(problem.measured, problem.noise.s * of_rates, problem.noise.z * of_positions)


def fit_to_chunks(
    problem: Problem,
    model: LearnedMechanism,
    rows: Rows,
    chunks: Chunks,
    support: np.ndarray,
    values: np.ndarray,
    times: int,
) -> np.ndarray:
    """A law of noisy data fitted to all chunks, by Gauss-Newton steps from that of a sample.

    Without weights, noise would move the coefficients by as much however many chunks there are.

    **Arguments:**

    - `chunks`: of all data. Each step is one pass over them, which leaves a triangle; mostly one is
        enough.
    """
    period = samples_per_period(rows)
    noise = _noise_of_windows(problem, make_windows(rows, period, times))
    given = problem, model.of_columns(support)
    for _ in range(_STEPS):
        make = partial(_gauss_newton_block, *given, period, times, noise, values)
        (block,) = chunks.factor(make, support.size * rows.z.shape[1] ** 2)
        if len(block) <= support.size:
            return values
        sizes = np.linalg.norm(block[:, :-1], axis=0)
        sizes = np.where(sizes > 0, sizes, 1.0)
        scaled = values * sizes
        # The law's own direction is free: no step along it.
        along = scaled / np.linalg.norm(scaled)
        square = np.vstack([block[:, :-1] / sizes, along * np.linalg.norm(block[:, -1])])
        step = np.linalg.lstsq(square, np.append(block[:, -1], 0.0), rcond=None)[0]
        values = (scaled - step) / sizes
        # Equations are in units of their noise, so that this is the step in standard errors.
        in_errors = np.linalg.norm(square[:-1] @ step)
        if in_errors * np.max(np.abs(step)) < _ENOUGH * np.max(np.abs(scaled)):
            break
    return values


def _gauss_newton_block(
    problem: Problem,
    model: LearnedMechanism,
    period: int,
    times: int,
    noise: np.ndarray,
    values: np.ndarray,
    rows: Rows,
) -> Factor:
    if not problem.by_steps:
        rows = smoothed(rows, problem.noise, problem.measured)
    whole, _, mass = _over_windows(problem, model, rows, make_windows(rows, period, times))
    return (linearized(whole, mass, noise, values),)


def is_law(problem: Problem, model: LearnedMechanism, rows: Rows) -> bool:
    """Whether its mass is regular, and it explains the accelerations at all.

    Whether it does; of noisy data the mass alone is looked at, and rollouts will tell the rest.
    """
    where = rows
    if problem.by_steps:
        # Where the mean acceleration of a step is that of the motion.
        where = nodes(rows, noisy=problem.noise.matters)[1]
    masses, rates = (np.asarray(x) for x in _masses_and_rates(model, where))
    if not (np.all(np.isfinite(masses)) and np.all(np.isfinite(rates))):
        return False
    if not np.max(condition_numbers(masses)) < _SINGULAR:
        return False
    if problem.noise.matters:
        return True
    missed = (rates - np.asarray(rows.a)) / np.asarray(spread_of_accelerations(rows))
    weight = trust(rows)[:, None]
    left = np.sqrt(np.sum((weight * missed) ** 2) / np.sum(weight**2) / missed.shape[1])
    return bool(left < _UNEXPLAINED)


def condition_numbers(matrices: np.ndarray) -> np.ndarray:
    """The ratio of the largest singular value to the smallest, of many small matrices.

    Up to two rows it is written out, as LAPACK is called for each matrix.

    One number for each; infinite for a matrix of zeros.
    """
    if matrices.shape[-1] > 2:
        return np.linalg.cond(matrices)
    if matrices.shape[-1] == 1:
        return np.where(matrices[..., 0, 0] == 0, np.inf, 1.0)
    # Singular values have the determinant as their product, and the sum of squares.
    size = np.max(np.abs(matrices), axis=(-2, -1), keepdims=True)
    a, b, c, d = np.moveaxis((matrices / np.where(size > 0, size, 1.0)).reshape(-1, 4), -1, 0)
    product, squares = np.abs(a * d - b * c), a * a + b * b + c * c + d * d
    difference = np.sqrt(np.maximum((squares - 2 * product) * (squares + 2 * product), 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (squares + difference) / (2 * product)
    return np.where(product > 0, found, np.inf).reshape(matrices.shape[:-2])


@eqx.filter_jit
def _masses_and_rates(model: LearnedMechanism, rows: Rows):
    def rate(row):
        return model.minimal_rates(row.t, row.z, row.s, row.u, row.mu)[1]

    return jax.vmap(model.mass)(rows.z, rows.mu), jax.vmap(rate)(rows)


def _over_windows(
    problem: Problem, model: LearnedMechanism, rows: Rows, windows: WeakFormWindows
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The whole equations, their inertia, and the mass matrix in the middle of each window."""
    whole, inertia = _in_integral_form(problem, model, rows, windows)
    middle = windows.index[:, windows.index.shape[1] // 2]
    return whole, inertia, np.asarray(_masses(model, rows.t, rows.z, rows.u, rows.mu))[middle]


def _in_integral_form(
    problem: Problem, model: LearnedMechanism, rows: Rows, windows: WeakFormWindows
) -> tuple[np.ndarray, np.ndarray]:
    """Sums over the samples; of what inputs add that change, over the steps."""
    steady = rows
    if problem.by_steps:
        steady = eqx.tree_at(lambda r: r.u, rows, jnp.zeros_like(rows.u))
    momenta, forces = (np.asarray(x) for x in _momenta_and_forces(model, steady))
    inertia = windows.integral_of_rate(momenta)
    whole = inertia + windows.integral(forces)
    driven = model.driven_columns
    if problem.by_steps and driven.size:
        added = [np.asarray(_input_forces(model, one)) for one in nodes(rows, noisy=True)]
        whole[..., driven] += windows.integral_of_steps(added)
    return whole, inertia


def _whole_and_inertia(
    problem: Problem, model: LearnedMechanism, rows: Rows, period: int
) -> tuple[np.ndarray, np.ndarray]:
    """From accelerations; in integral form where noise or inputs leave none."""
    if problem.noise.matters:
        return _in_integral_form(problem, model, rows, make_windows(rows, period))
    if problem.by_steps:
        counts = np.asarray(rows.weight) > 0
        whole, inertia = _over_steps(model, rows)
        return whole[counts], inertia[counts]
    weight = trust(rows)
    whole, inertia = (
        np.asarray(x)[weight > 0] * weight[weight > 0, None, None]
        for x in _equations_and_inertia(model, rows)
    )
    return whole, inertia


def _over_steps(model: LearnedMechanism, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """The equations over single steps, by their rates: `weak_form` has the formula."""
    found = [_momenta_and_forces(model, one) for one in nodes(rows, noisy=False)]
    momenta, forces = ([np.asarray(pair[k]) for pair in found] for k in (0, 1))
    inertia = (momenta[2] - momenta[0]) / np.asarray(rows.dt)[:, None, None]
    return inertia + (forces[0] + 4 * forces[1] + forces[2]) / 6, inertia


def _momenta_and_forces(model: LearnedMechanism, rows: Rows):
    return _compiled(model, rows.t, rows.z, rows.s, rows.u, rows.mu)


# Of what is needed alone, so that one program serves every interpolation of the inputs.
@eqx.filter_jit
def _compiled(model: LearnedMechanism, t, z, s, u, mu):
    return jax.vmap(model.momenta_and_forces)(t, z, s, u, mu)


def _input_forces(model: LearnedMechanism, rows: Rows):
    return _compiled_inputs(model, rows.t, rows.z, rows.s, rows.u, rows.mu)


@eqx.filter_jit
def _compiled_inputs(model: LearnedMechanism, t, z, s, u, mu):
    return jax.vmap(model.input_forces)(t, z, s, u, mu)


@eqx.filter_jit
def _masses(model: LearnedMechanism, t, z, u, mu):
    """The mass matrix at every row, one for each coefficient."""

    def one(t, z, u, mu):
        # Momenta are linear in the velocities: those of unit velocities are the mass's columns.
        units = jnp.eye(z.shape[0], dtype=z.dtype)
        return jax.vmap(lambda s: model.momenta_and_forces(t, z, s, u, mu)[0], out_axes=1)(units)

    return jax.vmap(one)(t, z, u, mu)


@eqx.filter_jit
def _equations_and_inertia(model: LearnedMechanism, rows: Rows):
    inertia = jax.vmap(model.inertia)(rows.t, rows.z, rows.s, rows.a, rows.u, rows.mu)
    return inertia + _momenta_and_forces(model, rows)[1], inertia
