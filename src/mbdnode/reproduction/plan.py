"""What to run: the paper's columns of the chosen cases and models, for every seed.

A plan follows from its request alone, so the request is what is stored beside the results, and
two calls with the same request mean the same runs.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mbdnode.config import check_types
from mbdnode.data.folders import folder_name
from mbdnode.errors import UserError
from mbdnode.models import LAW, MBDNODE
from mbdnode.naming import unknown_name
from mbdnode.recipes import PAPER, RECIPES, IdentificationConfig, check_some_trained_by, recipe_name
from mbdnode.reproduction.cases import CASES, PAPER_CASES, Case
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

# What is run with `quick` where no recipe is named: the paper's network on each of its systems (the
# double pendulum by the start that its number is of), as the paper has it but for the order of the
# updates. On samples Adam alone is too slow: the paper takes ten million of them.
_DEMONSTRATED = (
    "single-mass-spring",
    "single-mass-spring-damper",
    "triple-mass-spring-damper",
    "single-pendulum",
    "double-pendulum:released-low",
    "cart-pole",
    "slider-crank",
)
_OF_TRAJECTORIES, _OF_SAMPLES, _OF_LAWS = "paper-shuffled", "adam-lm", "best"
# One of the paper's baselines beside it: the first of these that the paper has on that system.
_BASELINES = ("fcnn", "lnn")
# A quick run makes these parts of the epochs, and of the iterations of a refinement; a law has this
# part of the samples.
QUICK_PART = 0.1
QUICK_REFINEMENT = 1 / 3
QUICK_LAW = 0.2


@dataclass(frozen=True)
class Request:
    """What was asked for.

    **Arguments:**

    - `cases`, `models`: by name, in the order of the catalogs.
    - `recipes`: how to train, each in turn; with `quick` empty for the demonstration: the paper's
        network and one of its baselines on each of its systems, and the law of every case.
    - `seeds`: how many; they are 0, 1, and so on.
    - `quick`: shorten every run.
    - `samples`: of the cases that are trained on samples; None for their own number.
    """

    cases: tuple[str, ...]
    models: tuple[str, ...]
    recipes: tuple[str, ...] = (PAPER,)
    seeds: int = 1
    quick: bool = False
    samples: int | None = None

    def __post_init__(self):
        check_types(self)


@dataclass(frozen=True)
class PlannedRun:
    """One run: the name of its folder, all that decides its result, whether `quick` cut it."""

    name: str
    config: RunConfig
    shortened: bool = False


@dataclass(frozen=True)
class Plan:
    """A request and the runs that follow from it."""

    request: Request
    runs: tuple[PlannedRun, ...]


def make_plan(
    *,
    cases: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    recipes: Sequence[str] | None = None,
    seeds: int = 1,
    quick: bool = False,
    samples: int | None = None,
) -> Plan:
    """The runs that a request asks for, each of them checked.

    Without names it is every case of the paper and the paper's recipe, with `quick` the
    demonstration; all models that the recipes give and the paper has a column for, and the laws,
    with `quick` the usual one of each recipe. Raises `UserError` for what is not known, cannot be
    carried out, or asks for nothing.
    """
    if seeds < 1:
        raise UserError(f"The number of seeds is {seeds}; it must be at least 1.")
    chosen_cases = _known("case", cases, CASES) or PAPER_CASES
    recipes = None if recipes is None else [recipe_name(name) for name in recipes]
    chosen_recipes = _known("recipe", recipes, RECIPES) or (() if quick else (PAPER,))
    usual = default_models(chosen_cases, chosen_recipes, quick=quick)
    request = Request(
        cases=chosen_cases,
        models=_known("model", models, MODELS) or usual,
        recipes=chosen_recipes,
        seeds=seeds,
        quick=quick,
        samples=samples,
    )
    # What the user names must lead to runs; what was only filled in need not.
    _check_something_to_run(request, bool(cases), bool(models))
    _check_samples(request)
    runs = {run.name: run for case in request.cases for run in _runs(CASES[case], request)}
    return Plan(request, tuple(runs.values()))


def default_models(cases: Iterable[str], recipes: Sequence[str], *, quick: bool) -> tuple[str, ...]:
    """The models of a request that names none, in the order of the catalog."""
    found = {
        model
        for case in cases
        for recipe, model in _offered(CASES[case], tuple(recipes))
        if not recipes or not quick or model == models_of_recipe(recipe)[0]
    }
    return tuple(model for model in MODELS if model in found)


def _known(kind: str, names: Sequence[str] | None, catalog: Iterable[str]) -> tuple[str, ...]:
    """The names in the catalog's order; none of them unknown."""
    catalog = tuple(catalog)
    for name in names or ():
        if name not in catalog:
            raise unknown_name(kind, name, catalog)
    return tuple(name for name in catalog if name in (names or ()))


def _offered(case: Case, recipes: Sequence[str]) -> list[tuple[str, str]]:
    """Recipes, and the models that they give on a case; without a recipe the demonstration's."""
    if recipes:
        return [(recipe, model) for recipe in recipes for model in _models_of(case, recipe)]
    found = []
    if case.name in _DEMONSTRATED:
        found.append((_OF_SAMPLES if case.bounds else _OF_TRAJECTORIES, MBDNODE.kind))
        of_paper = _models_of(case, PAPER)
        found += [(PAPER, model) for model in _BASELINES if model in of_paper][:1]
    return [*found, (_OF_LAWS, LAW)]


def _models_of(case: Case, recipe: str) -> tuple[str, ...]:
    """What a recipe gives on a case: networks that the paper has a column for, or a law."""
    if RECIPES[recipe].finds_law:
        return models_of_recipe(recipe)
    columns = dict.fromkeys(column.model for column in case.hyperparameters)
    return tuple(model for model in columns if model in models_of_recipe(recipe))


def _check_something_to_run(request: Request, cases_named: bool, models_named: bool) -> None:
    for recipe in request.recipes if models_named else ():
        check_some_trained_by(recipe, request.models, MODELS)
    offered = {
        case: {model for _, model in _offered(CASES[case], request.recipes)}
        for case in request.cases
    }
    for case, there in offered.items() if cases_named else ():
        if not there.intersection(request.models):
            raise UserError(
                f"Nothing to run for {case!r} with {', '.join(request.models)}: there is only "
                f"{', '.join(model for model in MODELS if model in there)}. Leave out the case, or "
                "name one of its models."
            )
    recipes = ", ".join(request.recipes or (_OF_TRAJECTORIES, _OF_SAMPLES, PAPER, _OF_LAWS))
    for model in request.models if models_named else ():
        if not any(model in there for there in offered.values()):
            raise UserError(
                f"Nothing to run with the model {model!r}: the recipes {recipes} give none on "
                f"{', '.join(request.cases)}. `mbdnode run CASE --model {model}` runs it alone."
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
    for recipe, model in _offered(case, request.recipes):
        for integrator in _integrators(case, recipe, model, request):
            first = _configured(case, model, integrator, recipe, request)
            check(first)
            # Nothing is drawn where nothing is trained.
            seeds = 1 if model == NUMERICAL else request.seeds
            configs = [replace(first, seed=seed) for seed in range(seeds)]
            cut = _is_shortened(first, request)
            found += [PlannedRun(_folder_name(config), config, cut) for config in configs]
    return found


def _integrators(case: Case, recipe: str, model: str, request: Request) -> list[str | None]:
    """Those of the model's columns, one where only one is wanted; none for what is not asked for.

    None among them stands for the recipe's own, or for a model without.
    """
    if model not in request.models:
        return []
    if not RECIPES[recipe].as_printed or not uses_integrator(model):
        return [None]
    columns = [column for column in case.hyperparameters if column.model == model]
    # The first column of a model is the one of the error table.
    return [column.integrator for column in columns[: 1 if request.quick else None]]


def _configured(
    case: Case, model: str, integrator: str | None, recipe: str, request: Request
) -> RunConfig:
    config = configure(case.name, model=model, recipe=recipe, integrator=integrator)
    if _is_shortened(config, request):
        config = quick(config)
    if request.samples is not None and case.bounds:
        config = replace(config, samples=request.samples)
    if request.quick and case.control is None and case.control_trials:
        config = replace(config, control_trials=False)
    return config


def _is_shortened(config: RunConfig, request: Request) -> bool:
    """Laws of trajectories never are, nor are the networks of the demonstration."""
    if config.finds_law:
        return request.quick and bool(CASES[config.case].bounds)
    return request.quick and bool(request.recipes)


def quick(config: RunConfig) -> RunConfig:
    """The same run, shortened.

    A network that is refined keeps its epochs of Adam, the choice of its structure and a third of
    the iterations. Any other has a tenth of the epochs, and its learning rate falls as far in
    them as it would have in all, so that the run is a short one of its kind rather than the
    beginning of a long one. Of samples a tenth is taken, of a law a fifth, and that is all.
    """
    if config.finds_law:
        return replace(config, samples=max(1, round(config.samples * QUICK_LAW)))
    samples = max(1, round(config.samples * QUICK_PART))
    training = config.training
    if training.refinement:
        iterations = math.ceil(training.refinement * QUICK_REFINEMENT)
        short = replace(training, refinement=iterations)
        return replace(config, training=short, samples=samples)
    epochs = max(1, round(training.epochs * QUICK_PART))
    short = replace(training, epochs=epochs, decay=training.decay ** (training.epochs / epochs))
    return replace(config, training=short, samples=samples)


def shortened(recipe: str) -> str:
    """What `quick` leaves of a recipe, in a few words."""
    chosen = RECIPES[recipe]
    if isinstance(chosen.config, IdentificationConfig):
        return "a fifth of the samples, where it has samples"
    if not chosen.config.refinement:
        return "a tenth of its epochs"
    return "a third of the iterations of Levenberg-Marquardt"


def _folder_name(config: RunConfig) -> str:
    integrator = integrator_of(config).replace("-", "none")
    return folder_name(config.case, config.model, integrator, config.recipe, config.seed)
