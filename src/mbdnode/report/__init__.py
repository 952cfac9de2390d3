"""Figures, tables and the page: what people look at.

Names are loaded when first used: a case names its figures, and listing the cases should not wait
for Matplotlib.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mbdnode.report.figures import Scene, draw_case
    from mbdnode.report.overview import draw_overview
    from mbdnode.report.style import save
    from mbdnode.report.summary import Summary, summarise
    from mbdnode.report.writing import write_report

_HOMES = {
    "Scene": "figures",
    "Summary": "summary",
    "draw_case": "figures",
    "draw_overview": "overview",
    "save": "style",
    "summarise": "summary",
    "write_report": "writing",
}

__all__ = [
    "Scene",
    "Summary",
    "draw_case",
    "draw_overview",
    "save",
    "summarise",
    "write_report",
]


def __getattr__(name: str):
    if name in _HOMES:
        return getattr(importlib.import_module(f"mbdnode.report.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'mbdnode.report' has no attribute {name!r}")
