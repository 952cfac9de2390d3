"""What a user asks to be read, and the pieces that answer it, one run after another."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mbdnode.data.atomic import Paths, find_files
from mbdnode.data.logs.formats import open_logs
from mbdnode.data.logs.guess import guess_roles
from mbdnode.data.logs.layout import Layout, lay_out, runs_of
from mbdnode.data.logs.log import AbstractLog
from mbdnode.data.logs.roles import GAPS, INTERPOLATIONS, Roles, make_roles, setting
from mbdnode.data.logs.segments import Handling, Piece, Signal, finish, signal_of
from mbdnode.data.logs.summary import Note, RunSummary
from mbdnode.errors import UserError
from mbdnode.naming import unknown_name

if TYPE_CHECKING:
    from mbdnode.trajectory import Trajectory


Columns = Sequence[str] | Mapping[str, str]


@dataclass(frozen=True)
class Names:
    """What the columns of a trajectory are called.

    `estimated` are the rates that were not recorded.
    """

    coordinates: tuple[str, ...]
    rates: tuple[str, ...]
    inputs: tuple[str, ...]
    estimated: tuple[str, ...] = ()

    @property
    def recorded(self) -> tuple[str, ...]:
        """The coordinates, and the rates that were measured."""
        measured = [name for name in self.rates if name not in self.estimated]
        return (*self.coordinates, *measured)


@dataclass(frozen=True)
class Request:
    """Files and roles, checked.

    **Arguments:**

    - `files`: in order.
    - `roles`: of their columns.
    - `handling`: of gaps and inputs.
    - `input_files`: of inputs with their own times; empty if there are none.
    - `apart`: whether the inputs have their own times.
    """

    files: tuple[Path, ...]
    roles: Roles
    handling: Handling
    input_files: tuple[Path, ...] = ()
    apart: bool = False


def make_request(
    paths: Paths,
    *,
    time: str | None = None,
    coordinates: Columns | None = None,
    rates: Sequence[str | None] | Mapping[str, str] | None = None,
    inputs: Columns | None = None,
    parameters: Sequence[str] | Mapping[str, Any] | None = None,
    run: str | None = None,
    input_time: str | None = None,
    input_files: Paths | None = None,
    interpolation: str = "held",
    units: Mapping[str, str] | None = None,
    angles: Sequence[str] | None = None,
    gaps: str = "refuse",
    longest_step_s: float | None = None,
    fewest_rows: int = 2,
    with_states: bool = True,
) -> Request:
    """Check what can be checked before rows are read.

    **Arguments:**

    - `with_states`: whether coordinates and rates are to be read. If not, the files are those of
        the inputs alone, and `input_files` is not looked for.
    - others: as for `read`.

    **Returns:**

    A `Request`. Raises `UserError` that shows a guess if time or coordinates are not named.
    """
    if gaps not in GAPS:
        raise unknown_name("way to treat gaps", gaps, GAPS)
    if interpolation not in INTERPOLATIONS:
        raise unknown_name("interpolation", interpolation, INTERPOLATIONS)
    if longest_step_s is not None and not longest_step_s > 0:
        raise UserError(f"longest_step_s is {longest_step_s}; it must be more than 0.")
    if (input_time or input_files) and not inputs:
        raise UserError(
            f"Inputs have their own times, but none is named. Name them with {setting('inputs')}."
        )
    if interpolation != "held" and not (input_time or input_files):
        raise UserError(
            f"interpolation is {interpolation!r}, but the inputs have the states' times. Leave it "
            f"out, or say where their own are: {setting('input_time')} or {setting('input_files')}."
        )
    files = find_files(paths)
    if time is None or (coordinates is None and not rates):
        raise UserError(_unnamed(files, paths, "coordinates" if time else "time"))
    roles = make_roles(
        time, coordinates or (), rates, inputs, parameters, run, input_time, units, angles
    )
    apart = bool(input_time or input_files)
    handling = Handling(gaps, longest_step_s, interpolation, fewest_rows)
    if not with_states:
        roles = replace(roles, coordinates=(), rates=(), angles=())
        return Request(tuple(files), roles, handling, (), apart)
    others = find_files(input_files) if input_files is not None else []
    if len(others) > 1 and len(others) != len(files):
        raise UserError(
            f"There are {len(others)} files of inputs for {len(files)} of states. Give one for "
            "each, or one for all."
        )
    return Request(tuple(files), roles, handling, tuple(others), apart)


def _unnamed(files: list[Path], paths: Paths, what: str) -> str:
    guess = guess_roles(open_logs(files[0])[0])
    shown = os.fspath(paths) if isinstance(paths, (str, os.PathLike)) else str(files[0])
    return (
        f"No {what} named for '{shown}', and roles are never guessed silently. If this guess is "
        f"right, {guess.advice(shown)}"
    )


class Reader:
    """Reads the runs of a request and keeps what is to be said of them.

    **Arguments:**

    - `request`: what to read.
    - `most_rows`: of a run to hold at a time; None for all.
    - `report`: called with the rows read so far, and those in all files where they say so.
    """

    def __init__(
        self,
        request: Request,
        most_rows: int | None = None,
        report: Callable[[int, int | None], None] | None = None,
    ):
        self.request, self._most, self._report = request, most_rows, report
        self.runs: list[RunSummary] = []
        self.notes: list[Note] = []
        self.names: Names | None = None

    def pieces(self) -> Iterator[tuple[Piece, dict[str, float]]]:
        """Every piece, with the parameters of its run."""
        roles, handling = self.request.roles, self.request.handling
        separate = self.request.apart
        done, total = 0, self._total() if self._report else None
        for number, path in enumerate(self.request.files):
            for log in open_logs(path):
                layout = lay_out(log, roles, with_inputs=not separate)
                signals = self._signals(number, log) if separate else None
                self.names = self.names or _names(layout, roles, signals)
                for run in runs_of(layout, self._most):
                    signal = None if signals is None else _signal_for(run.label, signals, run.place)
                    done += len(run.t)
                    pieces, summary = finish(run, layout, roles, handling, signal)
                    self.runs.append(summary)
                    for piece in pieces:
                        yield piece, dict(run.parameters)
                    self.notes += run.notes
                    if self._report:
                        self._report(done, total)
                self.notes += log.notes
        if not any(run.pieces for run in self.runs):
            raise UserError(self._nothing_left())

    def _nothing_left(self) -> str:
        fates = "; ".join(line for run in self.runs[:1] for line in run.account.lines())
        return (
            f"No run of {self.runs[0].place} is long enough: {fates}. "
            f"A run needs at least {self.request.handling.fewest_rows} rows, and five where a rate "
            "is to be estimated."
        )

    def _total(self) -> int | None:
        sizes = [log.size for path in self.request.files for log in open_logs(path)]
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) else None

    def _signals(self, number: int, log: AbstractLog) -> dict[str | None, Signal]:
        """Of the inputs that go with one log of states."""
        roles, others = self.request.roles, self.request.input_files
        if not others:
            assert roles.input_time is not None
            return signal_of(log, roles, roles.input_time)
        other = others[0]
        if len(others) > 1:
            stems = {path.stem: path for path in others}
            own = [path.stem for path in self.request.files]
            by_name = len(stems) == len(others) and set(own) == set(stems)
            other = stems[own[number]] if by_name else others[number]
        source = open_logs(other)[0]
        signals = signal_of(source, roles, roles.input_time or roles.time)
        log.note("inputs", f"from '{other}'")
        self.notes += source.notes
        return signals


def _signal_for(label: str | None, signals: dict[str | None, Signal], place: str) -> Signal:
    if label in signals:
        return signals[label]
    if None in signals:
        return signals[None]
    raise UserError(f"There are no inputs for {place}. Add them, or leave the run out.")


def _names(layout: Layout, roles: Roles, signals: Mapping[Any, Signal] | None) -> Names:
    """As the user wrote them, but without a unit that the values no longer have."""

    def plain(pairs, columns):
        return [f.plain(name, column) for (name, column), f in zip(pairs, columns, strict=True)]

    coordinates = plain(roles.coordinates, layout.coordinates)
    inputs = plain(roles.inputs, layout.inputs) if signals is None else []
    if signals is not None:
        inputs = list(next(iter(signals.values())).names)
    rates = []
    for name, column, found in zip(coordinates, roles.rates, layout.rates, strict=True):
        rate = f"{name}_dot" if found is None or column is None else found.plain(column, column)
        rates.append(f"{name}_dot" if rate in (*coordinates, *inputs, *rates) else rate)
    _check_names(coordinates, inputs)
    estimated = [name for name, found in zip(rates, layout.rates, strict=True) if found is None]
    return Names(tuple(coordinates), tuple(rates), tuple(inputs), tuple(estimated))


def _check_names(coordinates: list[str], inputs: list[str]) -> None:
    """Raise `UserError` for two columns of one name, where one is a rate that is named for us."""
    meant = {"t": "the time"} | {f"{name}_dot": f"the rate of {name!r}" for name in coordinates}
    for role, names in (("coordinates", coordinates), ("inputs", inputs)):
        for name in names:
            if name in meant:
                word = role.removesuffix("s")
                raise UserError(
                    f"There would be two columns called {name!r}: {meant[name]} and the {word}. "
                    f"Give the {word} another name: {setting(role, {'other_name': name})}."
                )
            meant[name] = f"the {role.removesuffix('s')}"


def make_trajectory(t, q, v, u, names: Names) -> "Trajectory":
    """A measured trajectory, or a batch of them: residuals are not known, and are zero."""
    import jax.numpy as jnp

    from mbdnode.status import Status
    from mbdnode.trajectory import Trajectory

    batch, none = t.shape[:-1], np.zeros(t.shape)
    # With NumPy, since JAX would compile each of these for every length of a run.
    status = Status(
        code=jnp.asarray(np.zeros(batch, int)),
        step=jnp.asarray(np.full(batch, t.shape[-1] - 1)),
        t=jnp.asarray(t[..., -1]),
        coordinate=jnp.asarray(np.full(batch, -1)),
        names=names.coordinates,
    )
    return Trajectory(
        t=jnp.asarray(t),
        q=jnp.asarray(q),
        v=jnp.asarray(v),
        u=jnp.asarray(u),
        position_residual=jnp.asarray(none),
        velocity_residual=jnp.asarray(none),
        status=status,
        coordinates=names.coordinates,
        rates=names.rates,
        inputs=names.inputs,
    )
