"""The paper's tables of settings: who was run on what, with which numbers, in which network."""

from collections.abc import Mapping, Sequence
from typing import Any

from mbdnode.report.tables import Cell, Table
from mbdnode.reproduction.cases import NUMERICAL
from mbdnode.reproduction.report.chapters import (
    NOT_RUN,
    PAPER,
    UNTRAINED,
    Chapter,
    Entry,
    Reproduction,
    integrator_title,
    model_title,
)

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
        printed = _unique(model_title(model) for model in _papers_models(chapter))
        count = str(sum(len(entry.rows) for entry in chapter.entries))
        rows.append((chapter.title, printed, _run_here(chapter), count))
    return Table(
        TESTS,
        "Cases and models",
        ("case", "models in the paper", "run here", "runs"),
        tuple(rows),
    )


def _papers_models(chapter: Chapter) -> list[str]:
    """The networks that the paper tried on a case; an integrator alone is no model."""
    printed = [r.model for r in chapter.references if r.quantity == "mse"]
    columns = [column["model"] for column in chapter.hyperparameters]
    return [model for model in (*printed, *columns) if model != NUMERICAL]


def _run_here(chapter: Chapter) -> str:
    """Every model with its integrator, and with its recipes where the chapter has several."""
    recipes: dict[str, list[str]] = {}
    for entry in chapter.entries:
        title = f"{entry.title} {integrator_title(entry.integrator)}".removesuffix(" -")
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

    A `Table`, or None for a chapter without any. What was not run has no column.
    """
    ran = [column for column in chapter.hyperparameters if column.get("recipe") != NOT_RUN]
    columns = [_flattened(column) for column in ran]
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
        (
            "These are the values of the runs; where one of the recipes that follow the paper "
            "differs from its table, the printed one follows in brackets. Batch size and precision "
            "are not in that table.",
            *_own_settings(chapter),
        ),
    )


def _own_settings(chapter: Chapter) -> tuple[str, ...]:
    """Which recipes the columns do not speak of."""
    known = {PAPER, UNTRAINED, *(column.get("recipe") for column in chapter.hyperparameters)}
    others = dict.fromkeys(e.recipe for e in chapter.entries if e.recipe not in known)
    if not others:
        return ()
    named = ", ".join(f"'{recipe}'" for recipe in others)
    return (f"A regression has no such settings, so there are no columns for {named}.",)


def _column_title(column: Mapping[str, Any]) -> str:
    """The model, and the recipe where it is not the paper's."""
    title = model_title(str(column["model"]))
    return f"{title}, {column['recipe']}" if "recipe" in column else title


def architecture_table(reproduction: Reproduction) -> Table:
    """The layers of every MBD-NODE that was run, and how many neurons they have.

    **Arguments:**

    - `reproduction`: with all chapters.

    **Returns:**

    A `Table`, read off the trained networks. A law has no layers and no row.
    """
    found: dict[tuple[Cell, ...], list[str]] = {}
    for chapter in reproduction.chapters:
        for entry in chapter.entries:
            layers = next((row["layers"] for row in entry.rows if row.get("layers")), None)
            if layers is not None:
                sizes = (*map(str, layers[:-1]), str(layers[-1]))
                kind = tuple(entry.network.get(name) for name in ("activation", "initialization"))
                key = (chapter.title, _model_and_recipe(entry), *sizes, *kind)
                found.setdefault(key, []).append(integrator_title(entry.integrator))
    hidden = max((len(key) - 6 for key in found), default=2)
    rows: list[tuple[Cell, ...]] = [
        (
            "in the paper",
            None,
            None,
            "2 n_z + n_mu + n_u",
            *["d_width"] * hidden,
            "2 n_z",
            "tanh, relu",
            "xavier, kaiming",
        )
    ]
    for (title, who, *sizes, activation, initialization), integrators in found.items():
        empty = [None] * (hidden + 2 - len(sizes))
        layers = (*sizes[:-1], *empty, sizes[-1])
        rows.append((title, who, ", ".join(integrators), *layers, activation, initialization))
    notes = (
        "Velocities are integrated, not learned, so the output has n_z values: the accelerations. "
        "With a symplectic integrator the network does not read velocities and has n_z inputs "
        "fewer; an angle that is read as sine and cosine counts twice; forces that are added are "
        "not read.",
    )
    if not found:
        notes = ("No MBD-NODE was run: a law has no network and no layers.",)
    return Table(
        ARCHITECTURE,
        "The network of MBD-NODE: neurons in each layer",
        (
            "case",
            "model",
            "integrator",
            "input",
            *(f"hidden {number}" for number in range(1, hidden + 1)),
            "output",
            "activation",
            "initialization",
        ),
        tuple(rows),
        notes,
    )


def _model_and_recipe(entry: Entry) -> str:
    return f"{entry.title}, {entry.recipe}"


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
