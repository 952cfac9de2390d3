"""Which column is likely what: by its name, and by whether one is the derivative of another.

A guess is shown to the user, who may then write it down; it is never used silently.
"""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mbdnode.data.logs.cleaning import is_wrapped, sounds_like_angle, unwrap
from mbdnode.data.logs.columns import Columns, spelled
from mbdnode.data.logs.log import AbstractLog, Sample, column_labels, take_sample
from mbdnode.data.logs.units import find_unit
from mbdnode.data.signal import estimate_rate

# Rows from which a derivative can be told, and what it must be like.
_MOST_PAIR_ROWS = 2_000
_FEWEST_PAIR_ROWS = 20
_ALIKE = 0.9
# Rates in another unit, such as rpm for rad, are still rates.
_RATIOS = (1.0, np.pi / 180, 180 / np.pi, 60 / (2 * np.pi), 1e-3, 1e3)
_TIME = re.compile(r"^(t|time|zeit|timestamp|clock|elapsed|seconds?|sec)($|_)", re.IGNORECASE)
_RUN = re.compile(
    r"(^|_)(run|trial|episode|experiment|test|case|id|idx|sequence|seq)", re.IGNORECASE
)
_INPUT = re.compile(
    r"^(u\d*|F\d*|T\d*|I\d*|U\d*|tau\d*)$"
    r"|(?i:force|torque|moment|current|voltage|motor|command|cmd|control|input|throttle|pwm)"
)
# What drives with a unit of motion says so: a motor's angle does not drive, nor does a control arm.
_COMMAND = re.compile(r"(?i:command|cmd|input)")
_INPUT_UNITS, _POSITION_UNITS, _RATE_UNITS = ("N", "N m", "A", "V"), ("rad", "m"), ("rad/s", "m/s")
_PARAMETER = re.compile(
    r"^(m\d*|l\d*|k\d*|c\d*|g)$|(?i:mass|length|stiffness|damping|inertia|load|payload|radius)"
)
_POSITION = re.compile(
    r"^([xyzsq]\d*|r\d*)$|(?i:^(pos|position|disp|displacement|stroke|height|travel)(_|\d|$))"
)
_RATE = re.compile(
    r"(?i:dot|vel|speed|omega|gyro|rate)|^(v|w)(\d|_|$)|^v[xyz]\d*$"
    r"|^d_?([xyzsqr]|theta|phi|psi|alpha|beta|gamma|angle|pos)\d*(_?dt)?$",
    re.ASCII,
)
_ACCELERATION = re.compile(r"(?i:acc|ddot|dotdot)|^(a|alpha_dot)(\d|_|$)|^dd")
# What a controller wanted is not what the machine did.
_WANTED = re.compile(r"(?i:ref|set_?point|desired|target|demand|error)")


@dataclass(frozen=True)
class Guess:
    """Likely roles, and why.

    **Arguments:**

    - `time`, `run`: columns, None if there seems to be none.
    - `coordinates`, `inputs`, `parameters`: columns.
    - `rates`: a column by coordinate, for those that have one.
    - `reasons`: for each column, its role and what speaks for it.
    """

    time: str | None
    coordinates: tuple[str, ...]
    rates: Mapping[str, str]
    inputs: tuple[str, ...]
    parameters: tuple[str, ...]
    run: str | None
    reasons: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Whether there is enough to read the log."""
        return self.time is not None and bool(self.coordinates)

    @property
    def columns(self) -> Columns:
        """The guess as `read` takes it."""
        rates: Any = dict(self.rates)
        if self.rates and len(self.rates) == len(self.coordinates):
            rates = [self.rates[name] for name in self.coordinates]
        return Columns(self.time, self.coordinates, rates, self.inputs, self.parameters, self.run)

    def advice(self, path: str) -> str:
        """How to use the guess, as the end of a sentence that begins with if."""
        given = self.columns.given()
        parts = [spelled(name, value) for name, value in given.items()]
        parts += [f"{name}=..." for name in ("time", "coordinates") if name not in given]
        return (
            f"give it: {', '.join(parts)}; or write it down with `mbdnode inspect "
            f"{shlex.quote(path)} --write columns.toml`, and give that file as columns."
        )


def guess_roles(log: AbstractLog) -> Guess:
    """Guess from the first rows of a log.

    **Arguments:**

    - `log`: as `open_logs` gives it.

    **Returns:**

    A `Guess`; a column without a role in it was not recognized.
    """
    return guess_from(log, take_sample(log))


def guess_from(log: AbstractLog, sample: Sample) -> Guess:
    """As `guess_roles`, from rows that were read already.

    Role after role, each from the columns that those before it leave.
    """
    names = column_labels(log)
    reasons: dict[int, tuple[str, str]] = {}
    free = set(sample.columns)
    time = _time(log, sample, free)
    if time is not None:
        by_name = bool(_TIME.match(log.headings[time].name))
        reasons[time] = ("time", "by its name" if by_name else "it increases evenly")
    run = _run(log, sample, free, time)
    if run is not None:
        reasons[run] = ("run", "by its name")
    free -= {time, run}
    still = sorted(i for i in free if sample.is_constant(i))
    parameters = [i for i in still if _PARAMETER.search(log.headings[i].name)]
    reasons |= {i: ("parameter", "by its name") for i in parameters}
    inputs = sorted(i for i in free.difference(still) if _is_input(log, i))
    for i in inputs:
        by_unit = _si_unit(log, i) in _INPUT_UNITS and not _INPUT.search(log.headings[i].name)
        reasons[i] = ("input", f"by its {'unit' if by_unit else 'name'}")
    moving = sorted(free.difference(still, inputs))
    pairs = {} if time is None else _derivatives_among(sample, time, moving)
    pairs = {i: j for i, j in pairs.items() if _si_unit(log, j) not in _POSITION_UNITS}
    coordinates, rates = _coordinates(log, moving, pairs)
    for i in coordinates:
        named = _is_position_by_name(log.headings[i].name)
        why = "it has a rate" if i in rates else f"by its {'name' if named else 'unit'}"
        reasons[i] = ("coordinate", why)
    for i, j in rates.items():
        why = "as its derivative" if pairs.get(i) == j else "by name"
        reasons[j] = ("rate", f"of {names[i]}, {why}")
    reasons |= {i: ("-", "constant") for i in still if i not in parameters}
    return Guess(
        time=None if time is None else names[time],
        coordinates=tuple(names[i] for i in coordinates),
        rates={names[i]: names[j] for i, j in rates.items()},
        inputs=tuple(names[i] for i in inputs),
        parameters=(*(names[i] for i in parameters), *log.constants),
        run=None if run is None else names[run],
        reasons={names[i]: reason for i, reason in reasons.items()},
    )


def _time(log: AbstractLog, sample: Sample, free: set[int]) -> int | None:
    """By name if it increases; else the one that increases most evenly, a mere count last."""
    rising = []
    for i in sorted(free):
        steps = np.diff(sample.columns[i])
        steps = steps[np.isfinite(steps)]
        if _TIME.match(log.headings[i].name) and np.all(steps <= 0):
            steps = -steps  # Rows whose time runs backwards all through are turned round.
        if len(steps) and np.mean(steps >= 0) > 0.9 and np.mean(steps > 0) > 0.4:
            usual = float(np.median(steps[steps > 0]))
            uneven = float(np.median(np.abs(steps - usual))) / usual
            counts = bool(np.all(steps == 1.0))
            rising.append((not _TIME.match(log.headings[i].name), counts, uneven > 0.2, uneven, i))
    if not rising:
        return None
    best = min(rising)
    # Without a name, only what is nearly even can be a clock: a motion may rise for a while too.
    return best[-1] if not best[0] or not best[2] else None


def _run(log: AbstractLog, sample: Sample, free: set[int], time: int | None) -> int | None:
    for i, heading in enumerate(log.headings):
        if i == time or not _RUN.search(heading.name):
            continue
        if log.is_text(i):
            return i
        if i in free:
            values = sample.columns[i]
            whole = np.all(values == np.round(values))
            if whole and len(np.unique(values)) <= max(1, len(values) // 2):
                return i
    return None


def _is_input(log: AbstractLog, number: int) -> bool:
    name, unit = log.headings[number].name, _si_unit(log, number)
    moves = unit in (*_POSITION_UNITS, *_RATE_UNITS)
    return unit in _INPUT_UNITS or bool((_COMMAND if moves else _INPUT).search(name))


def _si_unit(log: AbstractLog, number: int) -> str | None:
    unit = find_unit(log.headings[number].unit)
    return None if unit is None else unit.si


def _coordinates(
    log: AbstractLog, free: list[int], pairs: dict[int, int]
) -> tuple[list[int], dict[int, int]]:
    """Columns whose derivative is there, or whose name or unit says position; and their rates."""
    names = {i: log.headings[i].name for i in free}
    is_rate = set(pairs.values())
    rates = {i: j for i, j in pairs.items() if i not in is_rate}
    taken = set(rates) | set(rates.values())
    coordinates = set(rates)
    for i in free:
        if i in taken or not names[i]:
            continue
        if i in is_rate or _WANTED.search(names[i]) or not _is_position(log, i, names):
            continue
        coordinates.add(i)
        others = [j for j in free if j not in taken and _si_unit(log, j) not in _POSITION_UNITS]
        partner = next((j for j in others if names_rate(names[i], names[j])), None)
        if partner is not None:
            rates[i] = partner
            taken |= {i, partner}
    return sorted(coordinates), rates


def _is_position(log: AbstractLog, number: int, names: dict[int, str]) -> bool:
    """By its unit, else by its name, beside which another may be the one whose rate it is."""
    unit, name = _si_unit(log, number), names[number]
    if unit is not None and log.headings[number].unit:
        return unit in _POSITION_UNITS
    if _RATE.search(name) or _ACCELERATION.search(name):
        return False
    return _is_position_by_name(name) and not any(names_rate(x, name) for x in names.values())


def _is_position_by_name(name: str) -> bool:
    return sounds_like_angle(name) or bool(_POSITION.search(name))


def names_rate(name: str, other: str) -> bool:
    """Whether a column is, by its name, the rate of another."""
    name, other = name.lower(), other.lower()
    ways = {f"{name}_dot", f"{name}dot", f"d{name}", f"d_{name}", f"d{name}dt", f"d{name}_dt"}
    ways |= {f"v_{name}", f"v{name}", f"{name}_vel", f"vel_{name}", f"{name}_rate", f"{name}_speed"}
    digits = re.sub(r"\D", "", name)
    if sounds_like_angle(name):
        ways |= {f"omega{digits}", f"omega_{digits}", f"w{digits}", f"w_{digits}", f"gyro{digits}"}
    if _POSITION.search(name):
        ways |= {f"v{digits}", f"v_{digits}", f"vel{digits}", f"velocity{digits}", f"speed{digits}"}
    return other in ways


def _derivatives_among(sample: Sample, time: int, columns: list[int]) -> dict[int, int]:
    """The derivative of each column that has one, by number; each at most once on either side."""
    stretch = _longest_stretch(sample, time, columns)
    t = sample.columns[time][stretch]
    if len(t) < _FEWEST_PAIR_ROWS:
        return {}
    values = {i: sample.columns[i][stretch] for i in columns}
    values = {i: x for i, x in values.items() if np.ptp(x) > 0}
    found = []
    for i, x in values.items():
        for turn in (2 * np.pi, 360.0):
            if is_wrapped(x, turn):
                x = unwrap(t, x, None, turn)[0]
                break
        rate = estimate_rate(t, x)
        size = float(np.std(rate.values))
        if size == 0 or rate.typical_error > size:
            continue
        for j, y in values.items():
            if i != j and (score := _likeness(rate.values, y)) > 0:
                found.append((score, i, j))
    pairs: dict[int, int] = {}
    for _, i, j in sorted(found, reverse=True):
        if i not in pairs and j not in pairs.values() and pairs.get(j) != i:
            pairs[i] = j
    return pairs


def _likeness(rate: np.ndarray, other: np.ndarray) -> float:
    """How alike they are, zero if they differ by more than a unit would explain."""
    alike = float(np.corrcoef(rate, other)[0, 1])
    ratio = float(np.std(other) / np.std(rate))
    near = min(abs(np.log(ratio / known)) for known in _RATIOS)
    return alike if alike > _ALIKE and near < np.log(1.3) else 0.0


def _longest_stretch(sample: Sample, time: int, columns: list[int]) -> slice:
    """Consecutive rows in which time increases and nothing is missing."""
    whole = np.column_stack([sample.columns[i] for i in (time, *columns)])
    good = np.all(np.isfinite(whole), axis=1)
    steps = np.diff(whole[:, 0])
    joined = good[1:] & good[:-1] & (steps > 0)
    usual = float(np.median(steps[joined])) if joined.any() else 0.0
    joined &= steps <= 5 * usual
    edges = np.flatnonzero(np.diff(np.concatenate([[0], joined, [0]]).astype(int))).reshape(-1, 2)
    if not len(edges):
        return slice(0, 0)
    a, b = max(edges, key=lambda edge: edge[1] - edge[0])
    return slice(int(a), int(min(b + 1, a + _MOST_PAIR_ROWS)))
