"""Angles that a sensor wraps to one turn, made continuous again.

Where a reading jumps by more than half a turn between two samples, a whole number of turns is added
so that the step is as near as possible to the one expected: that of the measured rate, where there
is one, and none at all otherwise.
"""

import re

import numpy as np

TURN = 2 * np.pi
_NAMES = re.compile(
    r"(^|_)(theta|phi|psi|alpha|beta|gamma|delta|angle|ang|yaw|pitch|roll|heading|azimuth|crank|rot)"
    r"\d*($|_)",
    re.IGNORECASE,
)


def sounds_like_angle(name: str) -> bool:
    """Whether a column is an angle by its name."""
    return bool(_NAMES.search(name))


def is_wrapped(values: np.ndarray, turn: float = TURN) -> bool:
    """Whether a column stays within one turn and jumps across most of it.

    **Arguments:**

    - `values`: in order of time.
    - `turn`: how much a whole turn is.
    """
    if len(values) < 3 or np.ptp(values) > turn * (1 + 1e-6):
        return False
    return bool(np.any(np.abs(np.diff(values)) > 0.75 * turn))


def unwrap(
    t: np.ndarray, values: np.ndarray, rate: np.ndarray | None, turn: float = TURN
) -> tuple[np.ndarray, int]:
    """Make a wrapped angle continuous.

    **Arguments:**

    - `t`, `values`: of one piece without gaps.
    - `rate`: as measured, in the same unit a second; None if it was not.
    - `turn`: how much a whole turn is.

    **Returns:**

    The angle, and at how many places a turn was added or taken.
    """
    steps = np.diff(values)
    expected = 0.0 if rate is None else (rate[1:] + rate[:-1]) / 2 * np.diff(t)
    turns = np.round((expected - steps) / turn)
    lifted = values + turn * np.concatenate([[0.0], np.cumsum(turns)])
    return lifted, int(np.count_nonzero(turns))
