"""The paper, made again: its cases, the runs that its tables and figures need, and its report.

Names are loaded when first used, so that the name of a case can be checked without loading JAX.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mbdnode.reproduction.cases import CASES, CONTROL_TASKS, Case, ControlTask, get_case

__all__ = ["CASES", "CONTROL_TASKS", "Case", "ControlTask", "get_case"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from mbdnode.reproduction import cases

        return getattr(cases, name)
    raise AttributeError(f"module 'mbdnode.reproduction' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
