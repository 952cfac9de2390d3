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
information criterion tells which supports are likely. Over a small range columns are nearly
combinations of each other, and the wrong one may go: a constant, in place of which a sine and a
cosine stay. So columns that went are put back one by one, and others are removed again, as long as
that makes the law likelier; and the same is begun from the simplest law. To first order,
`rho + J dc`, this is linear algebra in a few numbers; the laws that it finds are then fitted.
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
# Times that columns are exchanged at most, and laws with exchanged ones that are fitted each time.
_EXCHANGES, _EXCHANGED = 16, 4
# Laws whose criteria differ by less than this are equally likely; and one that is likelier by less
# than this is no other.
_EQUALLY, _SAME = 6.0, 0.1
# An inverse mass above this is that of a singular one, for coefficients near one.
_HUGE = 1e30
# Laws found elsewhere that are fitted.
_OTHERS = 12
# More columns than this part of the equations would fit anything.
_CROWDED = 0.4


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

    The `WeightedLaw`; None where the mass is singular to begin with.
    """
    whole, mass = _columns(equations, support)
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


def first_law(
    equations: WeightedEquations, columns: np.ndarray, starts: Sequence[np.ndarray]
) -> WeightedLaw | None:
    """The law with all columns.

    **Arguments:**

    - `starts`: coefficients of all columns of the equations, to begin with; the law that fits best
        of those that they lead to is taken.

    **Returns:**

    The law; None where every start has a singular mass.
    """
    support = _present(equations, columns)
    begun = [fit_law(equations, support, start[support]) for start in starts]
    able = [law for law in begun if law is not None]
    return min(able, key=lambda one: one.squares, default=None)


def is_crowded(equations: WeightedEquations, law: WeightedLaw) -> bool:
    """Whether a law has more columns than the equations can tell of."""
    return law.support.size > _CROWDED * equations.whole.shape[0] * equations.whole.shape[1]


def weighted_supports(
    equations: WeightedEquations,
    columns: np.ndarray,
    law: WeightedLaw | None,
    simplest: np.ndarray,
) -> list[WeightedLaw]:
    """Laws with ever fewer columns, and some with ever more.

    **Arguments:**

    - `simplest`: columns of a law to which others are added; masses among them are of one size.

    **Returns:**

    The laws, with all columns first, as far as the equations can tell of so many; then those with
    exchanged columns, and those that begin with the simplest.
    """
    path: list[WeightedLaw] = []
    while law is not None:
        path.append(law)
        law = _with_fewer(equations, law)
    path = [law for law in path if not is_crowded(equations, law)]
    support, count = _present(equations, columns), equations.independent
    first = min(path, key=lambda one: one.criterion(count), default=None)
    path += _likelier(equations, support, first)
    simple = _simple(equations, np.intersect1d(support, simplest))
    return path + _likelier(equations, support, simple)


def _present(equations: WeightedEquations, columns: np.ndarray) -> np.ndarray:
    """Those that are not zero."""
    return columns[np.linalg.norm(equations.whole, axis=(0, 1))[columns] > 0]


@dataclass(frozen=True)
class Likelihood:
    """How likely a law of one form is, beside others.

    **Arguments:**

    - `length`: of the windows; criteria compare for one length alone.
    - `criterion`: of Bayesian information.
    - `terms`: of the law.
    """

    length: int
    criterion: float
    terms: int


def in_order(laws: Sequence[Likelihood]) -> list[int]:
    """The order in which laws of several forms are to be tried.

    Their numbers: those that are as likely as the likeliest with their length of windows first, the
    simplest before the others, and then the rest as they are.
    """
    least: dict[int, float] = {}
    for law in laws:
        least[law.length] = min(law.criterion, least.get(law.length, np.inf))
    likely = [i for i, law in enumerate(laws) if law.criterion - least[law.length] < _EQUALLY]
    rest = [i for i in range(len(laws)) if i not in set(likely)]
    return sorted(likely, key=lambda i: laws[i].terms) + rest


def likely(laws: Sequence[WeightedLaw], independent: float) -> list[WeightedLaw]:
    """Those that are as likely as the likeliest, the simplest first."""
    criteria = [law.criterion(independent) for law in laws]
    least = min(criteria, default=0.0)
    pairs = zip(laws, criteria, strict=True)
    able = [law for law, criterion in pairs if criterion - least < _EQUALLY]
    return sorted(able, key=lambda law: law.support.size)


def fit_others(
    equations: WeightedEquations, own: Sequence[WeightedLaw], others: Sequence[WeightedLaw]
) -> list[WeightedLaw]:
    """Laws that were found elsewhere, such as with windows of another length, fitted here.

    A few of the others that are not among the own, with coefficients of these equations.
    """
    seen, found = {tuple(law.support) for law in own}, []
    for law in others:
        if tuple(law.support) in seen or len(found) == _OTHERS:
            continue
        seen.add(tuple(law.support))
        fitted = fit_law(equations, law.support, law.values)
        if fitted is not None:
            found.append(fitted)
    return found


def _likelier(
    equations: WeightedEquations, columns: np.ndarray, law: WeightedLaw | None
) -> list[WeightedLaw]:
    """Laws with exchanged columns, each likelier than the one before."""
    found = []
    while law is not None and len(found) < _EXCHANGES:
        law = _exchanged(equations, columns, law)
        found += [] if law is None else [law]
    return found


def _simple(equations: WeightedEquations, columns: np.ndarray) -> WeightedLaw | None:
    """The law in these columns, from masses of one."""
    inertial = equations.masses[columns]
    if not inertial.any() or inertial.all():
        return None
    flat = equations.whole[..., columns].reshape(-1, columns.size)
    start = np.ones(columns.size)
    target = -flat[:, inertial].sum(axis=1)
    start[~inertial] = np.linalg.lstsq(flat[:, ~inertial], target, rcond=None)[0]
    return fit_law(equations, columns, start)


def _exchanged(
    equations: WeightedEquations, columns: np.ndarray, law: WeightedLaw
) -> WeightedLaw | None:
    """The likeliest law with one column more and others less; None if it is not likelier."""
    absent = np.setdiff1d(columns, law.support)
    every = np.concatenate([law.support, absent])
    values = np.concatenate([law.values, np.zeros(absent.size)])
    whole, mass = _columns(equations, every)
    found = _residuals(whole, mass, equations.noise, values)
    if found is None:
        return None
    rho, a, inverse = found
    jacobian = _jacobian(whole, mass, equations.noise, a, inverse)
    sizes = np.linalg.norm(jacobian, axis=0)
    tall, scaled = jacobian / np.where(sizes > 0, sizes, 1.0), values * sizes
    along = scaled / np.linalg.norm(scaled)
    square = tall.T @ tall + np.outer(along, along)
    slope, total = tall.T @ rho.ravel(), float(np.sum(rho**2))
    trials: dict[tuple[int, ...], tuple[float, np.ndarray]] = {}
    for extra in range(law.support.size, every.size):
        chosen = np.append(np.arange(law.support.size), extra)
        places, start, criterion = _eliminated(
            equations, every, chosen, square, slope, scaled, total, rho.size
        )
        trials[tuple(places)] = criterion, start / np.where(sizes[places] > 0, sizes[places], 1.0)
    count, best = equations.independent, law
    for places, (_, start) in sorted(trials.items(), key=lambda one: one[1][0])[:_EXCHANGED]:
        support = every[np.array(places)]
        order = np.argsort(support)
        fitted = fit_law(equations, support[order], start[order], _STEPS)
        if fitted is not None and fitted.criterion(count) < best.criterion(count) - _SAME:
            best = fitted
    return None if best is law else best


def _eliminated(
    equations: WeightedEquations,
    every: np.ndarray,
    chosen: np.ndarray,
    square: np.ndarray,
    slope: np.ndarray,
    scaled: np.ndarray,
    total: float,
    rows: int,
) -> tuple[np.ndarray, np.ndarray, float]:
    """To first order: the likeliest law in some of the chosen columns.

    Returns their places, coefficients and the criterion.
    """
    count, unit = equations.independent, 1e-10 * np.eye(chosen.size)
    inverse = np.linalg.inv(square[np.ix_(chosen, chosen)] + unit)
    change = -inverse @ slope[chosen]
    values, squares = scaled[chosen] + change, total + float(slope[chosen] @ change)
    best = chosen, values, np.inf
    while True:
        criterion = float(count * np.log(max(squares / rows, 1e-300)) + chosen.size * np.log(count))
        if criterion < best[2]:
            best = chosen, values, criterion
        price = values**2 / np.maximum(np.diag(inverse), 1e-300)
        inertial = equations.masses[every[chosen]]
        last = [np.sum(kind) == 1 for kind in (inertial, ~inertial)]
        price = np.where(np.where(inertial, last[0], last[1]), np.inf, price)
        gone = int(np.argmin(price))
        if chosen.size <= 2 or not np.isfinite(price[gone]):
            return best
        squares += float(price[gone])
        column = inverse[:, gone] / inverse[gone, gone]
        values = np.delete(values - column * values[gone], gone)
        inverse = np.delete(np.delete(inverse - np.outer(column, inverse[gone]), gone, 0), gone, 1)
        chosen = np.delete(chosen, gone)


def linearized(
    whole: np.ndarray, mass: np.ndarray, noise: np.ndarray, values: np.ndarray
) -> np.ndarray:
    """The Jacobian of `rho` and `rho` itself, side by side: a block of Gauss-Newton equations.

    `(equations, columns + 1)`; none where a mass is singular.
    """
    found = _residuals(whole, mass, noise, values)
    if found is None:
        return np.zeros((0, values.size + 1))
    rho, a, inverse = found
    return np.column_stack([_jacobian(whole, mass, noise, a, inverse), rho.ravel()])


def _columns(equations: WeightedEquations, support: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of the equations and the masses, in rows: what an index gives is in columns, and slow."""
    return np.take(equations.whole, support, axis=-1), np.take(equations.mass, support, axis=-1)


def _residuals(whole: np.ndarray, mass: np.ndarray, noise: np.ndarray, values: np.ndarray):
    """`rho`, the accelerations that it is of, and the inverse masses; None for a singular mass."""
    matrices = mass @ values
    try:
        inverse = _inverse(matrices)
    except np.linalg.LinAlgError:
        return None
    a = np.einsum("wij,wj->wi", inverse, whole @ values)
    sound = np.all(np.isfinite(a)) and np.max(np.abs(inverse)) < _HUGE
    return (a / noise, a, inverse) if sound else None


def _inverse(matrices: np.ndarray) -> np.ndarray:
    """Of many small matrices; up to two rows written out, as LAPACK is called for each."""
    if matrices.shape[-1] > 2:
        return np.linalg.inv(matrices)
    if matrices.shape[-1] == 1:
        determinant, turned = matrices, np.ones_like(matrices)
    else:
        a, b, c, d = (matrices[..., i, j] for i in (0, 1) for j in (0, 1))
        determinant = (a * d - b * c)[..., None, None]
        turned = np.stack([d, -b, -c, a], axis=-1).reshape(matrices.shape)
    if not np.all(determinant):
        raise np.linalg.LinAlgError("Singular matrix")
    with np.errstate(over="ignore", invalid="ignore"):
        return turned / determinant


def _jacobian(
    whole: np.ndarray, mass: np.ndarray, noise: np.ndarray, a: np.ndarray, inverse: np.ndarray
) -> np.ndarray:
    change = whole - (a[:, None, None, :] @ mass)[:, :, 0]
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
