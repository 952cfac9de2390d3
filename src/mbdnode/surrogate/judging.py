"""How well a model predicts runs that it has not seen, and how far ahead."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import numpy as np

from mbdnode.data.logs import noise_level
from mbdnode.experiments.run import predict
from mbdnode.multibody import AbstractSystem
from mbdnode.report.fit_story import HeldOut, Horizon
from mbdnode.simulation import Domain
from mbdnode.training import estimate_state
from mbdnode.trajectory import Trajectory

# A model is trusted while its median error is below this part of the motion's own spread.
LIMIT = 0.1
_STARTS, _POINTS = 24, 40
# Above this part of the spread a column's noise is more than round-off.
_NOISY = 1e-6


def spreads(runs: Sequence[Trajectory], recorded: tuple[str, ...]) -> dict[str, float]:
    """The standard deviation of every recorded column over some runs, one where it stands still."""
    columns = [*recorded, *(f"{name}_dot" for name in recorded)]
    found = {
        name: float(np.std(np.concatenate([np.asarray(run[name]) for run in runs])))
        for name in columns
    }
    return {name: value if value > 0 else 1.0 for name, value in found.items()}


def judge(
    model: Any,
    name: str,
    run: Trajectory,
    parameters: dict[str, float],
    recorded: tuple[str, ...],
    domain: Domain,
    integrator: str,
) -> HeldOut:
    """A held-out run, and what the model says of it from its start alone.

    **Arguments:**

    - `model`: trained.
    - `name`, `run`, `parameters`: of the run.
    - `recorded`: which coordinates were measured.
    - `domain`: where the training data lies.
    - `integrator`: of the rollout.

    **Returns:**

    A `HeldOut`. Where the start is noisy, the state after the first tenth of the run is estimated
    from it, and the prediction begins there.
    """
    first = _begin(model, run, recorded)
    truth = run if first == 0 else run.rows(first, len(run) - 1)
    if first:
        state = estimate_state(
            model, run.rows(0, first), integrator=integrator, parameters=parameters
        )
        truth_start = _with_start(truth, state)
    else:
        truth_start = truth
    found = predict(model, truth_start, integrator, parameters)
    columns = (*recorded, *(f"{one}_dot" for one in recorded), *run.inputs)
    return HeldOut(name, truth, found, domain.outside(found), columns)


def _begin(model: Any, run: Trajectory, recorded: tuple[str, ...]) -> int:
    """The row from which to predict: the first, unless what is measured there is noisy."""
    if not isinstance(model, AbstractSystem) or len(run) < 100:
        return 0
    t = np.asarray(run.t)
    shares = []
    for name in recorded:
        column = np.asarray(run[name])
        shares.append(noise_level(t, column) / max(float(np.std(column)), 1e-300))
    return min(len(run) // 10, 200) if max(shares) > _NOISY else 0


def _with_start(run: Trajectory, state: Any) -> Trajectory:
    q, v = run.q.at[0].set(state.q), run.v.at[0].set(state.v)
    return eqx.tree_at(lambda r: (r.q, r.v), run, (q, v))


# A prediction may be so far off that its square is infinite, and so is the error then.
@np.errstate(over="ignore", invalid="ignore")
def error_of(one: HeldOut, spread: dict[str, float]) -> float | None:
    """Root mean square over the recorded states of a run, in spreads; None if it ended early."""
    parts = [
        (np.asarray(one.prediction[name]) - np.asarray(one.truth[name])) / spread[name]
        for name in one.recorded
        if name in spread
    ]
    value = float(np.sqrt(np.mean(np.square(parts))))
    return value if np.isfinite(value) else None


def measure_horizon(
    model: Any,
    held_out: Sequence[HeldOut],
    parameters: Sequence[dict[str, float]],
    spread: dict[str, float],
    integrator: str,
) -> Horizon | None:
    """The error against the time ahead, from many starts in the held-out runs.

    **Arguments:**

    - `model`: trained; one that goes on from any state.
    - `held_out`, `parameters`: the runs.
    - `spread`: of each recorded column in the training data.
    - `integrator`: of the rollouts.

    **Returns:**

    A `Horizon`; None where the runs are too short, or the model cannot start anywhere.
    """
    if not isinstance(model, AbstractSystem) or not held_out:
        return None
    shortest = min(len(one.truth) for one in held_out)
    steps = shortest // 2
    if steps < 4:
        return None
    each = max(1, _STARTS // len(held_out))
    ahead = np.unique(np.geomspace(1, steps, _POINTS).astype(int))
    times, errors, still = [], [], []
    for one, values in zip(held_out, parameters, strict=True):
        for start in np.linspace(0, len(one.truth) - 1 - steps, each).astype(int):
            piece = one.truth.rows(int(start), int(start) + steps)
            found = predict(model, piece, integrator, values)
            times.append(np.asarray(piece.t)[ahead] - float(piece.t[0]))
            errors.append(_errors(found, piece, spread)[ahead])
            held = {name: np.asarray(piece[name])[:1] for name in spread}
            apart = [(held[n] - np.asarray(piece[n])) / spread[n] for n in spread]
            still.append(np.sqrt(np.mean(np.square(apart), axis=0))[ahead])
    # A rollout that failed is as wrong as can be, which a quantile can bear.
    table = np.nan_to_num(np.array(errors), nan=np.inf, posinf=np.inf)
    low, middle, high = np.quantile(table, [0.25, 0.5, 0.75], axis=0, method="nearest")
    seconds = np.median(np.array(times), axis=0)
    good = middle <= LIMIT
    until = len(good) if np.all(good) else int(np.argmin(good))
    return Horizon(
        ahead_s=seconds,
        low=low,
        middle=middle,
        high=high,
        persistence=np.median(np.array(still), axis=0),
        trusted_s=float(seconds[until - 1]) if until else None,
        limit=LIMIT,
    )


@np.errstate(over="ignore", invalid="ignore")
def _errors(found: Trajectory, truth: Trajectory, spread: dict[str, float]) -> np.ndarray:
    """Of every row, the root mean square over recorded columns in spreads."""
    parts = [(np.asarray(found[n]) - np.asarray(truth[n])) / spread[n] for n in spread]
    return np.sqrt(np.mean(np.square(parts), axis=0))
