"""Recorded rates that are not the derivatives of their positions.

Rates are often found from smoothed positions, or filtered, before they come here. What that does to
them, a gain of 0.98 or a lag, neighboring rows share: in the column alone it looks like motion, and
its noise seems small. Beside its positions it does not: with `dq/dt` from these and its error `e`,

    rms(v - dq/dt)  >  3 rms(e)   and   >  2 times the noise of v

says that `v` is something else. Who takes such rates as measured, with their small noise, has them
decide the state from which to predict, and the damping. They say nothing that positions do not say
better, so derivatives take their place, and they count as estimated.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from mbdnode.data.rows import CLEAN, single_trajectories
from mbdnode.data.signal import estimate_rate, noise_levels, rate_errors
from mbdnode.multibody import AbstractSystem, constraint_counts, resolve_parameters
from mbdnode.trajectory import Dataset, Trajectory

# Rows of a run from which rates can be compared, and how many runs are looked at, at most.
_LONG, _RUNS = 50, 10
# By what factor rates must differ more than the derivatives may be wrong, and than their noise.
_DIFFER, _MORE = 3.0, 2.0


def without_biased_rates(
    system: AbstractSystem, data: Dataset, minimal: tuple[int, ...]
) -> tuple[Dataset, tuple[str, ...]]:
    """The data with derivatives of positions in place of rates that are something else.

    **Arguments:**

    - `data`: what was recorded. Noise decides, so data without any is left as it is, and so is that
        under inputs that change, whose derivatives are not smooth, or with runs that are too short
        to tell.
    - `minimal`: the coordinates that are learned; of a system with constraints nothing is changed,
        since its rates must keep them.
    """
    names = biased_rates(system, data) if len(minimal) == len(system.coordinates) else ()
    if not names:
        return data, ()
    told = (*system.coordinate_names, *system.rate_names, *system.input_names)
    told = told if data.recorded is None else data.recorded
    runs, values = zip(*single_trajectories(data), strict=True)
    return Dataset(
        [_differentiated(run, system, names) for run in runs],
        list(values),
        data.summary,
        [name for name in told if name not in names],
    ), names


def biased_rates(system: AbstractSystem, data: Dataset) -> tuple[str, ...]:
    """The names of recorded rates that are something else; none of a system with constraints."""
    if sum(constraint_counts(system, resolve_parameters(system))):
        return ()
    runs = [run for run, _ in single_trajectories(data)]
    if any(len(run.t) < _LONG or np.any(np.ptp(np.asarray(run.u), axis=0) > 0) for run in runs):
        return ()
    some = [runs[i] for i in np.linspace(0, len(runs) - 1, min(len(runs), _RUNS)).astype(int)]
    told = data.recorded
    found = []
    for position, rate in zip(system.coordinate_names, system.rate_names, strict=True):
        if told is not None and not {position, rate} <= set(told):
            continue
        columns = [[np.asarray(x, float) for x in (r.t, r[position], r[rate])] for r in some]
        levels = noise_levels([(t, np.stack([x, v], axis=1)) for t, x, v in columns])
        if not levels[0] > CLEAN * np.std(np.concatenate([x for _, x, _ in columns])):
            continue
        errors = [rate_errors(*one) for one in columns]
        away, known = np.average(errors, axis=0, weights=[len(t) for t, _, _ in columns])
        if away > _DIFFER**2 * known and away - known > (_MORE * levels[1]) ** 2:
            found.append(rate)
    return tuple(found)


def _differentiated(run: Trajectory, system: AbstractSystem, names: tuple[str, ...]) -> Trajectory:
    t, q, v = (np.asarray(x, float) for x in (run.t, run.q, run.v))
    columns = [
        estimate_rate(t, q[:, i]).values if name in names else v[:, i]
        for i, name in enumerate(system.rate_names)
    ]
    return eqx.tree_at(lambda r: r.v, run, jnp.asarray(np.stack(columns, axis=1)))
