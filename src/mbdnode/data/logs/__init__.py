"""Logs of measurements: read, cleaned and summed up; and what is in them, before they are.

Nothing here loads JAX before trajectories are made, so that `inspect` answers at once.
"""

from typing import TYPE_CHECKING

from mbdnode.data.files import find_files
from mbdnode.data.logs.columns import Columns, as_columns
from mbdnode.data.logs.formats import open_logs
from mbdnode.data.logs.reading import read
from mbdnode.data.logs.reading_summary import Account, Note, RunSummary, Summary
from mbdnode.data.logs.role_guess import Guess, guess_roles
from mbdnode.data.signal import Rate, estimate_rate, noise_level
from mbdnode.lazy_imports import lazy_names

if TYPE_CHECKING:
    from mbdnode.data.logs.stream import LogStream

__all__ = [
    "Account",
    "Columns",
    "Guess",
    "LogStream",
    "Note",
    "Rate",
    "RunSummary",
    "Summary",
    "as_columns",
    "estimate_rate",
    "find_files",
    "guess_roles",
    "noise_level",
    "open_logs",
    "read",
]

__getattr__ = lazy_names(__name__, {"LogStream": "stream"})
