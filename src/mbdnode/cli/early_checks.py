"""What can be told to be wrong with a request before JAX is loaded, which takes seconds.

Integrators are named here once more, since what they name loads JAX; a test compares the names.
"""

import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mbdnode.cli.interrupts import leaving_at_once
from mbdnode.config import parse_values
from mbdnode.data.files import must_be_file
from mbdnode.errors import UserError, check_trajectory_size
from mbdnode.naming import unknown_name
from mbdnode.recipes import RECIPES

if TYPE_CHECKING:
    from mbdnode.mechanisms.planar import Description

# Those that choose their own steps come last.
ADAPTIVE = ("dopri5", "dopri8", "kvaerno5")
INTEGRATORS = (
    *("fe1", "mp2", "rk4", "lf2", "ys4", "fk6", "backward-euler", "implicit-midpoint"),
    *ADAPTIVE,
)
# Known to `simulate` alone: the motion in closed form, of a mechanism that has one.
ANALYTIC = "analytic"
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


def check_mechanism_file(path: str) -> "Description":
    """What a mechanism's file says. Raises `UserError` for one that cannot be read, or is wrong.

    **Arguments:**

    - `path`: of the file.

    **Returns:**

    Its description, whose names can be checked.
    """
    from mbdnode.mechanisms.planar import read_description

    must_be_file(path)
    with leaving_at_once():  # Values along a joint load JAX, in which an interrupt can get lost.
        return read_description(path)


def check_described(
    description: "Description",
    initial: Iterable[str] = (),
    parameters: Mapping[str, float] | None = None,
    unknown: Iterable[str] = (),
) -> None:
    """Raise `UserError` for names and values that a mechanism's file does not allow.

    **Arguments:**

    - `description`: of the mechanism.
    - `initial`: coordinates and velocities.
    - `parameters`: values by name.
    - `unknown`: parameters that are to be found; a profile along a joint is one.
    """
    from mbdnode.mechanisms.planar.description import make_profiles

    names = names_in(description)
    for name in initial:
        if name not in (*names.coordinate_names, *names.rate_names):
            raise unknown_name("coordinate", name, (*names.coordinate_names, *names.rate_names))
    for name, value in (parameters or {}).items():
        if name not in names.parameters:
            raise unknown_name("parameter", name, names.parameter_names)
        names.parameters[name].check(value)
    along = [one.name for one in make_profiles(description)]
    for name in unknown:
        if name not in (*names.parameters, *along):
            raise unknown_name("parameter", name, (*names.parameters, *along))


@dataclass(frozen=True)
class Names:
    """How the columns and parameters of a mechanism are called, as a system has them."""

    coordinate_names: tuple[str, ...]
    rate_names: tuple[str, ...]
    input_names: tuple[str, ...]
    parameters: dict[str, Any]

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Of all parameters."""
        return tuple(self.parameters)


def names_in(description: "Description") -> Names:
    """The names of a mechanism's file.

    **Arguments:**

    - `description`: of the mechanism.
    """
    from mbdnode.mechanisms.planar import description as parts

    coordinates = parts.make_coordinates(description)
    return Names(
        tuple(one.name for one in coordinates),
        tuple(one.rate for one in coordinates),
        tuple(one.name for one in parts.make_inputs(description)),
        {one.name: one for one in parts.make_parameters(description)},
    )


def check_columns(steps: int | None, names: Names) -> None:
    """Raise `UserError` for more steps of a mechanism than fit in memory."""
    if steps is not None:
        check_trajectory_size(steps, 2 * len(names.coordinate_names) + len(names.input_names))


def check_mechanism(name: str) -> "Description | None":
    """What a mechanism's file says; None for one of the catalog or in Python.

    **Arguments:**

    - `name`: as for `--mechanism`. Raises `UserError` for what cannot be one.
    """
    from mbdnode.mechanisms import check_system_name

    if name.endswith(".toml") or os.path.sep in name:
        return check_mechanism_file(name)
    check_system_name(name)
    return None


def check_changes(recipe: str, changes: Mapping[str, str]) -> None:
    """Raise `UserError` for a text that cannot be a value of a recipe's configuration.

    **Arguments:**

    - `recipe`: a key of `RECIPES`.
    - `changes`: texts by name; those of the model's own settings are left to it.
    """
    kind = type(RECIPES[recipe].config)
    own = kind.__dataclass_fields__
    parse_values(kind, {name: text for name, text in changes.items() if name in own})
