"""Which kind of model the data asks for: `auto`.

Models are tried in order of complexity: the unknown parameters of the mechanism; a law; a law from
the search through all forms, where the recipe has tried few; a law with a network beside it; a
network. Each is fitted to the training data before the validation split (its last fifth) and
predicts the split. The first that is within the noise there is taken, and none after it is tried;
where none is, the simplest is taken that is nearly as good as the best. Then it is fitted to all of
the training data. What was held out is not looked at.

Networks cost the most and are seldom needed, so what they may cost is bounded: they are tried with
few iterations on evenly spaced pieces of the runs, and one that is taken is trained on such pieces.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from mbdnode.formatting import percent
from mbdnode.identification import Identified, learn
from mbdnode.identification.biased_rates import biased_rates
from mbdnode.identification.parameters import IdentifiedParameters, identify_parameters
from mbdnode.identification.search_checkpoint import NO_CHECKPOINT, SearchCheckpoint
from mbdnode.models.law_equations import features_name
from mbdnode.recipes import RECIPES, TrainingConfig, training_config
from mbdnode.training import Fit, fit
from mbdnode.training.choose import split
from mbdnode.trajectory import Dataset
from mbdnode.waiting_notice import doing
from mbdnode.workflow.config import PARAMETERS, FitConfig, make_model
from mbdnode.workflow.hybrid import (
    BETTER,
    VALIDATION,
    are_long,
    thin_runs,
    try_hybrid,
    validation_error,
)

# A model explains the data if its validation NRMSE is below this, or within the second factor of
# what the noise alone makes.
_EXPLAINED, _NEAR = 0.01, 1.2
# Pieces of which noise is this part of the motion are nearly at rest.
_AT_REST = 0.2
# The recipe of networks, beside a law or alone, with less of it in their trials; on how many steps
# they are trained; and the structure of those without a law, whose programs are compiled soonest.
NETWORK_RECIPE = "adam-lm"
_TRIAL = {"epochs": 5, "refinement": 10, "validation": 0.0}
_MOST_STEPS, _STRUCTURE = 3_000, "free"
# The recipe that tries all forms of laws.
ALL_FORMS = "best"
LAW_ALONE, REFINED, HYBRID, NETWORK = "law", "refined law", "law plus network", "network"

FoundModel = Fit | Identified | IdentifiedParameters


@dataclass(frozen=True)
class TriedModel:
    """A kind of model that was tried.

    `validation_nrmse` is infinite where its prediction ended early; None where it was not measured,
    since there was nothing to choose. It is `explained` if that is within the noise, or below one
    percent. A law of random features is called a fit of them.
    """

    name: str
    validation_nrmse: float | None
    explained: bool
    is_noise_amplified: bool = False

    def __str__(self) -> str:
        error = self.validation_nrmse
        if error is None:
            return self.name
        return f"{self.name} ({percent(error) if np.isfinite(error) else 'diverged'})"


@dataclass(frozen=True)
class ModelChoice:
    """What was tried, in order, and what was taken.

    The model that was `found` is fitted to all of the training data. The pieces that were predicted
    are so many `seconds` long, in the median.
    """

    found: FoundModel
    tried: tuple[TriedModel, ...]
    taken: str
    seconds: float = 0.0

    def __str__(self) -> str:
        if len(self.tried) == 1 and self.tried[0].validation_nrmse is None:
            return f"Only {self.taken} was fitted: the data leaves no part to choose by."
        each = ", ".join(map(str, self.tried))
        one = next(tried for tried in self.tried if tried.name == self.taken)
        if one.is_noise_amplified:
            why = (
                "the simplest whose errors are within the propagated uncertainty of initial states "
                "and coefficients"
            )
        elif one.explained and _known(one.validation_nrmse) > _AT_REST:
            why = (
                "the simplest whose errors on these pieces are those of the noise, which is most "
                "of their motion, so that they hardly tell models apart"
            )
        elif one.explained:
            why = "the simplest that predicts these pieces within the noise, or to one percent"
        elif len(self.tried) == 1:
            why = "the only one that was tried"
        else:
            why = "the simplest of those within a tenth of the best; none is within the noise"
        return (
            "Tried in order of complexity, with the NRMSE over the last fifth of each training "
            f"run, pieces of {self.seconds:.3g} s which they had not seen: {each}. Taken: "
            f"{self.taken}, {why}. That says nothing of longer predictions, or of motions outside "
            "the training data."
        )


@dataclass(frozen=True)
class _Candidate:
    tried: TriedModel
    finish: Callable[[], FoundModel]


def choose_model(
    config: FitConfig,
    system: Any,
    data: Dataset,
    unknown: dict[str, Any],
    varied: tuple[str, ...],
    report: Callable | None,
    kept: SearchCheckpoint = NO_CHECKPOINT,
) -> ModelChoice:
    """Try models in order of complexity, and fit the one that the data asks for.

    The recipe of `config` finds laws. `varied` are the parameters that differ between the runs.
    `kept` has what the same choice finished before it was killed, and what it finishes now.
    """
    ladder = _Ladder(config, system, data, unknown, varied, report, kept)
    if not are_long(data):
        found = ladder.all_parameters() if unknown else ladder.law()
        name = PARAMETERS if unknown else _named(LAW_ALONE, found)
        return ModelChoice(found, (TriedModel(name, None, False),), name)
    candidates: list[_Candidate] = []
    for step in ladder.steps():
        candidates.append(step())
        ladder.tried.append(candidates[-1].tried)
        if candidates[-1].tried.explained:
            break
    errors = [_known(one.tried.validation_nrmse) for one in candidates]
    chosen = candidates[-1]
    if not chosen.tried.explained:
        near = [e <= BETTER * min(errors) for e in errors]
        chosen = candidates[near.index(True)]
    ends = [
        float(np.median(run.t[..., -1] - run.t[..., 0])) for run in ladder.parts[1].trajectories
    ]
    tried = tuple(c.tried for c in candidates)
    ladder.chosen = True
    return ModelChoice(chosen.finish(), tried, chosen.tried.name, float(np.median(ends)))


def _known(error: float | None) -> float:
    return float("inf") if error is None else error


def _named(name: str, found: FoundModel) -> str:
    """A fit of random features is not called a law."""
    return name.replace(LAW_ALONE, features_name(found.model) or LAW_ALONE)


@dataclass
class _Ladder:
    """The steps, which share the split and the law."""

    config: FitConfig
    system: Any
    data: Dataset
    unknown: dict[str, Any]
    varied: tuple[str, ...]
    report: Callable | None
    kept: SearchCheckpoint = NO_CHECKPOINT
    tried: list[TriedModel] = field(default_factory=list)
    chosen: bool = False
    _law: Identified | None = None

    @cached_property
    def biased(self) -> tuple[str, ...]:
        """Recorded velocities that contradict their positions."""
        return biased_rates(self.system, self.data)

    def steps(self) -> list[Callable[[], _Candidate]]:
        """In order of complexity."""
        few = not getattr(RECIPES[self.config.recipe].config, "refined", True)
        return [
            *([self.try_parameters] if self.unknown else []),
            self.try_law,
            *([self.try_refined_law] if few else []),
            self.try_hybrid,
            self.try_network,
        ]

    def telling(self, name: str) -> Callable | None:
        """The report, with what is tried and why."""
        report = self.report
        if report is None:
            return None
        why = f"validation NRMSE so far {', '.join(map(str, self.tried))}, more than noise makes"

        def tell(row: dict[str, Any], total: int) -> None:
            said = {"chosen": True, "why": "on all of the training data"} if self.chosen else {}
            report({**row, "model": name, "why": why, **said}, total)

        return tell

    @property
    def parts(self) -> tuple[Dataset, Dataset]:
        """Before the validation split, and the split."""
        early, late = split(self.data, VALIDATION)
        told = self.data.recorded
        return replace(early, recorded=told), replace(late, recorded=told)

    def _error(self, name: str, model: Any, integrator: str) -> tuple[float, float]:
        measure = lambda: validation_error(  # noqa: E731
            model, self.data, self.data.recorded, integrator, self.biased
        )
        error, noise = self.kept.value(f"validation error of {name}", measure)
        return error, noise

    def all_parameters(self) -> IdentifiedParameters:
        """Of all of the training data."""
        return identify_parameters(
            *(self.system, self.data, self.unknown),
            report=self.report,
            kept=self.kept.inside("parameters"),
            bootstrap=self.config.bootstrap,
            seed=self.config.seed,
        )

    def try_parameters(self) -> _Candidate:
        """Those of the mechanism."""
        room = max(len(run) for run in self.data.trajectories)
        options = {"report": self.report, "kept": self.kept.inside("early-parameters")}
        found = identify_parameters(self.system, self.parts[0], self.unknown, room=room, **options)
        error, noise = self._error(PARAMETERS, found.model, found.integrator)
        tried = TriedModel(PARAMETERS, error, error < max(_EXPLAINED, _NEAR * noise))
        return _Candidate(tried, self.all_parameters)

    def law(self) -> Identified:
        """Of all of the training data; `before_validation` is that of the first part."""
        if self._law is None:
            self._law = self._searched(self.config, "law", self.report)
        return self._law

    def _searched(self, config: FitConfig, name: str, report: Callable | None) -> Identified:
        subject, training = make_model(config, self.system, self.varied)
        options = {"seed": config.seed, "report": report, "kept": self.kept.inside(name)}
        with doing("searching for a law"):
            found = learn(subject, self.data, training, **options)
        assert isinstance(found, Identified)
        return found

    def try_law(self) -> _Candidate:
        """A law by regression."""
        return self._law_candidate(LAW_ALONE, self.law())

    def try_refined_law(self) -> _Candidate:
        """A law of any form, its coefficients fitted to rollouts."""
        before, config = self.law(), replace(self.config, recipe=ALL_FORMS)
        found = self._searched(config, "refined-law", self.telling(REFINED))
        candidate = self._law_candidate(REFINED, found)
        errors = [_known(one.validation_nrmse) for one in (self.tried[-1], candidate.tried)]
        self._law = found if errors[1] < errors[0] else before
        return candidate

    def _law_candidate(self, name: str, found: Identified) -> _Candidate:
        error, explained = found.diagnostics["validation_nrmse"], found.diagnostics["explained"]
        if not explained:
            error = self._error(name, found.before_validation, self.config.integrator)[0]
        grown = explained and found.diagnostics["noise_has_grown"]
        told = _named(name, found)
        return _Candidate(TriedModel(told, float(error), explained, grown), lambda: found)

    def try_hybrid(self) -> _Candidate:
        """A network beside the law."""
        training = replace(training_config(NETWORK_RECIPE), integrator=self.config.integrator)
        options = {"parameters": self.varied, "seed": self.config.seed}
        options |= {"trial": replace(training, **_TRIAL), "most": _MOST_STEPS}
        options |= {"report": self.telling(HYBRID), "kept": self.kept.inside("hybrid")}
        law = self.law()
        with doing("training a network beside the law"):
            trial = try_hybrid(law, self.data, training, **options)
        error = trial.hybrid_nrmse
        told = _named(HYBRID, self.law())
        return _Candidate(TriedModel(told, error, error < _EXPLAINED), trial.finish)

    def try_network(self) -> _Candidate:
        """A network alone."""
        asked = replace(
            self.config, recipe=NETWORK_RECIPE, model="", structure=_STRUCTURE, unknown={}
        )
        subject, training = make_model(asked, self.system, self.varied)
        report = self.telling(NETWORK)

        def trained(on: Dataset, name: str, how: TrainingConfig) -> Fit:
            options = {"seed": self.config.seed, "report": report}
            options["checkpoint"] = self.kept.checkpoint(name)
            with doing("training a network"):
                return fit(subject, thin_runs(on, _MOST_STEPS), how, **options)

        early = trained(self.parts[0], "early-network", replace(training, **_TRIAL))
        error = self._error(NETWORK, early.model, self.config.integrator)[0]
        tried = TriedModel(NETWORK, error, error < _EXPLAINED)
        return _Candidate(tried, lambda: trained(self.data, "network", training))
