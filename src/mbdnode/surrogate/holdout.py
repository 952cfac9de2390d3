"""Which runs are kept from training, to be judged by."""

from dataclasses import dataclass

import numpy as np

from mbdnode.errors import UserError
from mbdnode.trajectory import Dataset, Trajectory

# A single run is cut in two: its end is what is held out.
_FEWEST_ROWS = 10


@dataclass(frozen=True)
class Split:
    """What is learned from, and what is judged by.

    **Arguments:**

    - `training`: a dataset.
    - `held_out`: runs by name, with their parameters.
    """

    training: Dataset
    held_out: tuple[tuple[str, Trajectory, dict[str, float]], ...]


def run_names(data: Dataset) -> list[str]:
    """A name for each trajectory: its file and run, and the piece where a run was cut."""
    if data.summary is None:
        return [f"run {number}" for number in range(len(data.trajectories))]
    return [
        run.place if len(run.pieces) == 1 else f"{run.place}, piece {piece + 1}"
        for run in data.summary.runs
        for piece in range(len(run.pieces))
    ]


def split(data: Dataset, fraction: float, seed: int = 0) -> Split:
    """Hold out a part of the runs; of a single run, its end.

    **Arguments:**

    - `data`: all of it.
    - `fraction`: of the runs, at least one of several; zero for none.
    - `seed`: of the draw.

    **Returns:**

    A `Split`. Raises `UserError` for a fraction that leaves nothing to learn from.
    """
    if not 0 <= fraction < 1:
        raise UserError(
            f"The part that is held out is {fraction:g}; it must be at least 0 and below 1."
        )
    runs, names = data.trajectories, run_names(data)
    if fraction == 0:
        return Split(data, ())
    if len(runs) == 1:
        return _cut(data, names[0], fraction)
    count = min(max(1, round(fraction * len(runs))), len(runs) - 1)
    chosen = set(np.random.default_rng(seed).permutation(len(runs))[:count].tolist())
    kept = [i for i in range(len(runs)) if i not in chosen]
    training = Dataset([runs[i] for i in kept], [data.parameters[i] for i in kept], data.summary)
    held = tuple((names[i], runs[i], dict(data.parameters[i])) for i in sorted(chosen))
    return Split(training, held)


def _cut(data: Dataset, name: str, fraction: float) -> Split:
    run, parameters = data.trajectories[0], data.parameters[0]
    last = int((1 - fraction) * (len(run) - 1))
    if last < _FEWEST_ROWS or len(run) - 1 - last < 2:
        raise UserError(
            f"The only run has {len(run)} rows, too few to learn from one part and judge by the "
            "other. Log more, or pass --holdout 0."
        )
    rest = run.rows(last, len(run) - 1)
    training = Dataset(run.rows(0, last), parameters, data.summary)
    return Split(training, ((f"{name}, its end", rest, dict(parameters)),))
