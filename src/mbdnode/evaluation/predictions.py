"""What a model says of held-out runs: each predicted from its initial state and inputs alone.

An initial state that is noisy, or whose velocities were estimated, is itself estimated from the
first tenth of its run, and the prediction begins after it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import numpy as np

from mbdnode.data.signal import noise_level
from mbdnode.identification import estimate_states
from mbdnode.models import AbstractModel
from mbdnode.multibody import AbstractSystem
from mbdnode.simulation import Domain, simulate
from mbdnode.trajectory import State, Trajectory

# Above this part of its standard deviation a column's noise is more than round-off.
_NOISY = 1e-6
# Rows that an initial state is estimated from: a tenth of a run, within these bounds; and the part
# of a short run that they may be.
_FEWEST_BEFORE, _MOST_BEFORE, _SHARE_BEFORE = 10, 200, 0.25


@dataclass(frozen=True)
class HeldOut:
    """A run that was not trained on, and what the model says of it.

    **Arguments:**

    - `name`: of the run, as its log calls it.
    - `truth`, `prediction`: at the same times, the prediction from the first state alone.
    - `outside`: for each row of the prediction, whether it lies outside the training data.
    - `recorded`: the columns of `truth` that were measured; the others were estimated, or follow
        from the constraints.
    - `biased`: recorded velocities that contradict their positions: shown, and not scored.
    """

    name: str
    truth: Trajectory
    prediction: Trajectory
    outside: np.ndarray
    recorded: tuple[str, ...]
    biased: tuple[str, ...] = ()


def predict(
    model: Any,
    truth: Trajectory,
    integrator: str,
    parameters: Mapping,
    *,
    check_step: bool = False,
) -> Trajectory:
    """What a model says of a motion, from the part of it that the model may see.

    **Arguments:**

    - `model`: a trained model, or a mechanism.
    - `truth`: the motion: its times, its inputs, its first state, or its first few.
    - `integrator`: for a model that has one.
    - `parameters`: of the system, if not the defaults.
    - `check_step`: as for `simulate`, where someone reads the status.

    **Returns:**

    A `Trajectory` at the same times.
    """
    past = model.history if isinstance(model, AbstractModel) else 1
    first = State(*jax.device_put((np.asarray(truth.q)[0], np.asarray(truth.v)[0])))
    initial = truth.rows(0, past - 1) if past > 1 else first
    driven = bool(np.any(np.asarray(truth.u)))
    options: dict[str, Any] = {"inputs": truth.u if driven else None}
    if isinstance(model, AbstractSystem):
        options |= {"parameters": parameters, "integrator": integrator, "check_step": check_step}
    return simulate(model, truth.t, initial, **options)


def predict_runs(
    model: Any,
    runs: Sequence[tuple[str, Trajectory, Mapping[str, float]]],
    recorded: Sequence[str] | None,
    domain: Domain,
    integrator: str,
    *,
    biased: Sequence[str] = (),
    begins: Sequence[int] | None = None,
    check_step: bool = False,
) -> tuple[HeldOut, ...]:
    """Predict held-out runs from their initial states and inputs.

    **Arguments:**

    - `model`: trained.
    - `runs`: with their names and parameters.
    - `recorded`: which columns were measured; None for all.
    - `domain`: where the training data lies.
    - `integrator`: of the rollouts.
    - `biased`: recorded velocities that contradict their positions, as the training data has shown:
        they tell no state, and are not scored.
    - `begins`: the row of each run at which its prediction begins, from a state that is estimated
        from the rows before; as `rows_before` says if None.
    - `check_step`: as for `predict`.

    **Returns:**

    A `HeldOut` for each run. Where the first state is noisy or its rates were estimated, the state
    after the first tenth of the run is estimated from it, and the prediction begins there.
    """
    if begins is None:
        begins = [rows_before(model, run, recorded) for _, run, _ in runs]
    places = [
        (run, first, first, parameters)
        for (_, run, parameters), first in zip(runs, begins, strict=True)
    ]
    states = initial_states(model, places, recorded, integrator, biased)
    result = []
    for (name, run, parameters), first, state in zip(runs, begins, states, strict=True):
        truth = run.rows(first, len(run) - 1) if first else run
        begun = truth if state is None else begin_at(truth, state)
        prediction = predict(model, begun, integrator, parameters, check_step=check_step)
        told = run.columns[1:] if recorded is None else (*recorded, *run.inputs)
        outside = domain.outside(prediction)
        result.append(HeldOut(name, truth, prediction, outside, told, tuple(biased)))
    return tuple(result)


def initial_states(
    model: Any,
    places: Sequence[tuple[Trajectory, int, int, Mapping[str, float]]],
    recorded: Sequence[str] | None,
    integrator: str,
    biased: Sequence[str],
) -> list[State | None]:
    """Where predictions begin, estimated from the rows before; None if there are none.

    Each of `places` has a run, a row of it, how many rows before it are looked at, and parameters.
    """
    found: list[State | None] = [None] * len(places)
    late = [i for i, (_, _, before, _) in enumerate(places) if before]
    if late:
        states = estimate_states(
            model,
            [run.rows(row - before, row) for run, row, before, _ in places if before],
            integrator=integrator,
            parameters=[places[i][3] for i in late],
            recorded=_without_names(places[0][0], recorded, biased),
        )
        for i, state in zip(late, states, strict=True):
            found[i] = state
    return found


def _without_names(
    run: Trajectory, recorded: Sequence[str] | None, names: Sequence[str]
) -> tuple[str, ...] | None:
    """The recorded columns but for some; None for all of them."""
    if not names:
        return None if recorded is None else tuple(recorded)
    told = run.columns if recorded is None else recorded
    return tuple(name for name in told if name not in names)


def rows_before(model: Any, run: Trajectory, recorded: Sequence[str] | None) -> int:
    """How many rows of a run its initial state is estimated from.

    Zero where the first state was measured, where the model gives no rates and begins with what was
    measured, or where a run is too short to tell more.
    """
    count = min(max(len(run) // 10, _FEWEST_BEFORE), _MOST_BEFORE)
    if not isinstance(model, AbstractSystem) or count > _SHARE_BEFORE * len(run):
        return 0
    told = run.columns if recorded is None else tuple(recorded)
    pairs = zip(run.coordinates, run.rates, strict=True)
    if any(name in told and rate not in told for name, rate in pairs):
        return count
    t = np.asarray(run.t)
    for name in run.coordinates:
        column = np.asarray(run[name])
        if name in told and noise_level(t, column) > _NOISY * float(np.std(column)):
            return count
    return 0


def begin_at(run: Trajectory, state: State) -> Trajectory:
    """The run with another first state."""
    q, v = np.array(run.q), np.array(run.v)
    q[0], v[0] = state.q, state.v
    # By NumPy: JAX would compile this for every length of a run.
    return eqx.tree_at(lambda r: (r.q, r.v), run, (jax.device_put(q), jax.device_put(v)))


def table_of(run: Trajectory, names: Sequence[str]) -> np.ndarray:
    """Some columns side by side, by NumPy: JAX would compile a program for every length."""
    columns = (*run.coordinates, *run.rates)
    whole = np.concatenate([np.asarray(run.q), np.asarray(run.v)], axis=1)
    return whole[:, [columns.index(name) for name in names]]


def predicted_rows(prediction: Trajectory) -> int:
    """How many rows there are before the first that is not a number."""
    states = np.concatenate([np.asarray(prediction.q), np.asarray(prediction.v)], axis=1)
    bad = np.flatnonzero(~np.all(np.isfinite(states), axis=1))
    return int(bad[0]) if bad.size else len(states)
