"""References and disturbances over time, and the size of a measurement's noise."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mbdnode.control.state_space import as_vector
from mbdnode.errors import UserError


def rows_of(
    what: str,
    given: Any,
    times: np.ndarray,
    names: tuple[str, ...],
    usual: np.ndarray | None = None,
) -> np.ndarray | None:
    """A row for each time.

    **Arguments:**

    - `what`: it is, for messages.
    - `given`: a function of time, rows, one row for all times, values by name, or None.
    - `times`: when.
    - `names`: of the columns.
    - `usual`: the value of what is left out by name; zero if not given.

    **Returns:**

    An array, or None for None. Raises `UserError` for a wrong shape or what is not finite.
    """
    if given is None:
        return None
    if callable(given):
        return np.array(
            [as_vector(f"The {what} at {t:g} s", given(float(t)), names, usual) for t in times]
        )
    one_row = np.ndim(given) <= 1 and np.size(given) == len(names)
    if isinstance(given, Mapping) or one_row:
        values = given if isinstance(given, Mapping) else np.ravel(np.asarray(given))
        return np.repeat(as_vector(f"The {what}", values, names, usual)[None], len(times), axis=0)
    try:
        rows = np.asarray(given, float)
    except (TypeError, ValueError) as error:
        raise UserError(f"The {what} is {given!r}, which is no array of numbers.") from error
    rows = rows[:, None] if rows.ndim == 1 and len(names) == 1 else rows
    if rows.ndim != 2 or rows.shape[1] != len(names) or not len(rows):
        raise UserError(
            f"The {what} has shape {rows.shape}; give a row for each time, with the columns "
            f"{', '.join(names)}, or a function of time."
        )
    if not np.all(np.isfinite(rows)):
        row, column = np.argwhere(~np.isfinite(rows))[0]
        raise UserError(
            f"The {what} has {names[column]} = {rows[row, column]} in row {row}; it must be finite."
        )
    index = np.minimum(np.arange(len(times)), len(rows) - 1)
    return rows[index]


def deviations(noise: Any, names: tuple[str, ...]) -> np.ndarray | None:
    """The standard deviation of each measured state; None for none.

    **Arguments:**

    - `noise`: None, one number for all, one each, or by name.
    - `names`: of the states.

    **Returns:**

    A vector. Raises `UserError` for a negative one.
    """
    if noise is None:
        return None
    if not isinstance(noise, Mapping) and np.ndim(noise) == 0:
        noise = [noise] * len(names)
    values = as_vector("The noise", noise, names)
    if np.any(values < 0):
        name = names[int(np.argmin(values))]
        raise UserError(f"The noise of {name} is {np.min(values):g}; it must not be negative.")
    return values if np.any(values) else None
