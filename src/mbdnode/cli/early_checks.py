"""What can be told to be wrong with a request before JAX is loaded, which takes seconds.

Integrators are named here once more, since what they name loads JAX; a test compares the names.
"""

import math
import re
from collections.abc import Iterable

from mbdnode.config import parse_toml, read_toml
from mbdnode.data.files import must_be_file
from mbdnode.errors import UserError
from mbdnode.naming import unknown_name

# Those that choose their own steps come last.
ADAPTIVE = ("dopri5", "dopri8", "kvaerno5")
INTEGRATORS = (
    *("fe1", "mp2", "rk4", "lf2", "ys4", "fk6", "backward-euler", "implicit-midpoint"),
    *ADAPTIVE,
)
# Known to `simulate` alone: the motion in closed form, of a mechanism that has one.
ANALYTIC = "analytic"
# As in `mbdnode.mechanisms.planar`, which loads JAX.
_FIX = "Correct that line; docs/how-to/mechanism-files.md shows how a mechanism is written."
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


def check_integrator(name: str | None, more: Iterable[str] = ()) -> None:
    """Raise `UserError` for an integrator that is not known.

    **Arguments:**

    - `name`: in any case; None is none.
    - `more`: names that this command knows besides.
    """
    known = (*INTEGRATORS, *more)
    if name is not None and name.lower() not in known:
        raise unknown_name("integrator", name, known)


def check_fixed_step(name: str | None, why: str) -> None:
    """Raise `UserError` for an integrator that is not known, or that chooses its own steps.

    **Arguments:**

    - `name`: in any case; None is none.
    - `why`: such integrators do not serve, as the end of a sentence.
    """
    check_integrator(name)
    if name is not None and name.lower() in ADAPTIVE:
        raise UserError(
            f"--integrator is {name!r}, which chooses its own steps; {why}. Use rk4, or another "
            "of fixed steps."
        )


def check_address(cluster: str | None) -> None:
    """Raise `UserError` for what cannot be the address of a Dask scheduler."""
    if cluster is not None and not _ADDRESS.match(cluster):
        raise UserError(
            f"--cluster is {cluster!r}, which is no address. Start a scheduler with `dask "
            "scheduler`, and give the address that it prints, such as tcp://127.0.0.1:8786."
        )


def check_mechanism_file(path: str) -> None:
    """Raise `UserError` for a mechanism's file that cannot be read, or is not TOML."""
    must_be_file(path)
    parse_toml(read_toml(path, "a mechanism"), path, _FIX)
