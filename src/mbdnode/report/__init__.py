"""Figures and figures' figures: what people look at."""

from mbdnode.report.figures import Scene, draw_case
from mbdnode.report.overview import draw_overview
from mbdnode.report.style import save
from mbdnode.report.summary import Summary, summarise

__all__ = ["Scene", "Summary", "draw_case", "draw_overview", "save", "summarise"]
