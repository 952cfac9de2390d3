"""A fit: what goes in, what comes of it, and what its numbers say in sentences."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from mbdnode.data.logs import LogStream
from mbdnode.data.rows import CLEAN
from mbdnode.evaluation import HeldOut, Holdout, Horizon, Scores, predict_runs, score
from mbdnode.formatting import percent
from mbdnode.identification import Identified
from mbdnode.identification.excitation import describe_excitation
from mbdnode.identification.identify import NONE_PREDICTS
from mbdnode.identification.parameters import IdentifiedParameters
from mbdnode.models import LAW
from mbdnode.models.law_equations import features_name
from mbdnode.models.mbdnode import AbstractMBDNODE
from mbdnode.multibody import AbstractSystem
from mbdnode.nrmse import LIMIT
from mbdnode.recipes import IdentificationConfig, TrainingConfig
from mbdnode.simulation import Domain
from mbdnode.training import Fit
from mbdnode.workflow.config import AUTO, PARAMETERS, FitConfig
from mbdnode.workflow.hybrid import is_hybrid
from mbdnode.workflow.model_choice import HYBRID, ModelChoice, TriedModel

# A held-out NRMSE above this is said in the status, unless it is within the second factor of what
# the noise alone would make.
_DOUBTED, _NEAR = 0.1, 1.2
# Residuals above the noise that are less alike from sample to sample than the first are white,
# and above the second more than noise.
_UNCORRELATED, _WHITE = 0.2, 0.5


@dataclass(frozen=True)
class Prepared:
    """What is to be learned, all of it checked.

    `subject` and `training` are as `learn` takes them: an untrained network, or the system whose
    law is to be found; and how. So many `rows` are trained on. They come from the `stream` if there
    are too many to hold; `data.training` is then a part of them. `notes` say what was read and
    done, line by line.
    """

    config: FitConfig
    system: AbstractSystem
    data: Holdout
    notes: tuple[str, ...]
    subject: Any
    training: TrainingConfig | IdentificationConfig
    rows: int
    stream: LogStream | None = None
    unknown: dict[str, Any] = field(default_factory=dict)
    cluster: str | None = None
    prepare_seconds: float = 0.0

    @property
    def finds_law(self) -> bool:
        """Whether a law or parameters are found by regression; a network is trained if not."""
        return isinstance(self.training, IdentificationConfig)

    def __enter__(self) -> "Prepared":
        return self

    def __exit__(self, *_: object) -> None:
        """Remove what was kept of logs that were read in parts, here and on workers."""
        if self.stream is not None:
            self.stream.close()


@dataclass(frozen=True)
class Fitted:
    """What came of it.

    **Arguments:**

    - `prepared`: what went in.
    - `fit`: the trained network, the law that was found, or the parameters.
    - `domain`: where the training data lies.
    - `held_out`: the runs that were not trained on.
    - `scores`: how far the predictions are from what was recorded.
    - `horizon`: how far ahead it predicts; None where that cannot be measured.
    - `choice`: what was tried and why this was taken, if the data chose.
    - `following`: the inputs that follow the state in all training runs, as under a controller.
    - `seconds`: how long one waited for it, part by part.
    """

    prepared: Prepared
    fit: Fit | Identified | IdentifiedParameters
    domain: Domain
    held_out: tuple[HeldOut, ...]
    scores: Scores
    horizon: Horizon | None
    choice: ModelChoice | None = None
    following: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def status(self) -> str:
        """How training ended, and what is to be doubted of the result."""
        told = self.fit.status
        doubts = [doubt for doubt in self.doubts() if doubt not in told]
        return "; ".join([told, *([self.spread_summary] if self.spread_summary else []), *doubts])

    @property
    def model_name(self) -> str:
        """What was learned: the model that was asked for, or a law with a network beside it."""
        if isinstance(self.fit, IdentifiedParameters):
            return PARAMETERS
        taken = LAW if self.choice is None else self.choice.taken  # A law where none is tried.
        if is_hybrid(self.fit.model):
            return f"hybrid: {HYBRID if self.choice is None else taken}"
        asked = self.prepared.config.model
        if asked not in (AUTO, LAW):
            return asked
        return taken if self.choice is not None else features_name(self.fit.model) or LAW

    @cached_property
    def without_layers(self) -> float | None:
        """The held-out NRMSE that is left to the affine part of a network; None without one."""
        model, data = self.fit.model, self.prepared.data
        affine = model.affine_part if isinstance(model, AbstractMBDNODE) else None
        if affine is None or not self.held_out:
            return None
        given = affine, data.held_out, data.training.recorded, self.domain
        alone = predict_runs(*given, self.prepared.config.integrator)
        return score(alone, self.prepared.system.coordinates, data.training.trajectories).nrmse

    @property
    def network_summary(self) -> str:
        """Of an MBD-NODE, its structure, and what its affine part says; nothing of other models."""
        if not isinstance(self.fit.model, AbstractMBDNODE):
            return ""
        told, without = f"structure {self.fit.model.settings.structure}", self.without_layers
        if without is None:
            return told
        alone = f"{told}, an affine part beside the layers; without the layers, held-out NRMSE "
        verdict = ": the affine part says nearly all" if without < LIMIT else ""
        return f"{alone}{percent(without)}{verdict}"

    @property
    def choice_summary(self) -> str:
        """What was tried, what was taken and why, and what more data would help; or nothing."""
        if self.choice is None:
            return ""
        return " ".join([str(self.choice), *_advice(self)])

    @property
    def spread_summary(self) -> str:
        """How much the held-out NRMSE depends on where one begins; or nothing."""
        pieces = None if self.horizon is None else self.horizon.pieces
        return "" if pieces is None else f"held-out NRMSE: {pieces}"

    @property
    def outside(self) -> float | None:
        """The part of the predicted rows that lies outside the training data; None without any."""
        parts = [float(np.mean(one.outside)) for one in self.held_out]
        return float(np.mean(parts)) if parts else None

    @property
    def residual_correlation(self) -> float | None:
        """Of held-out errors from one sample to the next; None without any."""
        pairs = [errors for one in self.held_out for errors in _errors_of(one, self.scores.scales)]
        # By both, since errors that grow are larger after than before.
        before, after = (
            sum(float(np.sum(e[part] ** 2)) for e in pairs)
            for part in (slice(None, -1), slice(1, None))
        )
        if not before * after > 0:
            return None
        return sum(float(np.sum(e[:-1] * e[1:])) for e in pairs) / math.sqrt(before * after)

    @property
    def residual_summary(self) -> str:
        """Whether held-out errors are white, in a sentence; nothing where there are none."""
        found, scores = self.residual_correlation, self.scores
        if found is None or scores.nrmse is None:
            return ""
        if scores.nrmse <= _NEAR * scores.noise:
            return f"within the noise ({percent(scores.noise)})"
        size = f"{percent(scores.nrmse)}, of data without noise"
        if scores.noise > CLEAN:
            size = f"{scores.nrmse / scores.noise:.2g} times the noise"
        if found < _WHITE:
            kind = "white" if found < _UNCORRELATED else "mostly noise"
            return f"{size}, {kind}: {found:.2f} correlated from one sample to the next"
        return (
            f"{size}, not white: {found:.2f} correlated from one sample to the next, so "
            "what is left is the model's error more than noise"
        )

    def doubts(self) -> list[str]:
        """Why the model should not be relied on, by the runs that were held out; or nothing."""
        found, scores = [], self.scores
        if isinstance(self.fit, Identified) and not self.fit.diagnostics["predicts_well"]:
            found.append(NONE_PREDICTS)
        if biased := [column.name for column in scores.columns if column.is_biased]:
            found.append(
                f"as recorded, {' and '.join(biased)} contradicts its position, so it is not scored"
            )
        judged = len(found)
        if scores.ended:
            count, total, first = len(scores.ended), len(scores.runs), scores.ended[0]
            found.append(
                f"the prediction of {count} of {total} held-out runs ended early, that of "
                f"{first.name} at t = {first.ended_s:.4g} s"
            )
        elif scores.nrmse is not None and scores.nrmse > max(_DOUBTED, _NEAR * scores.noise):
            found.append(f"the held-out NRMSE is {percent(scores.nrmse)}")
        if len(found) > judged and self.horizon is not None:
            found[-1] += _reach(self.horizon)
        if (outside := self.outside or 0.0) > _DOUBTED:
            found.append(f"{percent(outside)} of the predicted rows lie outside the training data")
        if self.following:
            found.append(describe_excitation(self.following))
        return found

    def metrics(self) -> dict[str, Any]:
        """The content of metrics.json."""
        prepared, horizon = self.prepared, self.horizon
        rows = [np.asarray(one.prediction.position_residual) for one in self.held_out]
        residuals = [float(x) for x in map(np.fmax.reduce, rows) if not np.isnan(x)]
        return {
            "model": self.model_name,
            "network": self.network_summary or None,
            "nrmse_without_layers": self.without_layers,
            "recipe": prepared.config.recipe,
            "seed": prepared.config.seed,
            "training_runs": len(prepared.data.training.trajectories),
            "training_rows": prepared.rows,
            "held_out_runs": len(self.held_out),
            **self.scores.as_dict(),
            "valid_prediction_time_s": None if horizon is None else horizon.valid_s,
            "valid_prediction_time_is_capped": None if horizon is None else horizon.is_capped,
            "valid_prediction_time_range_s": None
            if horizon is None
            else [horizon.shortest_s, horizon.longest_s],
            "nrmse_of_pieces": None
            if horizon is None or horizon.pieces is None
            else horizon.pieces.as_dict(),
            "outside": self.outside,
            "position_residual": max(residuals, default=None),
            **{f"{part}_seconds": seconds for part, seconds in self.seconds.items()},
            "train_seconds": self.fit.train_seconds,
            "compile_seconds": self.fit.compile_seconds,
            "updates": self.fit.updates,
            "status": self.status,
            "outcome": self.fit.outcome,
            "threshold": self.domain.threshold,
            "residual_correlation": self.residual_correlation,
            "tried": {} if self.choice is None else _errors_tried(self.choice.tried),
            **self._parameter_metrics(),
        }

    def _parameter_metrics(self) -> dict[str, Any]:
        found = self.fit
        if not isinstance(found, IdentifiedParameters):
            return {}
        return {
            "parameters": found.parameters,
            "standard_errors": found.standard_errors,
            **_of_bootstrap(found),
            "undetermined": list(found.undetermined),
            "noise": found.noise,
            "training_rmse": found.rmse,
        }


def _reach(horizon: Horizon) -> str:
    """What to conclude from the valid prediction time, where the NRMSE is large."""
    if horizon.valid_s is None:
        return ", and the model predicts held-out runs at no time ahead"
    if horizon.is_capped:
        limit = percent(horizon.limit)
        return f", though most predictions stay within {limit} to the end of the test data"
    return f", so do not predict farther than {horizon}"


def _of_bootstrap(found: IdentifiedParameters) -> dict[str, Any]:
    if found.bootstrap is None:
        return {}
    return {
        "bootstrap_standard_errors": found.bootstrap.standard_errors,
        "bootstrap_intervals": {k: list(x) for k, x in found.bootstrap.intervals().items()},
    }


def _errors_tried(tried: Sequence[TriedModel]) -> dict[str, float | None]:
    """By name; None where it was not measured or the prediction ended early."""
    errors = {one.name: one.validation_nrmse for one in tried}
    return {name: e if e is not None and np.isfinite(e) else None for name, e in errors.items()}


def _errors_of(one: HeldOut, scales: Any) -> list[np.ndarray]:
    """What a prediction misses of every scored column, in its scale."""
    found = []
    for name, scale in scales.items():
        if name in one.recorded:
            away = (np.asarray(one.prediction[name]) - np.asarray(one.truth[name])) / scale
            found.append(away[np.isfinite(away)])
    return found


def _advice(fitted: "Fitted") -> list[str]:
    """What more data would help, from what the fit shows."""
    found = []
    fit, scores = fitted.fit, fitted.scores
    if isinstance(fit, IdentifiedParameters) and fit.undetermined:
        found.append(
            f"The data does not tell {', '.join(fit.undetermined)} apart: record a motion in which "
            "they act differently, or give one of them its value."
        )
    runs = len(fitted.prepared.data.training.trajectories)
    if (fitted.outside or 0.0) > _DOUBTED:
        found.append("Predictions leave the training data: record runs that go there.")
    explained = fitted.choice is not None and any(t.explained for t in fitted.choice.tried)
    if not explained:
        found.append(
            "No model explains the data, so something that acts on the machine may not be "
            "recorded: look for an input, a coordinate or a friction that is missing."
        )
    within = scores.nrmse is not None and scores.nrmse <= max(0.01, _NEAR * scores.noise)
    if runs == 1 and not within:
        found.append("There is one run: more runs, from other initial states, would help.")
    if fitted.following:
        found.append(
            f"Runs in which {' and '.join(fitted.following)} does not follow the state would tell "
            "what it does."
        )
    if not found and not within:
        found.append("Held-out runs are missed by more than the noise: more runs would help.")
    return found or ["More data of the same kind would not change the choice."]
