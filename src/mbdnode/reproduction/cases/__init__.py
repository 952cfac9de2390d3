"""The paper's cases and control tasks, by name and in the paper's order.

They are loaded when first asked for, so that a name can be looked up without loading JAX.
"""

import importlib
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from mbdnode.naming import unknown_name

if TYPE_CHECKING:
    from mbdnode.reproduction.cases.case import Case
    from mbdnode.reproduction.cases.control_task import ControlTask

    CASES: dict[str, Case]
    CONTROL_TASKS: dict[str, tuple[ControlTask, Case]]


# The equations of motion by an integrator: a row of one of the paper's tables, and no model.
NUMERICAL = "numerical"


class Listed(NamedTuple):
    """Where a case is, and what `mbdnode cases` says of it without loading JAX."""

    module: str
    name: str
    mechanism: str
    coordinates: str
    degrees_of_freedom: int
    inputs: str
    dt_s: float
    steps: int
    train_steps: int
    integrator: str


_ONE, _THREE, _BODIES = "x", "x1 x2 x3", "x1 y1 theta1 x2 y2 theta2 x3 y3 theta3"
_TWO, _CART = "theta1 theta2", "theta x"
_ROWS: dict[str, tuple] = {
    "single-mass-spring": ("CASE", "SingleMassSpring", _ONE, 1, "", 0.01, 3000, 300, "analytic"),
    "single-mass-spring-damper": (
        *("CASE", "SingleMassSpringDamper", _ONE, 1, "", 0.01, 400, 300, "rk4"),
    ),
    "triple-mass-spring-damper": (
        *("CASE", "TripleMassSpringDamper", _THREE, 3, "", 0.01, 400, 300, "rk4"),
    ),
    "single-pendulum": ("CASE", "SinglePendulum", "theta", 1, "F", 0.01, 400, 300, "mp2"),
    "single-pendulum:lengths": ("LENGTHS", "SinglePendulum", "theta", 1, "F", 0.01, 400, 0, "mp2"),
    "double-pendulum": ("CASE", "DoublePendulum", _TWO, 2, "", 0.01, 400, 300, "rk4"),
    "double-pendulum:released-low": (
        *("RELEASED_LOW", "DoublePendulum", _TWO, 2, "", 4.0 / 399, 399, 299, "rk4"),
    ),
    "cart-pole": ("CASE", "CartPole", _CART, 2, "u", 0.005, 500, 400, "mp2"),
    "cart-pole:controlled": ("CONTROLLED", "CartPole", _CART, 2, "u", 0.005, 400, 0, "rk4"),
    "slider-crank": ("CASE", "SliderCrank", _BODIES, 1, "F T", 0.01, 10_000, 0, "rk4"),
    "slider-crank:friction": (
        *("FRICTION", "SliderCrankFriction", _BODIES, 1, "T", 0.01, 2000, 0, "rk4"),
    ),
    "vehicle": ("CASE", "Vehicle", "x y theta steer", 2, "alpha beta", 0.01, 2000, 0, "rk4"),
}
LISTED = {
    name: Listed(name.partition(":")[0].replace("-", "_"), *row) for name, row in _ROWS.items()
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
PAPER_CASES = tuple(name for name in LISTED if name not in _FNODE_CASES)
_HOMES = {"Case": "case", "ControlTask": "control_task"}


def __getattr__(name: str) -> Any:
    if name == "CASES":
        found = {case: _loaded(*home[:2]) for case, home in LISTED.items()}
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
    if name not in LISTED:
        raise unknown_name("case", name, LISTED)


def check_control_task(name: str) -> str:
    """The case whose runs train a model for a control task; `UserError` for an unknown one.

    Nothing is loaded.
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
    "LISTED",
    "PAPER_CASES",
    "Case",
    "ControlTask",
    "Listed",
    "check_case",
    "check_control_task",
    "get_case",
]
