"""The paper's cases, by name and in the paper's order."""

from mbdnode.experiments import (
    cart_pole,
    double_pendulum,
    single_mass_spring,
    single_mass_spring_damper,
    single_pendulum,
    slider_crank,
    triple_mass_spring_damper,
)
from mbdnode.experiments.case import Case
from mbdnode.experiments.control_task import ControlTask
from mbdnode.naming import unknown_name

CASES: dict[str, Case] = {
    case.name: case
    for case in (
        single_mass_spring.CASE,
        single_mass_spring_damper.CASE,
        triple_mass_spring_damper.CASE,
        single_pendulum.CASE,
        double_pendulum.CASE,
        double_pendulum.RELEASED_LOW,
        cart_pole.CASE,
        cart_pole.CONTROLLED,
        slider_crank.CASE,
    )
}

# What `mbdnode mpc` can do, by name: the task, and the case whose runs train a model for it.
CONTROL_TASKS: dict[str, tuple[ControlTask, Case]] = {
    "cart-pole": (cart_pole.BALANCE, cart_pole.CONTROLLED),
    "cart-pole:as-printed": (cart_pole.BALANCE_AS_PRINTED, cart_pole.CONTROLLED),
    "cart-pole:swing-up": (cart_pole.SWING_UP, cart_pole.CONTROLLED),
    "slider-crank": (slider_crank.SPEED, slider_crank.CASE),
}


def get_case(name: str) -> Case:
    """A case by name.

    **Arguments:**

    - `name`: a key of `CASES`.

    **Returns:**

    The case. Raises `UserError` for an unknown name.
    """
    if name not in CASES:
        raise unknown_name("case", name, CASES)
    return CASES[name]


__all__ = ["CASES", "CONTROL_TASKS", "Case", "ControlTask", "get_case"]
