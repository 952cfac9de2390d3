"""From what a log recorded to the whole state of the system.

A log has some of the coordinates: an encoder on the crank, not the angle of the rod. As many as
there are degrees of freedom determine the rest, if they are the right ones; row by row the
constraints are closed from the row before, so a mechanism that can be assembled in two ways stays
in one. Inputs that were not recorded are zero.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy

from mbdnode.errors import UserError
from mbdnode.multibody import (
    AbstractSystem,
    Params,
    Partition,
    choose_partition,
    complete,
    consistent_state,
    constraint_counts,
    resolve_parameters,
    velocity_constraints,
)
from mbdnode.naming import unknown_name
from mbdnode.simulation.rollout import make_row
from mbdnode.status import Status
from mbdnode.trajectory import Dataset, State, Trajectory

# Rows of an orthonormal basis are regular above this.
_REGULAR = 1e-8
# Sets of coordinates that are looked at; any log has fewer.
_MOST_SETS = 20_000
# Runs are completed together while that takes no more than so many times their own rows.
_MOST_PADDING = 4
# Completed states from which windows are begun.
_MOST_STATES = 1_000


def complete_runs(system: AbstractSystem, data: Dataset) -> tuple[Dataset, list[str]]:
    """The recorded runs with every coordinate and input of a system, and what was done.

    Raises `UserError` for columns that the system does not have, and for coordinates that do not
    determine the others.
    """
    first = data.trajectories[0]
    _check_columns(system, first, data.parameters[0])
    notes = _missing_inputs(system, first)
    recorded = first.coordinates
    mu = resolve_parameters(system, _scalars(data.parameters[0]))
    constrained = sum(constraint_counts(system, mu)) > 0
    if not constrained:
        missing = [name for name in system.coordinate_names if name not in recorded]
        if missing:
            raise UserError(
                f"The log has no column for {', '.join(missing)}, and no constraint of "
                f"{type(system).__name__} determines it. Record it, or leave it out of the system."
            )
        runs = [_reordered(system, run) for run in data.trajectories]
        told = _recorded(system, data, recorded)
        return Dataset(runs, data.parameters, data.summary, told), notes
    chosen, runs = _completed_by_some(system, data)
    others = [name for name in system.coordinate_names if name not in chosen]
    notes.append(
        f"completed: {len(others)} coordinates from {', '.join(chosen)} by the constraints"
    )
    for name in recorded:
        if name not in chosen:
            apart = [
                np.asarray(a[name]) - np.asarray(b[name])
                for a, b in zip(runs, data.trajectories, strict=True)
            ]
            rms = float(np.sqrt(np.mean(np.concatenate(apart) ** 2)))
            notes.append(f"checked: {name} as recorded is {rms:.3g} (rms) off what follows from it")
    # A coordinate that was recorded beside those is now what follows from them.
    return Dataset(runs, data.parameters, data.summary, _recorded(system, data, chosen)), notes


def _recorded(system: AbstractSystem, data: Dataset, kept: tuple[str, ...]) -> tuple[str, ...]:
    """The columns that are as they were measured, by the system's names."""
    first = data.trajectories[0]
    told = first.columns if data.recorded is None else data.recorded
    rates = dict(zip(first.coordinates, first.rates, strict=True))
    names = dict(zip(system.coordinate_names, system.rate_names, strict=True))
    return (*kept, *(names[name] for name in kept if rates[name] in told))


def _scalars(values: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items()}


def _check_columns(system: AbstractSystem, run: Trajectory, parameters: Mapping) -> None:
    for kind, names, known in (
        ("coordinate", run.coordinates, system.coordinate_names),
        ("input", run.inputs, system.input_names),
        ("parameter", parameters, system.parameter_names),
    ):
        for name in names:
            if name not in known:
                raise unknown_name(f"{kind} of {type(system).__name__}", name, known)


def _missing_inputs(system: AbstractSystem, run: Trajectory) -> list[str]:
    missing = [name for name in system.input_names if name not in run.inputs]
    return [f"inputs: {', '.join(missing)} not recorded, taken as zero"] if missing else []


def _sufficient(
    system: AbstractSystem, run: Trajectory, parameters: Mapping[str, float]
) -> list[tuple[str, ...]]:
    """The sets of recorded coordinates that determine all others at the first row, best first.

    With `N` a basis of the motions that the constraints allow, a set `S` determines the others if
    its rows `N_S` are regular; the smallest singular value says how well.
    """
    recorded, mu = run.coordinates, resolve_parameters(system, parameters)
    near = {name: float(run[name][0]) for name in recorded}
    home = consistent_state(system, {}, guess=near, t=float(run.t[0]), parameters=parameters)
    partition = choose_partition(system, run.t[0], home.q, mu)
    dof = partition.degrees_of_freedom
    if len(recorded) < dof:
        raise UserError(
            f"The log has {len(recorded)} coordinate(s) ({', '.join(recorded)}), but "
            f"{type(system).__name__} has {dof} degree(s) of freedom: at least as many must "
            "be recorded."
        )
    if dof == 0:
        return [()]  # Drives determine everything.
    jacobian = np.asarray(velocity_constraints(system, run.t[0], home.q, mu)[0])
    scale = np.asarray(partition.scale)
    allowed = scipy.linalg.null_space(jacobian * scale, rcond=_REGULAR)
    rows = {name: allowed[system.coordinate_names.index(name)] for name in recorded}
    quality = {
        chosen: float(np.linalg.svd(np.stack([rows[n] for n in chosen]), compute_uv=False)[-1])
        for chosen in itertools.islice(itertools.combinations(recorded, dof), _MOST_SETS)
    }
    usual = set(system.independent or ())
    good = [chosen for chosen, smallest in quality.items() if smallest > _REGULAR]
    if not good:
        raise UserError(
            f"The recorded coordinates ({', '.join(recorded)}) do not determine the other "
            f"coordinates of {type(system).__name__}, which has {dof} degree(s) of freedom, "
            "in its first row. Record others, such as "
            f"{', '.join(system.independent or ()) or 'those'} that move independently."
        )
    return sorted(good, key=lambda chosen: (set(chosen) != usual, -quality[chosen]))


def _reordered(system: AbstractSystem, run: Trajectory) -> Trajectory:
    """The same numbers under the system's names, in its order."""
    places = [run.coordinates.index(name) for name in system.coordinate_names]
    q, v = (np.asarray(x)[..., places] for x in (run.q, run.v))
    return _trajectory(system, run, q, v, run.position_residual, run.velocity_residual)


def _trajectory(system: AbstractSystem, run: Trajectory, q, v, position, velocity) -> Trajectory:
    t, u, told = np.asarray(run.t), np.asarray(run.u), run.status
    names = system.coordinate_names
    inputs = np.zeros((*t.shape, len(system.input_names)))
    for place, name in enumerate(system.input_names):
        if name in run.inputs:
            inputs[..., place] = u[..., run.inputs.index(name)]
    return Trajectory(
        t=jnp.asarray(t),
        q=jnp.asarray(q),
        v=jnp.asarray(v),
        u=jnp.asarray(inputs),
        position_residual=jnp.asarray(position),
        velocity_residual=jnp.asarray(velocity),
        status=Status(told.code, told.step, told.t, told.coordinate, names),
        coordinates=names,
        rates=system.rate_names,
        inputs=system.input_names,
    )


def _completed_by_some(
    system: AbstractSystem, data: Dataset
) -> tuple[tuple[str, ...], list[Trajectory]]:
    """The runs, completed from the first set of coordinates that closes them all.

    A set that determines the others at the start may not do so later: a slider does not tell
    where its crank is at the dead points.
    """
    runs, first_error = data.trajectories, None
    lengths = [len(run) for run in runs]
    together = min(len(runs), max(1, _MOST_PADDING * sum(lengths) // max(lengths)))
    for chosen in _sufficient(system, runs[0], _scalars(data.parameters[0])):
        try:
            whole: list[Trajectory] = []
            while len(whole) < len(runs):
                # As many in every batch, so that one program serves them all.
                batch = np.minimum(len(whole) + np.arange(together), len(runs) - 1)
                whole += _completed(system, data, chosen, batch.tolist(), max(lengths))
        except UserError as error:
            first_error = first_error or error
        else:
            return chosen, whole[: len(runs)]
    assert first_error is not None
    raise first_error


def _completed(
    system: AbstractSystem,
    data: Dataset,
    chosen: tuple[str, ...],
    batch: Sequence[int],
    longest: int,
) -> list[Trajectory]:
    """Some runs, by number, with every coordinate."""
    runs = [data.trajectories[i] for i in batch]
    values = [data.parameters[i] for i in batch]
    # All as long as the longest; their last rows are repeated.
    rows = [np.minimum(np.arange(longest), len(run) - 1) for run in runs]
    t, q, v = (
        np.stack([np.asarray(getattr(run, x))[i] for run, i in zip(runs, rows, strict=True)])
        for x in ("t", "q", "v")
    )
    start = [_start(system, run, chosen, mu) for run, mu in zip(runs, values, strict=True)]
    mu = {name: [float(one[name]) for one in values] for name in values[0]}
    given = runs[0].coordinates, chosen, t, q, v, np.stack(start), mu
    found = [np.asarray(x) for x in _closed(system, *given)]
    return [
        _trajectory(system, run, *(x[i, : len(run)] for x in found)) for i, run in enumerate(runs)
    ]


def _start(
    system: AbstractSystem, run: Trajectory, chosen: tuple[str, ...], parameters: Mapping[str, Any]
) -> np.ndarray:
    """All coordinates of a run's first row.

    What was recorded beside the chosen ones says in which of several ways it is assembled.
    """
    recorded = {name: float(run[name][0]) for name in run.coordinates}
    known = {name: recorded[name] for name in chosen}
    given = {"t": float(run.t[0]), "parameters": _scalars(parameters)}
    return np.asarray(consistent_state(system, known, guess=recorded, **given).q)


def _closed(
    system: AbstractSystem,
    recorded: tuple[str, ...],
    chosen: tuple[str, ...],
    t: np.ndarray,
    q: np.ndarray,
    v: np.ndarray,
    start: np.ndarray,
    parameters: Mapping[str, Any],
) -> tuple[Any, Any, Any, Any]:
    """All coordinates and rates of runs of one length, and the residuals of the constraints.

    `recorded` are the coordinates of `q` and `v`, `chosen` those of them from which the others
    follow; `start` has all coordinates of a state near the first row of each run.
    """
    count = len(t)
    given = {name: np.broadcast_to(np.asarray(x, float), count) for name, x in parameters.items()}
    mu = resolve_parameters(system, {name: float(x[0]) for name, x in given.items()})
    every = {
        name: jnp.asarray(given.get(name, np.broadcast_to(np.asarray(x), (count, *np.shape(x)))))
        for name, x in dict(mu).items()
    }
    home = jnp.asarray(start[0])
    partition = choose_partition(system, jnp.asarray(t[0, 0]), home, mu, chosen)
    independent = [system.coordinate_names[int(i)] for i in partition.position.independent]
    places = [recorded.index(name) for name in independent]
    rows = tuple(jnp.asarray(x) for x in (t, q[..., places], v[..., places]))
    found, solved = _close(system, partition, jnp.asarray(start), rows, every)
    if not np.all(solved):
        run, row = (int(i) for i in np.argwhere(~np.asarray(solved))[0])
        at = ", ".join(f"{name} = {q[run, row, recorded.index(name)]:g}" for name in chosen)
        raise UserError(
            f"Row {row} of {t.shape[1]} (t = {t[run, row]:g} s) has {at}, where the constraints "
            "cannot be closed from the row before. Check units and zero points, or record more "
            "coordinates."
        )
    return found.q, found.v, found.position_residual, found.velocity_residual


@eqx.filter_jit
def _close(system: AbstractSystem, partition: Partition, q, rows, mu: dict[str, Any]):
    def one(q, rows, mu):
        return _closed_rows(system, partition, q, rows, mu)

    return jax.vmap(one)(q, rows, mu)


def _closed_rows(system: AbstractSystem, partition: Partition, q, rows, mu: Params):
    """Every row's whole state, each from the one before."""

    def onward(carry, row):
        last, before = carry
        time, positions, velocities = row
        guess = last.q + (time - before) * last.v
        q, v, tangent, solved = complete(system, partition, time, positions, velocities, guess, mu)
        good = solved & ~tangent.singular & jnp.all(jnp.isfinite(v))
        state = jax.tree.map(lambda a, b: jnp.where(good, a, b), State(q, v), last)
        return (state, time), (make_row(system, time, state, mu), good)

    first = (State(q, jnp.zeros_like(q)), rows[0][0])
    return jax.lax.scan(onward, first, rows)[1]


@dataclass(frozen=True)
class Completion:
    """Completes batches of windows as `complete_runs` completed a sample of them.

    Each window begins at the state of the sample whose recorded coordinates are the nearest, so it
    is assembled as that one is; nothing else of the sample is needed, wherever the windows are.

    `recorded` are the coordinates that the logs have, and `chosen` those of them that determine the
    others. The columns `kept` are as they were measured. `states` are all coordinates of some rows
    of the sample; None for a system without constraints.
    """

    system: AbstractSystem
    recorded: tuple[str, ...]
    chosen: tuple[str, ...]
    kept: tuple[str, ...]
    states: np.ndarray | None

    def __call__(self, data: Dataset) -> Dataset:
        """The windows of a batch with every coordinate and input of the system."""
        run, values = data.trajectories[0], data.parameters[0]
        if self.states is None:
            return Dataset(_reordered(self.system, run), values, data.summary, self.kept)
        t, q, v = (np.asarray(x) for x in (run.t, run.q, run.v))
        columns = [self.system.coordinate_names.index(name) for name in self.recorded]
        known = self.states[:, columns]
        scale = np.where(np.ptp(known, axis=0) > 0, np.ptp(known, axis=0), 1.0)
        away = [np.sum(((known - first) / scale) ** 2, axis=1) for first in q[:, 0]]
        start = self.states[np.argmin(away, axis=1)]
        found = _closed(self.system, self.recorded, self.chosen, t, q, v, start, values)
        whole = _trajectory(self.system, run, *found)
        return Dataset(whole, values, data.summary, self.kept)


def completion_of(system: AbstractSystem, sample: Dataset, whole: Dataset) -> Completion | None:
    """How further windows are completed, from some as recorded and as `complete_runs` made them.

    None where windows are whole as they are.
    """
    first, made = sample.trajectories[0], whole.trajectories[0]
    if (first.coordinates, first.inputs) == (made.coordinates, made.inputs):
        return None
    kept = tuple(whole.recorded or made.columns)
    chosen = tuple(name for name in kept if name in system.coordinate_names)
    mu = resolve_parameters(system, _scalars(sample.parameters[0]))
    states = None
    if sum(constraint_counts(system, mu)) > 0:
        rows = np.concatenate([np.asarray(run.q) for run in whole.trajectories])
        some = np.linspace(0, len(rows) - 1, min(len(rows), _MOST_STATES)).astype(int)
        states = rows[some]
    return Completion(system, first.coordinates, chosen, kept, states)
