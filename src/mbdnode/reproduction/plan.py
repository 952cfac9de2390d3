"""What to run: the paper's columns of the chosen cases and models, for every seed.

A plan follows from its request alone, so the request is what is stored beside the results, and
two calls with the same request mean the same runs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mbdnode.config import check_types
from mbdnode.data.folders import folder_name
from mbdnode.errors import UserError
from mbdnode.naming import unknown_name
from mbdnode.recipes import RECIPES
from mbdnode.reproduction.cases import CASES, Case
from mbdnode.reproduction.config import (
    MODELS,
    NUMERICAL,
    RunConfig,
    configure,
    integrator_of,
    models_of_recipe,
    uses_integrator,
)
from mbdnode.reproduction.run import check

QUICK_RECIPES = ("best",)
# A quick run makes this part of the updates.
QUICK_PART = 0.1


@dataclass(frozen=True)
class Request:
    """What was asked for.

    **Arguments:**

    - `cases`, `models`: by name, in the order of the catalogs.
    - `recipes`: how to train, each in turn.
    - `seeds`: how many; they are 0, 1, and so on.
    - `quick`: shorten every run.
    - `samples`: of the cases that are trained on samples; None for their own number.
    """

    cases: tuple[str, ...]
    models: tuple[str, ...]
    recipes: tuple[str, ...] = ("paper",)
    seeds: int = 1
    quick: bool = False
    samples: int | None = None

    def __post_init__(self):
        check_types(self)


@dataclass(frozen=True)
class PlannedRun:
    """One run: the name of its folder, and all that decides its result."""

    name: str
    config: RunConfig


@dataclass(frozen=True)
class Plan:
    """A request and the runs that follow from it."""

    request: Request
    runs: tuple[PlannedRun, ...]


def make_plan(
    *,
    cases: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    recipes: Sequence[str] = ("paper",),
    seeds: int = 1,
    quick: bool = False,
    samples: int | None = None,
) -> Plan:
    """The runs that a request asks for, each of them checked.

    **Arguments:**

    - `cases`: by name; all if None.
    - `models`: by name; if None all that the recipes give and the paper has a column for, and the
        laws; with `quick` the usual one of each recipe.
    - `recipes`, `seeds`, `quick`, `samples`: as in `Request`.

    **Returns:**

    A `Plan`. Raises `UserError` for what is not known, cannot be carried out, or asks for nothing.
    """
    if seeds < 1:
        raise UserError(f"The number of seeds is {seeds}; it must be at least 1.")
    chosen_cases = _known("case", cases, CASES) or tuple(CASES)
    chosen_recipes = _known("recipe", recipes, RECIPES)
    usual = default_models(chosen_cases, chosen_recipes, quick=quick)
    request = Request(
        cases=chosen_cases,
        models=_known("model", models, MODELS) or usual,
        recipes=chosen_recipes,
        seeds=seeds,
        quick=quick,
        samples=samples,
    )
    _check_something_to_run(request, bool(cases), bool(models))
    _check_samples(request)
    runs = {run.name: run for case in request.cases for run in _runs(CASES[case], request)}
    return Plan(request, tuple(runs.values()))


def default_models(cases: Iterable[str], recipes: Iterable[str], *, quick: bool) -> tuple[str, ...]:
    """The models of a request that names none.

    **Arguments:**

    - `cases`, `recipes`: of the request, by name.
    - `quick`: whether only the usual model of each recipe is wanted.

    **Returns:**

    Names, in the order of the catalog.
    """
    found = {
        model
        for case in cases
        for recipe in recipes
        for model in _models_of(CASES[case], recipe)
        if not quick or model == models_of_recipe(recipe)[0]
    }
    return tuple(model for model in MODELS if model in found)


def _known(kind: str, names: Sequence[str] | None, catalog: Iterable[str]) -> tuple[str, ...]:
    """The names in the catalog's order; none of them unknown."""
    catalog = tuple(catalog)
    for name in names or ():
        if name not in catalog:
            raise unknown_name(kind, name, catalog)
    return tuple(name for name in catalog if name in (names or ()))


def _models_of(case: Case, recipe: str) -> tuple[str, ...]:
    """What a recipe gives on a case: networks that the paper has a column for, or a law."""
    if RECIPES[recipe].finds_law:
        return models_of_recipe(recipe)
    columns = dict.fromkeys(column.model for column in case.hyperparameters)
    return tuple(model for model in columns if model in models_of_recipe(recipe))


def _check_something_to_run(request: Request, cases_named: bool, models_named: bool) -> None:
    """What the user names must lead to runs; what was only filled in need not."""
    possible = {
        (case, recipe): set(_models_of(CASES[case], recipe))
        for case in request.cases
        for recipe in request.recipes
    }
    wanted = set(request.models)
    for recipe in request.recipes:
        if models_named and not wanted & set(models_of_recipe(recipe)):
            raise UserError(
                f"Nothing to run with the recipe {recipe!r}: {RECIPES[recipe].description}. Of "
                f"--models {','.join(request.models)} it gives none; add "
                f"{models_of_recipe(recipe)[0]!r}, or leave that recipe out."
            )
    for case in request.cases:
        there = [model for (name, _), found in possible.items() if name == case for model in found]
        if cases_named and not wanted & set(there):
            raise UserError(
                f"Nothing to run for {case!r} with {', '.join(request.models)}: there is only "
                f"{', '.join(model for model in MODELS if model in there)}. Leave out the case, or "
                "name one of its models."
            )
    for model in request.models:
        if models_named and not any(model in found for found in possible.values()):
            raise UserError(
                f"Nothing to run with the model {model!r}: the recipes "
                f"{', '.join(request.recipes)} give none on {', '.join(request.cases)}. "
                f"`mbdnode run CASE --model {model}` runs it alone."
            )


def _check_samples(request: Request) -> None:
    if request.samples is None:
        return
    if request.samples < 1:
        raise UserError(f"--samples is {request.samples}; it must be at least 1.")
    if not any(CASES[name].bounds for name in request.cases):
        drawn = ", ".join(name for name, case in CASES.items() if case.bounds)
        raise UserError(
            f"--samples {request.samples} would change nothing: of the cases only {drawn} is "
            "trained on samples. Leave it out, or add that case."
        )


def _runs(case: Case, request: Request) -> list[PlannedRun]:
    found = []
    for recipe in request.recipes:
        for model, integrator in _columns(case, recipe, request):
            first = _configured(case, model, integrator, recipe, request)
            check(first)
            # Nothing is drawn where nothing is trained.
            seeds = 1 if model == NUMERICAL else request.seeds
            configs = [replace(first, seed=seed) for seed in range(seeds)]
            found += [PlannedRun(_folder_name(config), config) for config in configs]
    return found


def _columns(case: Case, recipe: str, request: Request) -> list[tuple[str, str | None]]:
    """Models with their integrators; one a model where only one is wanted.

    No integrator stands for the recipe's own, or for none.
    """
    models = [model for model in _models_of(case, recipe) if model in request.models]
    if not RECIPES[recipe].as_printed:
        return [(model, None) for model in models]
    columns = [column for column in case.hyperparameters if column.model in models]
    if request.quick:
        # The first column of a model is the one of the error table.
        columns = list({column.model: column for column in reversed(columns)}.values())[::-1]
    return [(c.model, c.integrator if uses_integrator(c.model) else None) for c in columns]


def _configured(
    case: Case, model: str, integrator: str | None, recipe: str, request: Request
) -> RunConfig:
    config = configure(case.name, model=model, recipe=recipe, integrator=integrator)
    if request.quick and not config.finds_law:
        config = quick(config)
    if request.samples is not None and case.bounds:
        config = replace(config, samples=request.samples)
    return config


def quick(config: RunConfig) -> RunConfig:
    """The same run with a tenth of the epochs, refinements, and samples where there are any.

    The learning rate falls as far in them as it would have in all, so that the run is a short
    one of its kind rather than the beginning of a long one.

    **Arguments:**

    - `config`: of the whole run.

    **Returns:**

    Another configuration.
    """
    training = config.training
    epochs = max(min(1, training.epochs), round(training.epochs * QUICK_PART))
    decay = training.decay ** (training.epochs / epochs) if epochs else training.decay
    return replace(
        config,
        training=replace(
            training,
            epochs=epochs,
            decay=decay,
            refinement=-(-training.refinement // round(1 / QUICK_PART)),
        ),
        samples=max(1, round(config.samples * QUICK_PART)),
    )


def _folder_name(config: RunConfig) -> str:
    integrator = integrator_of(config).replace("-", "none")
    return folder_name(config.case, config.model, integrator, config.recipe, config.seed)
