"""The search: regression gives a start, then segments grow from a part of a period to whole runs.

Long segments tell more, but only near the solution: each length begins where the last one ended.
"""

import itertools
from typing import Any

import jax.numpy as jnp
import numpy as np

from mbdnode.data.signal import noise_levels
from mbdnode.errors import UserError
from mbdnode.identification.parameters.cross_validation import (
    Edges,
    Layout,
    Pieces,
    cross_validate,
    cut_into_blocks,
    period_of,
    simplest,
)
from mbdnode.identification.parameters.fitting import Fit, Fitted, fit_each, pays_for_states
from mbdnode.identification.parameters.inverse_dynamics import regress_parameters
from mbdnode.identification.parameters.output_error import OutputError
from mbdnode.identification.parameters.segments import choose_splits, initial_guess, lay_out
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
from mbdnode.training.rows import rows_of, single_trajectories
from mbdnode.trajectory import Dataset, State

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
        self._kept, self._fits = kept, 0
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
        self.splits = [
            choose_splits(system, run, own, rows)
            for (run, own), rows in zip(self.runs, self.edges[0], strict=True)
        ]
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

    def _lanes(self, edges: Edges, interpolation: str | None = None):
        how = interpolation or self.interpolation
        rows = max(self.room, *(len(run.t) for run, _ in self.runs))
        # As many segments as there would be if all of the rows were filled, and some to spare.
        first = zip(self.edges[0], self.runs, strict=True)
        most = max((len(x) - 1) * rows / len(run.t) for x, (run, _) in first)
        if self.blocks is not None:
            most = max(most, _CUTS[-1] * max(len(x) - 1 for x in self.blocks[0]))
        room = 1 << int(np.ceil(np.log2(most)))
        for (run, own), split, places in zip(self.runs, self.splits, edges, strict=True):
            new = [row for row in places[:-1] if int(row) not in split]
            split |= choose_splits(self.system, run, own, np.array(new, int)) if new else {}
        return lay_out(self.system, self.runs, self.columns, edges, self.splits, how, room, rows)

    def _fit(
        self, level: int, starts, initial=None, interpolation=None, **options
    ) -> list[Fitted | None]:
        lanes = self._lanes(self.edges[level], interpolation)
        initial = initial_guess(lanes) if initial is None else initial
        options = {"settled": _SETTLED_MEANWHILE, **options}
        return self._minimize(lanes, starts, initial, self.substeps, **options)

    def _minimize(self, lanes, starts, initial, substeps: int, **options) -> list[Fitted | None]:
        """As `fit_each`, from several values; what an earlier process found is not searched for
        again.
        """
        fits = [Fit(lanes, self.unknowns, one, initial, **options) for one in starts]
        done: list[Fitted | None] = []

        def arrays(number: int):
            if not done:
                done.extend(fit_each(self.problem, fits, substeps))
            one = done[number]
            return None if one is None else {k: np.asarray(x) for k, x in vars(one).items()}

        found: list[Fitted | None] = []
        for number in range(len(fits)):
            name, self._fits = f"fit-{self._fits}", self._fits + 1
            kept = self._kept.arrays(name, lambda number=number: arrays(number))
            plain: dict[str, Any] = {k: x if x.ndim else x.item() for k, x in (kept or {}).items()}
            found.append(Fitted(**plain) if plain else None)
        return found

    def run(self) -> Fitted:
        """Through all lengths."""
        self._set_scales()
        starts = [self.unknowns.start]
        regressed = regress_parameters(self.system, self.runs, self.parameters)
        if regressed is not None:
            starts.append(np.concatenate([regressed, starts[0][len(regressed) :]]))
        starts = [self._with_delay(start) for start in starts]
        able = [
            (fitted, how)
            for how in self.interpolations
            if how != "band-limited" or len(self.interpolations) == 1
            for fitted in self._fit(0, starts, interpolation=how)
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
            grown = self._grow(level, best)
            if grown is None or not self._follows(grown):
                break
            best, self.level, self.cut = grown, level, self.edges[level]
            # An error of the integrator must not be taken for one of the model.
            best = self._with_substeps(best, settled=_SETTLED_MEANWHILE)
            starts.append(best.values)
            self._tell(best)
        best = self._choose_interpolation(best)
        best = self._hold(best, starts) if best.rms > _MISSES else self._again(best)
        if self.pieces or self.unknowns.open_profiles:
            best = self._hold_out(best)
        return self._with_substeps(best)

    def _again(self, best: Fitted) -> Fitted:
        """The same until it has settled."""
        lanes = self._lanes(self.cut)
        found = self._minimize(lanes, [best.values], best.initial, self.substeps)[0]
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
        chosen = self.interpolation
        if best.rms < 1.0 and chosen != "cubic":
            return best
        for how in self.interpolations:
            if how != chosen and (how != "band-limited" or self.interpolation == "cubic"):
                found = self._fit(self.level, [best.values], best.initial, how)[0]
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
        given = {"held": True, "settled": _SETTLED_MEANWHILE}
        found = self._minimize(lanes, starts, initial, self.substeps, **given)
        able = [one for one in found if one is not None and self._follows(one)]
        if not able:
            return self._again(best)
        values = [min(able, key=lambda one: one.cost).values]
        given["settled"] = _SETTLED_MISSING
        held = self._minimize(lanes, values, initial, self.substeps, **given)[0]
        given["held"] = False
        free = self._minimize(lanes, values, best.initial, self.substeps, **given)[0]
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

        def laid_out(edges: Edges) -> Layout:
            lanes = self._lanes(edges)
            if self.held:
                return Layout(lanes, initial_guess(lanes))
            given = lanes, [best.values], initial_guess(lanes), self.substeps
            near = self._minimize(*given, settled=_SETTLED_MEANWHILE)[0]
            return Layout(lanes, initial_guess(lanes) if near is None else near.initial)

        assert self.blocks is not None
        pieces = Pieces(self.problem, self.blocks, count, laid_out, self.substeps)
        cut, missed, misses = 1, None, best.rms > _MISSES
        if misses:
            shortest = {n: min(np.diff(x).min() for x in pieces.edges(n)) for n in _CUTS}
            cuts = [n for n in _CUTS if shortest[n] >= _SHORTEST]
            asked = [(self.unknowns, one) for one in cuts]
            tried = cross_validate(pieces, asked, best.values)
            cut = cuts[int(np.argmin([np.sum(one**2) for one in tried]))]
            missed = tried[cuts.index(cut)]
        if self.unknowns.open_profiles:
            unknowns = [self.unknowns.with_variation(x) for x in _VARIATIONS]
            tried = cross_validate(pieces, [(one, cut) for one in unknowns], best.values)
            chosen = simplest(tried)
            self.unknowns, self.variation = unknowns[chosen], _VARIATIONS[chosen]
            missed = tried[chosen]
        if missed is None:
            missed = cross_validate(pieces, [(self.unknowns, cut)], best.values)[0]
        self.held_out = missed * self.unit
        if not misses:
            return self._again(best) if self.variation else best
        self.cut = pieces.edges(cut)
        layout = laid_out(self.cut)
        given = layout.lanes, [best.values], layout.initial, self.substeps
        again = self._minimize(*given, held=self.held, settled=_SETTLED_MISSING)[0]
        return best if again is None else again

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
        return self._fit(level, [best.values], initial)[0]

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
        given = lanes, [best.values], best.initial, needed
        found = self._minimize(*given, held=self.held, **options)[0]
        if found is None:
            return best
        self.substeps = needed
        return found

    def initial_states(self, fitted: Fitted) -> tuple[State, ...]:
        """The whole state at the start of each run."""
        values = {n: float(x) for n, x in zip(self.parameters.names, fitted.values, strict=False)}
        states = []
        for (run, own), splits, initial in zip(
            self.runs, self.splits, fitted.initial[:, 0], strict=True
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
        if self.report is not None:
            row = {"epoch": self.level, "loss": fitted.rms, "learning_rate": 0.0}
            of = {"stage": "segment length", "unit": " times the noise"}
            self.report({**row, **of}, len(self.edges))
