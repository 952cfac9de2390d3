"""Which of the candidates that were tried is taken.

Every attempt predicts segments of the validation split, and attempts are compared over the longest
segments that any of them predicts: of a chaotic motion every law loses sight. Of those that do
nearly as well as the best, the simplest is taken. Where there is noise, many laws do as well over
segments of the kind that they were fitted to, the wrong ones too. So the terms of the best are
chosen anew by rollouts (`term_selection`), from several starts, and three things decide in turn:
that the law is one of a mechanism (its mass is positive definite at all angles), that it predicts
the validation split, and the criterion of its terms.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mbdnode.data.rows import Rows
from mbdnode.errors import UserError
from mbdnode.identification.problem import Candidate, Problem
from mbdnode.identification.rollouts import values_of, with_values
from mbdnode.identification.term_selection import is_definite
from mbdnode.identification.validation import (
    ValidationSplit,
    expected_errors,
    unaccelerated_error,
    validation_error,
)
from mbdnode.models.learned_mechanism import LearnedMechanism

# Candidates are compared over the longest segments that one of them predicts better than the first
# of these, or else the second: of an unstable motion, larger errors are those of initial states.
_PREDICTED = (0.1, 0.5)
# By how much the part of the errors that has grown may exceed what is expected of it (of five
# segments, by 1.7 by chance in one of a hundred, and errors of the coefficients grow too); and what
# is expected at most of segments that test a law.
_GROWN, _MOST_GROWN = 2.0, 1.0
# A prediction is good if it misses less than this part of what the motion does: of its standard
# deviation, and over short segments of what accelerations make of it. Within the second factor of
# the noise nothing better can be told.
_GOOD, NEAR = 0.1, 1.2
# A simpler candidate is taken if its error is within this factor of the best one's; of errors that
# are mostly noise, the differences mean more.
NEARLY, NEARLY_IN_NOISE = 3.0, 1.2
# After so many candidates of a family that were no better, likelier ones come no more.
_WHILE = 6
# What is refined over longer segments follows the motion.
_FOLLOWS = 0.3


@dataclass(frozen=True)
class Attempt:
    """A candidate, its NRMSE over the whole validation split, and the model that made it.

    `refined` says whether the model was refined over longer segments; `criterion` is that of terms
    which rollouts have chosen, infinite where they have not; `uncertainty` then says which
    coefficients were fitted, by index, and has their covariance.
    """

    candidate: Candidate
    error: float
    model: Any
    refined: bool = False
    criterion: float = np.inf
    uncertainty: tuple[np.ndarray, np.ndarray] | None = field(default=None, compare=False)


@dataclass(frozen=True)
class SegmentError:
    """How well segments of one length are predicted.

    **Arguments:**

    - `seconds`: their length.
    - `error`: the NRMSE.
    - `good`: whether that is small, beside what the motion does over such a segment.
    """

    seconds: float
    error: float
    good: bool


class LawSelection:
    """The attempts so far, and their errors over segments of every length that was looked at."""

    def __init__(self, split: ValidationSplit):
        self.split = split
        self.attempts: list[Attempt] = []
        self._errors: dict[tuple[int, int], float] = {}

    def errors(self, problem: Problem, level: int) -> list[float]:
        """Of all attempts, over segments of one length."""
        missing = [
            (place, one)
            for place, one in enumerate(self.attempts)
            if level > 0 and one.model is not None and (place, level) not in self._errors
        ]
        # All of them are needed; the first is measured here, while workers measure the others.
        for place, one in missing[1:]:
            given = validation_error, problem, one.model, self.split, level
            problem.kept.ahead(self._name(place, level), *given)
        return [self._error(problem, place, level) for place in range(len(self.attempts))]

    def _error(self, problem: Problem, place: int, level: int) -> float:
        attempt = self.attempts[place]
        if level == 0 or attempt.model is None:
            return attempt.error
        if (place, level) not in self._errors:
            measure = lambda: validation_error(problem, attempt.model, self.split, level)  # noqa: E731
            error = problem.kept.value(self._name(place, level), measure)
            self._errors[place, level] = error
        return self._errors[place, level]

    def _name(self, place: int, level: int) -> str:
        refined = "refined " * self.attempts[place].refined
        return f"error of {refined}{place} at level {level}"

    def level(self, problem: Problem) -> int:
        """The longest segments that a candidate predicts; the shortest ones if none does."""
        for enough in _PREDICTED:
            for level in range(self.split.levels):
                if min(self.errors(problem, level), default=np.inf) < enough:
                    return level
        return self.split.levels - 1

    def floor(self, problem: Problem, attempt: Attempt, floor: float) -> float:
        """The error over the whole split that noise alone makes, if the attempt is the law.

        That, or more where noise in the initial states grows, along an unstable motion before all,
        and that in the coefficients, by as much as the noise itself at most: if the attempt's
        errors over segments of every length are those that it grows to.
        """
        place = self.attempts.index(attempt)
        if attempt.model is None or not np.isfinite(attempt.error) or attempt.error < NEAR * floor:
            return floor
        whole = floor
        for level in reversed(range(self.split.levels)):
            expected, by_coefficients = self._expected(problem, place, level)
            by_coefficients = min(by_coefficients, floor)
            whole = float(np.hypot(expected, by_coefficients))
            shortest = level == self.split.levels - 1
            if not (shortest or expected < _MOST_GROWN):
                return whole
            more = max(expected**2 - floor**2, 0.0)
            near = NEAR**2 * (floor**2 + by_coefficients**2)
            allowed = np.sqrt(near + _GROWN**2 * more)
            if not (self._error(problem, place, level) < allowed and expected < _MOST_GROWN):
                return floor
        return whole

    def _expected(self, problem: Problem, place: int, level: int) -> tuple[float, float]:
        """What noise makes over segments of one length, and what it makes by the coefficients."""
        attempt = self.attempts[place]
        name = f"expected of {'refined ' * attempt.refined}{place} at level {level}"

        def numbers() -> dict[str, np.ndarray]:
            given = problem, attempt.model, self.split, level, attempt.uncertainty
            return {"errors": np.array(expected_errors(*given))}

        found = problem.kept.arrays(name, numbers)
        assert found is not None
        return float(found["errors"][0]), float(found["errors"][1])

    def stalled(self, problem: Problem, begun: int) -> bool:
        """Whether richer candidates of a family have not been better for a while.

        `begun` is the number of its first. The rest would fit noise.
        """
        if len(self.attempts) - begun <= _WHILE:
            return False
        errors = self.errors(problem, self.level(problem))
        return min(errors[:-_WHILE]) < NEARLY_IN_NOISE * min(errors[-_WHILE:])

    def best(self, problem: Problem, count: int, begun: int) -> list[Attempt]:
        """Of those from a number on that follow the motion: the best, a simpler one, the others."""
        errors = self.errors(problem, self.level(problem))
        able = [
            (error, place)
            for place, (error, one) in enumerate(zip(errors, self.attempts, strict=True))
            if place >= begun
            and error < (_FOLLOWS if one.candidate.select is None else np.inf)
            and one.candidate.refine is not None
        ]
        ranked = sorted(able)
        near = [one for one in ranked[1:] if one[0] < NEARLY * ranked[0][0]]
        ranked[1:1] = sorted(near, key=lambda one: one[1])[:1]
        return [self.attempts[place] for place in dict.fromkeys(k for _, k in ranked)][:count]

    def refine_ahead(self, problem: Problem, attempts: Sequence[Attempt], rows: Rows) -> None:
        """Have every worker refine one of the next attempts, while the first is looked at."""
        for one in attempts[: problem.kept.speculative]:
            place, candidate = self.attempts.index(one), one.candidate
            if candidate.select is not None:
                given = _selected_numbers, candidate.select, one.model, rows
                problem.kept.ahead(f"selected-{place}", *given)
            elif candidate.refine is not None:
                problem.kept.ahead(f"refined-{place}", candidate.refine, one.model, rows)

    def refine(self, problem: Problem, attempt: Attempt, rows: Rows) -> None:
        """Put the refined model in the place of an attempt, if it predicts better.

        Of terms that rollouts have chosen it is enough that they predict nearly as well.
        """
        refine, kept = attempt.candidate.refine, problem.kept
        assert refine is not None
        place, level = self.attempts.index(attempt), self.level(problem)
        candidate, model, criterion, uncertainty = self._selected(problem, attempt, rows)
        if model is None:
            fit = lambda: refine(attempt.model, rows)  # noqa: E731
            model = kept.model(f"refined-{place}", fit, problem.system)
        if model is None:
            return
        before = self._error(problem, place, level)
        measure = lambda at: lambda: validation_error(problem, model, self.split, at)  # noqa: E731
        after = kept.value(f"error of refined {place} at level {level}", measure(level))
        if not after < before * (NEARLY_IN_NOISE if np.isfinite(criterion) else 1.0):
            return
        error = after
        if level > 0:
            error = kept.value(f"error of refined {place} at level 0", measure(0))
        self.attempts[place] = Attempt(candidate, error, model, True, criterion, uncertainty)
        others = {key: known for key, known in self._errors.items() if key[0] != place}
        self._errors = {**others, (place, level): after}

    def _selected(
        self, problem: Problem, attempt: Attempt, rows: Rows
    ) -> tuple[Candidate, Any, float, tuple[np.ndarray, np.ndarray] | None]:
        """With terms that rollouts have chosen; without a model where they cannot."""
        candidate = attempt.candidate
        select, reselected = candidate.select, candidate.reselected
        if select is None or reselected is None:
            return candidate, None, np.inf, None

        place = self.attempts.index(attempt)
        numbers = lambda: _selected_numbers(select, attempt.model, rows)  # noqa: E731
        found = problem.kept.arrays(f"selected-{place}", numbers)
        if found is None:
            return candidate, None, np.inf, None
        model = with_values(attempt.model, np.asarray(found["values"]))
        uncertainty = np.asarray(found["free"]), np.asarray(found["covariance"])
        return reselected(model), model, float(found["criterion"][0]), uncertainty

    def agreed(self) -> bool:
        """Whether rollouts have chosen the same terms from two starts."""
        terms = [
            tuple(np.flatnonzero(values_of(one.model)))
            for one in self.attempts
            if np.isfinite(one.criterion)
        ]
        return len(set(terms)) < len(terms)

    def definite(self, problem: Problem, attempt: Attempt, rows: Rows) -> bool:
        """Whether the law of an attempt has a mass matrix that a mechanism may have.

        **Arguments:**

        - `problem`: what is to be learned; of data without noise nothing else is to be expected.
        """
        if not (problem.noise.matters and isinstance(attempt.model, LearnedMechanism)):
            return True
        places = (problem.system.coordinates[i] for i in attempt.model.minimal)
        angles = np.array([one.is_angle for one in places])
        name = f"whether {'refined ' * attempt.refined}{self.attempts.index(attempt)} is definite"
        return problem.kept.value(name, lambda: is_definite(attempt.model, rows, angles))

    def choose(
        self, problem: Problem, enough: float, nearly: float, rows: Rows | None = None
    ) -> Attempt:
        """The simplest of those that do nearly as well as the best.

        Of noisy laws: of those whose mass is definite, if any, the likeliest by the criterion of
        its terms where rollouts chose them, else the one with the fewest.
        """
        errors = self.errors(problem, self.level(problem))
        best = min(errors, default=np.inf)
        if not np.isfinite(best):
            raise UserError(
                "No candidate could be rolled out over the end of the training range. Give more "
                "data, leave the structure open, or train a network with fit."
            )
        able = [i for i, error in enumerate(errors) if error <= max(nearly * best, enough)]
        if rows is not None:
            sound = [i for i in able if self.definite(problem, self.attempts[i], rows)]
            able = sound or able
        terms = [one.candidate.terms for one in self.attempts]
        if problem.noise.matters and terms[able[0]]:
            order = lambda i: (self.attempts[i].criterion, terms[i], errors[i])  # noqa: E731
            able = sorted((i for i in able if terms[i]), key=order)
        return self.attempts[able[0]]

    def segments(self, problem: Problem, chosen: Attempt, floor: float) -> tuple[SegmentError, ...]:
        """How well the chosen one predicts, down to the first length that it predicts well."""
        found = []
        for level in range(self.split.levels):
            error = self._error(problem, self.attempts.index(chosen), level)
            moved = min(1.0, unaccelerated_error(self.split, level))
            good = error < max(_GOOD * moved, NEAR * floor)
            seconds = 0.0 if self.split.steps is not None else self.split.segments(level).seconds
            found.append(SegmentError(seconds, error, good))
            if good:
                break
        return tuple(found)


def _selected_numbers(select: Any, model: Any, rows: Rows) -> dict[str, np.ndarray] | None:
    """What is kept of a `SelectedLaw`."""
    found = select(model, rows)
    if found is None:
        return None
    return {
        "values": values_of(found.model),
        "criterion": np.array([found.criterion]),
        "free": found.free,
        "covariance": found.covariance,
    }
