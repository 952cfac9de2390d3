"""Every kind of figure by name: a new kind is one function and one line here."""

from collections.abc import Callable, Mapping

from matplotlib.figure import Figure

from mbdnode.naming import unknown_name
from mbdnode.reproduction.report.chapters import Chapter, Exhibit
from mbdnode.reproduction.report.motion_figures import (
    draw_portrait_and_energy,
    draw_portraits,
    draw_time_rows,
)
from mbdnode.reproduction.report.schematics import draw_forward_pass, draw_forward_pass_with_forces
from mbdnode.reproduction.report.system_figures import draw_system
from mbdnode.reproduction.report.trial_figures import (
    draw_control_trials,
    draw_controlled,
    draw_dependent,
    draw_driven,
    draw_forced,
    draw_starts,
)

Drawer = Callable[[Chapter, Exhibit], Figure]

DRAWERS: Mapping[str, Drawer] = {
    "system": draw_system,
    "over-time": draw_time_rows,
    "phase": draw_portraits,
    "phase-energy": draw_portrait_and_energy,
    "starts": draw_starts,
    "forced": draw_forced,
    "driven": draw_driven,
    "dependent": draw_dependent,
    "controlled": draw_controlled,
    "control-trials": draw_control_trials,
    "forward-pass": draw_forward_pass,
    "forward-pass-forces": draw_forward_pass_with_forces,
}


_LINES = (
    "Wide lines are the truth; the prediction is dashed in the training range, dotted after it."
)
_PLANT = "The plant is the same; the controllers differ in the model that they plan with."
_EXPLAINED: Mapping[str, str] = {
    "over-time": _LINES,
    "phase": f"{_LINES} A dot marks the start.",
    "phase-energy": "The wide line is the truth.",
    "starts": "The wide line is the truth, the dotted one the prediction.",
    "forced": "The wide line is the truth, the dotted one the prediction.",
    "driven": "The wide line is the truth, the dotted one the prediction.",
    "dependent": "The wide line is the truth, the dotted one the prediction.",
    "controlled": _PLANT,
    "control-trials": _PLANT,
}


def full_caption(exhibit: Exhibit) -> str:
    """A figure's caption with how to read its lines."""
    return f"{exhibit.caption} {_EXPLAINED.get(exhibit.kind, '')}".strip()


def draw_exhibit(chapter: Chapter, exhibit: Exhibit) -> Figure:
    """Draw one of a chapter's figures.

    **Arguments:**

    - `chapter`: what there is to show.
    - `exhibit`: which figure.

    **Returns:**

    A figure. Raises `UserError` for a kind that nobody draws.
    """
    if exhibit.kind not in DRAWERS:
        raise unknown_name("kind of figure", exhibit.kind, DRAWERS)
    return DRAWERS[exhibit.kind](chapter, exhibit)
