"""The recipes `fast` and `best`: candidates from simple to rich, chosen on a validation split.

Every candidate is fitted to the first part of each run and rolled out over the rest of its
training range (samples have no order: some of them are kept apart; of very many runs, the ends of a
few dozen are predicted, chosen evenly). The first that is exact, or as
near as noise lets one see, is taken; if none is, the simplest of those that do nearly as well as
the best, over the longest segments that any of them predicts: in a chaotic motion the right law
loses sight of a long one as the wrong laws do. It is then fitted again to all of the data. Nothing
after the training range is ever read.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mbdnode.data import AbstractStream
from mbdnode.data.rows import (
    Noise,
    Rows,
    by_steps,
    estimate_noise,
    filled_up,
    recorded_rates,
    rows_of,
    runs_of,
    single_trajectories,
    varying,
)
from mbdnode.identification.biased_rates import without_biased_rates
from mbdnode.identification.law_candidates import (
    candidate_error,
    families,
    most_candidates,
    try_ahead,
)
from mbdnode.identification.law_selection import (
    NEAR,
    NEARLY,
    NEARLY_IN_NOISE,
    Attempt,
    LawSelection,
    SegmentError,
)
from mbdnode.identification.mechanical_laws import unexplained
from mbdnode.identification.problem import Problem
from mbdnode.identification.regression.least_squares import Chunks
from mbdnode.identification.residuals import residual_hint
from mbdnode.identification.search_checkpoint import NO_CHECKPOINT, SearchCheckpoint
from mbdnode.identification.shooting import segment_shapes
from mbdnode.identification.validation import (
    integrator_error,
    noise_in,
    split_rows,
    validation_error,
)
from mbdnode.integrators import get_integrator
from mbdnode.models.base import minimal_coordinates
from mbdnode.models.function_library import Forces, Known
from mbdnode.models.learned_mechanism import LearnedMechanism
from mbdnode.simulation import Interpolation
from mbdnode.simulation.interpolation import possible
from mbdnode.trajectory import Dataset

# An error of this size, relative to the motion, is round-off: nothing richer can do better.
_EXACT = 1e-8
# Errors below this may be those of a good integrator, up to so many times what its steps make.
_INTEGRATORS_OWN, _OWN_SHARE = 1e-3, 5
# A law explains the data if its validation NRMSE is below this, or near what the noise alone makes.
_EXPLAINED = 0.01
# Forms that are only tried on noisy data where nothing simpler explains it.
_NO_MECHANISM = ("mechanical", "features")
# What is not refined does not become exact, and stops at what people call accurate.
_ACCURATE = 3e-4
# How many are refined over longer segments, in noise, of those that follow the motion; fewer where
# one is good already, or few are to be tried.
_REFINED, _FEW_REFINED = 4, 3
# A law that leaves this part of the inertia over single steps has seen no noise; and by how much an
# interpolation must explain more than held inputs, without noise and in it.
_EXPLAINED_STEPS, _SAME, _SAME_IN_NOISE = 3e-4, 1.01, 1.05
# Residuals, in units of the noise, above which a form lacks what the machine has; and by how much
# one with laws of the joints must leave less for the others to be left out.
_MOSTLY_NOISE = 2.0
# Residuals so far below the noise tell nothing of it.
_FAR_BELOW_NOISE = 0.1

# What rates that are estimated under inputs that jump are off by, as a part of their deviation.
_WRONG_RATES = 1e-3

# Called with what is being done ("candidate", "chunk"), how many are, of how many at most, and the
# smallest error so far.
Tell = Callable[[str, int, int, float], None]


@dataclass(frozen=True)
class Choice:
    """What the recipe decided.

    **Arguments:**

    - `model`: fitted to all of the data.
    - `attempts`: every candidate that was tried, in order.
    - `chosen`: one of them.
    - `segments`: its errors over segments of the validation split, the longest first; shorter ones
        only where the longer are not predicted well.
    - `noise`: that was found in the data.
    - `floor`: the error that the noise alone makes on the validation split.
    - `hint`: what the residuals of a law that does not explain the data say; else nothing.
    - `seconds`: what it took, compilation included.
    - `definite`: whether the mass matrix of the law is positive definite at all angles; true for
        what has no mass.
    - `grown`: the error that noise makes on the validation split if the law is right: the floor, or
        more where it grows along the motion.
    - `biased_rates`: recorded ones in whose place derivatives of their positions were taken.
    """

    model: Any
    attempts: tuple[Attempt, ...]
    chosen: Attempt
    segments: tuple[SegmentError, ...]
    noise: Noise
    floor: float
    hint: str
    seconds: float
    definite: bool = True
    grown: float = 0.0
    biased_rates: tuple[str, ...] = ()

    @property
    def explained(self) -> bool:
        """Whether the law explains the data, but for its noise."""
        if not self.definite:
            return False
        return self.has_grown or bool(self.chosen.error < max(_EXPLAINED, NEAR * self.floor))

    @property
    def has_grown(self) -> bool:
        """Whether the errors on the validation split are those that noise has grown to."""
        return self.grown > self.floor


def choose_law(
    system: Any,
    data: Dataset,
    *,
    integrator: str,
    refined: bool,
    seed: int,
    structure: str = "chosen",
    known: Known = "nothing",
    forces: Forces = "inputs",
    interpolation: Interpolation | None = None,
    stream: AbstractStream | None = None,
    tell: Tell | None = None,
    kept: SearchCheckpoint = NO_CHECKPOINT,
) -> Choice:
    """Choose the law of a system's accelerations on a validation split, and fit it to all data.

    **Arguments:**

    - `system`: gives the names and the constraints.
    - `data`: the training range.
    - `integrator`: that made the data, or one that is exact enough at its step.
    - `refined`: try all candidates and refine them by shooting; a few by regression if not.
    - `seed`: of random features.
    - `structure`: one family of candidates, or "chosen" for all of them.
    - `known`: what of the system need not be learned.
    - `forces`: whether what the inputs do is learned, or added as the mechanism has it.
    - `interpolation`: of the inputs between samples; the one that explains the data best if None.
    - `stream`: all of the data, where `data` is a sample of it. The choice is made on the sample
        alone; what is linear in its unknowns is then fitted to all.
    - `tell`: called for every candidate and every chunk.
    - `kept`: what this search finished before it was killed, and what it finishes now.

    **Returns:**

    A `Choice`.
    """
    start = time.perf_counter()
    minimal = minimal_coordinates(system)
    biased: tuple[str, ...] = ()
    if stream is None:
        data, biased = without_biased_rates(system, data, minimal)
    measured = recorded_rates(system, minimal, data)
    plain = rows_of(system, minimal, data)
    noise = estimate_noise(plain)
    given = Problem(
        system,
        get_integrator(integrator),
        refined,
        seed,
        noise,
        varying(plain),
        structure,
        known,
        forces,
        None,
        tuple(int(i) for i in np.flatnonzero(~measured)),
        by_steps=by_steps(plain),
        kept=kept,
    )
    given, rows = _with_inputs(given, minimal, data, plain, interpolation)
    noise, how = given.noise, given.interpolation
    early, split = split_rows(system, minimal, data, rows, measured, how)
    if noise.matters:
        given = replace(given, segments=segment_shapes(early, rows))
    early = filled_up(early, len(rows))
    kept.share(early, split)
    selection = LawSelection(split)
    attempts = selection.attempts

    def say(what: str, done: int, total: int) -> None:
        if tell is not None:
            tell(what, done, total, min((attempt.error for attempt in attempts), default=np.inf))

    problem = given
    if stream is not None:
        told = lambda done, total: say("chunk", done, total)  # noqa: E731
        problem = replace(given, chunks=Chunks(stream, system, minimal, how, told))
    # What was rounded on its way here cannot be met more closely either.
    floor = noise_in(split, noise)
    enough = max(_EXACT if refined else _ACCURATE, NEARLY_IN_NOISE * floor)
    for family in families(problem, early):
        begun, found = len(attempts), False
        for candidate, others in family:
            place = len(attempts)
            least = min((attempt.error for attempt in attempts), default=np.inf)
            if noise.matters and candidate.structure in _NO_MECHANISM and least < _EXPLAINED:
                break
            try_ahead(problem, others, place + 1, early, split)
            model = kept.model(f"candidate-{place}", lambda c=candidate: c.fit(early), system)
            error = np.inf
            if model is not None:
                measure = lambda m=model: candidate_error(problem, m, split)  # noqa: E731
                error = kept.value(f"error of {place}", measure)
            attempts.append(Attempt(candidate, error, model))
            say("candidate", len(attempts), most_candidates(problem))
            met, near = enough, enough <= error < _INTEGRATORS_OWN
            if near and problem.integrator.order >= 4 and not noise.matters:
                # Data of another integrator cannot be met more closely than this one is exact for
                # the law that is found; a wrong law may need smaller steps than the right one.
                own = lambda m=model: integrator_error(problem, m, split)  # noqa: E731
                met = max(enough, _OWN_SHARE * kept.value(f"steps of {place}", own))
            found = error < met
            if found:
                enough = met
            # The next family may still have what this one lacks.
            if found or (noise.matters and selection.stalled(problem, begun)):
                break
        kept.cancel_ahead()
        if noise.matters:
            count = _REFINED if refined and not found else _FEW_REFINED
            best = selection.best(problem, count, begun)
            if best:
                say("refinement", 0, len(best))
            for done, attempt in enumerate(best, start=1):
                selection.refine_ahead(problem, best[done:], early)
                selection.refine(problem, attempt, early)
                say("refinement", done, len(best))
                # Two starts that end alike, or of which one predicts the split, tell enough.
                selected = [a for a in attempts[begun:] if np.isfinite(a.criterion)]
                if selection.agreed() or (
                    len(selected) > 1 and min(a.error for a in selected) < enough
                ):
                    break
            kept.cancel_ahead()
            found = any(attempt.error < enough for attempt in attempts[begun:])
            if not found and any(np.isfinite(one.criterion) for one in attempts[begun:]):
                likeliest = min(attempts[begun:], key=lambda one: one.criterion)
                grown = selection.floor(problem, likeliest, floor)
                found = grown > floor and selection.definite(problem, likeliest, rows)
        if found:
            break
    nearly = NEARLY_IN_NOISE if noise.matters else NEARLY
    chosen = selection.choose(problem, enough, nearly, rows)
    definite = selection.definite(problem, chosen, rows)
    segments = selection.segments(problem, chosen, floor)
    grown = selection.floor(problem, chosen, floor) if noise.matters else floor
    model = kept.model("fitted-to-all", lambda: chosen.candidate.fit(rows), system)
    refine = chosen.candidate.refine
    if model is not None and chosen.refined and refine is not None:
        last = model
        model = kept.model("refined-on-all", lambda: refine(last, rows), system)
        if model is not None and not _follows(problem, selection, chosen, model, nearly):
            model = last
    if model is None:
        model = chosen.model  # All of the data defeats what a part of it supports.
    if isinstance(model, LearnedMechanism):
        model = model.without_zeros()
    found = Choice(
        model, tuple(attempts), chosen, segments, noise, floor, "", 0.0, definite, grown, biased
    )
    clear = found.explained or split.steps is not None
    hint = "" if clear else kept.value("hint", lambda: residual_hint(problem, model, rows))
    return replace(found, hint=hint, seconds=time.perf_counter() - start)


def _with_inputs(
    problem: Problem, minimal: tuple[int, ...], data: Dataset, plain: Rows, how: str | None
) -> tuple[Problem, Rows]:
    """The problem with the interpolation of its inputs, and its rows with it.

    Under inputs that change, a motion without noise is hard to tell from one with little. A law
    that explains its steps to a part that noise would not allow says that there is none. If there
    is no such law, rates that were estimated are as wrong as polynomials are across a jump.
    """
    lone = all(last - first == 1 for first, last in runs_of(plain))
    if not (problem.by_steps and plain.u.shape[1]) or lone:
        return problem, plain
    times = (np.asarray(run.t) for run, _ in single_trajectories(data))
    every = (how,) if how else tuple(possible(times))
    tables = _Tables(problem.system, minimal, data, {"constant": plain})
    if problem.known == "nothing":
        problem.kept.share(tables)
        clean = replace(problem, noise=replace(problem.noise, relative=0.0))
        left = _unexplained(clean, tables, every)
        if min(left.values()) < _EXPLAINED_STEPS:
            problem = clean
        elif problem.estimated and not problem.noise.matters:
            problem = replace(problem, noise=_of_estimated_rates(problem, plain))
        if problem.noise.matters:
            as_exact, left = left, _unexplained(problem, tables, every)
            if max(left.values()) < _FAR_BELOW_NOISE:
                # Noise that was assumed for estimated rates explains all of them alike.
                left = as_exact
            elif min(left.values()) > _MOSTLY_NOISE:
                # Beside what springs and friction of joints do, the inputs' little is not seen.
                joints = _unexplained(problem, tables, every, joint_laws=True)
                needed = _MOSTLY_NOISE * min(joints.values()) < min(left.values())
                problem = replace(problem, needs_joint_laws=needed)
                left = {one: min(left[one], joints[one]) for one in left}
        chosen = min(left, key=lambda one: left[one])
        # Held inputs are the usual ones: others must explain more.
        same = left[chosen] * (_SAME_IN_NOISE if problem.noise.matters else _SAME)
        if left.get("constant", np.inf) < same:
            chosen = "constant"
    else:
        chosen = how or "constant"
    return replace(problem, interpolation=chosen), tables.rows(chosen)


def _follows(
    problem: Problem, selection: LawSelection, chosen: Attempt, model: Any, nearly: float
) -> bool:
    """Whether a law that was refined on all data predicts the split as its start does.

    Where a motion tumbles, a refinement over it may lose its way.
    """
    level = selection.level(problem)
    before = selection.errors(problem, level)[selection.attempts.index(chosen)]
    measure = lambda: validation_error(problem, model, selection.split, level)  # noqa: E731
    return bool(problem.kept.value("error of refined-on-all", measure) <= nearly * before)


def _of_estimated_rates(problem: Problem, rows: Rows) -> Noise:
    """The noise of positions that have none: that of the rates that were made of them."""
    wrong = np.where(problem.measured, 0.0, _WRONG_RATES * np.std(np.asarray(rows.s), axis=0))
    return replace(problem.noise, s=np.maximum(problem.noise.s, wrong), relative=_WRONG_RATES)


class _Tables:
    """The rows of the data under each interpolation of its inputs, made when they are asked for.

    `made` has those that are; each machine makes its own.
    """

    def __init__(self, system: Any, minimal: tuple[int, ...], data: Dataset, made: dict[str, Rows]):
        self.given, self.made = (system, minimal, data), made

    def __reduce__(self):
        return _Tables, (*self.given, {})

    def rows(self, how: str) -> Rows:
        if how not in self.made:
            self.made[how] = rows_of(*self.given, interpolation=how)
        return self.made[how]


def _unexplained(
    problem: Problem, tables: _Tables, every: tuple[str, ...], *, joint_laws: bool = False
) -> dict[str, float]:
    """What a form leaves under each of these interpolations."""
    name = "unexplained by {} inputs" + " in noise" * problem.noise.matters
    name += " and laws of joints" * joint_laws
    for how in every if len(every) > 1 else ():
        problem.kept.ahead(name.format(how), _unexplained_by, problem, tables, how, joint_laws)
    measure = lambda how: lambda: _unexplained_by(problem, tables, how, joint_laws)  # noqa: E731
    return {how: problem.kept.value(name.format(how), measure(how)) for how in every}


def _unexplained_by(problem: Problem, tables: _Tables, how: str, joint_laws: bool) -> float:
    return unexplained(problem, tables.rows(how), joint_laws=joint_laws)
