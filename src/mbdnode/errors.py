"""The one error for what a user asked for and cannot have.

A wrong name, a file that does not exist, a negative mass: the message says the rule, the value and
the way out, and that is all that the command line shows. Any other exception that reaches it is a
mistake of this program, which it says, with a traceback.
"""

import contextlib
import os
from pathlib import Path

# Of a trajectory's numbers while it is made, completed and written: measured, 26 to 35 bytes each.
_COPIES = 5
# Beside coordinates, velocities and inputs: the time and two residuals.
_OTHER_COLUMNS = 3


class UserError(ValueError):
    """A request that cannot be met as it stands.

    It is a `ValueError`, as for any function that is given a value it cannot use; the opposite
    does not hold, since NumPy and JAX raise `ValueError` for shapes that do not fit, which is
    never the user's doing.
    """


def check_memory(needed_bytes: int, what: str, way_out: str) -> None:
    """Raise `UserError` for what does not fit in memory, before the machine comes to a halt.

    `what` is the subject of a sentence, `way_out` a sentence.
    """
    free_bytes = free_memory()
    if free_bytes is not None and needed_bytes > free_bytes:
        raise UserError(
            f"{what} would take {_gigabytes(needed_bytes)} of memory, but "
            f"{free_bytes / 1e9:.1f} GB are free. {way_out}"
        )


def check_trajectory_size(steps: int, columns: int) -> None:
    """Raise `UserError` for more steps than fit in memory, before any of them is made.

    `columns` are coordinates, velocities and inputs together.
    """
    needed_bytes = _COPIES * 8 * (columns + _OTHER_COLUMNS) * steps
    check_memory(needed_bytes, f"A trajectory of {steps:,} steps", "Take fewer steps.")


def free_memory() -> int | None:
    """The bytes that can still be had; None where the system does not say."""
    found = [size for size in (_free_on_the_machine(), _free_in_the_group()) if size is not None]
    return min(found) if found else None


def _free_on_the_machine() -> int | None:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    with contextlib.suppress(AttributeError, OSError, ValueError):  # Not on every system.
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _free_in_the_group() -> int | None:
    """Of a container or a job of a cluster, which may have less than the machine (cgroup 2)."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        own = Path("/proc/self/cgroup").read_text().strip().rpartition("::")[2]
        for folder in (Path(f"/sys/fs/cgroup{own}"), Path("/sys/fs/cgroup")):
            if (folder / "memory.max").is_file():
                most = int((folder / "memory.max").read_text())  # "max" is no number.
                return max(most - int((folder / "memory.current").read_text()), 0)
    return None


def _gigabytes(size: int) -> str:
    if size > 10**24:
        return "more than 1e+15 GB"
    return f"about {size / 1e9:,.1f} GB" if size < 10**15 else f"about {size / 1e9:.1e} GB"
