"""The simplest law that the data obeys, from the Euler-Lagrange equations along it.

Along the data the equations of a `LearnedMechanism` are `E c = 0`, linear in its coefficients, and
the inertia `K c` is a part of them. A law is the `c` that leaves the smallest part of its own
inertia unexplained, `|E c| / |K c|`: a combination of forces that nearly cancel is none.

Where several laws fit (a coordinate that never matters, a trajectory that is too special) the
simplest is wanted, so columns are removed one by one, always the one that is missed least. The part
that is not explained stays at the data's own floor until a column is removed that the law needs,
and then it jumps: the supports just before the largest jumps are the candidates.
"""

from dataclasses import dataclass

import numpy as np

# Columns that are tried for removal in earnest, of those that a cheap estimate finds dispensable.
_TRIED = 6
_NEGLIGIBLE = 1e-13


@dataclass(frozen=True)
class HomogeneousEquations:
    """The equations in few rows, with columns of unit length.

    **Arguments:**

    - `whole`: `E`, `(rows, columns)`.
    - `inertia`: the columns of `K`.
    - `masses`: which columns have inertia.
    - `norms`: the columns' lengths, by which they were divided; zero for columns of zeros.
    """

    whole: np.ndarray
    inertia: np.ndarray
    masses: np.ndarray
    norms: np.ndarray


def compress(
    equations: np.ndarray, inertia: np.ndarray, masses: np.ndarray
) -> HomogeneousEquations:
    """Many rows as few, with the same lengths and angles."""
    norms = np.linalg.norm(equations, axis=0)
    norms = np.where(norms > 1e-12 * np.max(norms), norms, 0.0)
    scaled = [x / np.where(norms > 0, norms, 1.0) for x in (equations, inertia)]
    whole, part = (np.asarray(np.linalg.qr(x, mode="r")) for x in scaled)
    return HomogeneousEquations(whole, part, masses, norms)


def candidate_supports(
    equations: HomogeneousEquations, columns: np.ndarray | None = None, most: int = 6
) -> list[np.ndarray]:
    """Sets of columns that may be the law, the smallest first.

    Indices of columns, for each candidate.
    """
    support = np.flatnonzero(equations.norms > 0)
    support = support if columns is None else np.intersect1d(support, columns)
    path = _path(equations, support)
    jumps = [
        (path[i + 1][0] / max(path[i][0], 1e-300), path[i][1].size, path[i][1])
        for i in range(len(path) - 1)
    ]
    steepest = sorted(jumps, key=lambda jump: -jump[0])[:most]
    return [columns for _, _, columns in sorted(steepest, key=lambda jump: jump[1])]


def _path(equations: HomogeneousEquations, support: np.ndarray) -> list[tuple[float, np.ndarray]]:
    """Ever smaller supports, and the part that each leaves unexplained."""
    path: list[tuple[float, np.ndarray]] = []
    while support.size > 1 and np.any(equations.masses[support]):
        law, left = _law(equations, support)
        path.append((left, support))
        places = np.argsort(_price(equations, support, law))[:_TRIED]
        attempts = [np.delete(support, place) for place in places]
        attempts = [trial for trial in attempts if np.any(equations.masses[trial])]
        if not attempts:
            break
        support = min(attempts, key=lambda trial: _law(equations, trial)[1])
    return path


def find_law(equations: HomogeneousEquations, support: np.ndarray) -> tuple[np.ndarray, float]:
    """The coefficients of the law, and the part of its inertia that it leaves unexplained.

    One coefficient for each column of the support, and the part.
    """
    law, left = _law(equations, support)
    norms = equations.norms[support]
    return law / np.where(norms > 0, norms, 1.0), left


def _law(equations: HomogeneousEquations, support: np.ndarray) -> tuple[np.ndarray, float]:
    """The forces explain what they can of each mass; the smallest rest, in units of inertia."""
    is_mass = equations.masses[support]
    mass, force = (equations.whole[:, support[which]] for which in (is_mass, ~is_mass))
    left, values, right = np.linalg.svd(force, full_matrices=False)
    sound = values > _NEGLIGIBLE * max(1.0, values[0] if values.size else 1.0)
    left, values, right = left[:, sound], values[sound], right[sound]
    rest = mass - left @ (left.T @ mass)
    # In units of inertia; a combination of masses without any is no law.
    _, sizes, axes = np.linalg.svd(equations.inertia[:, support[is_mass]], full_matrices=False)
    moving = sizes > 1e-8 * sizes[0]
    unit = axes[moving].T / sizes[moving]
    _, parts, ways = np.linalg.svd(rest @ unit, full_matrices=False)
    law = np.zeros(support.size)
    law[is_mass] = unit @ ways[-1]
    law[~is_mass] = -right.T @ ((left.T @ (mass @ law[is_mass])) / values)
    return law, float(parts[-1])


def _price(equations: HomogeneousEquations, support: np.ndarray, law: np.ndarray) -> np.ndarray:
    """By how much the square of what is left would grow without each column, nearly."""
    _, values, right = np.linalg.svd(equations.whole[:, support], full_matrices=False)
    spread = np.sum((right / np.maximum(values, 1e-14)[:, None]) ** 2, axis=0)
    return law**2 / spread
