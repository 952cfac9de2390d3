"""The paper's tables of hyper-parameters, and which of their columns a model is trained by.

All models have two hidden layers of 256, Adam and the mean squared error. What the text leaves open
is filled in: MBD-NODE and FCNN make one update for each step, in time order; the LSTM takes small
batches in a new order each epoch; the HNN takes all data in one batch. The columns of MBD-NODE
stand here, one for each system; those of a baseline in its own file (`models/baselines`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from mbdnode.integrators import get_integrator
from mbdnode.mechanisms import MECHANISMS
from mbdnode.recipes import RECIPES, TrainingConfig, check_trained_by, get_recipe, training_config

NONE = "-"
# Of every network in the paper's tables.
SHAPE = {"width": 256, "hidden_layers": 2}


@dataclass(frozen=True)
class HyperParameters:
    """One column of one of the paper's tables.

    **Arguments:**

    - `model`, `integrator`: what it is of; "-" for a model without an integrator.
    - `epochs`, `learning_rate`, `decay`: of the training, as printed.
    - `source`: the table in the paper.
    - `settings`: of the model: its shape, and what else is not its default.
    - `training`: fields of our training configuration, also where they are not the printed ones.
    - `activation`: as printed.
    - `system`: of the table, by its name in the catalog of mechanisms; empty for a model on one
        that the paper did not try it on.
    """

    model: str
    integrator: str
    epochs: int
    learning_rate: float
    decay: float
    source: str
    settings: Mapping[str, Any] = field(default_factory=lambda: SHAPE)
    training: Mapping[str, Any] = field(default_factory=dict)
    activation: str = "Tanh"
    system: str = ""

    @property
    def printed(self) -> dict[str, str]:
        """The column as the paper prints it, by the paper's own headings."""
        return {
            "No. of hidden layers": f"{SHAPE['hidden_layers']}",
            "No. of nodes per hidden layer": f"{SHAPE['width']}",
            "Max. epochs": f"{self.epochs:,}",
            "Initial learning rate": f"{self.learning_rate:g}",
            "Learning rate decay": f"{self.decay:g}",
            "Activation function": self.activation,
            "Loss function": "MSE",
            "Optimizer": "Adam",
        }

    def applied(self, config: TrainingConfig) -> TrainingConfig:
        """A configuration with what the column says, and as it was in all else."""
        own = {name: getattr(self, name) for name in ("epochs", "learning_rate", "decay")}
        if self.integrator != NONE:
            own["integrator"] = self.integrator
        return replace(config, **{**own, **self.training})


# The table of each system.
TABLES = {
    "single-mass-spring": "tab:hyper_sms",
    "single-mass-spring-damper": "tab:hyper_smsd",
    "triple-mass-spring-damper": "tab:hyper_tmsd",
    "single-pendulum": "tab:hyper_sp",
    "double-pendulum": "tab:hyper_dp",
    "cart-pole": "tab:hyper_cp",
    "slider-crank": "tab:hyper_sc",
}


def mbdnode(
    integrators: str,
    epochs: int,
    learning_rate: float,
    decay: float,
    system: str,
    batch_size: int = 1,
    **settings: Any,
) -> tuple[HyperParameters, ...]:
    """MBD-NODE with each of several integrators.

    **Arguments:**

    - `integrators`: names with blanks between them; the first is the one whose error the paper
        prints, the others stand in its table of time costs.
    - `epochs`, `learning_rate`, `decay`: of the column.
    - `system`: whose table it is in.
    - `batch_size`: of a system that is learned from samples: they have no order in time, and one
        update a sample would take days.
    - `settings`: of the model.

    **Returns:**

    One column for each integrator.
    """
    training = {} if batch_size == 1 else {"batch_size": batch_size}
    given = epochs, learning_rate, decay, TABLES[system], SHAPE | settings, training
    return tuple(
        HyperParameters("mbd-node", name, *given, system=system) for name in integrators.split()
    )


def in_tables(usual: HyperParameters, systems: str, **changes: Any) -> tuple[HyperParameters, ...]:
    """A baseline's column in the tables of these systems, whose names have blanks between them."""
    return tuple(
        replace(usual, source=TABLES[system], system=system, **changes)
        for system in systems.split()
    )


# The columns of MBD-NODE. The slider-crank's samples cover one turn and its rollout makes more than
# twenty, so the network must read the angle in a form that repeats.
MBDNODE_COLUMNS = (
    *mbdnode("lf2 ys4 fk6", 450, 1e-3, 0.99, "single-mass-spring", divisor=(10.0,)),
    *mbdnode("rk4", 300, 1e-3, 0.98, "single-mass-spring", divisor=(10.0,)),
    *mbdnode("rk4 mp2 fe1", 350, 1e-3, 0.98, "single-mass-spring-damper", divisor=(10.0,)),
    *mbdnode(
        "rk4 mp2 fe1", 350, 6e-4, 0.98, "triple-mass-spring-damper", divisor=(100.0, 10.0, 1.0)
    ),
    *mbdnode("mp2 rk4 fe1", 400, 6e-4, 0.98, "single-pendulum", divisor=(1.0,), forces="added"),
    *mbdnode("rk4 mp2 fe1", 450, 1e-3, 0.98, "double-pendulum"),
    *mbdnode("mp2 rk4 fe1", 450, 1e-3, 0.98, "cart-pole"),
    *mbdnode("rk4", 500, 1e-3, 0.98, "slider-crank", batch_size=64, angle_features=True),
)


def nearest_column(columns: tuple[HyperParameters, ...], integrator: str) -> HyperParameters:
    """The column of an integrator; of one that the paper did not use, one of the same nature."""
    for column in columns:
        if column.integrator == integrator:
            return column
    same = [c for c in columns if _is_symplectic(c.integrator) == _is_symplectic(integrator)]
    return replace((same or columns)[0], integrator=integrator)


def _is_symplectic(integrator: str) -> bool:
    return integrator != NONE and get_integrator(integrator).needs_separable


def paper_columns(kind: Any, system: str) -> tuple[HyperParameters, ...]:
    """The paper's columns for a class of models.

    Those of the system's table; where it has none, the usual one, if there is one.
    """
    own = tuple(column for column in kind.paper if column.system == system)
    return own or tuple(column for column in kind.paper if not column.system)


def column_of(kind: Any, system: Any, *, separable: bool = False) -> HyperParameters | None:
    """The paper's column for a class of models and a system.

    The first column with an integrator of that nature; None where the paper has none.
    """
    columns = paper_columns(kind, _catalog_name(system))
    same = [column for column in columns if _is_symplectic(column.integrator) == separable]
    return next(iter((*same, *columns)), None)


def _catalog_name(system: Any) -> str:
    names: dict[type, str] = {mechanism: name for name, mechanism in MECHANISMS.items()}
    return names.get(type(system), "")


def for_system(recipe: str, system: Any) -> TrainingConfig:
    """A recipe's configuration, with what differs for a system of the catalog.

    **Arguments:**

    - `recipe`: a key of `RECIPES`.
    - `system`: what is to be learned.

    **Returns:**

    A `TrainingConfig`.
    """
    own = get_recipe(recipe).by_system.get(_catalog_name(system), {})
    return replace(training_config(recipe), **own)


def configured(recipe: str | TrainingConfig, model: Any) -> tuple[TrainingConfig, str]:
    """What a recipe means for a model: the same in Python and on the command line.

    **Arguments:**

    - `recipe`: a key of `RECIPES`, or a `TrainingConfig`, which is taken as it is.

    **Returns:**

    The configuration, and what to say of it: whose settings they are, and where the model differs
    from the one that they are for. Nothing for a `TrainingConfig`.
    """
    config = training_config(recipe)
    if isinstance(recipe, TrainingConfig):
        return config, ""
    check_trained_by(recipe, model.kind, (model.kind,))
    config = for_system(recipe, model.body)
    settings, told = RECIPES[recipe].settings, ""
    if RECIPES[recipe].as_printed:
        separable = bool(getattr(model, "separable", False))
        column = column_of(type(model), model.body, separable=separable)
        told = f"the paper has no settings for this {model.kind}, so those of TrainingConfig"
        if column is not None:
            config, settings = column.applied(config), column.settings
            told = f"settings of {column.source} for {model.kind}"
        told = f"; recipe {recipe}: {told}, {config.epochs:,} epochs"
    return config, told + _difference(model, settings)


def _difference(model: Any, settings: Mapping[str, Any]) -> str:
    """What the network of a recipe has otherwise than this one."""
    known = {f.name for f in fields(model.settings)}
    other = [
        f"{name}={value!r}"
        for name, value in settings.items()
        if name not in known or getattr(model.settings, name) != value
    ]
    return f"; its network has {', '.join(other)}, this one does not" if other else ""
