"""What a fit to logs is, as data: it can be repeated from its folder alone."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mbdnode.config import check_types
from mbdnode.data.logs import Columns, find_files
from mbdnode.errors import UserError
from mbdnode.identification import check_identification
from mbdnode.identification.parameters import Unknown, check_repetitions, make_unknowns
from mbdnode.mechanisms.described import AbstractDescribed
from mbdnode.models import KINDS, MBDNODE, MODELS, check_capable, get_structure
from mbdnode.models.paper_settings import column_of, for_system
from mbdnode.multibody import AbstractMechanism, AbstractSystem
from mbdnode.recipes import (
    AUTO,
    PARAMETERS,
    RECIPES,
    IdentificationConfig,
    TrainingConfig,
    check_trained_by,
    get_recipe,
    trained_by,
)
from mbdnode.training import make_candidates, structures_to_try

# Of a fit's folder, by which it is told from those of other commands.
KIND = "fit"
# Measured columns have units of all sizes, and angles of many turns.
_FOR_LOGS = {"scaling": True, "angle_features": True}


@dataclass(frozen=True)
class FitConfig:
    """All that decides a fit.

    **Arguments:**

    - `logs`: files and patterns.
    - `columns`: what the logs' columns are.
    - `mechanism`: as `find_system` takes it; empty for none.
    - `model`: by name; "auto" tries them in order of complexity and lets the data choose, where the
        recipe finds laws, and is the recipe's usual one where it does not; "parameters" for those
        of the mechanism alone.
    - `recipe`, `seed`: as for a run of a case.
    - `unknown`: parameters of the mechanism that are to be found, by name: bounds `(low, high)`,
        either of them None, or None for none.
    - `holdout`: the part of the runs that is held out.
    - `holdout_logs`: files that are held out instead.
    - `integrator`: of steps and rollouts.
    - `epochs`: of a recipe that has them; None for its own.
    - `structure`: of an MBD-NODE; empty for what the recipe says.
    - `bootstrap`: so many times unknown parameters are fitted again, to resampled runs.
    """

    logs: tuple[str, ...]
    columns: Columns = field(default_factory=Columns)
    mechanism: str = ""
    model: str = AUTO
    recipe: str = "fast"
    seed: int = 0
    holdout: float = 0.2
    holdout_logs: tuple[str, ...] = ()
    integrator: str = "rk4"
    epochs: int | None = None
    structure: str = ""
    unknown: dict[str, tuple[float | None, ...] | None] = field(default_factory=dict)
    bootstrap: int = 0

    def __post_init__(self):
        check_types(self)
        get_recipe(self.recipe)
        asked = self.model or AUTO
        if asked == AUTO and not RECIPES[self.recipe].finds_law:
            asked = trained_by(self.recipe, MODELS)[0]
        object.__setattr__(self, "model", asked)
        if asked not in (AUTO, PARAMETERS):
            check_trained_by(self.recipe, asked, (AUTO, PARAMETERS, *MODELS))
        if self.epochs is not None and not getattr(RECIPES[self.recipe].config, "epochs", 0):
            raise UserError(
                f"epochs is {self.epochs}, but the recipe {self.recipe!r} has none. Leave it out."
            )
        if not 0 <= self.holdout < 1:
            raise UserError(f"holdout is {self.holdout:g}; a part must be at least 0 and below 1.")
        self._check_unknown()
        if self.structure:
            get_structure(self.structure)
            if self.model not in MODELS or MODELS[self.model][0] != MBDNODE.kind:
                raise UserError(
                    f"structure is {self.structure!r}, but {self.model} has none: it is for "
                    f"{MBDNODE.kind}. Leave it out, or use a recipe that trains one."
                )
        if self.seed < 0:
            raise UserError(f"The seed is {self.seed}; it must not be negative.")

    @property
    def title(self) -> str:
        """What the fit is of, for the head of a page."""
        if self.mechanism:
            return Path(self.mechanism).stem
        first, *others = self.logs
        return Path(first).stem + (f" and {len(others)} more" if others else "")

    @property
    def sources(self) -> tuple[str, ...]:
        """The files and patterns that it is made from; of a mechanism in Python its name."""
        return (*self.logs, *self.holdout_logs, *self.columns.input_files, self.mechanism)

    @property
    def given_parameters(self) -> dict[str, float]:
        """The parameters that the roles give as numbers."""
        pairs = self.columns.named("parameters").items()
        return {name: float(value) for name, value in pairs if not isinstance(value, str)}

    def _check_unknown(self) -> None:
        """Raise `UserError` unless unknown parameters go with the model that is asked for."""
        if self.unknown and self.model not in (AUTO, PARAMETERS):
            raise UserError(
                f"Unknown parameters are named ({', '.join(self.unknown)}), but the model is "
                f"{self.model!r}, which does not find them. Use {PARAMETERS!r} or {AUTO!r}."
            )
        if self.unknown and not self.mechanism:
            raise UserError(
                f"{', '.join(self.unknown)} is unknown, but parameters are those of a mechanism. "
                "Give it with mechanism (--mechanism FILE.toml or module:name)."
            )
        check_repetitions(self.bootstrap)
        if self.bootstrap and (not self.mechanism or self.model not in (AUTO, PARAMETERS)):
            raise UserError(
                f"bootstrap is {self.bootstrap}; it is for unknown parameters of a mechanism. Name "
                "some, or leave it out."
            )
        for name, bounds in self.unknown.items():
            if bounds is not None and len(bounds) != 2:
                raise UserError(f"Bounds of {name!r} are {bounds}; give two, low and high.")


def columns_of(config: FitConfig, files: Sequence[Path]) -> Columns:
    """The columns of some files of states, with those files of inputs that go with them."""
    inputs = find_files(config.columns.input_files) if config.columns.input_files else []
    if len(inputs) < 2:
        return config.columns
    # By name, else by order: of all files that were named, as where nothing is held out.
    named = [*config.logs, *config.holdout_logs]
    places = list(dict.fromkeys(path.resolve() for path in find_files(named)))
    stems = {path.stem: path for path in inputs}
    if set(stems) == {path.stem for path in places}:
        inputs = [stems[path.stem] for path in files]
    elif len(inputs) == len(places):
        inputs = [inputs[places.index(path.resolve())] for path in files]
    return replace(config.columns, input_files=tuple(map(str, inputs)))


def unknown_parameters(config: FitConfig, system: AbstractSystem) -> dict[str, Any]:
    """The unknown parameters that configuration and mechanism file name, as `identify` takes them.

    Raises `UserError` for names that the system does not have, and for a system whose parameters
    cannot be found.
    """
    in_file = system.description.unknown if isinstance(system, AbstractDescribed) else ()
    found = {**dict.fromkeys(in_file), **config.unknown}
    if config.model not in (AUTO, PARAMETERS):
        return {}
    if not found:
        if not config.bootstrap and config.model != PARAMETERS:
            return {}
        asked = (
            f"bootstrap is {config.bootstrap}" if config.bootstrap else "The model is parameters"
        )
        raise UserError(
            f"{asked}, but none is named as unknown. Name some of: "
            f"{', '.join(system.parameter_names) or 'none (this system has no parameters)'}."
        )
    if not isinstance(system, AbstractMechanism):
        raise UserError(
            f"Parameters are named as unknown ({', '.join(found)}), but {type(system).__name__} "
            "has no masses and forces to find them by. Give a mechanism with masses; rough values "
            "will do where they are unknown."
        )
    unknown = {
        name: None if bounds is None else Unknown(low=bounds[0], high=bounds[1])
        for name, bounds in found.items()
    }
    make_unknowns(system, unknown)
    return unknown


def make_model(config: FitConfig, system: AbstractSystem, varied: tuple[str, ...]) -> Any:
    """What a fit learns, and how, as `learn` takes them.

    The untrained network, or those to choose from, and a `TrainingConfig`; or the system and an
    `IdentificationConfig`. `varied` are the parameters that differ between the runs. Raises
    `UserError` for what cannot be learned.
    """
    training = RECIPES[config.recipe].config
    if isinstance(training, TrainingConfig):
        training = for_system(config.recipe, system)
    training = replace(training, integrator=config.integrator)
    driven = bool(system.inputs)
    if isinstance(training, IdentificationConfig):
        if config.model != PARAMETERS:
            check_identification(system, training, driven=driven)
        return system, training
    kind, variant = MODELS[config.model]
    column = column_of(KINDS[kind], system) if RECIPES[config.recipe].as_printed else None
    if column is not None:
        training = replace(column.applied(training), integrator=config.integrator)
    fields = KINDS[kind].settings_type.__dataclass_fields__
    settings = variant | {name: value for name, value in _FOR_LOGS.items() if name in fields}
    settings |= RECIPES[config.recipe].settings
    if varied and "use_parameters" in fields:
        settings["use_parameters"] = varied
    if training.batch_size == 1:
        # One update for every window of the log would take a day on a long one.
        training = replace(training, batch_size=64, shuffle=True)
    if config.epochs is not None:
        training = replace(training, epochs=config.epochs)
    check_capable(config.model, KINDS[kind].capabilities, system, driven=driven)
    structures = (config.structure,)
    if not config.structure:
        structures = structures_to_try(system, RECIPES[config.recipe].structures)
    models = make_candidates(KINDS[kind], system, training, structures, config.seed, settings)
    return models if len(models) > 1 else models[0], training
