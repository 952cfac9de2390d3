"""States at the ends of measured runs of a mechanism, from which to predict.

As `identification.initial_states` does it for models that give rates of minimal coordinates, but
through the simulation of the mechanism itself: with its constraints, and with friction that sticks.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from mbdnode.data.rows import rows_of
from mbdnode.data.signal import noise_levels
from mbdnode.identification.parameters.output_error import OutputError
from mbdnode.identification.parameters.segments import choose_splits, initial_guess, lay_out
from mbdnode.identification.regression.weak_form import samples_per_period
from mbdnode.levenberg_marquardt import minimize_each
from mbdnode.multibody import AbstractMechanism
from mbdnode.trajectory import Dataset, State, Trajectory

# The end of a run that tells its last state: so many periods, and rows.
_PERIODS, _SHORTEST = 2.0, 10
# Noise that is smaller than this part of the motion is not told from rounding.
_SMALLEST_NOISE = 1e-7
# Measured states are near enough for nearly the whole Gauss-Newton step.
_DAMPING = 1e-6
# Of RK4, where the data's own step is too long for it.
_SUBSTEPS = 4


def end_states_of_mechanism(
    mechanism: AbstractMechanism,
    runs: Sequence[Trajectory],
    parameters: Sequence[Mapping[str, Any]],
    recorded: Sequence[str] | None,
    integrator: str,
) -> list[State]:
    """The state at the end of each run, from the simulated path that misses its end least.

    **Arguments:**

    - `recorded`: the columns that were measured; None for all.

    **Returns:**

    A `State` for each run; as measured where the mechanism does not follow the run.
    """
    states = (*mechanism.coordinate_names, *mechanism.rate_names)
    columns = tuple(name for name in states if recorded is None or name in recorded)
    ends = [_end_of(mechanism, run, own) for run, own in zip(runs, parameters, strict=True)]
    known = [(run, dict(own)) for run, own in zip(ends, parameters, strict=True)]
    tables = [
        (np.asarray(run.t), np.stack([np.asarray(run[name]) for name in columns], axis=1))
        for run in ends
    ]
    motion = np.std(np.concatenate([table for _, table in tables]), axis=0)
    noise = noise_levels(tables)
    floor = _SMALLEST_NOISE * np.where(motion > 0, motion, 1.0)
    unit = np.maximum(np.where(np.isfinite(noise), noise, 0.0), floor)
    edges = [np.array([0, len(run) - 1]) for run in ends]
    splits = [
        choose_splits(mechanism, run, own, rows)
        for (run, own), rows in zip(known, edges, strict=True)
    ]
    lanes = lay_out(mechanism, known, columns, edges, splits, mechanism.interpolation, 1)
    problem = OutputError(mechanism.core, (), (), columns, jnp.asarray(unit))
    nothing, substeps = jnp.zeros(0), jnp.asarray(1 if integrator == "rk4" else _SUBSTEPS)

    def missed(x, which):
        found = problem(nothing, jnp.asarray(x)[:, None], lanes, substeps)[which]
        size = (len(ends), -1) if which == 0 else (len(ends), -1, x.shape[1])
        return np.asarray(found).reshape(size)

    start = initial_guess(lanes)[:, 0]
    initial = minimize_each(
        lambda x: missed(x, 0), lambda x: missed(x, 1), start, damping=_DAMPING
    ).x
    paths = np.asarray(problem.paths(nothing, jnp.asarray(initial)[:, None], lanes, substeps))
    count = len(mechanism.coordinates)
    reached = [path[len(run) - 1] for path, run in zip(paths, ends, strict=True)]
    return [
        State(jnp.asarray(row[:count]), jnp.asarray(row[count:]))
        if np.all(np.isfinite(row))
        else State(run.q[-1], run.v[-1])
        for row, run in zip(reached, ends, strict=True)
    ]


def _end_of(mechanism: AbstractMechanism, run: Trajectory, own: Mapping[str, Any]) -> Trajectory:
    """About the last periods of a run."""
    every = tuple(range(len(mechanism.coordinates)))
    rows = rows_of(mechanism, every, Dataset(run, dict(own)), accelerations=False)
    count = max(_SHORTEST, int(_PERIODS * samples_per_period(rows)))
    return run.rows(max(0, len(run) - 1 - count), len(run) - 1)
