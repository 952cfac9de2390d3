"""State, Samples, Trajectory and Dataset: all that crosses a border between rooms."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from mbdnode.errors import UserError
from mbdnode.errors import check_trajectory_size as check_trajectory_size
from mbdnode.naming import by_name, unknown_name
from mbdnode.numerics import check_precision
from mbdnode.status import Status, completed

if TYPE_CHECKING:
    import pandas

# The frame's own note of which of its columns are what, and its column of marks.
_NOTE, _MARKS = "mbdnode", "outside"


class State(eqx.Module):
    """All coordinates and velocities at one time."""

    q: Float[Array, "*batch nq"]
    v: Float[Array, "*batch nq"]

    def __check_init__(self) -> None:
        for name, values in (("q", self.q), ("v", self.v)):
            if isinstance(named := by_name(values), Mapping):
                raise UserError(
                    f"{name} of the state has names for its values: {', '.join(map(str, named))}. "
                    "A State has no names, only the order of the coordinates. Give all values by "
                    "name to consistent_state, or arrays to State."
                )


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

    Rows after a failure are NaN, so shapes do not depend on values and `jax.vmap` gives a
    trajectory whose arrays have a leading batch axis; `kept` cuts those rows off.

    `run["theta"]` is one column, `np.asarray(run)` all of them in the order of `columns`, and
    `to_frame` a pandas `DataFrame`.

    **Arguments:**

    - `t`: times, increasing.
    - `q`, `v`, `u`: coordinates, velocities and inputs at those times.
    - `position_residual`, `velocity_residual`: largest entry of `Phi` and of `C v - c` of the
        system: its own constraints, also where the model that predicts keeps none of them. NaN
        where nobody knows them, as in a log.
    - `status`: how the rollout ended.
    - `coordinates`, `rates`, `inputs`: the columns' names.
    - `spread`: the standard deviation of `q` and `v` between the members of an ensemble, whose mean
        the trajectory is, or what the covariance of fitted parameters makes of it; None for
        anything else.
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
        columns = (self.t, self.q, self.v, self.u)
        if not any(isinstance(x, Tracer) for x in columns):
            table = np.asarray(self)
            return jnp.asarray(table, table.dtype)
        return jnp.concatenate([self.t[..., None], *columns[1:]], axis=-1)

    def __getitem__(self, name: str) -> Float[Array, "*batch n"]:
        """One column by name; `rows` cuts rows out."""
        if name not in self.columns:
            raise KeyError(f"No column {name!r}; there are {', '.join(self.columns)}.")
        place = self.columns.index(name)
        if any(isinstance(x, Tracer) for x in (self.t, self.q, self.v, self.u)):
            return self.table[..., place]
        return jax.device_put(np.asarray(self)[..., place])

    def __len__(self) -> int:
        return self.t.shape[-1]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """All columns side by side, as `np.asarray` asks for them."""
        if copy is False:
            raise UserError(
                "The columns of a trajectory are copied into one array, so copy=False cannot be "
                "met. Use np.asarray(trajectory)."
            )
        # By NumPy: JAX would compile it for every length.
        columns = [np.asarray(self.t)[..., None], *map(np.asarray, (self.q, self.v, self.u))]
        return np.concatenate(columns, axis=-1, dtype=dtype)

    def to_frame(self) -> "pandas.DataFrame":
        """The trajectory as a pandas `DataFrame`, with the rows and columns that a file has.

        The columns are those of `columns`, and `outside` for one that knows whether it left the
        training data; the rows after a failure are left out. Residuals, `spread` and `decisions`
        are not in it. Needs pandas: `pip install 'mbdnode[frames]'`.

        **Returns:**

        A frame that `from_frame` turns back into the trajectory, bit for bit.
        """
        self.require_single("to_frame")
        try:
            import pandas
        except ImportError as error:
            raise ImportError(
                "to_frame needs pandas, which is not installed. Get it with: pip install "
                "'mbdnode[frames]', or use np.asarray(trajectory) and trajectory.columns."
            ) from error
        count = int(self.status.step) + 1
        frame = pandas.DataFrame(np.asarray(self)[:count], columns=list(self.columns))
        if self.outside is not None:
            frame[_MARKS] = np.asarray(self.outside, bool)[:count]
        names = {"coordinates": self.coordinates, "rates": self.rates, "inputs": self.inputs}
        frame.attrs[_NOTE] = {what: list(columns) for what, columns in names.items()}
        return frame

    @staticmethod
    def from_frame(
        frame: Any,
        *,
        time: str = "t",
        coordinates: Sequence[str] | str | None = None,
        rates: Sequence[str] | str | None = None,
        inputs: Sequence[str] | str | None = None,
    ) -> "Trajectory":
        """A trajectory from a pandas `DataFrame`.

        **Arguments:**

        - `frame`: of `to_frame`, or any with a column for the time and for each coordinate and
            velocity. Other columns are left aside.
        - `time`: the column with the time in seconds.
        - `coordinates`, `rates`, `inputs`: the columns with coordinates, their velocities
            (`<coordinate>_dot` by default) and inputs. A frame of `to_frame` knows them, unless it
            has been in a CSV file since.

        **Returns:**

        A `Trajectory`. Its residuals are not known, and are NaN: a table does not say which
        constraints there are.
        """
        if not hasattr(frame, "columns") or not hasattr(frame, "attrs"):
            raise TypeError(
                f"from_frame takes a pandas DataFrame, but this is a {type(frame).__name__}."
            )
        names = _names_of(frame, coordinates, rates, inputs)
        read = lambda columns: [_numbers(frame, name) for name in columns]  # noqa: E731
        t = _numbers(frame, time)
        check_times(t)
        q, v, u = (np.array(read(columns)).reshape(-1, len(t)).T for columns in names)
        unknown = jnp.asarray(np.full(len(t), np.nan))
        marks = _MARKS in frame.columns and all(_MARKS not in columns for columns in names)
        return Trajectory(
            t=jnp.asarray(t),
            q=jnp.asarray(q),
            v=jnp.asarray(v),
            u=jnp.asarray(u),
            position_residual=unknown,
            velocity_residual=unknown,
            status=completed(jnp.asarray(t[-1]), jnp.asarray(len(t) - 1), names[0]),
            coordinates=names[0],
            rates=names[1],
            inputs=names[2],
            outside=jnp.asarray(_numbers(frame, _MARKS) != 0) if marks else None,
        )

    def rows(self, first: int, last: int) -> "Trajectory":
        """A trajectory of its own from row `first` to row `last`, both included."""
        self.require_single("rows")
        if not 0 <= first < last < len(self):
            raise UserError(
                f"Rows {first} to {last} were asked for; the trajectory has rows 0 to "
                f"{len(self) - 1}, and a trajectory needs at least two."
            )
        if last > int(self.status.step):
            raise UserError(
                f"Rows {first} to {last} were asked for, but the rollout ended after row "
                f"{int(self.status.step)}: {self.status}."
            )
        # By NumPy: JAX would compile a slice for every place that it begins at.
        cut = lambda x: jax.device_put(np.asarray(x)[first : last + 1]) if x.ndim else x  # noqa: E731
        segment = jax.tree.map(cut, self)
        end = jax.device_put(np.asarray(self.t)[last])
        status = completed(end, jnp.asarray(np.asarray(last - first), int), self.coordinates)
        return eqx.tree_at(lambda p: p.status, segment, status)

    def require_single(self, what: str) -> None:
        """Raise `UserError` if this is a batch of trajectories and `what` needs a single one."""
        if self.t.ndim != 1:
            raise UserError(
                f"{what} takes a single trajectory, but this is a batch of shape "
                f"{self.t.shape[:-1]}. Use jax.vmap, or take one with "
                "jax.tree.map(lambda x: x[i], trajectory)."
            )

    def require_columns_of(self, system: Any, what: str, *, inputs: bool = False) -> None:
        """Raise `UserError` unless coordinates, and `inputs`, are a system's, in its order."""
        own = (*self.coordinates, *(self.inputs if inputs else ()))
        theirs = (*system.coordinate_names, *(system.input_names if inputs else ()))
        if own != theirs:
            raise UserError(
                f"{what} needs the columns of {type(system).__name__}, in this order: "
                f"{', '.join(theirs)}. The trajectory has {', '.join(own)}; name them in this "
                "order in from_frame."
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
    - `parameters`: values by name for each of them, if they differ from the defaults, or a frame
        with a row for each; arrays for a batch.
    - `summary`: what became of the rows of the logs that it was read from; None for anything else.
    - `recorded`: the columns that were measured, by which a model may be judged; None for all of
        them. Estimated rates and what follows from constraints are not among them.
    """

    trajectories: tuple[Trajectory, ...]
    parameters: tuple[Mapping[str, Any], ...]
    summary: Any = eqx.field(static=True)
    recorded: tuple[str, ...] | None = eqx.field(static=True)

    def __init__(
        self,
        trajectories: Any,
        parameters: Any = None,
        summary: Any = None,
        recorded: Sequence[str] | None = None,
    ):
        check_precision()
        several = isinstance(trajectories, Iterable)
        runs: tuple[Any, ...] = tuple(trajectories) if several else (trajectories,)
        if not runs:
            raise UserError("A dataset needs at least one trajectory.")
        for number, run in enumerate(runs):
            if not isinstance(run, Trajectory):
                raise UserError(
                    f"Entry {number} of the data is {run!r}, of type {type(run).__name__}; it must "
                    "be a Trajectory. Use simulate, read, or Trajectory.from_frame for a frame."
                )
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
        given = {} if parameters is None else by_name(parameters)
        if isinstance(given, Mapping) and not isinstance(parameters, Mapping):
            # Of a frame, a row for each run.
            rows = max((np.size(column) for column in given.values()), default=1)
            given = [{n: x[i] if np.ndim(x) else x for n, x in given.items()} for i in range(rows)]
            given = given * len(runs) if rows == 1 else given
        parameters = [given] * len(runs) if isinstance(given, Mapping) else given
        if not isinstance(parameters, Sequence) or not all(
            isinstance(by_name(one), Mapping) for one in parameters
        ):
            raise UserError(
                f"Parameters are {parameters!r}; give values by name, such as {{'m': 1.0}}, for "
                "all trajectories or for each."
            )
        if len(parameters) != len(runs):
            raise UserError(
                f"{len(parameters)} sets of parameters for {len(runs)} trajectories; give one for "
                "each, or one for all."
            )
        self.trajectories, self.parameters = runs, tuple(dict(by_name(p)) for p in parameters)
        self.summary = summary
        self.recorded = None if recorded is None else tuple(recorded)


def rows_identity(t: Any, q: Any, u: Any) -> str:
    """The same for runs with the same times, positions and inputs, whatever they are called.

    **Arguments:**

    - `t`, `q`, `u`: the rows.

    **Returns:**

    A digest of them.
    """
    digest = hashlib.sha256()
    for part in (t, q, u):
        digest.update(np.ascontiguousarray(np.asarray(part, float)).tobytes())
    return digest.hexdigest()


def _names_of(frame: Any, coordinates: Any, rates: Any, inputs: Any) -> tuple[tuple[str, ...], ...]:
    """The columns of a frame that are coordinates, velocities and inputs."""
    note = frame.attrs.get(_NOTE, {}) if coordinates is None else {}
    coordinates = note.get("coordinates") if coordinates is None else coordinates
    if coordinates is None:
        raise UserError(
            f"The frame does not say which of its columns {', '.join(map(str, frame.columns))} are "
            "coordinates. Name them: from_frame(frame, coordinates=[...], inputs=[...])."
        )
    listed = lambda given: (given,) if isinstance(given, str) else tuple(given)  # noqa: E731
    coordinates = listed(coordinates)
    usual = [f"{name}_dot" for name in coordinates]
    rates = listed(note.get("rates", usual) if rates is None else rates)
    inputs = listed(note.get("inputs", ()) if inputs is None else inputs)
    if not coordinates or len(rates) != len(coordinates):
        raise UserError(
            f"There are {len(rates)} rates for {len(coordinates)} coordinate(s): name at least one "
            "coordinate, and the velocity of each."
        )
    every = (*coordinates, *rates, *inputs)
    for name in every:
        if every.count(name) > 1:
            raise UserError(f"Column {name!r} is named twice; it can be one thing only.")
    return coordinates, rates, inputs


def _numbers(frame: Any, name: str) -> np.ndarray:
    """A column of a frame as finite float64."""
    if name not in frame.columns:
        raise unknown_name("column", str(name), map(str, frame.columns))
    column = frame[name]
    if column.ndim != 1:
        raise UserError(f"Column {name!r} is there {column.shape[1]} times; rename the others.")
    if column.dtype.kind not in "biuf":
        way_out = f"pandas.to_numeric(frame[{name!r}])"
        if column.dtype.kind == "M":
            way_out = f"(frame[{name!r}] - frame[{name!r}].iloc[0]).dt.total_seconds(), in seconds"
        raise UserError(
            f"Column {name!r} holds {column.dtype}; a trajectory is of numbers. Convert it first, "
            f"for instance with {way_out}."
        )
    values = column.to_numpy(dtype=float, na_value=np.nan)
    if not np.all(np.isfinite(values)):
        row = int(np.argmin(np.isfinite(values)))
        raise UserError(
            f"Column {name!r} is {values[row]} in row {row}; every value must be finite. Drop such "
            "rows with frame.dropna(), or fill them with frame.interpolate()."
        )
    return values


def require_trajectory(value: Any, what: str) -> None:
    """Raise `UserError` for what is no single `Trajectory`, of which `what` needs one."""
    if not isinstance(value, Trajectory):
        raise UserError(
            f"{what} takes a Trajectory, but this is of type {type(value).__name__}. Use simulate, "
            "read, or Trajectory.from_frame for a frame."
        )
    value.require_single(what)


def check_times(t: Any) -> None:
    """Raise `UserError` unless `t` is a finite, increasing vector of at least two times."""
    try:
        values = np.asarray(t)
    except ValueError as error:
        raise UserError(f"Times must be one vector of numbers, but they are {t!r}.") from error
    if values.dtype.kind not in "biuf":
        found = repr(values.flat[0]) if values.size else f"of type {values.dtype}"
        way_out = "Convert them with np.asarray(t, float)."
        if values.dtype.kind == "m":
            way_out = "Of time differences, give seconds: t / np.timedelta64(1, 's')."
        elif values.dtype.kind == "M" or (values.size and hasattr(values.flat[0], "year")):
            way_out = (
                "Of dates, give the seconds since the first: "
                "(np.array(t, 'M8[us]') - np.datetime64(t[0], 'us')) / np.timedelta64(1, 's')."
            )
        raise UserError(f"Times must be numbers, but the first is {found}. {way_out}")
    values = values.astype(float)
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
