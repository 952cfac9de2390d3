"""The search: regression gives a start, then segments grow from a part of a period to whole runs.

Long segments tell more, but only near the solution: each length begins where the last one ended.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from mbdnode.data.rows import rows_of, single_trajectories
from mbdnode.data.signal import noise_levels
from mbdnode.errors import UserError
from mbdnode.identification.parameters.cross_validation import (
    Edges,
    HoldOut,
    Pieces,
    cross_validate,
    cut_into_blocks,
    period_of,
    simplest,
)
from mbdnode.identification.parameters.fitting import (
    FitRequest,
    Fitted,
    fit_arrays,
    from_arrays,
    pays_for_states,
)
from mbdnode.identification.parameters.inverse_dynamics import regress_parameters
from mbdnode.identification.parameters.output_error import OutputError
from mbdnode.identification.parameters.segments import SegmentedRuns, initial_guess
from mbdnode.identification.parameters.unknowns import (
    Unknowns,
    make_sensor_terms,
    with_scales,
    with_sensors,
)
from mbdnode.identification.regression.weak_form import samples_per_period
from mbdnode.identification.search_checkpoint import NO_CHECKPOINT, SearchCheckpoint
from mbdnode.multibody import consistent_state
from mbdnode.simulation.interpolation import possible
from mbdnode.trajectory import Dataset, State
from mbdnode.waiting_notice import doing

# The first segments are this part of a period, and each length is so many times the one before.
_FIRST_PART, _GROWTH = 0.25, 4
_SHORTEST, _MOST_SEGMENTS = 8, 400
# Segments that are simulated worse than this part of the motion tell nothing of the parameters:
# a chaotic motion, or a model that does not fit.
_LOST = 0.3
# Noise that is smaller than this part of the motion is not told from rounding.
_SMALLEST_NOISE = 1e-7
# A simulation that misses the data by this many times its noise has an error of its own: initial
# states are then held as measured, since fitted ones would make up for that error, unless they
# explain more than as many other numbers would.
_MISSES = 5.0
# So many values around the best are tried then, up to this part of their size away, and so many of
# all that were tried are refined.
_SAMPLES, _AROUND, _REFINED = 32, 0.15, 5
# Delays from which the search begins, in steps of the data.
_DELAYS = (0, 1, 2, 4, 8, 16)
# Into so many pieces the data is cut where profiles are chosen by them, and into so many segments
# each block of a piece; zero for segments that are as long as can be.
_PIECES, _CUTS = 4, (0, 1, 2, 4, 8)
# The part of the cost by which an iteration must lower it to go on: for lengths that only give a
# start to the next, and for several starts of which one is taken; and for a model that misses more
# than the noise, whose cost is known to no more than that, since few of its residuals are
# independent.
_SETTLED_MEANWHILE, _SETTLED_MISSING = 1e-3, 1e-4
# Variations of profiles from which held-out pieces choose, from smooth to rough.
_VARIATIONS = (0.01, 0.03, 0.1, 0.3, 1.0)
# The integrator's error that is allowed, in units of the noise; and how many substeps at most.
_INTEGRATION, _MOST_SUBSTEPS = 0.05, 16


class ParameterSearch:
    """The segments grow, and each length begins where the last one ended.

    **Arguments:**

    - `system`: whose parameters are sought.
    - `data`: what was recorded.
    - `unknowns`: of the system.
    - `sensors`: what is unknown of them, by recorded column.
    - `interpolation`: of the inputs; None to let the data choose.
    - `report`: called for every length of segments; None for silence.
    - `room`: for so many rows of a run at least, so that one compiled program serves more data.
    - `kept`: what the same search finished before, and what it finishes now.
    - `pieces`: into so many the data is cut to be held out in turn; none are if zero.
    """

    def __init__(
        self,
        system,
        data: Dataset,
        unknowns: Unknowns,
        sensors,
        interpolation,
        report,
        room=0,
        kept: SearchCheckpoint = NO_CHECKPOINT,
        pieces=0,
    ):
        self.system, self.room, self.pieces = system, room, pieces
        self.held_out, self.variation = np.zeros((0, 0)), None
        self._kept, self._asked = kept, 0
        self.runs = [one for one in single_trajectories(data) if len(one[0].t) > 1]
        self.columns = data.recorded or (*system.coordinate_names, *system.rate_names)
        self.columns = tuple(
            name for name in self.columns if name in (*system.coordinate_names, *system.rate_names)
        )
        if not self.columns:
            raise UserError(
                "No coordinate or velocity of the system was recorded, so nothing can be compared."
            )
        self.substeps, self.report = 1, report
        driven = any(np.any(np.ptp(np.asarray(run.u), axis=0) > 0) for run, _ in self.runs)
        self.interpolations = (interpolation or "constant",)
        if driven and not interpolation:
            self.interpolations = possible(np.asarray(run.t) for run, _ in self.runs)
        self.interpolation = self.interpolations[0]
        tables = [(np.asarray(run.t), self._table(run)) for run, _ in self.runs]
        everything = np.concatenate([x for _, x in tables])
        self.motion = np.std(everything, axis=0)
        self.motion = np.where(self.motion > 0, self.motion, 1.0)
        noise = noise_levels(tables)
        # Runs that are too short to tell have no noise to speak of.
        self.noise = np.where(np.isfinite(noise), noise, 0.0)
        self.unit = np.maximum(self.noise, _SMALLEST_NOISE * self.motion)
        self.edges = self._first_edges(data)
        terms = make_sensor_terms(sensors, self.columns, system.input_names)
        driving = np.std(np.concatenate([np.asarray(run.u) for run, _ in self.runs]), axis=0)
        sizes = dict(zip(self.columns, self.motion, strict=True))
        drives = dict(zip(system.input_names, np.where(driving > 0, driving, 1.0), strict=True))
        # Regression knows of the mechanism's own parameters alone.
        self.parameters = unknowns
        step = float(np.median(np.concatenate([np.diff(np.asarray(r.t)) for r, _ in self.runs])))
        self.delays = sum(term.kind == "delay" for term in terms)
        self.unknowns = with_sensors(unknowns, terms, sizes, drives, step)
        self.blocks = None
        if pieces or self.unknowns.open_profiles:
            lengths = [len(run.t) - 1 for run, _ in self.runs]
            periods = [period_of(table) for _, table in tables]
            self.blocks = cut_into_blocks(lengths, periods, pieces or _PIECES)
        rows, most = self._room()
        self.segmented = SegmentedRuns(system, self.runs, self.columns, rows, most)
        unit = jnp.asarray(self.unit)
        self.problem = OutputError(system, unknowns.names, terms, self.columns, unit)

    def _table(self, run) -> np.ndarray:
        return np.stack([np.asarray(run[name]) for name in self.columns], axis=1)

    def _first_edges(self, data: Dataset) -> list[list[np.ndarray]]:
        """For every length of segments, the rows at which they begin in each run."""
        minimal = tuple(range(len(self.system.coordinates)))
        period = samples_per_period(rows_of(self.system, minimal, data, accelerations=False))
        total = sum(len(run.t) for run, _ in self.runs)
        length = max(_SHORTEST, int(_FIRST_PART * period), total // _MOST_SEGMENTS)
        now = []
        for run, _ in self.runs:
            steps = len(run.t) - 1
            now.append(np.linspace(0, steps, max(1, round(steps / length)) + 1).astype(int))
        levels = [now]
        while any(len(edges) > 2 for edges in now):
            now = [np.unique([*edges[:-1:_GROWTH], edges[-1]]) for edges in now]
            levels.append(now)
        return levels

    def _room(self) -> tuple[int, int]:
        """For how many rows of a run, and how many segments."""
        rows = max(self.room, *(len(run.t) for run, _ in self.runs))
        # As many segments as there would be if all of the rows were filled, and some to spare.
        first = zip(self.edges[0], self.runs, strict=True)
        most = max((len(x) - 1) * rows / len(run.t) for x, (run, _) in first)
        if self.blocks is not None:
            most = max(most, _CUTS[-1] * max(len(x) - 1 for x in self.blocks[0]))
        return rows, 1 << int(np.ceil(np.log2(most)))

    def _lanes(self, edges: Edges):
        return self.segmented.lanes(edges, self.interpolation)

    def request(
        self, edges: Edges, starts, initial=None, *, substeps=None, interpolation=None, **options
    ) -> FitRequest:
        """Fits from some values to segments of this search."""
        how = interpolation or self.interpolation
        steps = self.substeps if substeps is None else substeps
        return FitRequest(edges, how, self.unknowns, starts, initial, steps, options)

    def _fit(self, *given, **options) -> Fitted | None:
        """What is fitted from one start."""
        return self._fit_each([self.request(*given, **options)])[0][0]

    def _fit_each(self, asked: list[FitRequest]) -> list[list[Fitted | None]]:
        """What was fitted from every start; all but the first request on workers, if there are
        some. What an earlier process found is not searched for again.
        """
        found = self.computed("fits", fit_arrays, [(one,) for one in asked])
        return [from_arrays(x, len(one.starts)) for x, one in zip(found, asked, strict=True)]

    def computed(
        self,
        kind: str,
        function: Callable[..., Any],
        asked: Sequence[tuple],
        *,
        here: Callable[..., Any] | None = None,
        report: Callable[[int], None] | None = None,
    ) -> list[Any]:
        """Arrays by name that a function makes, all but the first on workers if there are some.

        **Arguments:**

        - `here`: makes the same of what is asked in this process, where it has more at hand.
        """
        shared = self.problem, self.segmented
        own = here or functools.partial(function, *shared)
        names = [f"{kind}-{self._asked + i}" for i in range(len(asked))]
        self._asked += len(asked)
        for name, one in zip(names[1:], asked[1:], strict=True):
            self._kept.ahead(name, function, *shared, *one)
        found = []
        for name, one in zip(names, asked, strict=True):
            found.append(self._kept.arrays(name, functools.partial(own, *one)))
            if report is not None:
                report(len(found))
        if len(asked) > 1:
            self._kept.cancel_ahead()
        return found

    def run(self) -> Fitted:
        """Through all lengths."""
        self._set_scales()
        self._kept.share(self.problem, self.segmented)
        starts = [self.unknowns.start]
        regressed = regress_parameters(self.system, self.runs, self.parameters)
        if regressed is not None:
            starts.append(np.concatenate([regressed, starts[0][len(regressed) :]]))
        starts = [self._with_delay(start) for start in starts]
        alone = len(self.interpolations) == 1
        ways = [how for how in self.interpolations if how != "band-limited" or alone]
        options = {"settled": _SETTLED_MEANWHILE}
        asked = [self.request(self.edges[0], starts, interpolation=how, **options) for how in ways]
        with doing(self._task(0)):
            able = [
                (fitted, how)
                for how, each in zip(ways, self._fit_each(asked), strict=True)
                for fitted in each
                if fitted is not None
            ]
        if not able:
            raise UserError(
                "The system could not be simulated along the data from its starting values, over "
                f"{self.seconds(self.edges[0]):.3g} s or less. Give other starts: "
                "Unknown(start=...), and see that the recorded columns are in the system's units."
            )
        best, self.interpolation = min(able, key=lambda one: one[0].cost)
        self.level, self.held, self.cut = 0, False, self.edges[0]
        best = self._with_substeps(best, settled=_SETTLED_MEANWHILE)
        self._tell(best)
        starts += [best.values]
        for level in range(1, len(self.edges)):
            with doing(self._task(level)):
                grown = self._grow(level, best)
            if grown is None or not self._follows(grown):
                break
            best, self.level, self.cut = grown, level, self.edges[level]
            # An error of the integrator must not be taken for one of the model.
            best = self._with_substeps(best, settled=_SETTLED_MEANWHILE)
            starts.append(best.values)
            self._tell(best)
        with doing("refining the parameters"):
            best = self._choose_interpolation(best)
            best = self._hold(best, starts) if best.rms > _MISSES else self._again(best)
        if self.pieces or self.unknowns.open_profiles:
            with doing("fitting the parameters without pieces that are held out"):
                best = self._hold_out(best)
        with doing("checking the integrator's step"):
            return self._with_substeps(best)

    def _task(self, level: int) -> str:
        return f"fitting the parameters to segments of {self.seconds(self.edges[level]):.2g} s"

    def _again(self, best: Fitted) -> Fitted:
        """The same until it has settled."""
        found = self._fit(self.cut, [best.values], best.initial)
        return best if found is None else found

    def _with_delay(self, start: np.ndarray) -> np.ndarray:
        """With the delays, all alike, from which the simulation misses least."""
        if not self.delays:
            return start
        tried = []
        for steps in _DELAYS:
            values = start.copy()
            values[-self.delays :] = steps * self.unknowns.scale[-self.delays :]
            tried.append(values)
        lanes = self._lanes(self.edges[0])
        return tried[self._order(tried, lanes, initial_guess(lanes))[0]]

    def _order(self, values: list[np.ndarray], lanes, initial: np.ndarray) -> list[int]:
        """Of some values, those that can be simulated, from which misses least to most."""
        points = [(one, initial) for one in values]
        with np.errstate(over="ignore", invalid="ignore"):
            found = self.problem.each(points, lanes, jnp.asarray(self.substeps))
            costs = np.array([np.sum(away**2) for away, _ in found])
        return [int(i) for i in np.argsort(costs) if np.isfinite(costs[i])] or [0]

    def _choose_interpolation(self, best: Fitted) -> Fitted:
        """That which explains the longest segments best: short ones tell less of it.

        Band-limited inputs are smooth, and tried where a smooth one is best so far. What is within
        the noise with another kind leaves nothing to explain.
        """
        if best.rms < 1.0 and self.interpolation != "cubic":
            return best
        given = self.cut, [best.values], best.initial
        others = [how for how in self.interpolations if how != self.interpolation]
        best = self._with_interpolation([x for x in others if x != "band-limited"], given, best)
        if self.interpolation == "cubic":
            best = self._with_interpolation([x for x in others if x == "band-limited"], given, best)
        return best

    def _with_interpolation(self, ways: list[str], given: tuple, best: Fitted) -> Fitted:
        """The best of a fit and of those with each of these interpolations."""
        options = {"settled": _SETTLED_MEANWHILE}
        asked = [self.request(*given, interpolation=how, **options) for how in ways]
        for how, (found,) in zip(ways, self._fit_each(asked), strict=True):
            if found is not None and found.cost < best.cost:
                best, self.interpolation = found, how
        return best

    def _hold(self, best: Fitted, starts: list[np.ndarray]) -> Fitted:
        """The same from initial states as measured, unless the data asks for others, and from
        several starts: friction that comes and goes makes for many local minima.
        """
        lanes = self._lanes(self.cut)
        initial = initial_guess(lanes)
        starts = self._promising([*starts, best.values], lanes, initial)
        options: dict[str, Any] = {"held": True, "settled": _SETTLED_MEANWHILE}
        found = self._fit_each([self.request(self.cut, starts, **options)])[0]
        able = [one for one in found if one is not None and self._follows(one)]
        if not able:
            return self._again(best)
        values = [min(able, key=lambda one: one.cost).values]
        options = {"settled": _SETTLED_MISSING}
        asked = [
            self.request(self.cut, values, held=True, **options),
            self.request(self.cut, values, best.initial, **options),
        ]
        (held,), (free,) = self._fit_each(asked)
        assert held is not None
        free = best if free is None else min(best, free, key=lambda one: one.cost)
        self.held = not pays_for_states(free, held, lanes.blocks())
        return held if self.held else free

    def _hold_out(self, best: Fitted) -> Fitted:
        """What is missed of pieces that are held out in turn. Of several variations of profiles,
        and of several lengths of segments where the model misses more than the noise, those are
        taken that miss least of them.
        """
        count, least = self.pieces or _PIECES, min(np.diff(x).min() for x in self.edges[0])
        lengths = [len(run.t) - 1 for run, _ in self.runs]
        if sum(length // least for length in lengths) < count:
            raise UserError(
                f"The data has fewer than {count} segments, so as many pieces cannot be held out. "
                "Give more data, or say the variation: Unknown(variation=...)."
            )

        assert self.blocks is not None
        whole = initial_guess(self._lanes(self.blocks[0]))
        if not self.held:
            options = {"settled": _SETTLED_MEANWHILE}
            near = self._fit(self.blocks[0], [best.values], **options)
            whole = whole if near is None else near.initial
        given = self.blocks, count, self.interpolation, self.substeps, self.unknowns, best.values
        how = HoldOut(*given, whole, self.held, _SETTLED_MEANWHILE)
        pieces = Pieces(self.problem, self.segmented, how)
        cut, missed, misses = 1, None, best.rms > _MISSES
        if misses:
            shortest = {n: min(np.diff(x).min() for x in pieces.edges(n)) for n in _CUTS}
            cuts = [n for n in _CUTS if shortest[n] >= _SHORTEST]
            tried = self._missed(pieces, [(self.unknowns, one) for one in cuts])
            cut = cuts[int(np.argmin([np.sum(one**2) for one in tried]))]
            missed = tried[cuts.index(cut)]
        if self.unknowns.open_profiles:
            unknowns = [self.unknowns.with_variation(x) for x in _VARIATIONS]
            tried = self._missed(pieces, [(one, cut) for one in unknowns])
            chosen = simplest(tried)
            self.unknowns, self.variation = unknowns[chosen], _VARIATIONS[chosen]
            missed = tried[chosen]
        if missed is None:
            missed = self._missed(pieces, [(self.unknowns, cut)])[0]
        self.held_out = missed * self.unit
        if not misses:
            return self._again(best) if self.variation else best
        self.cut = pieces.edges(cut)
        initial = pieces.lay_out(self.cut).initial
        options = {"held": self.held, "settled": _SETTLED_MISSING}
        again = self._fit(self.cut, [best.values], initial, **options)
        return best if again is None else again

    def _missed(self, pieces: Pieces, asked: list[tuple[Unknowns, int]]) -> list[np.ndarray]:
        """What each variant misses of the pieces: what is sought, and how a block is cut."""
        here = lambda _, *own: {"missed": pieces.missed(*own)}  # noqa: E731
        given = [(pieces.how, *one) for one in asked]
        found = self.computed("held-out", cross_validate, given, here=here)
        return [one["missed"] for one in found]

    def _promising(self, starts: list[np.ndarray], lanes, initial: np.ndarray) -> list[np.ndarray]:
        """Of some values and of random ones around the last of them, those from which the
        simulation misses least.
        """
        random, center = np.random.default_rng(0), starts[-1]
        size = np.maximum(np.abs(center), self.unknowns.scale)
        away = random.uniform(-_AROUND, _AROUND, (_SAMPLES, len(center)))
        values = [*starts, *(self.unknowns.inside(center + size * one) for one in away)]
        return [values[i] for i in self._order(values, lanes, initial)[:_REFINED]]

    def _set_scales(self) -> None:
        """Of parameters that start at zero: what moves the simulation as far as the data moves."""
        lanes, unknowns = self._lanes(self.edges[0]), self.unknowns
        given = unknowns.start, initial_guess(lanes), lanes
        _, slopes = self.problem(*given, jnp.asarray(1))
        by_values = slopes[..., : len(unknowns.start)]
        sensitivity = np.sqrt(np.sum(by_values**2, axis=(0, 1)))
        motion = self.motion * np.sqrt(np.sum(np.asarray(lanes.counts))) / self.unit
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = np.min(motion[:, None] / sensitivity, axis=0)
        scale = np.where(np.isfinite(scale) & (scale > 0), scale, 1.0)
        self.unknowns = with_scales(unknowns, scale)
        self.parameters = with_scales(self.parameters, scale[: len(self.parameters.names)])

    def _grow(self, level: int, best: Fitted) -> Fitted | None:
        """The same over longer segments, from the states that were fitted to the shorter ones."""
        initial = np.zeros_like(best.initial)
        for run, (fine, coarse) in enumerate(
            zip(self.edges[level - 1], self.edges[level], strict=True)
        ):
            kept = np.searchsorted(fine, coarse[:-1])
            initial[run, : len(kept)] = best.initial[run, kept]
        given = self.edges[level], [best.values], initial
        return self._fit(*given, settled=_SETTLED_MEANWHILE)

    def _follows(self, fitted: Fitted) -> bool:
        error = np.sqrt(np.sum(fitted.residuals**2, axis=(0, 1)) / fitted.rows) * self.unit
        return bool(np.all(error < np.maximum(_LOST * self.motion, 3 * self.noise)))

    def _with_substeps(self, best: Fitted, **options) -> Fitted:
        """Refined with as many substeps as the integrator needs to hide below the noise."""
        lanes, needed, residuals = self._lanes(self.cut), self.substeps, best.residuals
        while needed < _MOST_SUBSTEPS:
            finer, _ = self.problem(best.values, best.initial, lanes, jnp.asarray(2 * needed))
            away = np.sqrt(np.mean((finer - residuals) ** 2))
            if not away > _INTEGRATION * max(1.0, best.rms):
                break
            needed, residuals = 2 * needed, finer
        if needed == self.substeps:
            return best
        given = self.cut, [best.values], best.initial
        found = self._fit(*given, substeps=needed, held=self.held, **options)
        if found is None:
            return best
        self.substeps = needed
        return found

    def initial_states(self, fitted: Fitted) -> tuple[State, ...]:
        """The whole state at the start of each run."""
        values = {n: float(x) for n, x in zip(self.parameters.names, fitted.values, strict=False)}
        states = []
        for (run, own), splits, initial in zip(
            self.runs, self.segmented.splits, fitted.initial[:, 0], strict=True
        ):
            split = splits[0]
            names = [self.system.coordinate_names[i] for i in split.position.independent]
            rates = [self.system.rate_names[i] for i in split.velocity.independent]
            known = dict(zip([*names, *rates], map(float, initial), strict=True))
            guess = dict(zip(self.system.coordinate_names, map(float, run.q[0]), strict=True))
            states.append(
                consistent_state(
                    self.system,
                    known,
                    guess={n: x for n, x in guess.items() if n not in known},
                    t=float(run.t[0]),
                    parameters={**own, **values},
                )
            )
        return tuple(states)

    def seconds(self, edges: Edges) -> float:
        """How long the longest segments are."""
        return max(
            float(run.t[last] - run.t[first])
            for (run, _), rows in zip(self.runs, edges, strict=True)
            for first, last in itertools.pairwise(rows)
        )

    def _tell(self, fitted: Fitted) -> None:
        self.tell(self.level, len(self.edges), fitted, "segment length")

    def tell(self, done: int, total: int, fitted: Fitted, stage: str) -> None:
        """Report how far the search is."""
        if self.report is not None:
            row = {"epoch": done, "loss": fitted.rms, "learning_rate": 0.0}
            self.report({**row, "stage": stage, "unit": " times the noise"}, total)
