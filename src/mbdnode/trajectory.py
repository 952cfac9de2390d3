"""State, Samples, Trajectory and Dataset: all that crosses a border between rooms."""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.errors import UserError, check_memory
from mbdnode.status import Status, completed

# Of a trajectory's numbers while it is made, completed and written: measured, 26 to 35 bytes each.
_COPIES = 5
# Beside coordinates, velocities and inputs: the time and two residuals.
_OTHER_COLUMNS = 3


class State(eqx.Module):
    """All coordinates and velocities at one time."""

    q: Float[Array, "*batch nq"]
    v: Float[Array, "*batch nq"]


class Samples(eqx.Module):
    """States, inputs and the accelerations there, in no order in time."""

    q: Float[Array, "*n nq"]
    v: Float[Array, "*n nq"]
    u: Float[Array, "*n nu"]
    a: Float[Array, "*n nq"]

    def __len__(self) -> int:
        return self.q.shape[0]


class Trajectory(eqx.Module):
    """States at given times, with what drove them and how well they keep the constraints.

    Rows after a failure are not numbers, so shapes do not depend on values and `jax.vmap` gives a
    trajectory whose arrays have a leading batch axis; `kept` cuts those rows off.

    **Arguments:**

    - `t`: times, increasing.
    - `q`, `v`, `u`: coordinates, velocities and inputs at those times.
    - `position_residual`, `velocity_residual`: largest entry of `Phi` and of `C v - c`.
    - `status`: how the rollout ended.
    - `coordinates`, `rates`, `inputs`: the columns' names.
    - `spread`: the standard deviation of `q` and `v` between the members of an ensemble, whose mean
        the trajectory is; None for anything else.
    - `decisions`: the controller's `Decisions`, if the trajectory is of a closed loop.
    - `outside`: for each row whether it lies outside the training data; None if that was not asked.
    """

    t: Float[Array, "*batch n"]
    q: Float[Array, "*batch n nq"]
    v: Float[Array, "*batch n nq"]
    u: Float[Array, "*batch n nu"]
    position_residual: Float[Array, "*batch n"]
    velocity_residual: Float[Array, "*batch n"]
    status: Status
    coordinates: tuple[str, ...] = eqx.field(static=True)
    rates: tuple[str, ...] = eqx.field(static=True)
    inputs: tuple[str, ...] = eqx.field(static=True)
    spread: State | None = None
    decisions: Any = None
    outside: Any = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of `t`, coordinates, velocities and inputs, in the order of a file."""
        return ("t", *self.coordinates, *self.rates, *self.inputs)

    @property
    def table(self) -> Float[Array, "*batch n columns"]:
        """All columns side by side."""
        return jnp.concatenate([self.t[..., None], self.q, self.v, self.u], axis=-1)

    def __getitem__(self, name: str) -> Float[Array, "*batch n"]:
        """One column by name; `rows` gives a piece of the trajectory."""
        if name not in self.columns:
            raise KeyError(f"No column {name!r}; there are {', '.join(self.columns)}.")
        return self.table[..., self.columns.index(name)]

    def __len__(self) -> int:
        return self.t.shape[-1]

    def rows(self, first: int, last: int) -> "Trajectory":
        """The piece from row `first` to row `last`, both included, of a single trajectory."""
        self.require_single("rows")
        if not 0 <= first < last < len(self):
            raise UserError(
                f"Rows {first} to {last} were asked for; the trajectory has rows 0 to "
                f"{len(self) - 1}, and a piece needs at least two."
            )
        if last > int(self.status.step):
            raise UserError(
                f"Rows {first} to {last} were asked for, but the rollout ended after row "
                f"{int(self.status.step)}: {self.status}."
            )
        # By NumPy: JAX would compile a slice for every place that it begins at.
        cut = lambda x: jnp.asarray(np.asarray(x)[first : last + 1]) if x.ndim else x  # noqa: E731
        piece = jax.tree.map(cut, self)
        status = completed(piece.t[-1], jnp.array(last - first), self.coordinates)
        return eqx.tree_at(lambda p: p.status, piece, status)

    def require_single(self, what: str) -> None:
        """Raise `UserError` if this is a batch of trajectories and `what` needs a single one."""
        if self.t.ndim != 1:
            raise UserError(
                f"{what} takes a single trajectory, but this is a batch of shape "
                f"{self.t.shape[:-1]}. Use jax.vmap, or take one with "
                "jax.tree.map(lambda x: x[i], trajectory)."
            )

    @property
    def kept(self) -> "Trajectory":
        """The rows up to the last good state, for a single (not batched) trajectory."""
        self.require_single("kept")
        count = int(self.status.step) + 1
        return jax.tree.map(lambda x: x[:count] if x.ndim else x, self)

    @property
    def final(self) -> State:
        """The last good state of a single trajectory."""
        self.require_single("final")
        last = int(self.status.step)
        return State(self.q[last], self.v[last])


class Dataset(eqx.Module):
    """Trajectories to learn from, each with the parameters of its run.

    **Arguments:**

    - `trajectories`: one or several, with the same coordinates and inputs; each may be a batch of
        equal lengths, as `jax.vmap` over `simulate` gives it.
    - `parameters`: values by name for each of them, if they differ from the defaults; arrays for
        a batch.
    - `summary`: what became of the rows of the logs that it was read from; None for anything else.
    """

    trajectories: tuple[Trajectory, ...]
    parameters: tuple[Mapping[str, Any], ...]
    summary: Any = eqx.field(static=True)

    def __init__(
        self,
        trajectories: Trajectory | Sequence[Trajectory],
        parameters: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        summary: Any = None,
    ):
        runs = (trajectories,) if isinstance(trajectories, Trajectory) else tuple(trajectories)
        if not runs:
            raise UserError("A dataset needs at least one trajectory.")
        for number, run in enumerate(runs):
            if run.t.ndim > 2:
                raise UserError(
                    f"Trajectory {number} is a batch of shape {run.t.shape[:-1]}; a batch may have "
                    "one axis. Flatten it."
                )
            if (run.coordinates, run.inputs) != (runs[0].coordinates, runs[0].inputs):
                raise UserError(
                    f"Trajectory {number} has columns {', '.join(run.columns)}, but the first has "
                    f"{', '.join(runs[0].columns)}. Learn from one system at a time."
                )
            # By NumPy: a program compiled for every length would take longer than to read them.
            if not all(np.isfinite(np.asarray(x)).all() for x in (run.t, run.q, run.v, run.u)):
                raise UserError(
                    f"Trajectory {number} has values that are not finite. Cut them off first, for "
                    "instance with `trajectory.kept`."
                )
        if parameters is None or isinstance(parameters, Mapping):
            parameters = [dict(parameters or {})] * len(runs)
        if len(parameters) != len(runs):
            raise UserError(
                f"{len(parameters)} sets of parameters for {len(runs)} trajectories; give one for "
                "each, or one for all."
            )
        self.trajectories, self.parameters = runs, tuple(dict(p) for p in parameters)
        self.summary = summary


def check_steps(steps: int, columns: int) -> None:
    """Raise `UserError` for more steps than fit in memory, before any of them is made.

    **Arguments:**

    - `steps`: of a trajectory.
    - `columns`: coordinates, velocities and inputs together.
    """
    needed_bytes = _COPIES * 8 * (columns + _OTHER_COLUMNS) * steps
    check_memory(needed_bytes, f"A trajectory of {steps:,} steps", "Take fewer steps.")


def check_times(t: Any) -> None:
    """Raise `UserError` unless `t` is a finite, increasing vector of at least two times."""
    try:
        values = np.asarray(t, float)
    except (TypeError, ValueError) as error:
        raise UserError(f"Times must be numbers, but they are {t!r}.") from error
    if values.ndim != 1 or values.shape[0] < 2:
        raise UserError(
            f"Times have shape {values.shape}; give a vector of at least two times, "
            "the first of which is the start."
        )
    if not np.all(np.isfinite(values)):
        index = int(np.argmin(np.isfinite(values)))
        raise UserError(f"Time number {index} is {values[index]}; times must be finite.")
    steps = np.diff(values)
    if np.any(steps <= 0):
        index = int(np.argmax(steps <= 0))
        raise UserError(
            f"Times must increase, but t[{index + 1}] = {values[index + 1]:g} follows "
            f"t[{index}] = {values[index]:g}. Sort them and drop repetitions."
        )
