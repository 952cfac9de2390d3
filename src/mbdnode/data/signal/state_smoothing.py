"""Positions and velocities together, smoothed: each says what the other is.

A coordinate whose jerk is white noise of intensity `q` has states `x = (position, velocity,
acceleration)` with

    x(t + dt) = F(dt) x(t) + w,    w ~ N(0, q W(dt)),

and the measured positions and velocities are those states with noise of known size. The most likely
states minimize

    sum |z - x_1|^2/sigma_z^2 + |s - x_2|^2/sigma_s^2 + w . W^-1 w/q,

a banded system, solved in time proportional to the rows, forward and backward in one (it is the
smoother of Rauch, Tung and Striebel). The intensity is the one under which the measurements are
likeliest. Velocities tell how a position changes over many samples and positions where it
is, so both lose most of their noise without a fast motion being cut short.
"""

from collections.abc import Sequence

import numpy as np

# Rows that choose the intensity; more say the same.
_ENOUGH = 5_000
# Exponents of ten of the intensity, in units of the noise and of the mean step; a motion that is
# slower than the first of them is not smoothed more, since round-off would spoil it.
_EXPONENTS = np.arange(-9.0, 8.0, 2.0)
_ABOVE = 5  # Diagonals of the banded matrix above the main one.

# Times, positions and velocities of one coordinate in one run.
Run = tuple[np.ndarray, np.ndarray, np.ndarray]


def smooth_states(
    runs: Sequence[Run], position_noise: float, rate_noise: float
) -> list[tuple[np.ndarray, np.ndarray]]:
    """The likeliest positions and velocities of one coordinate.

    **Arguments:**

    - `runs`: times, positions and velocities of each run; evenly spaced or not.
    - `position_noise`, `rate_noise`: their standard deviations; infinity for velocities that were
        not measured.

    **Returns:**

    Positions and velocities of each run. Runs of fewer than three rows are as they were.
    """
    from scipy.optimize import minimize_scalar  # Slow to load for who only looks at a log.

    able = [run for run in runs if len(run[0]) > 2]
    if not able:
        return [(z, s) for _, z, s in runs]
    step = float(np.median(np.concatenate([np.diff(t) for t, _, _ in able])))
    ratio = rate_noise * step / position_noise

    def scaled(run: Run) -> Run:
        t, z, s = run
        return np.diff(t) / step, z / position_noise, s * step / position_noise

    some = [scaled(run) for run in _evenly(able)]
    cost = lambda exponent: sum(_solve(*run, ratio, 10.0**exponent)[1] for run in some)  # noqa: E731
    costs = [cost(exponent) for exponent in _EXPONENTS]
    near = _EXPONENTS[int(np.argmin(costs))]
    found = minimize_scalar(
        cost,
        bounds=(max(near - 2.0, _EXPONENTS[0]), near + 2.0),
        method="bounded",
        options={"xatol": 0.1},
    )
    intensity = 10.0 ** float(found.x)  # pyright: ignore[reportAttributeAccessIssue]
    smooth = []
    for run in runs:
        if len(run[0]) <= 2:
            smooth.append(run[1:])
            continue
        states = _solve(*scaled(run), ratio, intensity)[0]
        smooth.append((states[:, 0] * position_noise, states[:, 1] * position_noise / step))
    return smooth


def _evenly(runs: list[Run]) -> list[Run]:
    """As many runs as make enough rows together, at least one."""
    most = max(1, _ENOUGH // max(len(t) for t, _, _ in runs))
    return [runs[i] for i in np.unique(np.linspace(0, len(runs) - 1, most).astype(int))]


def _solve(
    dt: np.ndarray, z: np.ndarray, s: np.ndarray, ratio: float, intensity: float
) -> tuple[np.ndarray, float]:
    """The likeliest states in units of the position's noise, and -2 log likelihood of the data."""
    from scipy.linalg import cho_solve_banded, cholesky_banded

    count, inverse = len(z), 0.0 if np.isinf(ratio) else 1 / ratio**2
    step, weight = _moved(dt), _information(dt) / intensity
    turned = np.swapaxes(step, 1, 2) @ weight
    diagonal, beside = np.zeros((count, 3, 3)), -turned
    diagonal[:-1] += turned @ step
    diagonal[1:] += weight
    diagonal[:, 0, 0] += 1.0
    diagonal[:, 1, 1] += inverse
    # A vague origin, so that nothing is singular where velocities are not measured.
    diagonal[0] += 1e-12 * np.eye(3)
    right = np.stack([z, inverse * (s if inverse else np.zeros(count)), np.zeros(count)], axis=1)
    banded = np.zeros((_ABOVE + 1, 3 * count))
    for i in range(3):
        for j in range(3):
            if i <= j:
                banded[_ABOVE + i - j, j::3] = diagonal[:, i, j]
            banded[_ABOVE + i - j - 3, 3 + j :: 3] = beside[:, i, j]
    factor = cholesky_banded(banded)
    states = cho_solve_banded((factor, False), right.ravel()).reshape(count, 3)
    jumps = states[1:] - np.einsum("nij,nj->ni", step, states[:-1])
    squares = np.sum((states[:, 0] - z) ** 2) + np.einsum("ni,nij,nj->", jumps, weight, jumps)
    if inverse:
        squares += inverse * np.sum((states[:, 1] - s) ** 2)
    sizes = 2 * np.sum(np.log(factor[_ABOVE])) + 3 * (count - 1) * np.log(intensity)
    return states, float(squares + sizes)


def _moved(dt: np.ndarray) -> np.ndarray:
    """`F(dt)` of every step."""
    step = np.tile(np.eye(3), (len(dt), 1, 1))
    step[:, 0, 1] = step[:, 1, 2] = dt
    step[:, 0, 2] = dt**2 / 2
    return step


def _information(dt: np.ndarray) -> np.ndarray:
    """The inverse of `W(dt)` of every step."""
    powers = [[720, -360, 60], [-360, 192, -36], [60, -36, 9]]
    orders = np.array([[5, 4, 3], [4, 3, 2], [3, 2, 1]])
    return np.array(powers, float) / dt[:, None, None] ** orders
