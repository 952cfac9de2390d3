"""One color for each method and one mark for each recipe, the same in the whole report.

A method is a model with the recipe that trained it. Places are given in the order in which methods
first appear, so that a recipe that is new to the package needs no entry anywhere.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mbdnode.report.style import COLORS
from mbdnode.reproduction.report.chapters import PAPER, UNTRAINED, Chapter, Entry

Method = tuple[str, str]
# A shape for each recipe, as Matplotlib calls it.
MARKS = ("o", "s", "D", "^", "v", "P", "X")


@dataclass(frozen=True)
class Palette:
    """The places of methods and recipes.

    **Arguments:**

    - `methods`: places of colors, by model and recipe.
    - `recipes`: places of marks, by recipe.
    """

    methods: Mapping[Method, int]
    recipes: Mapping[str, int]

    def color(self, method: Method) -> str:
        """A method's color; colors begin again when they run out."""
        return COLORS[self.methods[method] % len(COLORS)]

    def mark(self, method: Method) -> str:
        """The shape of a method's marks."""
        return MARKS[self.recipes[method[1]] % len(MARKS)]


def method_of(entry: Entry) -> Method:
    """What an entry is of, whatever its integrator."""
    return entry.model, entry.recipe


def make_palette(chapters: Iterable[Chapter]) -> Palette:
    """Places for all that chapters show.

    **Arguments:**

    - `chapters`: of one report, in its order.

    **Returns:**

    A `Palette`.
    """
    methods: dict[Method, None] = {}
    for chapter in chapters:
        methods |= dict.fromkeys(map(method_of, chapter.entries))
        # What the paper prints is shown also where its recipe was not run.
        methods |= dict.fromkeys((r.model, PAPER) for r in chapter.references)
    recipes = dict.fromkeys(recipe for _, recipe in methods if recipe != UNTRAINED)
    return Palette(
        {method: place for place, method in enumerate(methods)},
        {recipe: place for place, recipe in enumerate([*recipes, UNTRAINED])},
    )
