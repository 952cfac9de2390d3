"""The estimate of the integrator's error beside the true error.

Every case of the paper and every mechanism file, by its own integrator, at its own step and at
longer ones. True is the largest distance from dopri8 at a tolerance of 1e-12, by the measure of the
estimate: of any coordinate at any row, as a part of that coordinate's travel. There is no ratio for
a rollout that ended early, and below 1e-10, where rounding counts.
"""

import sys
from pathlib import Path

import diffrax
import numpy as np
from rich.console import Console
from rich.table import Table

import mbdnode as mbd
from mbdnode.integrators import Adaptive
from mbdnode.reproduction.cases import CASES, get_case

FILES = Path(__file__).parents[1] / "examples" / "mechanisms"
# Steps that are longer than a case's own, each over so many rows at most.
LONGER, MOST_ROWS = (1, 4, 16, 64), 400
FACTOR = 3.0


def problems():
    """Names, systems, steps, numbers of steps, and what else `simulate` is given."""
    for name in CASES:
        case = get_case(name)
        start = mbd.consistent_state(case.mechanism, case.initial, parameters=case.parameters)
        integrator = "rk4" if case.integrator == "analytic" else case.integrator
        options = {"parameters": case.parameters, "integrator": integrator}
        yield name, case.mechanism, case.dt_s, case.steps, start, case, options
    for path in sorted(FILES.glob("*.toml")):
        system = mbd.read_mechanism(path)
        yield path.name, system, 1e-3, 2_000, mbd.consistent_state(system, {}), None, {}


def main() -> None:
    """Print a row for each step of each problem; fail beyond a factor of three."""
    exact = Adaptive(diffrax.Dopri8(), 8, rtol=1e-12, atol=1e-12, max_steps=100_000)
    table = Table("problem", "by", "dt [s]", "rows", "estimate", "true", "ratio", "status")
    worst = []
    for name, system, dt, steps, start, case, options in problems():
        count = min(steps, MOST_ROWS)
        for times in LONGER:
            t = times * dt * np.arange(count + 1)
            inputs = None if case is None else case.make_inputs(count, 0)
            run = mbd.simulate(system, t, start, inputs=inputs, **options)
            true = mbd.simulate(system, t, start, inputs=inputs, **{**options, "integrator": exact})
            rows = min(int(run.status.step), int(true.status.step)) + 1
            found, exactly = (np.asarray(x.q)[:rows] for x in (run, true))
            travel = np.ptp(exactly, axis=0)
            moves = travel > 1e-3 * np.max(travel)
            gaps = np.abs(found - exactly)[:, moves] / travel[moves]
            error = float(np.max(gaps, initial=0.0))
            estimate = float(run.status.error)
            # Below, rounding counts as much as the integrator.
            known = run.status.ok and true.status.ok and error > 1e-10
            ratio = estimate / error if known else np.nan
            if known:
                worst.append((max(ratio, 1 / ratio), name, times * dt))
            numbers = (f"{estimate:.1e}", f"{error:.1e}", f"{ratio:.2f}" if known else "-")
            by = str(options.get("integrator", "rk4"))
            table.add_row(name, by, f"{times * dt:g}", str(rows), *numbers, _short(run.status))
    Console().print(table)
    farthest = max(worst)
    print(f"Farthest: a factor of {farthest[0]:.2f}, {farthest[1]} at {farthest[2]:g} s")
    sys.exit(farthest[0] > FACTOR)


def _short(status) -> str:
    said = str(status)
    return said.split("; ")[-1] if "too long" in said else said.split(" at ")[0]


if __name__ == "__main__":
    main()
