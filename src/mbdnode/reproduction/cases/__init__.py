"""The paper's cases and control tasks, by name and in the paper's order.

They are loaded when first asked for, so that a name can be looked up without loading JAX.
"""

import importlib
import sys
from typing import TYPE_CHECKING, Any

from mbdnode.naming import unknown_name

if TYPE_CHECKING:
    from mbdnode.reproduction.cases.case import Case
    from mbdnode.reproduction.cases.control_task import ControlTask

    CASES: dict[str, Case]
    CONTROL_TASKS: dict[str, tuple[ControlTask, Case]]


# The equations of motion by an integrator: a row of one of the paper's tables, and no model.
NUMERICAL = "numerical"
# The module of each case, and its name there.
_CASES = {
    "single-mass-spring": ("single_mass_spring", "CASE"),
    "single-mass-spring-damper": ("single_mass_spring_damper", "CASE"),
    "triple-mass-spring-damper": ("triple_mass_spring_damper", "CASE"),
    "single-pendulum": ("single_pendulum", "CASE"),
    "single-pendulum:lengths": ("single_pendulum", "LENGTHS"),
    "double-pendulum": ("double_pendulum", "CASE"),
    "double-pendulum:released-low": ("double_pendulum", "RELEASED_LOW"),
    "cart-pole": ("cart_pole", "CASE"),
    "cart-pole:controlled": ("cart_pole", "CONTROLLED"),
    "slider-crank": ("slider_crank", "CASE"),
    "slider-crank:friction": ("slider_crank", "FRICTION"),
    "vehicle": ("vehicle", "CASE"),
}
# What `mbdnode mpc` can do: where the task is, and the case whose runs train a model for it.
_TASKS = {
    "cart-pole": ("cart_pole", "BALANCE", "cart-pole:controlled"),
    "cart-pole:as-printed": ("cart_pole", "BALANCE_AS_PRINTED", "cart-pole:controlled"),
    "cart-pole:swing-up": ("cart_pole", "SWING_UP", "cart-pole:controlled"),
    "slider-crank": ("slider_crank", "SPEED", "slider-crank"),
}
# All but FNODE's, which `reproduce` runs when they are named.
_FNODE_CASES = ("slider-crank:friction", "vehicle")
PAPER_CASES = tuple(name for name in _CASES if name not in _FNODE_CASES)
_HOMES = {"Case": "case", "ControlTask": "control_task"}


def __getattr__(name: str) -> Any:
    if name == "CASES":
        found = {case: _loaded(*home) for case, home in _CASES.items()}
    elif name == "CONTROL_TASKS":
        cases = sys.modules[__name__].CASES
        found = {task: (_loaded(*home[:2]), cases[home[2]]) for task, home in _TASKS.items()}
    elif name in _HOMES:
        found = _loaded(_HOMES[name], name)
    else:
        raise AttributeError(f"module 'mbdnode.reproduction.cases' has no attribute {name!r}")
    globals()[name] = found
    return found


def _loaded(module: str, name: str) -> Any:
    return getattr(importlib.import_module(f"mbdnode.reproduction.cases.{module}"), name)


def check_case(name: str) -> None:
    """Raise `UserError` for a case that is not known; nothing is loaded."""
    if name not in _CASES:
        raise unknown_name("case", name, _CASES)


def check_control_task(name: str) -> str:
    """Raise `UserError` for a control task that is not known; nothing is loaded.

    **Arguments:**

    - `name`: a key of `CONTROL_TASKS`.

    **Returns:**

    The name of the case whose runs train a model for it.
    """
    if name not in _TASKS:
        raise unknown_name("control task", name, _TASKS)
    return _TASKS[name][2]


def get_case(name: str) -> "Case":
    """A case by name.

    **Arguments:**

    - `name`: a key of `CASES`.

    **Returns:**

    The case. Raises `UserError` for an unknown name.
    """
    check_case(name)
    return sys.modules[__name__].CASES[name]


__all__ = [
    "CASES",
    "CONTROL_TASKS",
    "PAPER_CASES",
    "Case",
    "ControlTask",
    "check_case",
    "check_control_task",
    "get_case",
]
