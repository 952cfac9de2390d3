"""Where exported C and `simulate` part: round-off, against the same steps in more digits.

The same C is compiled once in `double` and once in `long double` (64 bits of mantissa in place of
53), which is the exact motion of the discrete steps for our purpose. The error of the exported code
and that of `simulate` against it, and what a start that is off by one unit in the last place makes
of `simulate`, say whether a difference between the two is an error of either.
"""

import numpy as np

import mbdnode as mbd
from benchmarks.exported_code import run_c
from mbdnode.exports import c_source, trace_program
from mbdnode.reproduction.cases import get_case


def main() -> None:
    """Print the largest differences of the driven slider-crank over 10,000 steps."""
    case = get_case("slider-crank")
    start = mbd.consistent_state(case.mechanism, case.initial)
    inputs = case.make_inputs(case.steps)
    assert inputs is not None

    def simulated(theta: float) -> np.ndarray:
        given = {**case.initial, "theta1": theta}
        run = mbd.simulate(case.mechanism, case.times(), given, inputs=inputs, integrator="rk4")
        return np.concatenate([run.q, run.v], axis=1)[1:]

    program = trace_program(case.mechanism, name="m", dt_s=case.dt_s, entries=("init", "step"))
    c = c_source(program)

    def moved(*flags: str, wide: bool = False) -> np.ndarray:
        how = ("-std=c99", "-O2", *flags)
        given = (c.header, c.source, start, inputs, case.dt_s)
        return run_c(*given, steps=case.steps, flags=how, wide=wide)[0]

    exact, plain = moved(wide=True), moved()
    fused = moved("-march=native", "-ffp-contract=fast")
    theta = case.initial["theta1"]
    ours, near = simulated(theta), simulated(float(np.nextafter(theta, 10.0)))
    for name, one, other in (
        ("C and simulate", plain, ours),
        ("C and long double", plain, exact),
        ("C with fused multiply-add and long double", fused, exact),
        ("simulate and long double", ours, exact),
        ("simulate, and from a start one unit in the last place off", ours, near),
    ):
        apart = np.max(np.abs(one - other), axis=1)
        places = (apart[99], apart[-1], apart.max())
        print("{:<60} after 100 {:.1e}, after all {:.1e}, max {:.1e}".format(name, *places))


if __name__ == "__main__":
    main()
