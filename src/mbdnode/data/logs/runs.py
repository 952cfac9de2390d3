"""The runs of one log: the rows of each, in SI, and what a trajectory made of them is called."""

import itertools
from collections.abc import Iterator, Sequence
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

# The label of a run, the numbers of its rows in the file, their values, and how many broke off.
_Rows = tuple[Any, np.ndarray, np.ndarray, int]


@dataclass
class Run:
    """The rows of one run, which `clean` and `finish` change in place.

    **Arguments:**

    - `layout`: of its log.
    - `label`: of the run, if the file has several.
    - `t`, `table`: times and the columns of `layout.table`, in SI.
    - `rows`: the number of each row in the file.
    - `parameters`: by name.
    - `notes`, `account`: what was done, and what became of the rows so far.
    - `step_s`, `spans`: the median step, and the stretches without gaps; from cleaning.
    """

    layout: ResolvedColumns
    label: str | None
    t: np.ndarray
    table: np.ndarray
    rows: np.ndarray
    parameters: dict[str, float] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    account: Account = field(default_factory=Account)
    step_s: float = float("nan")
    spans: list[slice] = field(default_factory=list)

    @property
    def place(self) -> str:
        """The file and the run, for messages."""
        name = self.layout.log.name
        return name if self.label is None else f"{name}, run {self.label}"

    @property
    def labels(self) -> list[str]:
        """What the columns are called in the file."""
        return [found.label for found in self.layout.table]

    def where(self, row: int | np.integer) -> str:
        """How a user finds a row of the run in the file."""
        return self.layout.log.place(int(self.rows[row]))

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
    meant = {"t": "the time"} | {f"{name}_dot": f"the rate of {name!r}" for name in coordinates}
    for role, names in (("coordinate", coordinates), ("input", inputs)):
        for name in names:
            if name in meant:
                raise UserError(
                    f"There would be two columns called {name!r}: {meant[name]} and the {role}. "
                    f"Give the {role} another name: {spelled(f'{role}s', {'other_name': name})}."
                )
            meant[name] = f"the {role}"
    estimated = [name for name, found in zip(rates, layout.rates, strict=True) if found is None]
    return Names(tuple(coordinates), tuple(rates), tuple(inputs), tuple(estimated))


def make_trajectory(table: np.ndarray, names: Names) -> "Trajectory":
    """A measured trajectory of a table `(n, columns)`, or a batch of them.

    The columns are times, coordinates, rates and inputs. Residuals are not known, and are NaN.
    """
    import jax.numpy as jnp

    from mbdnode.status import Status
    from mbdnode.trajectory import Trajectory

    ends = np.cumsum([1, len(names.coordinates), len(names.rates)])
    t, q, v, u = np.split(table, ends, axis=-1)
    t = t[..., 0]
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
        *map(jnp.asarray, (t, q, v, u, unknown, unknown)),
        status=status,
        coordinates=names.coordinates,
        rates=names.rates,
        inputs=names.inputs,
    )


def runs_in_log(
    layout: ResolvedColumns, most_rows: int | None = None, span: tuple[int, int] | None = None
) -> Iterator[Run]:
    """The runs of a log, not cleaned yet, with rows in the order of the file.

    **Arguments:**

    - `layout`: of the log.
    - `most_rows`: to hold at a time, or little more. A longer run comes in parts, and the rows of
        one run must then follow each other. None to hold all.
    - `span`: the rows to read, as the log's `spans` gives them; None for all.
    """
    columns, log = [layout.time, *layout.table], layout.log
    varying = {n: p for n, p in layout.parameters.items() if isinstance(p, ResolvedColumn)}
    read = [*columns, *varying.values()]
    if most_rows is None and log.size is not None:
        # The numbers, their copies in SI, and what is made of them.
        check_memory(
            32 * log.size * len(read),
            f"'{log.name}' with {log.size:,} rows",
            "Cut it into several files, or leave out rows.",
        )
    size = [max(most_rows // 4, 1)] if most_rows else []
    labels = [layout.run.index] if layout.run else []
    blocks = log.blocks_in(span, [found.index for found in read], labels, *size)
    grouped = _in_parts(blocks, most_rows, layout) if most_rows else _whole(blocks, layout)
    empty = True
    for label, rows, values, truncated in grouped:
        empty = False
        values = values * np.array([found.factor for found in read])
        label = None if label is None else _tidy(str(label))
        run = Run(layout, label, values[:, 0], values[:, 1 : len(columns)], rows)
        run.account = Account(read=len(rows) + truncated, truncated=truncated)
        run.parameters = {n: p for n, p in layout.parameters.items() if isinstance(p, float)}
        for (name, found), column in zip(varying.items(), values[:, len(columns) :].T, strict=True):
            run.parameters[name] = _constant(run, name, found, column)
        yield run
    if empty:
        raise UserError(f"'{log.name}' has no rows of numbers. Leave it out.")


def _tidy(label: str) -> str:
    """A run's label without the digits that a number does not need, so that files agree on it."""
    try:
        return f"{float(label):.15g}"
    except ValueError:
        return label


def _joined(blocks: list[Block]) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers and values of several blocks."""
    rows = [block.first + np.arange(len(block.numbers[0])) for block in blocks]
    return np.concatenate(rows), np.concatenate([np.column_stack(b.numbers) for b in blocks])


def _whole(blocks: Iterator[Block], layout: ResolvedColumns) -> Iterator[_Rows]:
    """Each run with all of its rows, wherever they are."""
    held = list(blocks)
    if not held:
        return
    rows, values = _joined(held)
    truncated = sum(block.truncated for block in held)
    if not layout.run:
        if len(rows) or truncated:
            yield None, rows, values, truncated
        return
    words = np.concatenate([block.labels[0] for block in held])
    numbers = _numbered(words, rows, layout)
    order = np.argsort(numbers, kind="stable")
    bounds = np.flatnonzero(np.diff(numbers[order], prepend=-1, append=len(numbers)))
    for first, last in itertools.pairwise(bounds.tolist()):
        mine = order[first:last]
        yield words[mine[0]], rows[mine], values[mine], truncated if first == 0 else 0


def _in_parts(blocks: Iterator[Block], most_rows: int, layout: ResolvedColumns) -> Iterator[_Rows]:
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
            yield label, *_joined(held), 0
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
            rows, values = _joined(held)
            half = most_rows // 2
            yield label, rows[:half], values[:half], 0
            held = [Block(int(rows[half]), tuple(values[half:].T))]
    if held or truncated:
        yield label, *_joined(held), truncated


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
    order: dict[str | None, int] = {}
    # The rows of a run mostly follow each other.
    starts = _changes(words)
    codes = [order.setdefault(word, len(order)) for word in words[starts]]
    numbers = np.repeat(np.array(codes, int), np.diff(starts, append=len(words)))
    if None in order:
        assert layout.run is not None
        row = int(rows[np.argmax(numbers == order[None])])
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
            f"{run.where(other[0])} of {run.place}, but a parameter is constant in a run. Name "
            f"{found.label!r} as an input, or name the column that tells runs apart."
        )
    return value
