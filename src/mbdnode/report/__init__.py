"""Drawing and page primitives that every report shares.

Names are loaded when first used: a case names its figures, and listing the cases should not wait
for Matplotlib.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mbdnode.report.scene import RolloutSummary, Scene, draw_case, draw_overview, summarize
    from mbdnode.report.style import save_figure

_HOMES = {
    "Scene": "scene",
    "RolloutSummary": "scene",
    "draw_case": "scene",
    "draw_overview": "scene",
    "save_figure": "style",
    "summarize": "scene",
}

__all__ = [
    "RolloutSummary",
    "Scene",
    "draw_case",
    "draw_overview",
    "save_figure",
    "summarize",
]


def __getattr__(name: str):
    if name in _HOMES:
        return getattr(importlib.import_module(f"mbdnode.report.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'mbdnode.report' has no attribute {name!r}")
