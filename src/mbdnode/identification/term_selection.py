"""Which terms a law of noisy data has, told by its rollouts.

Equations over windows (`noisy_laws`) are cheap and say which terms are likely. Their errors are not
independent, and rates that were smoothed bend them, so they cannot tell terms that act nearly
alike: where an angle stays small, `cos(q) u` and `u` do. Rollouts can. The residuals `r` of
segments from fitted initial states (`shooting`) are white for the right law, and near a law with
coefficients `c` they are

    r(x) = r(c) + J (x - c),

with the columns of `J` for every term of the form, in the law or not, and the initial states
eliminated. Which terms to take is then a linear regression on `r(c) - J c`: one term is added,
removed or exchanged at a time (two for one where that does not help), always the change that lowers

    n log(|r|^2 / n) + k (log n + log p)

most (`r` in units of the noise, and a hundredth beside `|r|^2 / n`, so that no term is taken for
what is far below it): the Bayesian information criterion of `k` terms, extended by the choice among
`p` of them. The law with the terms that were found is refined by shooting, and so on until no
change is worth it.

A law that came of it must also be one of a mechanism: its mass matrix is positive definite at all
angles, not only at those that were recorded.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.data.rows import Rows, counted
from mbdnode.identification.problem import Problem
from mbdnode.identification.shooting import (
    linearized_residuals,
    make_segments,
    refine_segments,
)
from mbdnode.models.learned_mechanism import LearnedMechanism

# Rounds of selection and refinement; changes of the terms in each; iterations of each refinement.
_ROUNDS, _CHANGES, _ITERATIONS = 6, 8, 12
# Residuals below this part of the noise are errors of integrators and of smoothing, which no term
# is to explain.
_SEEN = 0.1
# A change must lower the criterion by more than rounding does.
_LESS = 1e-3
# A column that keeps less than this part of its length beside the others says nothing of its own.
_NEW = 1e-4
# Positions at which the mass matrix is looked at, and the part of its largest eigenvalue that the
# smallest one must have.
_POSITIONS, _DEFINITE = 1024, 1e-6


@dataclass(frozen=True)
class SelectedLaw:
    """A law whose terms its rollouts have chosen.

    **Arguments:**

    - `model`: with zeros in place of the other terms.
    - `criterion`: less is likelier; of laws that were selected on the same data.
    - `free`: which coefficients were fitted, by index.
    - `covariance`: of these, by the residuals of the rollouts.
    """

    model: LearnedMechanism
    criterion: float
    free: np.ndarray
    covariance: np.ndarray

    @property
    def support(self) -> np.ndarray:
        """Its columns."""
        return np.flatnonzero(np.asarray(self.model.network.values))


def select_terms(
    problem: Problem,
    model: LearnedMechanism,
    rows: Rows,
    columns: np.ndarray,
    free: Callable[[LearnedMechanism, np.ndarray], np.ndarray],
) -> SelectedLaw | None:
    """The terms that rollouts over about a period ask for, with their coefficients.

    **Arguments:**

    - `model`: a law that follows the motion, with zeros for all other terms of its form.
    - `free`: from a law and its columns to the coefficients that may change, by index.

    **Returns:**

    The `SelectedLaw`; None where the data has no segments or the law does not follow them.
    """
    segments = make_segments(rows, shape=problem.segments[0]) if problem.segments else None
    if segments is None:
        return None
    given = segments, problem.integrator, problem.noise
    count = int(np.sum(np.asarray(segments.rows.weight) > 0)) * segments.rows.z.shape[-1]
    price = np.log(count) + np.log(columns.size)
    columns = np.union1d(columns, np.flatnonzero(np.asarray(model.network.values)))

    def refined(law: LearnedMechanism) -> tuple[SelectedLaw, np.ndarray, np.ndarray] | None:
        support = np.flatnonzero(np.asarray(law.network.values))
        own = free(law, support)
        options = {"measured": problem.measured, "iterations": _ITERATIONS}
        law, initial = refine_segments(law, *given, own, **options)
        # What belongs to a term, such as the width of a friction, is free with it.
        wanted = np.union1d(columns, own)
        jacobian, left = linearized_residuals(law, initial, *given, wanted, problem.measured)
        if not (np.all(np.isfinite(jacobian)) and np.all(np.isfinite(left))):
            return None
        covariance = _covariance(jacobian[:, np.searchsorted(wanted, own)], left, count)
        beside = ~np.isin(wanted, columns)
        if np.any(beside):
            basis = np.linalg.qr(jacobian[:, beside])[0]
            jacobian, left = (x - basis @ (basis.T @ x) for x in (jacobian[:, ~beside], left))
        criterion = _criterion(float(left @ left), support.size, price, count)
        return SelectedLaw(law, criterion, own, covariance), jacobian, left

    best = refined(model)
    for _ in range(_ROUNDS):
        if best is None:
            return None
        law, jacobian, left = best
        values = np.asarray(law.model.network.values)
        begun = np.isin(columns, law.support)
        fixed = begun & ~np.isin(columns, free(law.model, law.support))
        target = left - jacobian @ np.where(fixed, 0.0, values[columns])
        path = choose_columns(jacobian, target, begun, fixed, price, count)
        better = None
        # All changes; the first few of them where the law is not linear over so many.
        for length in dict.fromkeys(max(1, len(path) // part) for part in (1, 3, 9)):
            if not path:
                break
            found = refined(_with_terms(law.model, columns, *path[length - 1], fixed))
            if found is not None and found[0].criterion < law.criterion - _LESS:
                better = found
                break
        if better is None:
            break
        best = better
    return None if best is None else best[0]


def _covariance(jacobian: np.ndarray, left: np.ndarray, count: int) -> np.ndarray:
    """Of coefficients, in whose residuals noise has unit variance; larger ones count as found."""
    sizes = np.linalg.norm(jacobian, axis=0)
    sizes = np.where(sizes > 0, sizes, 1.0)
    inverse = np.linalg.pinv((jacobian / sizes).T @ (jacobian / sizes), hermitian=True)
    return max(1.0, float(left @ left) / count) * inverse / np.outer(sizes, sizes)


def _with_terms(
    model: LearnedMechanism,
    columns: np.ndarray,
    taken: np.ndarray,
    coefficients: np.ndarray,
    fixed: np.ndarray,
) -> LearnedMechanism:
    """The law with these terms, and the coefficients that the linear problem has for them."""
    before = np.asarray(model.network.values)
    values = np.zeros_like(before)
    values[columns] = np.where(taken, np.where(fixed, before[columns], coefficients), 0.0)
    return eqx.tree_at(lambda m: m.network.values, model, jnp.asarray(values))


def choose_columns(
    columns: np.ndarray,
    target: np.ndarray,
    begun: np.ndarray,
    fixed: np.ndarray,
    price: float,
    count: int,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Columns that explain a target, by single changes, each of which lowers the criterion most.

    **Arguments:**

    - `columns`: `(rows, columns)`, to be combined with the target to the smallest sum of squares.

    **Returns:**

    After every change which columns are taken, and the coefficients of all.
    """
    sizes = np.linalg.norm(columns, axis=0)
    sizes = np.where(sizes > 0, sizes, 1.0)
    # Few rows with the same lengths and angles.
    together = np.column_stack([columns / sizes, target])
    small = np.asarray(np.linalg.qr(together, mode="r"))
    whole, wanted = small[:, :-1], small[:, -1]
    taken, path = begun.copy(), []
    squares = _squares_and_gains(whole, wanted, taken & ~fixed)[0]
    now = _criterion(squares, int(np.sum(taken)), price, count)
    for _ in range(_CHANGES):
        own = np.flatnonzero(taken & ~fixed)
        singles: list[tuple[int, ...]] = [(), *((int(i),) for i in own)]
        value, trial = _best_change(whole, wanted, taken, fixed, singles, price, count)
        if value >= now - _LESS:
            # Two terms whose sum is nearly a third one hold each other up.
            pairs = list(itertools.combinations(map(int, own), 2))
            value, trial = _best_change(whole, wanted, taken, fixed, pairs, price, count)
        if value >= now - _LESS:
            break
        now, taken = value, trial
        used = np.flatnonzero(taken & ~fixed)
        coefficients = np.zeros(sizes.size)
        coefficients[used] = np.linalg.lstsq(whole[:, used], -wanted, rcond=None)[0] / sizes[used]
        path.append((taken, coefficients))
    return path


def _best_change(
    whole: np.ndarray,
    wanted: np.ndarray,
    taken: np.ndarray,
    fixed: np.ndarray,
    groups: list[tuple[int, ...]],
    price: float,
    count: int,
) -> tuple[float, np.ndarray]:
    """The smallest criterion without one of these groups, with at most one column in its place."""
    best, chosen = np.inf, taken
    for gone in groups:
        left = taken.copy()
        left[list(gone)] = False
        squares, gains = _squares_and_gains(whole, wanted, left & ~fixed)
        gains = np.where(left | fixed, 0.0, gains)
        more = int(np.argmax(gains))
        added = left.copy()
        added[more] = True
        # What is left is never negative, and no less than the rounding of the difference.
        least = max(squares - gains[more], np.finfo(float).eps * squares)
        for rest, trial in ((squares, left), (least, added)):
            value = _criterion(rest, int(np.sum(trial)), price, count)
            if value < best and not np.array_equal(trial, taken):
                best, chosen = value, trial
    return best, chosen


def _criterion(squares: float, terms: int, price: float, count: int) -> float:
    return count * np.log(squares / count + _SEEN**2) + price * terms


def _squares_and_gains(
    whole: np.ndarray, wanted: np.ndarray, used: np.ndarray
) -> tuple[float, np.ndarray]:
    """What some columns leave of the target, and by how much each other one would lower it."""
    basis = np.linalg.qr(whole[:, used])[0]
    left = wanted - basis @ (basis.T @ wanted)
    others = whole - basis @ (basis.T @ whole)
    lengths = np.linalg.norm(others, axis=0)
    along = np.where(lengths > _NEW, others.T @ left / np.where(lengths > _NEW, lengths, 1.0), 0.0)
    return float(left @ left), along**2


def is_definite(model: Any, rows: Rows, angles: np.ndarray) -> bool:
    """Whether the mass matrix of a law is that of a mechanism wherever its angles may turn.

    Whether it is positive definite, up to a sign that all of the law is free by.
    """
    own, random = counted(rows), np.random.default_rng(0)
    some = random.integers(0, len(own), _POSITIONS)
    z = np.asarray(own.z)[some]
    turned = random.uniform(-np.pi, np.pi, z.shape)
    z = jnp.asarray(np.where(angles, turned, z))
    mu = {name: jnp.asarray(np.asarray(value)[some]) for name, value in own.mu.items()}
    masses = np.asarray(_masses(model, z, mu))
    if not np.all(np.isfinite(masses)):
        return False
    eigenvalues = np.linalg.eigvalsh(masses * np.sign(np.mean(np.trace(masses, axis1=1, axis2=2))))
    return bool(np.min(eigenvalues) > _DEFINITE * np.max(eigenvalues))


@eqx.filter_jit
def _masses(model, z, mu):
    return jax.vmap(model.mass)(z, mu)
