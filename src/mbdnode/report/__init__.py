"""Drawing and page primitives that every report shares.

Names are loaded when first used: a case names its figures, and listing the cases should not wait
for Matplotlib.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mbdnode.report.scene import Scene, Summary, draw_case, draw_overview, summarize
    from mbdnode.report.style import save

_HOMES = {
    "Scene": "scene",
    "Summary": "scene",
    "draw_case": "scene",
    "draw_overview": "scene",
    "save": "style",
    "summarize": "scene",
}

__all__ = [
    "Scene",
    "Summary",
    "draw_case",
    "draw_overview",
    "save",
    "summarize",
]


def __getattr__(name: str):
    if name in _HOMES:
        return getattr(importlib.import_module(f"mbdnode.report.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'mbdnode.report' has no attribute {name!r}")
