"""Drawing and page primitives that every report shares.

Names are loaded when first used: a case names its figures, and listing the cases should not wait
for Matplotlib.
"""

from typing import TYPE_CHECKING

from mbdnode.lazy import lazy_names

if TYPE_CHECKING:
    from mbdnode.report.scene import RolloutSummary, Scene, draw_case, draw_overview, summarize
    from mbdnode.report.style import save_figure

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
        "RolloutSummary": "scene",
        "draw_case": "scene",
        "draw_overview": "scene",
        "save_figure": "style",
        "summarize": "scene",
    },
)
