"""From a run's rows to pieces that can be learned from: inputs, angles and rates put in order."""

from dataclasses import dataclass

import numpy as np

from mbdnode.data.logs.angles import is_wrapped, sounds_like_angle, unwrap
from mbdnode.data.logs.checks import check_columns
from mbdnode.data.logs.cleaning import Run, clean
from mbdnode.data.logs.inputs import Signal, at_times
from mbdnode.data.logs.layout import Layout
from mbdnode.data.logs.roles import Roles
from mbdnode.data.logs.summary import Account, RunSummary, counted
from mbdnode.data.signal import FEWEST_ROWS, Rate, estimate_rate


@dataclass(frozen=True)
class Handling:
    """What the user chose.

    **Arguments:**

    - `gaps`: "refuse" or "split".
    - `longest_step_s`: a longer step is a gap; None for five median steps.
    - `interpolation`: of inputs with their own times, "held" or "linear".
    - `fewest_rows`: of a piece that is kept.
    """

    gaps: str
    longest_step_s: float | None
    interpolation: str
    fewest_rows: int = 2


@dataclass
class Piece:
    """A stretch without gaps.

    **Arguments:**

    - `t`: times.
    - `q`, `v`, `u`: coordinates, rates and inputs.
    """

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    u: np.ndarray


def finish(
    run: Run, layout: Layout, roles: Roles, handling: Handling, signal: Signal | None
) -> tuple[list[Piece], RunSummary]:
    """Clean a run and complete it.

    **Arguments:**

    - `run`: as it was read; gets notes.
    - `layout`, `roles`: what its columns are.
    - `handling`: what the user chose.
    - `signal`: the inputs, if they have their own times.

    **Returns:**

    The pieces, none of them too short, and what became of the rows.
    """
    estimated = any(rate is None for rate in layout.rates)
    fewest = max(handling.fewest_rows, FEWEST_ROWS if estimated else 2)
    cuts, account, step_s = clean(run, handling.gaps, handling.longest_step_s)
    spans, uncovered, inputs = _covered(run, cuts, signal, handling.interpolation)
    account += Account(without_input=uncovered)
    pieces, turns, rates = [], np.zeros(len(roles.coordinates), int), []
    for span in spans:
        count = span.stop - span.start
        if count < fewest:
            account += Account(too_short=count)
            continue
        piece, added, found = _piece(run, span, layout, roles, inputs)
        pieces.append(piece)
        turns += added
        rates.append(found)
        account += Account(kept=count)
    if account.too_short:
        run.note(
            "cut", f"{counted(account.too_short, 'row')} in pieces of fewer than {fewest} rows"
        )
    _say_turns(run, roles, turns)
    _say_rates(run, roles, rates)
    if pieces:
        check_columns(run, layout, roles, [(p.t, p.q, p.v) for p in pieces])
    lengths = tuple(len(piece.t) for piece in pieces)
    return pieces, RunSummary(run.place, account, lengths, step_s)


def _covered(run: Run, cuts: list[slice], signal: Signal | None, how: str):
    """The parts of the pieces at which the inputs are known."""
    if signal is None:
        return cuts, 0, None
    values, covered = at_times(signal, run.t, how)
    spans = []
    for cut in cuts:
        inside = np.flatnonzero(np.diff(np.concatenate([[0], covered[cut], [0]]).astype(int)))
        spans += [slice(cut.start + int(a), cut.start + int(b)) for a, b in inside.reshape(-1, 2)]
    uncovered = int(np.sum(~covered))
    manner = (
        "held from their own times" if how == "held" else "interpolated between their own times"
    )
    run.note("inputs", f"{manner} to those of the states")
    if uncovered:
        run.note("cut", f"{counted(uncovered, 'row')} outside the times of the inputs")
    return spans, uncovered, values


def _piece(run: Run, span: slice, layout: Layout, roles: Roles, inputs):
    t, table, count = run.t[span], run.table[span], len(roles.coordinates)
    q = table[:, :count].copy()
    measured = iter(table[:, count:].T)
    given = [None if rate is None else next(measured) for rate in layout.rates]
    turns = np.zeros(count, int)
    for i in range(count):
        if _is_angle(i, layout, roles) and is_wrapped(q[:, i]):
            q[:, i], turns[i] = unwrap(t, q[:, i], given[i])
    rates = [
        None if v is not None else estimate_rate(t, x) for v, x in zip(given, q.T, strict=True)
    ]
    v = [known if known is not None else made.values for known, made in _both(given, rates)]
    u = table[:, count + len(layout.measured_rates) :] if inputs is None else inputs[span]
    return Piece(t, q, np.column_stack(v) if v else q, u), turns, rates


def _both(given: list, rates: list) -> zip:
    return zip(given, rates, strict=True)


def _is_angle(number: int, layout: Layout, roles: Roles) -> bool:
    """As the user says; else by the unit; else by the names."""
    name, found = roles.coordinates[number][0], layout.coordinates[number]
    if roles.angles is not None:
        return name in roles.angles
    if found.unit is not None:
        return found.unit.is_angle
    return sounds_like_angle(name) or sounds_like_angle(found.heading.name)


def _say_turns(run: Run, roles: Roles, turns: np.ndarray) -> None:
    for (name, _), count in zip(roles.coordinates, turns, strict=True):
        if count:
            run.note(
                "unwrapped",
                f"{name!r} was wrapped to one turn; joined at {counted(int(count), 'place')}",
            )


def _say_rates(run: Run, roles: Roles, rates: list[list[Rate | None]]) -> None:
    for number, (name, _) in enumerate(roles.coordinates):
        made = [found for piece in rates if (found := piece[number]) is not None]
        if not made:
            continue
        noise = float(np.median([rate.noise for rate in made]))
        error = float(np.median([rate.typical_error for rate in made]))
        widths = sorted(2 * rate.half_width + 1 for rate in made)
        run.note(
            "estimated",
            f"the rate of {name!r} from polynomials over {widths[len(widths) // 2]} rows; noise "
            f"of {name!r} {noise:.2g}, error of its rate about {error:.2g}",
        )
