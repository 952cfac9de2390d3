"""Laws of noisy data: the equations of motion in integral form, weighted by their noise.

Over a window the equations leave `r = E c`, linear in the coefficients `c` (`weak_form`). Noise `n`
of the positions enters by the inertia before all else: integrated by parts twice,

    r = M(q; c) sum phi'' n dt,    so    rho = M(q; c)^-1 E c / (sigma |phi''| dt)

has unit variance for the right law: an error of accelerations in units of their noise. Measured
velocities have their own noise, and `phi'` in place of `phi''`.

The sum of squares of `rho` does not change with the factor by which a law is free, and grows
without bound for a law whose mass is singular, such as one that says nothing of a coordinate. (The
part of the inertia that a law leaves, as in `null_vector`, is smallest for a law of the one
coordinate that is measured best.) Its minimum is found by Gauss-Newton steps, with the Jacobian

    d rho = M^-1 (E dc - M(dc) M^-1 E c) / (sigma |phi''| dt),

and columns are removed one by one, always the one whose removal costs least; the Bayesian
information criterion tells which supports are likely.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# Columns that are tried for removal in earnest, of those that a linear estimate finds dispensable.
_TRIED = 4
# Of more columns than this, several are removed at a time: these parts of them, or one.
_MANY, _PARTS = 24, (5, 20)
# Steps for a start that is far away, and after a column was removed; and the part of the sum of
# squares by which a step must lower it to go on.
_FIRST_STEPS, _STEPS, _LOWERED = 30, 6, 1e-4
_SMALLEST, _LARGEST = 1e-10, 1e4


@dataclass(frozen=True)
class WeightedEquations:
    """The equations over windows.

    **Arguments:**

    - `whole`: `E`, `(windows, coordinates, columns)`.
    - `mass`: the mass matrix in the middle of each window, linear in the coefficients: `(windows,
        coordinates, coordinates, columns)`.
    - `masses`: which columns have inertia.
    - `noise`: of the accelerations, one value for each coordinate.
    - `independent`: how many of the equations say something of their own.
    """

    whole: np.ndarray
    mass: np.ndarray
    masses: np.ndarray
    noise: np.ndarray
    independent: float


@dataclass(frozen=True)
class WeightedLaw:
    """A law in some columns.

    **Arguments:**

    - `support`: the columns.
    - `values`: their coefficients, up to a common factor.
    - `squares`: the mean square of `rho`.
    - `jacobian`: of `rho`, one column for each of the support.
    """

    support: np.ndarray
    values: np.ndarray
    squares: float
    jacobian: np.ndarray

    def criterion(self, independent: float) -> float:
        """Of Bayesian information; less is likelier."""
        count = self.support.size
        return float(independent * np.log(max(self.squares, 1e-300)) + count * np.log(independent))


def fit_law(
    equations: WeightedEquations, support: np.ndarray, start: np.ndarray, steps: int = _FIRST_STEPS
) -> WeightedLaw | None:
    """The law in these columns with the smallest weighted residual.

    **Arguments:**

    - `equations`: along the data.
    - `support`: the columns that it may use.
    - `start`: coefficients to begin with.
    - `steps`: at most.

    **Returns:**

    The `WeightedLaw`; None where the mass is singular to begin with.
    """
    whole, mass = equations.whole[..., support], equations.mass[..., support]
    values, found = start, _residuals(whole, mass, equations.noise, start)
    if found is None:
        return None
    damping = 1e-6
    for _ in range(steps):
        rho, a, inverse = found
        jacobian = _jacobian(whole, mass, equations.noise, a, inverse)
        sizes = np.linalg.norm(jacobian, axis=0)
        sizes = np.where(sizes > 0, sizes, 1.0)
        tall, scaled = jacobian / sizes, values * sizes
        # The law's own direction is free: no step along it.
        along = scaled / np.linalg.norm(scaled)
        square, slope = tall.T @ tall + np.outer(along, along), tall.T @ rho.ravel()
        before, better = float(rho.ravel() @ rho.ravel()), None
        while better is None and damping < _LARGEST:
            step = np.linalg.solve(square + damping * np.eye(support.size), slope)
            trial = (scaled - step) / sizes
            tried = _residuals(whole, mass, equations.noise, trial)
            if tried is not None and np.sum(tried[0] ** 2) < before:
                better = trial, tried
                damping = max(damping / 10, _SMALLEST)
            else:
                damping *= 10
        if better is None:
            break
        values, found = better
        if before - float(np.sum(found[0] ** 2)) < _LOWERED * before:
            break
    rho, a, inverse = found
    size = float(np.max(np.abs(values)))
    jacobian = _jacobian(whole, mass, equations.noise, a, inverse) * size
    return WeightedLaw(support, values / size, float(np.mean(rho**2)), jacobian)


def weighted_supports(
    equations: WeightedEquations, columns: np.ndarray, starts: Sequence[np.ndarray]
) -> list[WeightedLaw]:
    """Laws with ever fewer columns.

    **Arguments:**

    - `equations`: along the data.
    - `columns`: that a law may use.
    - `starts`: coefficients of all columns of the equations, to begin with; the law that fits best
        of those that they lead to is the first.

    **Returns:**

    The laws, with all columns first; none where every start has a singular mass.
    """
    support = columns[np.linalg.norm(equations.whole, axis=(0, 1))[columns] > 0]
    begun = [fit_law(equations, support, start[support]) for start in starts]
    able = [law for law in begun if law is not None]
    path: list[WeightedLaw] = []
    law = min(able, key=lambda one: one.squares, default=None)
    while law is not None:
        path.append(law)
        law = _with_fewer(equations, law)
    return path


def _residuals(whole: np.ndarray, mass: np.ndarray, noise: np.ndarray, values: np.ndarray):
    """`rho`, the accelerations that it is of, and the inverse masses; None for a singular mass."""
    matrices = mass @ values
    try:
        inverse = np.linalg.inv(matrices)
    except np.linalg.LinAlgError:
        return None
    a = np.einsum("wij,wj->wi", inverse, whole @ values)
    return (a / noise, a, inverse) if np.all(np.isfinite(a)) else None


def _jacobian(
    whole: np.ndarray, mass: np.ndarray, noise: np.ndarray, a: np.ndarray, inverse: np.ndarray
) -> np.ndarray:
    change = whole - np.einsum("wijc,wj->wic", mass, a)
    return ((inverse @ change) / noise[:, None]).reshape(-1, whole.shape[-1])


def _with_fewer(equations: WeightedEquations, law: WeightedLaw) -> WeightedLaw | None:
    """The law without the column that is missed least; of many columns, without several."""
    sizes = np.linalg.norm(law.jacobian, axis=0)
    sizes = np.where(sizes > 0, sizes, 1.0)
    _, values, right = np.linalg.svd(law.jacobian / sizes, full_matrices=False)
    # Without the last direction, which is the law's own.
    inverse = right[:-1].T / np.maximum(values[:-1], 1e-8 * values[0])
    inverse, scaled = inverse @ inverse.T, law.values * sizes
    price = scaled**2 / np.maximum(np.diag(inverse), 1e-300)
    cheapest = np.argsort(price)
    if law.support.size > _MANY:
        attempts = [cheapest[: law.support.size // part] for part in _PARTS] + [cheapest[:1]]
    else:
        attempts = [cheapest[i : i + 1] for i in range(min(_TRIED, law.support.size))]
    best = None
    for gone in attempts:
        kept = np.delete(law.support, gone)
        if not np.any(equations.masses[kept]) or kept.size == kept[equations.masses[kept]].size:
            continue
        # Where the others go without these, to first order.
        block = inverse[np.ix_(gone, gone)]
        change = inverse[:, gone] @ np.linalg.lstsq(block, scaled[gone], rcond=None)[0]
        start = np.delete((scaled - change) / sizes, gone)
        found = fit_law(equations, kept, start, _STEPS) if np.any(start) else None
        if found is not None and (best is None or found.squares < best.squares):
            best = found
        if law.support.size > _MANY and found is not None and _cheap(law, found, equations):
            return found
    return best


def _cheap(law: WeightedLaw, fewer: WeightedLaw, equations: WeightedEquations) -> bool:
    """Whether the criterion is for the law with fewer columns."""
    count = equations.independent
    return bool(fewer.criterion(count) < law.criterion(count))
