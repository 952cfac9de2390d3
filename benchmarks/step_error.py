"""The estimate of the integrator's error beside the true error.

Every case of the paper and every mechanism file, by its own integrator, at its own step and at
longer ones. True is the largest distance from dopri8 at a tolerance of 1e-12, by the measure of the
estimate: of any coordinate at any row, as a part of that coordinate's travel. Angles and lengths
that move by less than a thousandth of the largest of their kind are left out. There is no ratio for
a rollout that ended early, and below 1e-10, where rounding counts.
"""

import functools
import sys
from collections.abc import Sequence
from pathlib import Path

import diffrax
import numpy as np

import mbdnode as mbd
from mbdnode.integrators import Adaptive
from mbdnode.mechanisms import analyze
from mbdnode.reproduction.cases import CASES, get_case

FILES = Path(__file__).parents[1] / "examples" / "mechanisms"
# A case's own step over all of its rows, and longer ones over so many.
LONGER, MOST_ROWS = (4, 16, 64), 400
# Friction is told anew, and coordinates are exchanged, at output times alone, so the reference has
# so many times as many of them.
DENSER = 4
FACTOR = 3.0


def problems():
    """Names, systems, steps, numbers of steps, starts, inputs, and what `simulate` is given."""
    for name in CASES:
        case = get_case(name)
        start = mbd.consistent_state(case.mechanism, case.initial, parameters=case.parameters)
        # A closed form has no error; its case is run by the method that others have.
        integrator = "rk4" if case.integrator == "analytic" else case.integrator
        options = {"parameters": case.parameters, "integrator": integrator}
        inputs = functools.partial(case.make_inputs, seed=0)
        yield name, case.mechanism, case.dt_s, case.steps, start, inputs, options
    for path in sorted(FILES.glob("*.toml")):
        system = mbd.read_mechanism(path)
        # Pushed, since some of them would rest.
        moving = {f"{one}_dot": 1.0 for one in analyze(system, {}).independent}
        start = mbd.consistent_state(system, moving)
        yield path.name, system, 1e-3, 2_000, start, lambda steps: None, {"integrator": "rk4"}


def measure(system, t, start, inputs, options):
    """The rollout, the estimate of its error, and the true one."""
    exact = Adaptive(diffrax.Dopri8(), 8, rtol=1e-12, atol=1e-12, max_steps=100_000)
    run = mbd.simulate(system, t, start, inputs=inputs, **options)
    dense = np.interp(np.arange(DENSER * (len(t) - 1) + 1) / DENSER, np.arange(len(t)), t)
    held = None if inputs is None else np.repeat(inputs, DENSER, axis=0)
    true = mbd.simulate(system, dense, start, inputs=held, **{**options, "integrator": exact})
    rows = min(int(run.status.step), int(true.status.step) // DENSER) + 1
    found, exactly = np.asarray(run.q)[:rows], np.asarray(true.q)[::DENSER][:rows]
    travel, moves = np.ptp(exactly, axis=0), np.zeros(exactly.shape[1], bool)
    is_angle = np.array([c.is_angle for c in system.coordinates])
    # What hardly moves beside the others of its kind is left out; radians are no meters.
    for kind in (is_angle, ~is_angle):
        moves[kind] = travel[kind] > 1e-3 * np.max(travel[kind], initial=0.0)
    gaps = np.abs(found - exactly)[:, moves] / travel[moves]
    ended = not (run.status.ok and true.status.ok)
    return run.status, float(run.status.error), float(np.max(gaps, initial=0.0)), ended


def main(names: Sequence[str] = ()) -> None:
    """Print a row for each step of each problem, or of those that are named; fail beyond three."""
    form = "{:<36} {:>5} {:>8} {:>7} {:>9} {:>9} {:>6}  {}"
    print(form.format("problem", "by", "dt [s]", "rows", "estimate", "true", "ratio", "status"))
    worst = []
    for name, system, dt, steps, start, inputs, options in problems():
        if names and name not in names:
            continue
        grids = [(dt, steps), *((times * dt, min(steps, MOST_ROWS)) for times in LONGER)]
        for step, count in grids:
            t = step * np.arange(count + 1)
            status, estimate, error, ended = measure(system, t, start, inputs(count), options)
            # Below, rounding counts as much as the integrator.
            known = not ended and error > 1e-10
            if known:
                worst.append((max(estimate / error, error / estimate), name, step))
            ratio = f"{estimate / error:.2f}" if known else "-"
            numbers = (f"{count + 1:,}", f"{estimate:.1e}", f"{error:.1e}", ratio, _said(status))
            print(form.format(name, options["integrator"], f"{step:.3g}", *numbers), flush=True)
    factor, name, step = max(worst)
    print(f"Farthest of {len(worst)}: a factor of {factor:.2f}, {name} at {step:g} s")
    sys.exit(factor > FACTOR)


def _said(status) -> str:
    advice = f"below {float(status.short_enough):.2g} s"
    if not status.ok:
        return f"ended at step {int(status.step)}, {advice}"
    return f"too long, {advice}" if status.too_long else "completed"


if __name__ == "__main__":
    main(sys.argv[1:])
