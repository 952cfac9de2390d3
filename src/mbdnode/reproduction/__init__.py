"""The paper, made again: its cases, the runs that its tables and figures need, and its report."""

from mbdnode.reproduction.cases import CASES, CONTROL_TASKS, Case, ControlTask, get_case

__all__ = ["CASES", "CONTROL_TASKS", "Case", "ControlTask", "get_case"]
