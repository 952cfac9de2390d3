"""Trajectories cut into windows of equal length, which is what every loss works on.

A window of w steps holds w + 1 states. A trajectory of n steps gives the windows that start at 0,
w, 2w, ...; if w does not divide n, the last window is moved back to end at the last state, so
that nothing is left out and all have one shape.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.errors import UserError
from mbdnode.multibody import AbstractSystem, resolve_parameters
from mbdnode.naming import unknown_name
from mbdnode.trajectory import Dataset


class Windows(eqx.Module):
    """Pieces of trajectories, stacked; a single window has the same arrays without `n`."""

    t: Float[Array, "*n steps"]
    # The steps' lengths, taken before times are rounded to float32.
    dt: Float[Array, "*n w"]
    q: Float[Array, "*n steps nq"]
    v: Float[Array, "*n steps nq"]
    u: Float[Array, "*n steps nu"]
    mu: dict[str, Float[Array, "*n"]]

    def __len__(self) -> int:
        return self.t.shape[0]


def cut(system: AbstractSystem, data: Dataset, window: int | None) -> Windows:
    """Cut a dataset.

    **Arguments:**

    - `system`: whose parameters complete those of the runs.
    - `data`: the trajectories.
    - `window`: steps in each piece; None for whole trajectories.

    **Returns:**

    `Windows`, in order of trajectory and time.
    """
    lengths = {len(run) - 1 for run in data.trajectories}
    if window is None and len(lengths) > 1:
        raise UserError(
            f"Whole trajectories must have equal lengths, but there are {sorted(lengths)} steps. "
            "Set a window."
        )
    steps = window if window is not None else lengths.pop()
    if min(len(run) - 1 for run in data.trajectories) < steps:
        shortest = min(len(run) - 1 for run in data.trajectories)
        raise UserError(
            f"The window is {steps} steps, but the shortest trajectory has {shortest}. Shorten the "
            "window or leave that trajectory out."
        )
    pieces = [
        _pieces(system, run, values, steps)
        for run, values in zip(data.trajectories, data.parameters, strict=True)
    ]
    joined = jax.tree.map(lambda *x: jnp.asarray(np.concatenate(x)), *pieces)
    return Windows(**joined)


def _pieces(system, run, values, steps: int) -> dict[str, Any]:
    """The fields of `Windows` for one trajectory or one batch."""
    last = len(run) - 1
    starts = np.minimum(np.arange(0, last, steps), last - steps)
    rows = starts[:, None] + np.arange(steps + 1)[None, :]
    runs = 1 if run.t.ndim == 1 else run.t.shape[0]

    def take(values, columns):
        batch = np.asarray(values).reshape(runs, last + 1, *columns)
        return batch[:, rows].reshape(runs * len(starts), steps + 1, *columns)

    def spread(value):
        return np.repeat(np.broadcast_to(np.asarray(value, float), (runs,)), len(starts))

    rules = {parameter.name: parameter for parameter in system.parameters}
    singles = {name: value for name, value in values.items() if np.ndim(value) == 0}
    mu = {name: spread(value) for name, value in resolve_parameters(system, singles).items()}
    for name, value in values.items():
        if name not in mu:
            raise unknown_name("parameter", name, mu)
        if np.shape(value) not in ((), (runs,)):
            raise UserError(
                f"Parameter {name!r} has shape {np.shape(value)}; give one value, or one for each "
                f"of the {runs} runs."
            )
        mu[name] = spread(value)
        for extreme in (np.min(mu[name]), np.max(mu[name])):
            rules[name].check(float(extreme))
    q, v, u = (take(x, x.shape[-1:]) for x in (run.q, run.v, run.u))
    t = take(run.t, ())
    return {"t": t, "dt": np.diff(t, axis=1), "q": q, "v": v, "u": u, "mu": mu}
