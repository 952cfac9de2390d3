"""What the report is made of: a chapter for each case, an entry for each model in it.

Everything here is plain data, read from the folders of finished runs, so the report can be made
again without running anything. Beside it stand what the paper's table of methods says that each of
them can do, and the names of models, integrators and files.

In the whole report a method, which is a model with the recipe that trained it, has one color, and a
recipe one mark. They are given out in the order in which methods first appear, so that a recipe
that is new to the package needs no entry anywhere.
"""

import re
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mbdnode.models import LAW, Capability
from mbdnode.multibody import AbstractMechanism
from mbdnode.report.playground import Play
from mbdnode.report.style import COLORS
from mbdnode.reproduction.cases import NUMERICAL
from mbdnode.reproduction.reference import ACCURATE, Exhibit, Reference, median_of_all
from mbdnode.trajectory import Trajectory

_MODELS = ("mbd-node", "hnn", "lnn", "lstm", "fcnn")

# The row's title and one mark for each model, in the order above, as printed.
_PRINTED = {
    Capability.ENERGY: ("Works on energy-conserving system", "xxx.."),
    Capability.COORDINATES: ("Works on general coordinates", "x.xxx"),
    Capability.DISSIPATION: ("Works on dissipative systems", "x..xx"),
    Capability.CONSTRAINTS: ("Works with constraints", "x...."),
    Capability.NO_ACCELERATIONS: ("No need for second-order derivatives", "x.x.."),
    Capability.LONG: ("Scalability for long time simulation", "xxx.."),
    Capability.CONTINUOUS: ("Learn continuous dynamics", "xxx.x"),
}

PAPER_MARKS: Mapping[str, Mapping[str, bool]] = {
    model: {title: marks[place] == "x" for title, marks in _PRINTED.values()}
    for place, model in enumerate(_MODELS)
}


def row_title(capability: Capability) -> str:
    """The row's title in the paper's words; in our own where the paper has no such row."""
    if capability in _PRINTED:
        return _PRINTED[capability][0]
    return capability.value.capitalize()


# The recipe that the paper's numbers are of, and what stands in its place where nothing is trained.
PAPER, UNTRAINED = "paper", "-"
# In the recipe's place, of a column of the paper that has no run here.
NOT_RUN = "not run"


@dataclass(frozen=True)
class Probe:
    """A trained model on a motion that it has not seen.

    **Arguments:**

    - `name`, `title`: for files and for people.
    - `truth`, `prediction`: at the same times.
    - `mse`, `nrmse`: between them; None if the prediction ended early.
    """

    name: str
    title: str
    truth: Trajectory
    prediction: Trajectory
    mse: float | None
    nrmse: float | None = None


@dataclass(frozen=True)
class Study:
    """What the models of a chapter are asked besides its own motion.

    **Arguments:**

    - `name`: of the probe that answers it.
    - `title`: for people.
    - `figure`: the label of the figure that shows it.
    - `setting`: of the controller, where it is control.
    """

    name: str
    title: str
    figure: str
    setting: str = ""


@dataclass(frozen=True)
class Entry:
    """One model, integrator and recipe on one case, over all seeds.

    **Arguments:**

    - `model`, `integrator`, `recipe`: by name; "-" for a model without an integrator, and for the
        recipe of one that is not trained.
    - `rows`: the metrics of every seed, as in metrics.json; a failed run has "outcome" "failed"
        and the reason as "status".
    - `truth`, `prediction`: of the seed whose error is the median; None if every run failed.
    - `history`: the loss of each of its epochs.
    - `probes`: of the same seed.
    - `network`: activation and initialization, where it is an MBD-NODE.
    """

    model: str
    integrator: str
    recipe: str
    rows: tuple[Mapping[str, Any], ...]
    truth: Trajectory | None = None
    prediction: Trajectory | None = None
    history: Sequence[float] = ()
    probes: tuple[Probe, ...] = ()
    network: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The model's name, with what its runs say of its structure."""
        return model_title(self.model) + structure_text(self.rows)

    @property
    def is_papers(self) -> bool:
        """Whether it is of the paper's own making: its recipe, or nothing to train."""
        return self.recipe in (PAPER, UNTRAINED)

    def values(self, quantity: str = "mse") -> list[float]:
        """A quantity of every seed that has it."""
        found = [row.get(quantity) for row in self.rows]
        return [float(value) for value in found if value is not None]

    def every(self, quantity: str = "mse") -> list[float | None]:
        """A quantity of every seed, None where a run failed to have it."""
        found = [row.get(quantity) for row in self.rows]
        return [None if value is None else float(value) for value in found]

    def every_probe(self, name: str, quantity: str) -> list[float | None]:
        """An error of every seed on one probe, None where there is none."""
        found = [row.get("probes", {}).get(name, {}).get(quantity) for row in self.rows]
        return [None if value is None else float(value) for value in found]

    def median(self, quantity: str = "mse") -> float | None:
        """Its median over the seeds; None if there is none.

        A seed without an error counts as worse than any other, so that failures do not flatter;
        a seed without a time does not count.
        """
        if quantity.startswith(("mse", "nrmse")):
            return median_of_all(self.every(quantity))
        found = self.values(quantity)
        return statistics.median(found) if found else None

    @property
    def compile_seconds(self) -> float | None:
        """What compiling took: the max over the seeds, None if there is none.

        Seeds that run one after the other in a process use what the first of them has compiled,
        so that a median would say almost nothing.
        """
        return max(self.values("compile_seconds"), default=None)

    @property
    def failures(self) -> list[str]:
        """What the runs that have no error say, a sentence for each reason."""
        seeds: dict[str, list[str]] = {}
        for row, error in zip(self.rows, self.every(), strict=True):
            if error is None:
                seeds.setdefault(_reason(row), []).append(str(row.get("seed", "?")))
        return [
            f"seed{'s' if len(found) > 1 else ''} {', '.join(found)}: {reason}"
            for reason, found in seeds.items()
        ]


def _reason(row: Mapping[str, Any]) -> str:
    """Why a run has no error: training failed, or it went well and the rollout did not."""
    failed = row.get("outcome") == "failed"
    return str((None if failed else row.get("rollout")) or row.get("status") or "failed")


@dataclass(frozen=True)
class Chapter:
    """One case.

    **Arguments:**

    - `name`, `title`, `source`: of the case.
    - `mechanism`, `parameters`: what moves.
    - `train_end_s`: where the training range ends; zero if there is none.
    - `references`: the paper's numbers.
    - `hyperparameters`: the columns of its table: name to value, "model" among the names, and
        "recipe" where it is another one than the paper's, or "not run". A value that differs from
        the printed one says so.
    - `hyperparameter_label`: the table's label in the paper.
    - `exhibits`: its figures.
    - `entries`: what was run.
    - `studies`: what the models were asked besides.
    - `notes`: sentences that a reader needs to judge the numbers.
    - `play`: what its section "Try it" plays with; None for a chapter without it.
    """

    name: str
    title: str
    source: str
    mechanism: AbstractMechanism
    parameters: Mapping[str, float]
    train_end_s: float
    references: tuple[Reference, ...]
    hyperparameters: tuple[Mapping[str, Any], ...]
    hyperparameter_label: str
    exhibits: tuple[Exhibit, ...]
    entries: tuple[Entry, ...]
    studies: tuple[Study, ...] = ()
    notes: tuple[str, ...] = ()
    play: Play | None = None


@dataclass(frozen=True)
class Reproduction:
    """All chapters, and how they came about.

    **Arguments:**

    - `chapters`: in the paper's order.
    - `command`: what made it.
    - `quick`: whether the settings were shortened, so that numbers are not the recipe's.
    - `seeds`: how many.
    - `seconds`: what the runs took, added up.
    - `versions`: of the packages that matter, by name.
    - `machine`: processor, cores, system.
    - `date`: when the report was written.
    - `capabilities`: what each model can do according to the code, by model and then by the title
        of the row.
    - `paper_capabilities`: the same as the paper prints it.
    - `capability_notes`: why the two differ, by "model: row title" or by row title.
    - `recipes`: what each recipe is that was run, in a line, by name.
    """

    chapters: tuple[Chapter, ...]
    command: str
    quick: bool
    seeds: int
    seconds: float
    versions: Mapping[str, str] = field(default_factory=dict)
    machine: str = ""
    date: str = ""
    capabilities: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)
    paper_capabilities: Mapping[str, Mapping[str, bool]] = field(
        default_factory=lambda: PAPER_MARKS
    )
    capability_notes: Mapping[str, str] = field(default_factory=dict)
    recipes: Mapping[str, str] = field(default_factory=dict)


_MODEL_TITLES = {"mbd-node": "MBD-NODE", LAW: "law", NUMERICAL: "Numerical"}
_LETTERS = {"theta": "\N{GREEK SMALL LETTER THETA}", "omega": "\N{GREEK SMALL LETTER OMEGA}"}
_DIGITS = str.maketrans(
    "0123456789", "\u2080\u2081\u2082\u2083\u2084\u2085\u2086\u2087\u2088\u2089"
)


def model_title(name: str) -> str:
    """A model's name as the paper writes it; a law is none of the paper's."""
    return _MODEL_TITLES.get(name, name.upper() if re.fullmatch(r"[a-z]{3,6}", name) else name)


def structure_text(rows: Iterable[Mapping[str, Any]]) -> str:
    """What an MBD-NODE is, in brackets: its structure, and whether its affine part says nearly all.

    **Arguments:**

    - `rows`: of the seeds, as in metrics.json.

    **Returns:**

    Such as " (free, affine)"; nothing for other models. It is affine where the rollout of the
    affine part alone would be called accurate.
    """
    rows = list(rows)
    told = sorted({row["structure"] for row in rows if row.get("structure")})
    without = [e for row in rows if (e := row.get("nrmse_without_layers")) is not None]
    told += ["affine"] if any(error < ACCURATE for error in without) else []
    return f" ({', '.join(told)})" if told else ""


def integrator_title(name: str) -> str:
    """An integrator's name as the paper writes it."""
    return name.upper() if re.fullmatch(r"[a-z]{2}\d", name) else name


def entry_title(entry: Entry, chapter: Chapter) -> str:
    """Model and integrator, and the recipe where the chapter has several.

    **Arguments:**

    - `entry`: to be named.
    - `chapter`: that it is of.

    **Returns:**

    Such as "MBD-NODE RK4" or "law RK4, best".
    """
    title = entry.title
    if entry.integrator != "-":
        title += f" {integrator_title(entry.integrator)}"
    trained = {other.recipe for other in chapter.entries if other.recipe != UNTRAINED}
    if len(trained) > 1 and entry.recipe != UNTRAINED:
        title += f", {entry.recipe}"
    return title


def letters(name: str) -> str:
    """A column's name as plain letters with accents: `theta1_dot` becomes a dotted theta."""
    stem, dotted = name.removesuffix("_dot"), name.endswith("_dot")
    match = re.fullmatch(r"([A-Za-z]+?)(\d*)", stem)
    if match is None or (len(match[1]) > 1 and match[1] not in _LETTERS):
        return name
    dot = "\N{COMBINING DOT ABOVE}" if dotted else ""
    return _LETTERS.get(match[1], match[1]) + dot + match[2].translate(_DIGITS)


def file_name(label: str, taken: Collection[str] = ()) -> str:
    """A label as a file's name without its ending: no blanks, colons or slashes.

    **Arguments:**

    - `label`: such as "fig: MNODE_con".
    - `taken`: names that other labels have already.

    **Returns:**

    Such as "fig-MNODE_con"; with a number behind it where that is taken.
    """
    # Some file systems do not tell capital letters from small ones.
    used = {name.lower() for name in taken}
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", label).strip("-") or "unnamed"
    stem = stem[:80]
    name, number = stem, 2
    while name.lower() in used:
        name, number = f"{stem}-{number}", number + 1
    return name


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
