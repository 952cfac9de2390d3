"""Drawing and page primitives that every report shares.

Names are loaded when first used: a case names its figures, and listing the cases should not wait
for Matplotlib.
"""

from typing import TYPE_CHECKING

from mbdnode.lazy_imports import lazy_names

if TYPE_CHECKING:
    from mbdnode.report.scene import Scene, draw_case, draw_overview
    from mbdnode.report.style import save_figure
    from mbdnode.report.summary import RolloutSummary, summarize

__all__ = [
    "RolloutSummary",
    "Scene",
    "draw_case",
    "draw_overview",
    "save_figure",
    "summarize",
]

__getattr__ = lazy_names(
    __name__,
    {
        "Scene": "scene",
        "RolloutSummary": "summary",
        "draw_case": "scene",
        "draw_overview": "scene",
        "save_figure": "style",
        "summarize": "summary",
    },
)
