"""What users give to control, checked: numbers, vectors, rows, weights and bounds."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mbdnode.errors import UserError
from mbdnode.naming import by_name, unknown_name


def as_number(name: str, value: Any) -> float:
    """A finite number; raises `UserError` for anything else."""
    number = np.asarray(value)
    if number.dtype.kind not in "iuf" or number.ndim or not np.isfinite(number):
        raise UserError(f"{name} is {value!r}; it must be a finite number.")
    return float(number)


def as_positive(name: str, value: Any) -> float:
    """A finite number above zero."""
    if not as_number(name, value) > 0:
        raise UserError(f"{name} is {value!r}; it must be above zero.")
    return float(value)


def as_count(name: str, value: Any, least: int = 1) -> int:
    """A whole number of at least that many."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise UserError(f"{name} is {value!r}; it must be a whole number of at least {least}.")
    return int(value)


def real_rows(what: str, given: Any, wanted: str = "an array of real numbers") -> np.ndarray:
    """An array of real numbers; raises `UserError` for anything else."""
    try:
        array = np.asarray(given)
        if np.iscomplexobj(array):
            raise TypeError("complex")
        return np.asarray(array, float)
    except (TypeError, ValueError) as error:
        raise UserError(f"{what} is {given!r}; give {wanted}.") from error


def as_vector(
    what: str,
    values: Any,
    names: tuple[str, ...],
    usual: Any = 0.0,
    *,
    one_for_all: bool = False,
    finite: bool = True,
) -> np.ndarray:
    """Numbers, one for each name, from numbers in their order or by name.

    `usual` is for what is left out by name; None where nothing may be. With `one_for_all` a single
    number stands for every entry.
    """
    values, wanted = by_name(values), f"{len(names)} number(s): {', '.join(names)}"
    if isinstance(values, Mapping):
        if usual is None and set(values) != set(names):
            raise UserError(f"{what} is {values!r}; give {wanted}.")
        values = [value for _, value in _in_order(values, names, usual)]
    array = real_rows(what, values, wanted)
    if one_for_all and array.ndim == 0:
        array = np.full(len(names), float(array))
    if array.shape != (len(names),):
        raise UserError(f"{what} has shape {array.shape}; give {wanted}.")
    if finite:
        _check_finite(what, array[None], names)
    return array


def as_spread(what: str, values: Any, names: tuple[str, ...]) -> np.ndarray:
    """Numbers of at least zero, one for each name, or one for all."""
    array = as_vector(what, values, names, one_for_all=True)
    if np.any(array < 0):
        name = names[int(np.argmin(array))]
        raise UserError(f"{what} of {name} is {np.min(array):g}; it must not be negative.")
    return array


def as_rows(
    what: str, given: Any, names: tuple[str, ...], usual: Any = 0.0, wanted: str = "rows"
) -> np.ndarray:
    """Finite rows with a column for each name, from rows or columns by name.

    A single column needs no second axis. `wanted` says in messages how many rows.
    """
    given, wanted = by_name(given), f"{wanted} with the columns {', '.join(names)}"
    if isinstance(given, Mapping):
        columns = [np.asarray(column) for _, column in _in_order(given, names, usual)]
        try:
            given = np.stack(np.broadcast_arrays(*columns), axis=-1)
        except ValueError as error:
            lengths = ", ".join(f"{n}: {np.shape(column)}" for n, column in given.items())
            raise UserError(f"{what} has columns of different lengths ({lengths}).") from error
    rows = real_rows(what, given, wanted)
    rows = rows[:, None] if rows.ndim == 1 and len(names) == 1 else rows
    if rows.ndim != 2 or rows.shape[1] != len(names) or not len(rows):
        raise UserError(f"{what} has shape {rows.shape}; give {wanted}.")
    _check_finite(what, rows, names)
    return rows


def rows_over_time(
    what: str, given: Any, times: np.ndarray, names: tuple[str, ...], usual: Any = 0.0
) -> np.ndarray:
    """A row for each time, from a function of time, rows of which the last is held, or one row.

    Rows may be by name.
    """
    if callable(given):
        rows = [as_vector(f"{what} at {t:g} s", given(float(t)), names, usual) for t in times]
        return np.array(rows)
    given = by_name(given)
    if isinstance(given, Mapping):
        is_row = not any(np.ndim(column) for column in given.values())
    else:
        is_row = np.ndim(given) <= 1 and np.size(given) == len(names)
    if is_row:
        row = given if isinstance(given, Mapping) else np.ravel(np.asarray(given))
        return np.repeat(as_vector(what, row, names, usual)[None], len(times), axis=0)
    rows = as_rows(what, given, names, usual, "a function of time, or a row for each time")
    return rows[np.minimum(np.arange(len(times)), len(rows) - 1)]


def _in_order(given: Mapping[str, Any], names: tuple[str, ...], usual: Any):
    """Names and what is given for them, or the usual."""
    for name in given:
        if name not in names:
            raise unknown_name("state or input", name, names)
    others = np.broadcast_to(0.0 if usual is None else usual, len(names))
    return [(name, given.get(name, other)) for name, other in zip(names, others, strict=True)]


def _check_finite(what: str, rows: np.ndarray, names: tuple[str, ...]) -> None:
    if not np.all(np.isfinite(rows)):
        row, column = np.argwhere(~np.isfinite(rows))[0]
        place = f" in row {row}" if len(rows) > 1 else ""
        raise UserError(
            f"{what} has {names[column]} = {rows[row, column]}{place}; it must be finite."
        )


def symmetric(name: str, given: Any, size: int, *, definite: bool = False) -> np.ndarray:
    """A finite symmetric matrix of that size, positive semi-definite or, if asked for, definite."""
    matrix = real_rows(name, given, "a matrix of real numbers")
    if matrix.shape != (size, size):
        raise UserError(
            f"{name} has shape {matrix.shape}; it must be {size} by {size}, or a vector of {size} "
            "for a diagonal one."
        )
    if not np.all(np.isfinite(matrix)):
        row, column = np.argwhere(~np.isfinite(matrix))[0]
        raise UserError(f"{name}[{row}, {column}] is {matrix[row, column]}; it must be finite.")
    away, size_of_all = np.abs(matrix - matrix.T), float(np.max(np.abs(matrix)))
    row, column = np.unravel_index(int(np.argmax(away)), away.shape)
    # Round-off of a product such as C' C.
    if away[row, column] > 1e-9 * max(1.0, size_of_all):
        raise UserError(
            f"{name} is not symmetric: [{row}, {column}] is {matrix[row, column]:g}, but "
            f"[{column}, {row}] is {matrix[column, row]:g}. Use ({name} + {name}.T) / 2."
        )
    smallest = float(np.min(np.linalg.eigvalsh(matrix)))
    if definite and not smallest > 1e-12 * size_of_all:
        raise UserError(
            f"{name} has the eigenvalue {smallest:.3g}; it must be positive definite, so that "
            "every input has a cost. Give an input that is to be free a small weight."
        )
    if smallest < -1e-9 * size_of_all:
        raise UserError(
            f"{name} has the eigenvalue {smallest:.3g}; it must be positive semi-definite, since a "
            "negative cost has no minimum. Check the signs."
        )
    return (matrix + matrix.T) / 2


def as_weight(name: str, given: Any, names: tuple[str, ...], *, definite: bool) -> np.ndarray:
    """A symmetric matrix; from a vector or by name its diagonal, the identity if None."""
    if given is None:
        return np.eye(len(names))
    given = by_name(given)
    if isinstance(given, Mapping) or np.ndim(given) == 1:
        given = np.diag(as_vector(f"The diagonal of {name}", given, names))
    return symmetric(name, given, len(names), definite=definite)


def as_bounds(what: str, given: Any, names: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Min and max of each, infinite where nothing is said."""
    given = by_name({} if given is None else given)
    if isinstance(given, Mapping):
        pairs = {name: _pair(f"{what}[{name!r}]", pair) for name, pair in given.items()}
        sides = [{name: pair[side] for name, pair in pairs.items()} for side in (0, 1)]
    else:
        sides = _pair(what, given)
    low, high = (
        as_vector(f"One side of {what}", side, names, usual, one_for_all=True, finite=False)
        for side, usual in zip(sides, (-np.inf, np.inf), strict=True)
    )
    for name, lowest, highest in zip(names, low, high, strict=True):
        if np.isnan(lowest) or np.isnan(highest) or not lowest < highest:
            raise UserError(
                f"{what} leaves no room for {name}: it would have to be above {lowest:g} and below "
                f"{highest:g}. Give the min first."
            )
    return low, high


def _pair(what: str, given: Any) -> tuple[Any, Any]:
    try:
        low, high = given
        # None on a side is no bound there.
        return (-np.inf if low is None else low), (np.inf if high is None else high)
    except (TypeError, ValueError) as error:
        raise UserError(
            f"{what} is {given!r}; give the min and the max, such as (-1.0, 1.0)."
        ) from error


def as_rate(given: Any, names: tuple[str, ...]) -> np.ndarray:
    """The most that each input may change in a second."""
    given = {} if given is None else given
    rate = as_vector("u_rate", given, names, np.inf, one_for_all=True, finite=False)
    if not np.all(rate > 0):
        raise UserError(
            f"u_rate is {given!r}; every input needs a limit above zero, in its unit per second."
        )
    return rate


def check_inside(what: str, values: np.ndarray, low, high, names: tuple[str, ...]) -> None:
    """Raise `UserError` for what is outside its own bounds."""
    for name, value, lowest, highest in zip(names, values, low, high, strict=True):
        if not lowest <= value <= highest:
            raise UserError(
                f"{what} has {name} = {value:g}, outside its own bounds {lowest:g} to {highest:g}: "
                "no plan could both go there and keep them. Move one of the two."
            )


def check_kind(name: str, given: Any, kind: type) -> None:
    """Raise `TypeError` for what is no `kind`, such as a dictionary of its fields."""
    if not isinstance(given, kind):
        raise TypeError(
            f"{name} is a {type(given).__name__}; give mbdnode.{kind.__name__}(...), or leave it "
            "out."
        )
