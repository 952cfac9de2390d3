"""Colors and marks of one report.

A method, which is a model with the recipe that trained it, has one color in the whole report, and a
recipe one mark. They are given out in the order in which methods first appear.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mbdnode.recipes import PAPER
from mbdnode.report.style import COLORS
from mbdnode.reproduction.chapters import Chapter
from mbdnode.reproduction.results import UNTRAINED
from mbdnode.reproduction.titles import model_title

Method = tuple[str, str]
# A shape for each recipe, as Matplotlib calls it.
MARKS = ("o", "s", "D", "^", "v", "P", "X")


@dataclass(frozen=True)
class Palette:
    """The places of colors, by model and recipe, and those of marks, by recipe."""

    methods: Mapping[Method, int]
    recipes: Mapping[str, int]

    def color(self, method: Method) -> str:
        """A method's color; colors begin again when they run out."""
        return COLORS[self.methods[method] % len(COLORS)]

    def mark(self, method: Method) -> str:
        """The shape of a method's marks."""
        return MARKS[self.recipes[method[1]] % len(MARKS)]

    def title(self, method: Method) -> str:
        """A method's name: the model, and the recipe where something was trained."""
        model, recipe = method
        return model_title(model) + (f", {recipe}" if recipe != UNTRAINED else "")


def make_palette(chapters: Iterable[Chapter]) -> Palette:
    """Places for all that the chapters of one report show."""
    methods: dict[Method, None] = {}
    for chapter in chapters:
        methods |= dict.fromkeys(result.method for result in chapter.results)
        # What the paper prints is shown also where its recipe was not run.
        methods |= dict.fromkeys((r.model, PAPER) for r in chapter.case.references)
    recipes = dict.fromkeys(recipe for _, recipe in methods if recipe != UNTRAINED)
    return Palette(
        {method: place for place, method in enumerate(methods)},
        {recipe: place for place, recipe in enumerate([*recipes, UNTRAINED])},
    )
