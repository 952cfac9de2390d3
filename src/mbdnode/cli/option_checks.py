"""Values that an option cannot have, whatever the command.

What is wrong with a mechanism, an integrator or a model, its constructor says.
"""

import math
import re

from mbdnode.errors import UserError

_ADDRESS = re.compile(r"([a-z]+://)?([^\s/:]+|\[[0-9a-f:]+\]):\d+$")


def check_step(dt: float | None, own: float | None = None) -> None:
    """Raise `UserError` for a time step that is not above zero and finite.

    **Arguments:**

    - `dt`: in seconds; None is none.
    - `own`: the step that the case has, for the message.
    """
    if dt is not None and not (math.isfinite(dt) and dt > 0):
        way_out = "" if own is None else f" The case's own is {own:g} s."
        raise UserError(f"--dt is {dt:g} s; it must be above zero and finite.{way_out}")


def check_count(option: str, value: int | None) -> None:
    """Raise `UserError` for a number of steps, seeds or the like that is below one."""
    if value is not None and value < 1:
        raise UserError(f"{option} is {value}; it must be at least 1.")


def check_seed(seed: int | None) -> None:
    """Raise `UserError` for a seed below zero."""
    if seed is not None and seed < 0:
        raise UserError(f"--seed is {seed}; it must not be negative.")


def check_address(cluster: str | None) -> None:
    """Raise `UserError` for what cannot be the address of a Dask scheduler."""
    if cluster is not None and not _ADDRESS.match(cluster):
        raise UserError(
            f"--cluster is {cluster!r}, which is no address. Start a scheduler with `dask "
            "scheduler`, and give the address that it prints, such as tcp://127.0.0.1:8786."
        )
