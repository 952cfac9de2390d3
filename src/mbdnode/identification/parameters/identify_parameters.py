"""The parameters of a mechanism from recorded motion, with what the data can say of them.

The structure is known: masses, lengths, springs, dampers stand in a class or a file, some with
unknown values. Regression on the equations of motion gives a start (`inverse_dynamics`), and the
parameters with the smallest output error are found from there (`output_error`).

What the data cannot tell apart shows in the Jacobian `J` of the residuals: a direction in the space
of the parameters that changes no residual. For the determined directions, the covariance is
`s^2 (J^T J)^-1`, with `s^2` from the residuals. The others stay at their start and are named,
together with the combinations that are determined: the base parameters of robot identification.
"""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from threadpoolctl import threadpool_limits

from mbdnode.data.files import replace_file
from mbdnode.errors import UserError
from mbdnode.identification.parameters.bootstrap import Bootstrap, check_repetitions
from mbdnode.identification.parameters.bootstrap import bootstrap as resample
from mbdnode.identification.parameters.fitting import Fitted
from mbdnode.identification.parameters.search import ParameterSearch
from mbdnode.identification.parameters.unknowns import Unknowns, make_unknowns
from mbdnode.identification.search_checkpoint import NO_CHECKPOINT, SearchCheckpoint
from mbdnode.mechanisms.described import AbstractDescribed
from mbdnode.models import FittedMechanism
from mbdnode.multibody import AbstractSystem
from mbdnode.naming import unknown_name
from mbdnode.simulation.interpolation import INTERPOLATIONS
from mbdnode.training.compile_time import counted_compilation
from mbdnode.training.prepare import check_names
from mbdnode.trajectory import Dataset, State
from mbdnode.waiting_notice import doing

# A combination with a standard error above its size is not determined.
_UNDETERMINED = 1.0
# A coefficient that is smaller, in scaled parameters, is not part of a combination.
_NEGLIGIBLE = 1e-3


@dataclass(frozen=True)
class Combination:
    """A linear combination of parameters that the data determines.

    **Arguments:**

    - `terms`: coefficients by name; the first is one.
    - `value`, `standard_error`: of the combination.
    """

    terms: dict[str, float]
    value: float
    standard_error: float

    def __str__(self) -> str:
        text = ""
        for name, factor in self.terms.items():
            size = "" if factor in (1.0, -1.0) else f"{abs(factor):.4g} "
            sign = " - " if factor < 0 else " + "
            text += (sign if text else "-" * (factor < 0)) + size + name
        return f"{text} = {self.value:.5g} ± {self.standard_error:.2g}"


@dataclass(frozen=True)
class IdentifiedParameters:
    """Parameters that were found in data; `print` shows them.

    **Arguments:**

    - `system`: whose they are.
    - `parameters`: values by name, as `simulate(system, ..., parameters=...)` takes them. What the
        data does not determine is as it was at the start.
    - `sensors`: what was unknown of the sensors and inputs, by name, such as "y offset" and
        "u delay".
    - `standard_errors`: of those that are determined alone, by name.
    - `combinations`: what is determined of the others.
    - `undetermined`: the names of the others.
    - `at_bounds`: those that ended on a bound.
    - `covariance`: of all unknown parameters, parameters first and then
        sensors, within the determined directions.
    - `noise`: of each recorded column, as the data tells it.
    - `rmse`: of the simulation from the fitted initial states, for each recorded column.
    - `correlation_of_residuals`: from one sample to the next; near zero for a model that
        misses nothing.
    - `held_out`: for each recorded column, the RMSE over pieces of the data that were held out in
        turn; empty if none were.
    - `variation`: of the profiles for which those pieces chose it; None where none was chosen.
    - `initial_states`: of each run, as fitted, or as measured where the status says so.
    - `segment_seconds`: how long the longest simulated segments are.
    - `interpolation`, `substeps`: of the inputs, and of the integrator.
    - `status`: how the search ended, as a sentence.
    - `train_seconds`, `compile_seconds`: apart from each other.
    - `bootstrap`: the parameters as fitted to resampled runs; None if that was not asked for.
    """

    system: AbstractSystem
    parameters: dict[str, float]
    sensors: dict[str, float]
    standard_errors: dict[str, float]
    combinations: tuple[Combination, ...]
    undetermined: tuple[str, ...]
    at_bounds: tuple[str, ...]
    covariance: np.ndarray = field(repr=False)
    noise: dict[str, float]
    rmse: dict[str, float]
    correlation_of_residuals: float
    held_out: dict[str, tuple[float, ...]]
    variation: float | None
    initial_states: tuple[State, ...] = field(repr=False)
    segment_seconds: float
    interpolation: str
    substeps: int
    status: str
    train_seconds: float
    compile_seconds: float
    bootstrap: Bootstrap | None = None

    @property
    def model(self) -> FittedMechanism:
        """The mechanism with the values that were found in place of its defaults."""
        count = len(self.parameters)
        return FittedMechanism.for_system(
            self.system,
            names=tuple(self.parameters),
            values=tuple(self.parameters.values()),
            covariance=tuple(self.covariance[:count, :count].ravel().tolist()),
            interpolation=self.interpolation,
        )

    @property
    def integrator(self) -> str:
        """One that is exact enough at the data's step: "rk4" where that needs no substeps."""
        return "rk4" if self.substeps == 1 else "dopri5"

    @property
    def outcome(self) -> str:
        """As a `Fit` has it."""
        return "completed"

    @property
    def history(self) -> list[dict[str, Any]]:
        """As a `Fit` has it: no rows, since there are no epochs."""
        return []

    @property
    def updates(self) -> int:
        """As a `Fit` has them: none."""
        return 0

    @property
    def correlations(self) -> np.ndarray:
        """Between the unknown parameters; not a number for those that are not determined."""
        size = np.sqrt(np.diag(self.covariance))
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.covariance / np.outer(size, size)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the mechanism file with the values that were found.

        **Arguments:**

        - `path`: of the file; one that exists is replaced. Comments of the file that was read are
            not in it.
        """
        if not isinstance(self.system, AbstractDescribed):
            raise UserError(
                f"{type(self.system).__name__} is a Python class and has no mechanism file. Give "
                "its values to simulate as parameters=found.parameters."
            )
        text = self.system.to_toml(self.parameters)
        replace_file(Path(path), lambda file: file.write(text.encode()))

    def rows(self) -> tuple[tuple[str, str, str, str], ...]:
        """Name, value, standard error and unit of every unknown, as text."""
        units = {p.name: p.unit for p in self.system.parameters}
        units |= {f"{name} delay": "s" for name in self.system.input_names}
        rows = []
        for name, value in {**self.parameters, **self.sensors}.items():
            if name in self.standard_errors:
                error = f"{self.standard_errors[name]:.2g}"
            else:
                error = "at its bound" if name in self.at_bounds else "not determined alone"
            rows.append((name, f"{value:.6g}", error, units.get(name, "")))
        return tuple(rows)

    def __str__(self) -> str:
        rows = [("parameter", "value", "standard error", "unit"), *self.rows()]
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        lines = ["  ".join(x.ljust(w) for x, w in zip(row, widths, strict=True)) for row in rows]
        parts = ["\n".join(line.rstrip() for line in lines)]
        if self.combinations:
            lines = "\n".join(f"  {one}" for one in self.combinations)
            parts.append(f"determined combinations:\n{lines}")
        if self.bootstrap is not None:
            parts.append(str(self.bootstrap))
        return "\n".join([*parts, self.status])


def identify_parameters(
    system: AbstractSystem,
    data: Dataset,
    unknown: Sequence[str] | Mapping[str, Any],
    *,
    sensors: Mapping[str, Sequence[str]] | None = None,
    interpolation: str | None = None,
    report: Any = None,
    room: int = 0,
    kept: SearchCheckpoint = NO_CHECKPOINT,
    pieces: int = 0,
    bootstrap: int = 0,
    seed: int = 0,
) -> IdentifiedParameters:
    """Find the unknown parameters of a system; `identify(..., unknown=...)` is its public face.

    **Arguments:**

    - `system`: a mechanism, or anything with parameters that can be simulated.
    - `data`: what was recorded; its `recorded` columns are compared, and no others.
    - `unknown`: names, or what is known of each by name: an `Unknown`, bounds `(low, high)`, or
        None.
    - `sensors`: what is unknown of them, by recorded column: "gain", "offset", or the name of an
        input that the sensor reads besides (feedthrough), such as `{"y": ("offset", "u")}`; and
        "delay" of an input, `{"u": "delay"}`.
    - `interpolation`: of the inputs; the one that explains the data best if not given.
    - `report`: called for every length of segments with a row like that of an epoch, and how many
        there are.
    - `room`: for so many rows of a run at least, so that one compiled program serves a part of the
        data and all of it.
    - `kept`: what the same search finished before it was killed, and what it finishes now.
    - `pieces`: into so many the data is cut, and each is predicted by a fit to the others.
    - `bootstrap`: so many times the parameters are fitted again, to resampled runs.
    - `seed`: of the resampling.

    **Returns:**

    An `IdentifiedParameters`.
    """
    begun = time.perf_counter()
    check_names(system, data)
    if interpolation is not None and interpolation not in INTERPOLATIONS:
        raise unknown_name("interpolation", interpolation, INTERPOLATIONS)
    unknowns = make_unknowns(system, unknown)
    check_repetitions(bootstrap)
    # The matrices are long and narrow, and threads that wait for each other cost more than they do.
    with (
        doing("finding the unknown parameters"),
        counted_compilation() as compilation,
        threadpool_limits(1, "blas"),
    ):
        given = system, data, unknowns, sensors or {}, interpolation, report, room
        search = ParameterSearch(*given, kept=kept, pieces=pieces)
        fitted = search.run()
        found = _make_result(search, fitted)
        if bootstrap:
            names = [name for name in search.unknowns.names if name not in found.undetermined]
            with doing("fitting the parameters to resampled runs"):
                resampled = resample(search, fitted, names, bootstrap, seed) if names else None
            found = replace(found, bootstrap=resampled)
    compile_s = compilation.seconds
    seconds = max(time.perf_counter() - begun - compile_s, 0.0)
    return replace(found, train_seconds=seconds, compile_seconds=compile_s)


def _make_result(search: ParameterSearch, fitted: Fitted) -> IdentifiedParameters:
    # What a parameter turned out to be is a better measure of its size than where it began.
    size = np.maximum(np.abs(fitted.values), search.unknowns.scale)
    unknowns = replace(search.unknowns, scale=size)
    free = max(1, fitted.rows * len(search.columns) - len(fitted.values) - fitted.states)
    variance = float(np.sum(fitted.residuals**2)) / free
    prior = np.diag(1 / unknowns.prior_std)
    matrix = np.vstack([fitted.jacobian / np.sqrt(variance or 1.0), prior]) * unknowns.scale
    held = (fitted.values <= unknowns.low) | (fitted.values >= unknowns.high)
    matrix = np.where(held, 0.0, matrix)
    _, sizes, directions = np.linalg.svd(matrix, full_matrices=False)
    determined = sizes * _UNDETERMINED > 1
    kept, sizes = directions[determined], sizes[determined]
    covariance = (kept.T / sizes**2) @ kept * np.outer(unknowns.scale, unknowns.scale)
    names = np.array(unknowns.names)
    combinations, alone = _combinations(unknowns, fitted.values, kept, covariance)
    errors = {
        str(name): float(np.sqrt(covariance[i, i])) for i, name in enumerate(names) if name in alone
    }
    at_bounds = tuple(str(x) for x in names[held])
    undetermined = tuple(str(x) for x in names if x not in alone and x not in at_bounds)
    rms = np.sqrt(np.sum(fitted.residuals**2, axis=(0, 1)) / fitted.rows) * search.unit
    correlation = _lag_one(fitted.residuals)
    found = dict(zip(unknowns.names, fitted.values.tolist(), strict=True))
    return IdentifiedParameters(
        system=search.system,
        parameters={n: found[n] for n in search.parameters.names},
        sensors={n: v for n, v in found.items() if n not in search.parameters.names},
        standard_errors=errors,
        combinations=combinations,
        undetermined=undetermined,
        at_bounds=at_bounds,
        covariance=covariance,
        noise=dict(zip(search.columns, search.noise.tolist(), strict=True)),
        rmse=dict(zip(search.columns, rms.tolist(), strict=True)),
        correlation_of_residuals=correlation,
        held_out={
            name: tuple(map(float, column))
            for name, column in zip(search.columns, search.held_out.T, strict=False)
        },
        variation=search.variation,
        initial_states=search.initial_states(fitted),
        segment_seconds=search.seconds(search.cut),
        interpolation=search.interpolation,
        substeps=search.substeps,
        status=_status(search, rms, correlation, undetermined, at_bounds),
        train_seconds=0.0,
        compile_seconds=0.0,
    )


def _combinations(unknowns: Unknowns, values, kept: np.ndarray, covariance: np.ndarray):
    """What is determined of parameters that are not determined alone, and which are."""
    count, total = kept.shape
    if count == 0:
        return (), set()
    order = np.asarray(scipy.linalg.qr(kept, mode="r", pivoting=True)[-1])
    base, others = order[:count], order[count:]
    factors = np.linalg.solve(kept[:, base], kept[:, others])
    found, alone = [], set()
    for place in np.argsort(base):
        row = np.zeros(total)
        row[base[place]] = 1.0
        row[others] = factors[place]
        row = np.where(np.abs(row) < _NEGLIGIBLE, 0.0, row)
        if np.sum(row != 0) == 1:
            alone.add(unknowns.names[base[place]])
            continue
        weights = row / unknowns.scale * unknowns.scale[base[place]]
        order_of_terms = [base[place], *(i for i in np.flatnonzero(row) if i != base[place])]
        found.append(
            Combination(
                {unknowns.names[i]: float(weights[i]) for i in order_of_terms},
                float(weights @ values),
                float(np.sqrt(weights @ covariance @ weights)),
            )
        )
    return tuple(found), alone


def _lag_one(residuals: np.ndarray) -> float:
    """The correlation of residuals with those of the next row."""
    size = float(np.sum(residuals[:, :-1] ** 2))
    return float(np.sum(residuals[:, :-1] * residuals[:, 1:])) / size if size > 0 else 0.0


def _status(search: ParameterSearch, rms, correlation: float, undetermined, at_bounds) -> str:
    worst = int(np.argmax(rms / search.motion))
    text = (
        f"simulates segments of {search.seconds(search.cut):.3g} s with NRMSE "
        f"{rms[worst] / search.motion[worst]:.1e} in {search.columns[worst]} "
        f"(noise {search.noise[worst] / search.motion[worst]:.1e})"
    )
    if search.level < len(search.edges) - 1:
        text += "; longer ones are not followed"
    if search.held:
        text += "; it misses more than the noise, so initial states are as measured"
    if search.cut is not search.edges[search.level]:
        text += "; segments are as long as predict held-out pieces best"
    if correlation > 0.5 and np.any(rms > 2 * search.unit):
        text += (
            f"; residuals are correlated ({correlation:.2f} from one sample to the next), so the "
            "model misses something and the standard errors are too small"
        )
    if at_bounds:
        text += f"; at a bound: {', '.join(at_bounds)}"
    if undetermined:
        text += f"; not determined alone: {', '.join(undetermined)}"
    return text
