"""The paper's tables of settings: who was run on what, with which numbers, in which network."""

from collections.abc import Mapping, Sequence
from typing import Any

from mbdnode.models import MBDNODE
from mbdnode.report.chapters import PAPER, UNTRAINED, Chapter, Reproduction
from mbdnode.report.tables import Cell, Table
from mbdnode.report.titles import integrator_title, model_title

# In the heading, and in the label of the table.
_APART = ("model", "recipe", "source")
# As the paper calls them.
_WORDS = {
    "hidden_layers": "No. of hidden layers",
    "width": "No. of nodes per hidden layer",
    "epochs": "Max. epochs",
    "learning_rate": "Initial learning rate",
    "decay": "Learning rate decay",
    "activation": "Activation function",
    "loss": "Loss function",
    "optimizer": "Optimizer",
}
TESTS, ARCHITECTURE, METHODS = "tab: tests", "tab:model_architecture", "tab:methods_comparison"


def cases_table(reproduction: Reproduction) -> Table:
    """The cases and the models that were run on each.

    **Arguments:**

    - `reproduction`: with all chapters.

    **Returns:**

    A `Table`.
    """
    rows = []
    for chapter in reproduction.chapters:
        printed = _unique(model_title(r.model) for r in chapter.references if r.quantity == "mse")
        count = str(sum(len(entry.rows) for entry in chapter.entries))
        rows.append((chapter.title, printed, _run_here(chapter), count))
    return Table(
        TESTS,
        "Cases and models",
        ("case", "models in the paper", "run here", "runs"),
        tuple(rows),
    )


def _run_here(chapter: Chapter) -> str:
    """Every model with its integrator, and with its recipes where the chapter has several."""
    recipes: dict[str, list[str]] = {}
    for entry in chapter.entries:
        title = f"{model_title(entry.model)} {integrator_title(entry.integrator)}".removesuffix(
            " -"
        )
        recipes.setdefault(title, []).extend([entry.recipe] if entry.recipe != UNTRAINED else [])
    several = len({recipe for found in recipes.values() for recipe in found}) > 1
    return _unique(
        f"{title} ({', '.join(found)})" if several and found else title
        for title, found in recipes.items()
    )


def hyperparameter_table(chapter: Chapter) -> Table | None:
    """A case's hyper-parameters: a row for each of them, a column for each model.

    **Arguments:**

    - `chapter`: of the case.

    **Returns:**

    A `Table`, or None for a chapter without any.
    """
    columns = [_flattened(column) for column in chapter.hyperparameters]
    if not columns:
        return None
    names = list(dict.fromkeys(key for column in columns for key in column if key not in _APART))
    rows = tuple(
        (_WORDS.get(name, name.replace("_", " ")), *(_value(column, name) for column in columns))
        for name in names
    )
    return Table(
        chapter.hyperparameter_label,
        f"{chapter.title}: hyper-parameters",
        ("hyper-parameter", *map(_column_title, columns)),
        rows,
        _own_settings(chapter),
    )


def _own_settings(chapter: Chapter) -> tuple[str, ...]:
    """Which recipes the columns do not speak of."""
    known = {PAPER, UNTRAINED, *(column.get("recipe") for column in chapter.hyperparameters)}
    others = dict.fromkeys(e.recipe for e in chapter.entries if e.recipe not in known)
    if not others:
        return ()
    named = ", ".join(f"'{recipe}'" for recipe in others)
    return (f"There are no columns for what chooses its settings itself: {named}.",)


def _column_title(column: Mapping[str, Any]) -> str:
    """The model, and the recipe where it is not the paper's."""
    title = model_title(str(column["model"]))
    return f"{title}, {column['recipe']}" if "recipe" in column else title


def architecture_table(reproduction: Reproduction) -> Table:
    """The layers of an MBD-NODE, and how many neurons they have on each case.

    **Arguments:**

    - `reproduction`: with all chapters.

    **Returns:**

    A `Table`, read off untrained models with the paper's settings.
    """
    sizes: dict[str, tuple[int, ...]] = {}
    settings = None
    for chapter in reproduction.chapters:
        model = MBDNODE.for_system(chapter.mechanism)
        weights = model.network.weights
        settings = model.settings
        sizes[chapter.title] = (weights[0].shape[1], *(w.shape[0] for w in weights))
    count = max((len(layers) for layers in sizes.values()), default=2)
    hidden = count - 2
    rows: list[tuple[Cell, ...]] = [
        ("in the paper", "2 n_z + n_mu + n_u", *["d_width"] * hidden, "2 n_z")
    ]
    if settings is not None:
        rows.append(("activation", None, *[settings.activation] * hidden, None))
        rows.append(("initialisation", None, *[settings.initialization] * (hidden + 1)))
    rows += [(title, *(str(size) for size in layers)) for title, layers in sizes.items()]
    return Table(
        ARCHITECTURE,
        "The network of MBD-NODE: neurons in each layer",
        ("", "input", *(f"hidden {number}" for number in range(1, hidden + 1)), "output"),
        tuple(rows),
        (
            "Velocities are integrated, not learned, so the output has n_z values: the "
            "accelerations. With a symplectic integrator the network does not read velocities "
            "and has n_z inputs fewer.",
        ),
    )


def methods_table(reproduction: Reproduction) -> Table:
    """What each method can do according to the code, with the paper's mark where they differ.

    **Arguments:**

    - `reproduction`: with `capabilities`, `paper_capabilities` and `capability_notes`.

    **Returns:**

    A `Table` with a note for every difference.
    """
    ours, paper = reproduction.capabilities, reproduction.paper_capabilities
    models = list(ours) or list(paper)
    titles = list(
        dict.fromkeys(title for marks in (*paper.values(), *ours.values()) for title in marks)
    )
    notes: list[str] = []
    rows = []
    for title in titles:
        cells = [_mark(reproduction, model, title, notes) for model in models]
        rows.append((title, *cells))
    source = "the code's own capabilities" if ours else "the paper alone: no code was asked"
    return Table(
        METHODS,
        "What the methods can do",
        ("", *(model_title(model) for model in models)),
        tuple(rows),
        (f"From {source}.", *notes),
    )


def _mark(reproduction: Reproduction, model: str, title: str, notes: list[str]) -> str:
    ours = reproduction.capabilities.get(model, {}).get(title)
    paper = reproduction.paper_capabilities.get(model, {}).get(title)
    shown = paper if ours is None else ours
    mark = {True: "yes", False: "no", None: "-"}[shown]
    if ours is None or paper is None or ours == paper:
        return mark
    known = reproduction.capability_notes
    reason = known.get(f"{model}: {title}", known.get(title, "The code says otherwise."))
    printed = "yes" if paper else "no"
    notes.append(
        f"[{len(notes) + 1}] {model_title(model)}, {title.lower()}: the paper says {printed}. "
        f"{reason}"
    )
    return f"{mark} [{len(notes)}]"


def _flattened(column: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that stand in a mapping of their own, beside the others."""
    flat: dict[str, Any] = {}
    for key, value in column.items():
        flat |= _flattened(value) if isinstance(value, Mapping) else {key: value}
    return flat


def _unique(names) -> str:
    return ", ".join(dict.fromkeys(names)) or "-"


def _value(column: Mapping[str, Any], name: str) -> Cell:
    value = column.get(name)
    if isinstance(value, float):
        return f"{value:g}"
    if name == "integrator":
        return ", ".join(integrator_title(part) for part in str(value).split(", "))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(str(part) for part in value)
    return None if value is None else str(value)
