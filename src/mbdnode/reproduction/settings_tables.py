"""The paper's tables of settings, filled with ours: cases, hyper-parameters, layers, methods."""

from mbdnode.models import KINDS, Capability, MBDNODEConfig
from mbdnode.recipes import PAPER, RECIPES
from mbdnode.report.tables import Cell, Table
from mbdnode.reproduction.cases import NUMERICAL, get_case
from mbdnode.reproduction.chapters import Chapter, Reproduction
from mbdnode.reproduction.config import MODELS, RunConfig, integrator_of, uses_integrator
from mbdnode.reproduction.results import UNTRAINED
from mbdnode.reproduction.titles import integrator_title, model_title, with_integrator

TESTS, ARCHITECTURE, METHODS = "tab: tests", "tab:model_architecture", "tab:methods_comparison"


def cases_table(reproduction: Reproduction) -> Table:
    """The cases and the models that were run on each."""
    rows = []
    for chapter in reproduction.chapters:
        case = chapter.case
        # An integrator alone is no model.
        printed = [r.model for r in case.references if r.quantity == "mse"]
        printed += [column.model for column in case.hyperparameters]
        titles = dict.fromkeys(model_title(model) for model in printed if model != NUMERICAL)
        count = str(sum(len(result.rows) for result in chapter.results))
        rows.append((case.title, ", ".join(titles) or "-", _run_here(chapter), count))
    headings = ("case", "models in the paper", "run here", "runs")
    return Table(TESTS, "Cases and models", headings, tuple(rows))


def _run_here(chapter: Chapter) -> str:
    """Every model with its integrator, and with its recipes where the chapter has several."""
    recipes: dict[str, list[str]] = {}
    for result in chapter.results:
        title = with_integrator(result.title, result.integrator)
        named = result.several and result.recipe != UNTRAINED
        recipes.setdefault(title, []).extend([result.recipe] if named else [])
    titles = (f"{t} ({', '.join(names)})" if names else t for t, names in recipes.items())
    return ", ".join(titles) or "-"


def hyperparameter_table(chapter: Chapter) -> Table | None:
    """A case's hyper-parameters: a row for each of them, a column for each network that was run.

    What differs in its integrator alone is one column. None for a chapter without networks.
    """
    columns: dict[tuple, list[str]] = {}
    for result in sorted(chapter.results, key=lambda result: result.recipe != PAPER):
        if result.config is None or result.is_law or result.model == NUMERICAL:
            continue
        values = table_column(result.config)
        who = model_title(values.pop("model"))
        who += "" if result.recipe == PAPER else f", {result.recipe}"
        integrator = integrator_title(values.pop("integrator"))
        columns.setdefault((who, *values.items()), []).append(integrator)
    if not columns:
        return None
    settings = [dict(items) for _, *items in columns]
    names = dict.fromkeys(name for values in settings for name in values)
    laws = dict.fromkeys(f"'{result.recipe}'" for result in chapter.results if result.is_law)
    without = f"A regression has no such settings, so there are no columns for {', '.join(laws)}."
    return Table(
        chapter.case.hyperparameters[0].source,
        f"{chapter.case.title}: hyper-parameters",
        ("hyper-parameter", *(who for who, *_ in columns)),
        (
            ("integrator", *(", ".join(integrators) for integrators in columns.values())),
            *((name, *(values.get(name) for values in settings)) for name in names),
        ),
        (
            "These are the values of the runs; where one of the recipes that follow the paper "
            "differs from its table, the printed one follows in brackets. Batch size and precision "
            "are not in that table.",
            *((without,) if laws else ()),
        ),
    )


def table_column(config: RunConfig) -> dict[str, str]:
    """The column of a hyper-parameter table, under the paper's own headings.

    With the paper's recipe, a value that differs from the printed one says so.
    """
    settings, training = config.settings, config.training
    layers = getattr(settings, "hidden_layers", getattr(settings, "layers", "-"))
    names = getattr(settings, "activation", "-").split(",")
    activation = ", ".join(name.capitalize() for name in names)
    stages = ["Adam"] * bool(training.epochs) + ["Levenberg-Marquardt"] * bool(training.refinement)
    ours = {
        "No. of hidden layers": str(layers),
        "No. of nodes per hidden layer": str(getattr(settings, "width", "-")),
        "Max. epochs": f"{training.epochs:,}",
        "Initial learning rate": f"{training.learning_rate:g}",
        "Learning rate decay": (
            f"{training.decay:.4g}" if training.schedule == "exponential" else "cosine, to zero"
        ),
        # The gates of an LSTM are what they are.
        "Activation function": "Sigmoid, Tanh" if config.model == "lstm" else activation,
        "Loss function": "MSE",
        "Optimizer": ", ".join(stages),
    }
    if RECIPES[config.recipe].as_printed:
        integrator = training.integrator if uses_integrator(config.model) else None
        column = get_case(config.case).column(MODELS[config.model][0], integrator)
        ours = {
            name: value if value == (paper := column.printed[name]) else f"{value} (paper: {paper})"
            for name, value in ours.items()
        }
    return {
        "model": config.model,
        "integrator": integrator_of(config),
        **ours,
        **({"Structure": f"{' or '.join(config.structures)}, chosen"} if config.structures else {}),
        "Batch size": "all" if training.batch_size is None else str(training.batch_size),
        "Precision": training.precision,
    }


def architecture_table(reproduction: Reproduction) -> Table:
    """The layers of every MBD-NODE that was run, read off the trained networks."""
    found: dict[tuple[Cell, ...], list[str]] = {}
    for result in reproduction.results:
        layers = next((row["layers"] for row in result.rows if row.get("layers")), None)
        if layers is not None:
            own = None if result.config is None else result.config.settings
            kind = (None, None)
            if isinstance(own, MBDNODEConfig):
                kind = own.activation, own.initialization
            key = (result.case.title, f"{result.title}, {result.recipe}", *map(str, layers), *kind)
            found.setdefault(key, []).append(integrator_title(result.integrator))
    hidden = max((len(key) - 6 for key in found), default=2)
    rows: list[tuple[Cell, ...]] = [
        (
            *("in the paper", None, None, "2 n_z + n_mu + n_u"),
            *["d_width"] * hidden,
            *("2 n_z", "tanh, relu", "xavier, kaiming"),
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
    layers = ("input", *(f"hidden {number}" for number in range(1, hidden + 1)), "output")
    return Table(
        ARCHITECTURE,
        "The network of MBD-NODE: neurons in each layer",
        ("case", "model", "integrator", *layers, "activation", "initialization"),
        tuple(rows),
        notes,
    )


_METHODS = ("mbd-node", "hnn", "lnn", "lstm", "fcnn")
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
# Why the code differs from a printed mark.
_REASONS = {
    "lnn": "It is trained on accelerations, here differences of the data's velocities.",
    "lstm": "It is trained on positions and velocities alone.",
    "fcnn": "It is trained on positions and velocities alone.",
}


def methods_table() -> Table:
    """What each method can do as the code declares it, with the paper's mark where they differ."""
    notes, rows = ["From the code's own capabilities."], []
    for capability in [*_PRINTED, *(other for other in Capability if other not in _PRINTED)]:
        title, marks = _PRINTED.get(capability, (capability.value.capitalize(), ""))
        cells = []
        for place, model in enumerate(_METHODS):
            ours = capability in KINDS[model].capabilities
            mark = "yes" if ours else "no"
            if marks and ours != (marks[place] == "x"):
                mark += f" [{len(notes)}]"
                notes.append(
                    f"[{len(notes)}] {model_title(model)}, {title.lower()}: the paper says "
                    f"{'no' if ours else 'yes'}. {_REASONS[model]}"
                )
            cells.append(mark)
        rows.append((title, *cells))
    headings = ("", *map(model_title, _METHODS))
    return Table(METHODS, "What the methods can do", headings, tuple(rows), tuple(notes))
