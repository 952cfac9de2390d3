"""The simplest law that the data obeys: null vectors of the Euler-Lagrange equations.

Along the data the equations of a `LearnedMechanism` are `E c = 0`, linear in its coefficients. The
right singular vector of the least singular value is the law, if it is the only one. Where several
fit (a coordinate that never matters, a trajectory that is too special) the simplest is wanted, so
columns are removed one by one, always the one that is missed least. The least singular value stays
at the data's own floor until a column is removed that the law needs, and then it jumps: the
supports just before the greatest jumps are the candidates.
"""

import numpy as np


def candidate_supports(
    equations: np.ndarray, required: np.ndarray, most: int = 6
) -> list[np.ndarray]:
    """Sets of columns that may be the law, the smallest first.

    **Arguments:**

    - `equations`: `(rows, columns)`.
    - `required`: which columns are masses; a law has at least one of them.
    - `most`: how many sets.

    **Returns:**

    Indices of columns, for each candidate.
    """
    norms = np.linalg.norm(equations, axis=0)
    keep = np.flatnonzero(norms > 1e-12 * np.max(norms))
    factor: np.ndarray = np.asarray(np.linalg.qr(equations[:, keep] / norms[keep], mode="r"))
    support = np.arange(keep.size)
    path: list[tuple[float, np.ndarray]] = []
    while support.size > 1:
        path.append((_least(factor[:, support]), support))
        trials = []
        for place in range(support.size):
            rest = np.delete(support, place)
            if np.any(required[keep[rest]]):
                trials.append((_least(factor[:, rest]), rest))
        if not trials:
            break
        _, support = min(trials, key=lambda trial: trial[0])
    jumps = [
        (path[i + 1][0] / max(path[i][0], 1e-300), path[i][1].size, keep[path[i][1]])
        for i in range(len(path) - 1)
    ]
    steepest = sorted(jumps, key=lambda jump: -jump[0])[:most]
    return [columns for _, _, columns in sorted(steepest, key=lambda jump: jump[1])]


def null_vector(equations: np.ndarray) -> tuple[np.ndarray, float]:
    """The coefficients of the law, and how well it is obeyed.

    **Arguments:**

    - `equations`: `(rows, columns)` of one support.

    **Returns:**

    The coefficients, and the least singular value with columns of unit length.
    """
    norms = np.linalg.norm(equations, axis=0)
    _, values, right = np.linalg.svd(equations / norms, full_matrices=False)
    return right[-1] / norms, float(values[-1])


def _least(factor: np.ndarray) -> float:
    return float(np.linalg.svd(factor, compute_uv=False)[-1])
