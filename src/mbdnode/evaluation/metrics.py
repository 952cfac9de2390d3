"""The paper's error and its companions.

The printed formula sums the squared error over the state's components and averages over samples;
the paper's table gives the mean over components as well, over the whole rollout, training range
included. We call the latter `mse` and print both.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from mbdnode.errors import UserError
from mbdnode.evaluation.energy import energy_drift
from mbdnode.multibody import (
    AbstractMechanism,
    AbstractSystem,
    Coordinate,
    residuals_along,
    resolve_parameters,
)
from mbdnode.nrmse import column_scales, nrmse_of, row_errors
from mbdnode.trajectory import Trajectory, require_trajectory


@dataclass(frozen=True)
class Metrics:
    """How far a rollout is from the truth.

    **Arguments:**

    - `mse`: mean squared error over components and times, as in the paper's table.
    - `mse_id`: over the training range only; None if there is none, or none was named.
    - `mse_ood`: over the times after it only; likewise.
    - `mse_sum`: summed over components, averaged over times: the paper's printed formula.
    - `position_residual`, `velocity_residual`: largest constraint violation of the prediction.
    - `energy_drift`: largest change of the prediction's energy; None where energy is not conserved,
        because the mechanism dissipates or inputs work on it.
    """

    mse: float
    mse_id: float | None
    mse_ood: float | None
    mse_sum: float
    position_residual: float
    velocity_residual: float
    energy_drift: float | None

    def as_dict(self) -> dict[str, float | None]:
        """By name."""
        return asdict(self)


# A prediction may be so far off that its square is infinite, and so is the error then.
@np.errstate(over="ignore", invalid="ignore")
def evaluate(
    truth: Trajectory,
    prediction: Trajectory,
    *,
    train_steps: int | None = None,
    system: AbstractSystem | None = None,
    parameters: Any = None,
) -> Metrics:
    """Compare a rollout with the truth, which comes first, as in scikit-learn's metrics.

    The errors are the same either way round, residuals and energy are not: they are the
    prediction's. A truth that ended early, is an ensemble's mean or knows where it left the
    training data is a prediction, and is refused.

    **Arguments:**

    - `truth`, `prediction`: single trajectories at the same times, of the same coordinates.
    - `train_steps`: how many steps were for training; splits the error into `id` and `ood`. Zero
        says that none were.
    - `system`: whose constraints and energy are looked at. Without it the residuals are those
        that the prediction has, of the system that its model was made for; they are not a number
        where nobody knows the constraints, as of a log.
    - `parameters`: of the system, if not the defaults.

    **Returns:**

    `Metrics`. Where the prediction ended early, the errors are not a number.
    """
    for run in (truth, prediction):
        require_trajectory(run, "evaluate")
    _check_truth(truth)
    if prediction.coordinates != truth.coordinates or len(prediction) != len(truth):
        raise UserError(
            f"The prediction has {len(prediction)} rows of {', '.join(prediction.coordinates)}, "
            f"the truth {len(truth)} of {', '.join(truth.coordinates)}. Compare like with like."
        )
    found, times = np.asarray(prediction.t), np.asarray(truth.t)
    if not np.allclose(found, times, rtol=0, atol=1e-9 * float(times[-1] - times[0])):
        raise UserError("Prediction and truth have different times. Simulate both at the same.")
    if system is not None:
        prediction.require_columns_of(system, "evaluate")
    squares = np.concatenate(
        [
            (np.asarray(prediction.q) - np.asarray(truth.q)) ** 2,
            (np.asarray(prediction.v) - np.asarray(truth.v)) ** 2,
        ],
        axis=1,
    )
    inside, outside = _split(squares, train_steps)
    position, velocity = _residuals(prediction, system, parameters)
    return Metrics(
        mse=float(np.mean(squares)),
        mse_id=None if inside is None else float(np.mean(inside)),
        mse_ood=None if outside is None else float(np.mean(outside)),
        mse_sum=float(np.mean(np.sum(squares, axis=1))),
        position_residual=position,
        velocity_residual=velocity,
        energy_drift=_drift(prediction, system, parameters),
    )


def _check_truth(truth: Trajectory) -> None:
    """Raise if this can only be a prediction."""
    signs = {
        f"ended early ({truth.status})": not bool(truth.status.ok),
        "has rows that are not finite": not bool(np.all(np.isfinite(np.asarray(truth)))),
        "is the mean of an ensemble": truth.spread is not None,
        "knows where it left the training data": truth.outside is not None,
    }
    for sign, found in signs.items():
        if found:
            raise UserError(
                f"The truth {sign}, as only a prediction does. Pass the truth first: "
                "evaluate(truth, prediction)."
            )


@np.errstate(over="ignore", invalid="ignore")
def nrmse(truth: Trajectory, prediction: Trajectory, coordinates: Sequence[Coordinate]) -> float:
    """The root-mean-square error in units of the motion's own standard deviation.

    Each position and velocity that moves counts alike, by the measure of `mbdnode.nrmse`: the
    unit of an angle is one radian at most, since winding does not make an error smaller.

    **Arguments:**

    - `truth`, `prediction`: single trajectories at the same times.
    - `coordinates`: of both.

    **Returns:**

    A fraction; not a number where the prediction ended early, or nothing moves.
    """
    found = np.concatenate([np.asarray(prediction.q), np.asarray(prediction.v)], axis=1)
    exact = np.concatenate([np.asarray(truth.q), np.asarray(truth.v)], axis=1)
    angles = [*(c.is_angle for c in coordinates), *(False for _ in coordinates)]
    errors = row_errors(exact, found, column_scales([exact], angles))
    return nrmse_of([errors]) if np.all(np.isfinite(found)) else float("nan")


def _split(squares: np.ndarray, train_steps: int | None):
    if train_steps is None:
        return None, None
    if train_steps < 0:
        raise UserError(f"train_steps is {train_steps}; it must not be negative.")
    if train_steps == 0:
        return None, squares
    if train_steps + 1 >= len(squares):
        return squares, None
    return squares[: train_steps + 1], squares[train_steps + 1 :]


def _residuals(run: Trajectory, system, parameters) -> tuple[float, float]:
    if system is None:
        return float(np.max(run.position_residual)), float(np.max(run.velocity_residual))
    mu = resolve_parameters(system, parameters)
    position, velocity = residuals_along(system, run.t, run.q, run.v, mu)
    return float(np.max(position)), float(np.max(velocity))


def _drift(run: Trajectory, system, parameters) -> float | None:
    if not isinstance(system, AbstractMechanism):
        return None
    return energy_drift(system, run, parameters)
