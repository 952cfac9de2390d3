"""`identify`: find the law of a system in data, or the values of its parameters.

Candidates from simple to rich are fitted by regression and chosen on a validation split
(`search.py`). What comes back is the law, as a model that simulates like the system and as
equations that a person can read, with every candidate that was tried and its score.
"""

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from threadpoolctl import threadpool_limits

from mbdnode.data import AbstractStream
from mbdnode.data.logs import LogStream
from mbdnode.errors import UserError
from mbdnode.formatting import percent
from mbdnode.identification.excitation import describe_excitation, inputs_that_follow
from mbdnode.identification.law_search import Choice, SegmentError, Tell, choose_law
from mbdnode.identification.parameters import identify_parameters
from mbdnode.identification.search_checkpoint import NO_CHECKPOINT, SearchCheckpoint, searching
from mbdnode.integrators import get_integrator
from mbdnode.models import LAW, AbstractModel, check_capable
from mbdnode.models.function_library import Library
from mbdnode.models.law_equations import Equations, equations_of
from mbdnode.naming import unknown_name
from mbdnode.parallel import usable_cores, workers
from mbdnode.recipes import IdentificationConfig, TrainingConfig, identification_config
from mbdnode.simulation import INTERPOLATIONS, Interpolation
from mbdnode.training.checkpoint import Checkpoint
from mbdnode.training.compile_time import counted_compilation
from mbdnode.training.fit import Fit, Report, fit
from mbdnode.training.prepare import as_dataset, check_names
from mbdnode.trajectory import Dataset, Trajectory
from mbdnode.waiting_notice import counts_rows

_INDEFINITE = (
    "its mass matrix is not positive definite at all angles, so it is no law of a mechanism, and "
    "says nothing of motions outside the training data"
)
NONE_PREDICTS = "no law was found that predicts this motion well"
_GROWN = "if the law is right, noise in the initial states and coefficients alone grows to {} there"


@dataclass(frozen=True)
class TriedCandidate:
    """One form of the law that was tried.

    **Arguments:**

    - `name`: for people.
    - `structure`: its family, as in `IdentificationConfig`.
    - `validation_nrmse`: over the whole validation split; infinite where it could not be fitted or
        rolled out.
    - `chosen`: whether it is the one.
    """

    name: str
    structure: str
    validation_nrmse: float
    chosen: bool


@dataclass(frozen=True)
class Identified:
    """A law that was found in data; `print` shows its equations.

    **Arguments:**

    - `model`: the law, fitted to all of the data; it simulates like the system.
    - `candidates`: every form that was tried, in order, with its score.
    - `status`: how the search ended, as a sentence.
    - `outcome`: the same as a word: completed.
    - `train_seconds`, `compile_seconds`: apart from each other.
    - `diagnostics`: what a user should know of the law, by name: its structure, its validation
        NRMSE and whether that explains the data, the noise of the data.
    - `before_validation`: the law as it was fitted to what comes before the validation split, which
        gave that NRMSE.
    - `biased_rates`: recorded ones that differ from the derivatives of their positions by more than
        noise, and were not looked at.
    """

    model: Any
    candidates: tuple[TriedCandidate, ...]
    status: str
    outcome: str
    train_seconds: float
    compile_seconds: float
    diagnostics: dict[str, Any] = field(default_factory=dict)
    before_validation: Any = None
    biased_rates: tuple[str, ...] = ()

    @property
    def equations(self) -> Equations:
        """The law's equations, group by group."""
        return equations_of(self.model)

    @property
    def structure(self) -> str:
        """The law's family; `IdentificationConfig(structure=...)` fits the same again."""
        return self.diagnostics["structure"]

    def latex(self) -> str:
        """The equations for a paper, as an `align*` environment."""
        return self.equations.latex()

    @property
    def history(self) -> list[dict[str, Any]]:
        """As a `Fit` has it: no rows, since there are no epochs."""
        return []

    @property
    def updates(self) -> int:
        """As a `Fit` has them: none."""
        return 0

    def __str__(self) -> str:
        return f"{self.equations}\n\n{self.status}"


@counts_rows
def identify(
    system: Any,
    data: Dataset | Trajectory | AbstractStream,
    recipe: str | IdentificationConfig = "best",
    *,
    unknown: Sequence[str] | Mapping[str, Any] | None = None,
    sensors: Mapping[str, Sequence[str]] | None = None,
    interpolation: Interpolation | None = None,
    pieces: int = 0,
    bootstrap: int = 0,
    seed: int = 0,
    report: Report | None = None,
    kept: SearchCheckpoint = NO_CHECKPOINT,
    cluster: str | None = None,
) -> Any:
    """Find the law of a system's accelerations, or the values of its unknown parameters.

    With `unknown`, the system is taken as it is and those of its parameters are found for which its
    simulation is the recorded motion. Without, its accelerations are unknown, and their law is
    found. Noisy data is taken as it is: both account for its noise.

    **Arguments:**

    - `system`: gives the names and the constraints: a mechanism, or `Recorded`. Its forces and its
        mass are not used, unless the configuration says that they are known.
    - `data`: what to learn from; nothing outside of it is ever seen. Of a stream, the form is
        chosen on the first chunk, a sample of the whole, and what is linear in its unknowns is
        fitted to all of them.
    - `recipe`: of a law: a key of `RECIPES`, or an `IdentificationConfig`.
    - `unknown`: names of the system's parameters, or what is known of each by name: an `Unknown`,
        bounds `(low, high)`, or None.
    - `sensors`: what is unknown of the sensors, by recorded column: "gain", "offset", or an input
        that the sensor reads besides (feedthrough), such as `{"y": ("offset", "u")}`; and "delay"
        of an input, `{"u": "delay"}`.
    - `interpolation`: of the inputs between samples: "constant", "linear", "cubic" or
        "band-limited"; the one that explains the data best if not given. A law keeps it for its own
        simulations.
    - `pieces`: with `unknown`: into so many the data is cut, and each is predicted by a fit to the
        others, as `held_out` of the result has it: to choose between mechanisms.
    - `bootstrap`: with `unknown`: so many times the parameters are fitted again, to runs that are
        taken at random from those of the data with repetition (to stretches of runs where there
        are fewer than 20), for standard errors and intervals that do not assume that the model is
        right: `bootstrap` of the result.
    - `seed`: of random features, and of the bootstrap.
    - `report`: called for every candidate that was tried and every further chunk that was taken,
        with a row like that of an epoch, which has their number as its "epoch", the smallest error
        so far as its "loss" and "candidate" or "chunk" as its "stage"; and how many there are at
        most.
    - `kept`: what the same call finished before it was killed, and what it finishes now.
    - `cluster`: the address of a Dask scheduler, such as "tcp://127.0.0.1:8786", whose workers
        share the search for a law: what the inputs do between samples, proposals, candidates and
        refinements. They also read the files of a `LogStream` and fit what is linear to them. Of
        unknown parameters they share fits with different inputs between samples, those to all
        pieces of the data but one, and repetitions of the bootstrap. The result has the same bits
        as here.

    **Returns:**

    An `IdentifiedParameters` if `unknown` is given, else an `Identified`. To fit a law of the same
    form to other data, give its `structure` in the configuration.
    """
    if cluster is not None and isinstance(data, LogStream):
        data = data.on(cluster)
    if unknown is not None:
        if recipe != "best":
            raise UserError(
                f"recipe is {recipe!r} and unknown is given; a recipe is for a law. Leave one out."
            )
        given = data.chunk(0) if isinstance(data, AbstractStream) else data
        with searching(kept, data.cluster if isinstance(data, LogStream) else cluster) as kept:
            return identify_parameters(
                system,
                as_dataset(given),
                unknown,
                sensors=sensors,
                interpolation=interpolation,
                report=report,
                kept=kept,
                pieces=pieces,
                bootstrap=bootstrap,
                seed=seed,
            )
    if bootstrap:
        raise UserError(
            f"bootstrap is {bootstrap}; it is for unknown parameters. Name some in unknown=[...], "
            "or leave it out."
        )
    if pieces:
        raise UserError(
            f"pieces is {pieces}; they are held out where parameters are unknown. Name some in "
            "unknown=[...], or leave it out."
        )
    if sensors is not None:
        raise UserError("sensors are for unknown parameters; name them in unknown=[...].")
    if interpolation is not None and interpolation not in INTERPOLATIONS:
        raise unknown_name("interpolation", interpolation, INTERPOLATIONS)
    config = identification_config(recipe)
    if isinstance(system, AbstractModel):
        raise UserError(
            f"identify was given a {type(system).__name__}; it finds the law of a system. Give "
            "the system itself, such as model.body, or train the model with fit."
        )
    check_identification(system, config)
    # A stream without an end is as good as its first chunk, and one of a single chunk is that.
    stream = data if isinstance(data, AbstractStream) and (data.count or 1) > 1 else None
    first = as_dataset(data.chunk(0) if isinstance(data, AbstractStream) else data)
    check_names(system, first)
    if isinstance(data, LogStream):
        cluster = data.cluster
    with contextlib.ExitStack() as stack:
        kept = stack.enter_context(searching(kept, cluster))
        if not kept.speculative and stream is not None and usable_cores() > 1:
            # Large logs use all cores; small ones are fitted side by side.
            kept = kept.on(stack.enter_context(workers()))
        compilation = stack.enter_context(counted_compilation())
        # The matrices are small, and threads that wait for each other made this ten times slower.
        stack.enter_context(threadpool_limits(1, "blas"))
        choice = choose_law(
            system,
            first,
            integrator=config.integrator,
            refined=config.refined,
            seed=seed,
            structure=config.structure,
            known=config.known,
            forces=config.forces,
            interpolation=interpolation,
            stream=stream,
            tell=None if report is None else _teller(report),
            kept=kept,
        )
    learned = config.forces == "inputs" and config.known == "nothing"
    following = inputs_that_follow(system, first) if learned else ()
    return _identified(choice, compilation.seconds, following)


def check_identification(
    system: Any, config: IdentificationConfig, *, driven: bool = False
) -> None:
    """Raise `UserError` unless laws of this system can be found like this.

    **Arguments:**

    - `system`, `config`: of what, and how.
    - `driven`: whether its inputs change with time.
    """
    get_integrator(config.integrator)
    check_capable(LAW, Library.capabilities, system, driven=driven)
    Library.for_system(system, known=config.known, forces=config.forces)


def learn(
    subject: Any,
    data: Dataset | Trajectory | AbstractStream,
    config: TrainingConfig | IdentificationConfig,
    *,
    seed: int = 0,
    report: Report | None = None,
    checkpoint: Checkpoint | None = None,
    kept: SearchCheckpoint = NO_CHECKPOINT,
    cluster: str | None = None,
) -> Fit | Identified:
    """`fit` or `identify`, as the configuration says; for programs that offer both.

    **Arguments:**

    - `subject`: the untrained network of a `TrainingConfig`, or several, the system of an
        `IdentificationConfig`.
    - `data`, `config`, `seed`, `report`: as for either.
    - `checkpoint`, `kept`: where training keeps its state, and the search for a law what it has
        finished.
    - `cluster`: as for either.

    **Returns:**

    A `Fit` or an `Identified`.
    """
    if isinstance(config, IdentificationConfig):
        return identify(
            *(subject, data, config), seed=seed, report=report, kept=kept, cluster=cluster
        )
    return fit(
        *(subject, data, config), seed=seed, report=report, checkpoint=checkpoint, cluster=cluster
    )


def describe_segments(segments: tuple[SegmentError, ...]) -> str:
    """The error over the validation split, and what is to be doubted, for a status.

    **Arguments:**

    - `segments`: the errors of the chosen candidate, the longest segments first.
    """
    longest, last = segments[0], segments[-1]
    told = f"validation NRMSE {percent(longest.error)}"
    if longest.seconds:
        told += f" over {longest.seconds:.3g} s"
    if longest.good:
        return told
    if not last.good:
        return f"{told}; {NONE_PREDICTS}"
    return (
        f"{told}, {last.error:.1e} over {last.seconds:.3g} s: it predicts this motion well for "
        f"about {last.seconds:.3g} s, and not for {segments[-2].seconds:.3g} s"
    )


def _describe_biased_rates(names: tuple[str, ...]) -> str:
    """For a status: which recorded rates were not looked at."""
    if not names:
        return ""
    return (
        f"{', '.join(names)} as recorded differs from the derivative of its position by more than "
        "noise, so positions alone were looked at"
    )


def _identified(choice: Choice, compile_s: float, following: tuple[str, ...]) -> Identified:
    found = choice.chosen.candidate
    tried = f"of {len(choice.attempts)} tried" if len(choice.attempts) > 1 else "the first tried"
    return Identified(
        model=choice.model,
        candidates=tuple(
            TriedCandidate(
                attempt.candidate.name,
                attempt.candidate.structure,
                float(attempt.error),
                attempt is choice.chosen,
            )
            for attempt in choice.attempts
        ),
        status="; ".join(
            part
            for part in (
                f"chose a {found.name}, {tried}",
                describe_segments(choice.segments),
                _GROWN.format(percent(choice.grown)) if choice.has_grown else "",
                _describe_biased_rates(choice.biased_rates),
                "" if choice.definite else _INDEFINITE,
                choice.hint,
                describe_excitation(following),
            )
            if part
        ),
        outcome="completed",
        train_seconds=max(choice.seconds - compile_s, 0.0),
        compile_seconds=compile_s,
        diagnostics={
            "structure": found.structure,
            "validation_nrmse": choice.chosen.error,
            "explained": choice.explained,
            "predicts_well": choice.segments[-1].good,
            "noise": choice.noise.relative,
            "noise_has_grown": choice.has_grown,
            "interpolation": choice.model.interpolation,
            "inputs_that_follow_the_state": following,
        },
        before_validation=choice.chosen.model,
        biased_rates=choice.biased_rates,
    )


def _teller(report: Report) -> Tell:
    start = time.perf_counter()

    def tell(stage: str, done: int, total: int, error: float) -> None:
        passed = time.perf_counter() - start
        row = {"epoch": done - 1, "loss": error, "learning_rate": 0.0, "seconds": passed}
        report({**row, "stage": stage}, total)

    return tell
