"""The paper, made again: its cases, the runs that its tables and figures need, and its report.

Names are loaded when first used, so that the name of a case can be checked without loading JAX.
"""

from typing import TYPE_CHECKING

from mbdnode.lazy_imports import lazy_names

if TYPE_CHECKING:
    from mbdnode.reproduction.cases import CASES, CONTROL_TASKS, Case, ControlTask, get_case

__all__ = ["CASES", "CONTROL_TASKS", "Case", "ControlTask", "get_case"]

__getattr__ = lazy_names(__name__, dict.fromkeys(__all__, "cases"))


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
