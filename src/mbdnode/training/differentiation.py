"""Time derivatives of sampled data, from the data alone.

The derivative at a time is that of the polynomial through the nearest seven samples: sixth order
on smooth data, for uniform and uneven times, one-sided at the ends of a run. Nothing outside of the
given rows is ever looked at.
"""

import numpy as np

from mbdnode.errors import UserError

_STENCIL = 7


def differentiate(t: np.ndarray, values: np.ndarray, stencil: int = _STENCIL) -> np.ndarray:
    """The derivative of every column at every time.

    **Arguments:**

    - `t`: `(n,)`, increasing.
    - `values`: `(n, columns)`.
    - `stencil`: how many samples each derivative uses; fewer if there are fewer.

    **Returns:**

    `(n, columns)`.
    """
    count = min(stencil, len(t))
    if count < 2:
        raise UserError(f"A derivative needs at least two samples, but there are {len(t)}.")
    first = np.clip(np.arange(len(t)) - count // 2, 0, len(t) - count)
    rows = first[:, None] + np.arange(count)[None, :]
    # In units of the stencil's own width the powers stay of order one.
    away = t[rows] - t[:, None]
    width = np.max(np.abs(away), axis=1)
    powers = (away / width[:, None])[:, None, :] ** np.arange(count)[None, :, None]
    slope = np.zeros((len(t), count, 1))
    slope[:, 1] = 1.0
    weights = np.linalg.solve(powers, slope)[..., 0] / width[:, None]
    # Differences to the sample itself, so that a large constant part costs no digits.
    return np.einsum("nk,nkc->nc", weights, values[rows] - values[:, None, :])
