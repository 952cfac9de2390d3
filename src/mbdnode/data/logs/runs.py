"""The runs of one log: where the roles' columns are, and the rows of each run, in SI."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mbdnode.data.logs.columns import spelled
from mbdnode.data.logs.log import Block
from mbdnode.data.logs.reading_summary import Account, Note
from mbdnode.data.logs.resolved_columns import ResolvedColumn, ResolvedColumns
from mbdnode.errors import UserError, check_memory

if TYPE_CHECKING:
    from mbdnode.trajectory import Trajectory


@dataclass(frozen=True)
class InputSignal:
    """Inputs with their own times.

    **Arguments:**

    - `t`: increasing, in seconds.
    - `values`: `(n, inputs)` in SI.
    - `columns`: of the inputs.
    """

    t: np.ndarray
    values: np.ndarray
    columns: tuple[ResolvedColumn, ...]


@dataclass
class Run:
    """The rows of one run.

    **Arguments:**

    - `place`: the file and the run, for messages.
    - `label`: of the run, if the file has several.
    - `t`: times in seconds.
    - `table`: the other columns, in SI.
    - `labels`: the columns' names in the file.
    - `rows`: the number of each row in the file.
    - `where`: how a user finds a row of the file.
    - `parameters`: by name.
    - `truncated`: rows that break off at the end of the file, and are not here.
    - `signal`: inputs with times of their own.
    - `with_rates`: whether measured rates are compared with the derivatives of their coordinates,
        which takes longer than all the rest.
    - `notes`: what was done.
    - `account`, `step_s`, `spans`: of the rows so far, the median step, and the stretches without
        gaps; from cleaning.
    """

    place: str
    label: str | None
    t: np.ndarray
    table: np.ndarray
    labels: tuple[str, ...]
    rows: np.ndarray
    where: Callable[[int], str]
    parameters: dict[str, float] = field(default_factory=dict)
    truncated: int = 0
    signal: InputSignal | None = None
    with_rates: bool = True
    notes: list[Note] = field(default_factory=list)
    account: Account = field(default_factory=Account)
    step_s: float = float("nan")
    spans: list[slice] = field(default_factory=list)

    def note(self, kind: str, text: str) -> None:
        """Add a note of this place."""
        self.notes.append(Note(kind, text, self.place))

    def take(self, index: np.ndarray | slice) -> None:
        """Keep some rows."""
        self.t, self.table, self.rows = self.t[index], self.table[index], self.rows[index]


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


def names_of(layout: ResolvedColumns, input_columns: Sequence[ResolvedColumn]) -> Names:
    """What a trajectory's columns are called; `input_columns` may be those of another log.

    Raises `UserError` if two columns would have one name.
    """
    coordinates = [column.name for column in layout.coordinates]
    inputs, rates = [column.name for column in input_columns], []
    for name, found in zip(coordinates, layout.rates, strict=True):
        rate = f"{name}_dot" if found is None else found.name
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
                    f"Give the {word} another name: {spelled(role, {'other_name': name})}."
                )
            meant[name] = f"the {role.removesuffix('s')}"


def make_trajectory(t, q, v, u, names: Names) -> "Trajectory":
    """A measured trajectory, or a batch of them: residuals are not known, and are NaN."""
    import jax.numpy as jnp

    from mbdnode.status import Status
    from mbdnode.trajectory import Trajectory

    batch, unknown = t.shape[:-1], np.full(t.shape, np.nan)
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
        position_residual=jnp.asarray(unknown),
        velocity_residual=jnp.asarray(unknown),
        status=status,
        coordinates=names.coordinates,
        rates=names.rates,
        inputs=names.inputs,
    )


def runs_in_log(
    layout: ResolvedColumns, most_rows: int | None = None, span: tuple[int, int] | None = None
) -> Iterator[Run]:
    """The runs of a log.

    **Arguments:**

    - `layout`: of the log.
    - `most_rows`: to hold at a time, or little more. A longer run comes in parts, and the rows of
        one run must then follow each other. None to hold all.
    - `span`: the rows to read, as the log's `spans` gives them; None for all.

    **Returns:**

    Runs, not cleaned yet, with rows in the order of the file.
    """
    columns = [layout.time, *layout.table]
    varying = {n: p for n, p in layout.parameters.items() if isinstance(p, ResolvedColumn)}
    numbers = [found.index for found in (*columns, *varying.values())]
    labels = [layout.run.index] if layout.run else []
    factors = np.array([found.factor for found in (*columns, *varying.values())])
    if most_rows is None and layout.log.size is not None:
        # The numbers, their copies in SI, and what is made of them.
        check_memory(
            32 * layout.log.size * len(numbers),
            f"'{layout.log.name}' with {layout.log.size:,} rows",
            "Cut it into several files, or leave out rows.",
        )
    size = [max(most_rows // 4, 1)] if most_rows else []
    blocks = layout.log.blocks_in(span, numbers, labels, *size)
    grouped = _in_parts(blocks, most_rows, layout) if most_rows else _whole(blocks, layout)
    empty = True
    for label, first_rows, values, truncated in grouped:
        empty = False
        values = values * factors
        label = None if label is None else _tidy(str(label))
        place = layout.log.name + ("" if label is None else f", run {label}")
        run = Run(
            place=place,
            label=label,
            t=values[:, 0],
            table=values[:, 1 : len(columns)],
            labels=tuple(found.label for found in columns[1:]),
            rows=first_rows,
            where=layout.log.place,
            truncated=truncated,
        )
        run.parameters = {n: p for n, p in layout.parameters.items() if isinstance(p, float)}
        for (name, found), column in zip(varying.items(), values[:, len(columns) :].T, strict=True):
            run.parameters[name] = _constant(run, name, found, column)
        yield run
    if empty:
        raise UserError(f"'{layout.log.name}' has no rows of numbers. Leave it out.")


def _tidy(label: str) -> str:
    """A run's label without the digits that a number does not need, so that files agree on it."""
    try:
        return f"{float(label):.15g}"
    except ValueError:
        return label


def _joined(blocks: list[Block]) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Row numbers, values and run labels of several blocks."""
    values = np.concatenate([np.column_stack(block.numbers) for block in blocks])
    rows = np.concatenate([b.first + np.arange(len(b.numbers[0])) for b in blocks])
    labeled = all(block.labels for block in blocks)
    words = np.concatenate([b.labels[0] for b in blocks]) if labeled else None
    return rows, values, words


def _whole(blocks: Iterator[Block], layout: ResolvedColumns):
    """Each run with all of its rows, wherever they are."""
    held = list(blocks)
    if not held:
        return
    rows, values, words = _joined(held)
    truncated = sum(block.truncated for block in held)
    if words is None:
        if len(rows) or truncated:
            yield None, rows, values, truncated
        return
    numbers = _numbered(words, rows, layout)
    order = np.argsort(numbers, kind="stable")
    bounds = np.flatnonzero(np.diff(numbers[order], prepend=-1, append=len(numbers)))
    for first, last in itertools.pairwise(bounds.tolist()):
        mine = order[first:last]
        yield words[mine[0]], rows[mine], values[mine], truncated if first == 0 else 0


def _in_parts(blocks: Iterator[Block], most_rows: int, layout: ResolvedColumns):
    """Runs whose rows follow each other, a long one in parts of at least half the most rows.

    Rows are held until there are enough for two such parts, so that no part is a mere rest.
    """
    held: list[Block] = []
    label: Any = None
    seen: set[Any] = set()
    truncated = 0
    for block in _by_run(blocks, layout):
        truncated += block.truncated
        own = block.labels[0][0] if block.labels and len(block.labels[0]) else label
        if held and own != label:
            yield label, *_joined(held)[:2], 0
            held = []
        if own != label and own in seen:
            raise UserError(
                f"Run {own!r} of '{layout.log.name}' goes on at {layout.log.place(block.first)} "
                "after another one. Sort the rows by run, or read the file whole, with read."
            )
        seen.add(own)
        label = own
        held.append(block)
        if sum(len(b.numbers[0]) for b in held) >= most_rows:
            rows, values, _ = _joined(held)
            half = most_rows // 2
            yield label, rows[:half], values[:half], 0
            held = [Block(int(rows[half]), tuple(values[half:].T), ())]
    if held or truncated:
        yield label, *_joined(held)[:2], truncated


def _by_run(blocks: Iterator[Block], layout: ResolvedColumns) -> Iterator[Block]:
    """The same blocks, cut where another run begins."""
    for block in blocks:
        if not block.labels or not len(block.labels[0]):
            yield block
            continue
        words = block.labels[0]
        starts = _changes(words)
        _numbered(words[starts], block.first + starts, layout)
        for a, b in itertools.pairwise([*starts.tolist(), len(words)]):
            numbers = tuple(column[a:b] for column in block.numbers)
            last = block.truncated if b == len(words) else 0
            yield Block(block.first + a, numbers, (words[a:b],), last)


def _changes(words: np.ndarray) -> np.ndarray:
    """The first row, and every row whose word is another than that of the row before."""
    return np.flatnonzero(np.concatenate([[True], words[1:] != words[:-1]])[: len(words)])


def _numbered(words: np.ndarray, rows: np.ndarray, layout: ResolvedColumns) -> np.ndarray:
    """The number of every row's run, in the order in which they come."""
    order: dict[str, int] = {}
    # The rows of a run mostly follow each other.
    starts = _changes(words)
    codes = [order.setdefault(word, len(order)) for word in words[starts]]
    numbers = np.repeat(np.array(codes, int), np.diff(starts, append=len(words)))
    if None in order:
        assert layout.run is not None
        row = int(rows[np.argmax(numbers == order[None])])  # pyright: ignore[reportArgumentType]
        raise UserError(
            f"Column {layout.run.label!r}, which tells runs apart, has no value at "
            f"{layout.log.place(row)} of '{layout.log.name}'. Fill it in."
        )
    return numbers


def _constant(run: Run, name: str, found: ResolvedColumn, column: np.ndarray) -> float:
    """The value of a parameter, which must not change within a run; it may be given once."""
    known = np.flatnonzero(np.isfinite(column))
    if not len(known):
        raise UserError(f"Parameter {name!r} has no value in {run.place}. Give one.")
    value = float(column[known[0]])
    other = known[column[known] != value]
    if len(other):
        raise UserError(
            f"Parameter {name!r} changes from {value:g} to {column[other[0]]:g} at "
            f"{run.where(int(run.rows[other[0]]))} of {run.place}, but a parameter is constant in "
            f"a run. Name {found.label!r} as an input, or name the column that tells runs apart."
        )
    return value
