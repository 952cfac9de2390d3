from .scene import Scene as Scene
from .scene import draw_case as draw_case
from .scene import draw_overview as draw_overview
from .style import save_figure as save_figure
from .summary import RolloutSummary as RolloutSummary
from .summary import summarize as summarize
