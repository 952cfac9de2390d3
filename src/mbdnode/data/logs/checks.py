"""What looks wrong in a run that can be read: said, and left to the user."""

import numpy as np

from mbdnode.data.logs.cleaning import Run
from mbdnode.data.logs.layout import Layout
from mbdnode.data.logs.roles import Roles, setting
from mbdnode.data.logs.summary import counted
from mbdnode.data.signal import FEWEST_ROWS, estimate_rate

_MOST_ROWS = 5_000
# A value this many typical distances away from the middle is no motion.
_OUTLIER = 1_000.0
_FULL_TURN_DEG = 360.0


def check_columns(run: Run, layout: Layout, roles: Roles, pieces: list) -> None:
    """Note what a user should look at.

    **Arguments:**

    - `run`: gets the notes.
    - `layout`, `roles`: what its columns are.
    - `pieces`: times, coordinates and rates of each piece.
    """
    q = np.concatenate([piece[1] for piece in pieces])
    v = np.concatenate([piece[2] for piece in pieces])
    for i, (name, _) in enumerate(roles.coordinates):
        if np.ptp(q[:, i]) == 0:
            run.note("warning", f"{name!r} never changes")
            continue
        _check_degrees(run, name, layout, i, q[:, i])
        for what, column in ((repr(name), q[:, i]), (f"the rate of {name!r}", v[:, i])):
            _check_outliers(run, what, column)
        rate = layout.rates[i]
        if rate is not None:
            longest = max(pieces, key=lambda piece: len(piece[0]))
            t, x, y = (
                longest[0][:_MOST_ROWS],
                longest[1][:_MOST_ROWS, i],
                longest[2][:_MOST_ROWS, i],
            )
            check_rate(run, name, rate.label, t, x, y)


def _check_degrees(run: Run, name: str, layout: Layout, number: int, values: np.ndarray) -> None:
    """Jumps of about 360 in a column without a unit are those of a compass."""
    jumps = np.abs(np.diff(values))
    found = layout.coordinates[number]
    within = np.ptp(values) <= _FULL_TURN_DEG * (1 + 1e-6)
    if found.unit is None and within and np.any(jumps > 0.9 * _FULL_TURN_DEG):
        run.note(
            "warning",
            f"{name!r} jumps by nearly 360; if it is in degrees, say so with "
            f"{setting('units', {found.label: 'deg'})}",
        )


def _check_outliers(run: Run, what: str, values: np.ndarray) -> None:
    away = np.abs(values - np.median(values))
    usual = float(np.quantile(away, 0.9))
    far = away > _OUTLIER * usual
    if usual > 0 and np.any(far):
        run.note(
            "warning",
            f"{counted(int(np.sum(far)), 'value')} of {what}, more than {_OUTLIER:,.0f} times as "
            f"far from the middle as most, such as {values[int(np.argmax(away))]:.4g}",
        )


def check_rate(
    run: Run, name: str, rate: str, t: np.ndarray, x: np.ndarray, measured: np.ndarray
) -> None:
    """Note a rate that is not the derivative of its coordinate, or is in another unit."""
    if len(t) < max(FEWEST_ROWS, 20):
        return
    found = estimate_rate(t, x)
    size = float(np.sqrt(np.mean(found.values**2)))
    if size == 0 or found.typical_error > 0.3 * size or np.ptp(measured) == 0:
        return
    alike = float(np.corrcoef(found.values, measured)[0, 1]) if np.ptp(found.values) > 0 else 0.0
    ratio = float(np.dot(found.values, measured) / np.dot(found.values, found.values))
    if alike > 0.9 and not 0.8 < ratio < 1.25:
        run.note(
            "warning",
            f"{rate!r} is {ratio:.4g} times the derivative of {name!r}; if a unit is missing, give "
            f"it with {setting('units', {rate: '...'})}",
        )
    elif alike < 0.5:
        run.note("warning", f"{rate!r} does not look like the derivative of {name!r}")
