"""Fits by output error: parameters for which the simulated motion is the one that was recorded.

What the simulation misses is made small over the parameters and all initial states together, by
Levenberg-Marquardt. An initial state matters to its own segment alone and is eliminated there, so a
step does not cost more for there being many:

    minimize |r + J_p dp + J_x dx|   over dx in each segment, then over dp by a small dense problem.

Noise enters once, where it was measured, and not as an error of states or derivatives, so the
estimate has no errors-in-variables bias. Several fits go on side by side: each asks for what is
missed at one point after another, and all that they ask for is simulated together.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import jax.numpy as jnp
import numpy as np

from mbdnode import levenberg_marquardt
from mbdnode.identification.parameters.output_error import OutputError
from mbdnode.identification.parameters.segments import Lanes, SegmentedRuns, initial_guess
from mbdnode.identification.parameters.unknowns import Unknowns

# Iterations at most for one length of segments; a cost that falls by less than this part settled.
_MOST_ITERATIONS, _SETTLED = 40, 1e-6
# How often a fit is made again with the prior of profiles in units of what the last one missed, as
# long as that falls by more than this.
_ROUNDS, _FALLS = 3, 0.5


@dataclass(frozen=True)
class Fit:
    """What is to be fitted, from where.

    **Arguments:**

    - `lanes`: the data.
    - `unknowns`: bounds and priors.
    - `values`, `initial`: where to begin.
    - `held`: whether initial states stay as they are.
    - `counts`: of every row of every run, whether it is fitted; all that there are if not given.
    - `weights`: of the squared residuals of every row; one if not given.
    - `iterations`: at most, of Levenberg-Marquardt.
    - `settled`: the part of the cost by which an iteration must lower it to go on.
    """

    lanes: Lanes
    unknowns: Unknowns
    values: np.ndarray
    initial: np.ndarray
    held: bool = False
    counts: np.ndarray | None = None
    weights: np.ndarray | None = None
    iterations: int = _MOST_ITERATIONS
    settled: float = _SETTLED


@dataclass(frozen=True)
class Fitted:
    """Where the search ended.

    **Arguments:**

    - `values`: of the unknown parameters.
    - `initial`: `(runs, segments, 2 DOF)`, the independent positions and velocities at the start
        of each segment.
    - `residuals`: `(runs, rows, columns)`, in units of the noise; zero where no row is.
    - `jacobian`: of all residuals by the parameters, with the initial states eliminated; the last
        rows are those of smooth profiles.
    - `cost`: the sum of squares, that of the prior included.
    - `rows`: that count.
    - `states`: how many numbers of initial states were fitted.
    """

    values: np.ndarray
    initial: np.ndarray
    residuals: np.ndarray = field(repr=False)
    jacobian: np.ndarray = field(repr=False)
    cost: float
    rows: int
    states: int

    @property
    def rms(self) -> float:
        """The residual in units of the noise: one for a perfect model."""
        return float(np.sqrt(np.sum(self.residuals**2) / (self.rows * self.residuals.shape[2])))


@dataclass(frozen=True)
class FitRequest:
    """Fits from several values to one cut of the runs: what a worker is told, that has the runs.

    **Arguments:**

    - `edges`, `interpolation`: the rows at which segments begin, and how inputs change.
    - `unknowns`: bounds and priors.
    - `starts`: the values to begin at, a fit for each; they go on side by side.
    - `initial`: the initial states to begin at; as measured if None.
    - `substeps`: of the integrator in each step.
    - `options`: of each `Fit`.
    """

    edges: list[np.ndarray]
    interpolation: str
    unknowns: Unknowns
    starts: Sequence[np.ndarray]
    initial: np.ndarray | None
    substeps: int
    options: dict[str, Any]


def fit_arrays(
    problem: OutputError, runs: SegmentedRuns, asked: FitRequest
) -> dict[str, np.ndarray] | None:
    """As `fit_each`, in arrays by name, that `from_arrays` takes; None if nothing was fitted."""
    lanes = runs.lanes(asked.edges, asked.interpolation)
    initial = initial_guess(lanes) if asked.initial is None else asked.initial
    fits = [Fit(lanes, asked.unknowns, one, initial, **asked.options) for one in asked.starts]
    found = {
        f"{number} {name}": np.asarray(value)
        for number, one in enumerate(fit_each(problem, fits, asked.substeps))
        if one is not None
        for name, value in vars(one).items()
    }
    return found or None


def from_arrays(found: dict[str, np.ndarray] | None, count: int) -> list["Fitted | None"]:
    """What `fit_arrays` fitted, for each of so many starts."""
    each: list[Fitted | None] = []
    for number in range(count):
        own = {f.name: (found or {}).get(f"{number} {f.name}") for f in fields(Fitted)}
        plain: Any = {k: x if x.ndim else x.item() for k, x in own.items() if x is not None}
        each.append(Fitted(**plain) if plain else None)
    return each


def fit_each(problem: OutputError, fits: Sequence[Fit], substeps: int) -> list[Fitted | None]:
    """The parameters and initial states with the smallest output error, near each start.

    What was `Fitted`, for each; None if the simulation from there does not reach the end of the
    segments.
    """
    found: list[Fitted | None] = [None] * len(fits)
    searches = [_search(fit) for fit in fits]
    asked = {number: next(search) for number, search in enumerate(searches)}
    # A model that does not follow the data misses it by more than can be squared.
    with np.errstate(over="ignore", invalid="ignore"):
        while asked:
            answers: dict[int, Any] = {}
            for lanes in {id(fits[i].lanes): fits[i].lanes for i in asked}.values():
                own = [i for i in asked if fits[i].lanes is lanes]
                points = problem.each([asked[i] for i in own], lanes, jnp.asarray(substeps))
                answers |= dict(zip(own, points, strict=True))
            for number, answer in answers.items():
                try:
                    asked[number] = searches[number].send(answer)
                except StopIteration as end:
                    found[number] = end.value
                    del asked[number]
    return found


Point = tuple[np.ndarray, np.ndarray]


def _search(fit: Fit) -> Generator[Point, Point, Fitted | None]:
    """One fit: asks for residuals and derivatives at a point, until it has settled."""
    unknowns, held, initial = fit.unknowns, fit.held, fit.initial
    blocks, smoothness = fit.lanes.blocks(), unknowns.smoothness()
    counts = np.asarray(fit.lanes.counts)
    counts = counts if fit.counts is None else counts & fit.counts

    def fitted_part(answer: Point) -> Point:
        now, slopes = answer
        if fit.counts is not None:
            now = np.where(counts[..., None], now, 0.0)
            slopes = np.where(counts[..., None, None], slopes, 0.0)
        if fit.weights is not None:
            root = np.sqrt(fit.weights)
            now, slopes = root[..., None] * now, root[..., None, None] * slopes
        return now, slopes

    def residual(x, now):
        prior = (x[0] - unknowns.prior_mean) / unknowns.prior_std
        return np.concatenate([now.ravel(), prior, smooth @ x[0]])

    def step(jacobian, flat, damping):
        slopes, x = jacobian
        now = flat[: -len(x) - len(smooth)].reshape(slopes.shape[:-1])
        if held:
            reduced = slopes[..., : len(x)].reshape(-1, len(x)), now.ravel()
        else:
            reduced = _eliminated(now, slopes, blocks, len(x))
        change = unknowns.limited(x, _step(*reduced, x, unknowns, smooth, damping)) - x
        if held:
            return change, np.zeros_like(initial)
        return change, _moves(now, slopes, blocks, change, initial.shape)

    # A model that misses more than the noise, and misses alike from sample to sample, says less of
    # its profiles than its rows are many: their prior is in units of what it misses, which is known
    # after the fit.
    x, rounds = (fit.values, initial), 0
    now, slopes = fitted_part((yield x))
    while True:
        unit = _unit_of_misses(now, blocks)
        smooth = unit * smoothness
        search = levenberg_marquardt.descend(
            x, step=step, iterations=fit.iterations, tolerance=fit.settled
        )
        asked, best = next(search), np.inf
        own = now, slopes
        while True:
            missed = residual(asked, own[0])
            cost = float(np.sum(missed**2))
            if cost < best:
                (now, slopes), best = own, cost
            try:
                asked = search.send((missed, (own[1], asked[0])))
            except StopIteration as end:
                found = end.value
                break
            own = fitted_part((yield asked))
        x, rounds = found.x, rounds + 1
        if not (len(smoothness) and np.isfinite(found.cost)) or rounds == _ROUNDS:
            break
        if not _unit_of_misses(now, blocks) < _FALLS * unit:
            break
    if not (np.isfinite(found.cost) and np.all(np.isfinite(slopes))):
        return None
    matrix = _eliminated(now, slopes, blocks, len(x[0]))[0]
    matrix = np.vstack([matrix, smooth])
    states = 0 if held else len(blocks) * initial.shape[2]
    values, initial = x
    return Fitted(values, initial, now, matrix, float(found.cost), int(np.sum(counts)), states)


def _parts(now, slopes, blocks, count: int):
    """Of every segment: residuals, and their derivatives by parameters and by its own state."""
    for run, number, rows in blocks:
        matrix = slopes[run, rows].reshape(-1, slopes.shape[-1])
        yield run, number, now[run, rows].ravel(), matrix[:, :count], matrix[:, count:]


def _eliminated(now, slopes, blocks, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The problem of the parameters alone: matrix and right side, without what an initial state
    can make good.
    """
    matrices, sides = [], []
    for _, _, away, by_values, by_initial in _parts(now, slopes, blocks, count):
        both = np.column_stack([by_values, away])
        basis = np.linalg.qr(by_initial)[0]
        both = both - basis @ (basis.T @ both)
        matrices.append(both[:, :-1])
        sides.append(both[:, -1])
    return np.concatenate(matrices), np.concatenate(sides)


def _moves(now, slopes, blocks, change: np.ndarray, shape) -> np.ndarray:
    """What the initial states do when the parameters change."""
    moves = np.zeros(shape)
    for run, number, away, by_values, by_initial in _parts(now, slopes, blocks, len(change)):
        left = away + by_values @ change
        moves[run, number] = -np.linalg.lstsq(by_initial, left, rcond=1e-12)[0]
    return moves


def independent_residuals(residuals: np.ndarray, blocks) -> int:
    """How many residuals say something of their own: all of them where they are noise, and as many
    as change sign where a model misses alike from sample to sample.
    """
    parts = [part for run, _, rows in blocks if np.any(part := residuals[run, rows])]
    size = sum(part.size for part in parts)
    changes = sum(int(np.sum(part[1:] * part[:-1] < 0)) for part in parts)
    return max(1, min(size, 2 * changes + len(parts)))


def pays_for_states(free: Fitted, held: Fitted, blocks) -> bool:
    """Whether fitted initial states are worth their number: they halve the error, and lower it by
    more than the Bayesian criterion asks, of residuals of which as many are independent as change
    sign.
    """
    count = independent_residuals(free.residuals, blocks)
    gain = np.log(np.sum(held.residuals**2) / max(np.sum(free.residuals**2), 1e-300))
    return bool(gain > np.log(4.0) and count * gain > free.states * np.log(count))


def _unit_of_misses(residuals: np.ndarray, blocks) -> float:
    """The size of an independent residual if all were of that size; one for noise alone."""
    total = float(np.sum(residuals**2))
    return max(1.0, np.sqrt(total / independent_residuals(residuals, blocks)))


def _step(
    matrix: np.ndarray,
    right: np.ndarray,
    values: np.ndarray,
    unknowns: Unknowns,
    smooth: np.ndarray,
    damping: float,
) -> np.ndarray:
    """The damped step of the parameters that are not held by a bound."""
    prior = 1 / unknowns.prior_std
    matrix = np.vstack([matrix, np.diag(prior), smooth]) * unknowns.scale
    right = np.concatenate([right, prior * (values - unknowns.prior_mean), smooth @ values])
    slope = matrix.T @ right
    held = ((values <= unknowns.low) & (slope > 0)) | ((values >= unknowns.high) & (slope < 0))
    matrix = np.where(held, 0.0, matrix)
    # Relative to the longest column too: what the data cannot tell must not wander.
    lengths = np.linalg.norm(matrix, axis=0)
    floor = np.diag(1e-6 * np.sqrt(damping) * np.full(len(values), lengths.max(initial=0.0)))
    step = levenberg_marquardt.damped_step(
        np.vstack([matrix, floor]), np.concatenate([right, np.zeros(len(values))]), damping
    )
    return np.where(held, 0.0, step) * unknowns.scale
