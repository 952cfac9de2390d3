"""Where exported C and `simulate` part: round-off, against the same steps in more digits.

The same C is compiled once in `double` and once in `long double` (64 bits of mantissa in place of
53), which is the exact motion of the discrete steps for our purpose. The error of the exported code
and that of `simulate` against it, and what a start that is off by one unit in the last place makes
of `simulate`, say whether a difference between the two is an error of either.
"""

import ctypes
import re
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import mbdnode as mbd
from mbdnode.exports import c_source, trace_program
from mbdnode.reproduction.cases import get_case

_DRIVER = """
#include "m.h"
int run(int steps, double dt, const double *q, const double *v, const double *u, double *out);
int run(int steps, double dt, const double *q, const double *v, const double *u, double *out)
{
    m_state state;
    NUMBER q0[M_NQ], v0[M_NQ], load[M_NU + 1] = {0};
    unsigned char known[2 * M_NQ];
    for (int i = 0; i < M_NQ; ++i) { q0[i] = q[i]; v0[i] = v[i]; }
    for (int i = 0; i < 2 * M_NQ; ++i) known[i] = 1;
    int code = m_init(&state, 0, q0, v0, known, m_default_parameters);
    for (int k = 0; k < steps && code <= 0; ++k) {
        const double from = k * dt, to = (k + 1) * dt;
        for (int i = 0; i < M_NU; ++i) load[i] = u[k * M_NU + i];
        code = m_step(&state, from, to - from, load, m_default_parameters);
        for (int i = 0; i < M_NQ; ++i) {
            out[2 * M_NQ * k + i] = (double)state.q[i];
            out[2 * M_NQ * k + M_NQ + i] = (double)state.v[i];
        }
    }
    return code;
}
"""


def moved(program, start, inputs, dt_s: float, flags: tuple[str, ...], wide: bool) -> np.ndarray:
    """The rows of the exported code, in `long double` if wide."""
    c, steps = c_source(program), len(inputs)
    texts = {"m.h": c.header, "m.c": c.source}
    if wide:
        # Functions of <tgmath.h> follow the type of their arguments.
        more = lambda text: re.sub(r"\bdouble\b", "long double", text)  # noqa: E731
        texts = {name: more(text).replace("<math.h>", "<tgmath.h>") for name, text in texts.items()}
    texts["driver.c"] = _DRIVER.replace("NUMBER", "long double" if wide else "double")
    out = np.zeros((steps, 2 * len(start.q)))
    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts.items():
            (Path(folder) / name).write_text(text)
        command = ["cc", "-std=c99", "-O2", *flags, "-shared", "-fPIC", "m.c", "driver.c"]
        subprocess.run([*command, "-o", "m.so", "-lm"], cwd=folder, check=True)
        code = ctypes.CDLL(str(Path(folder) / "m.so"))
        arrays = [np.ascontiguousarray(x, float) for x in (start.q, start.v, inputs)]
        pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in (*arrays, out)]
        assert code.run(steps, ctypes.c_double(dt_s), *pointers) <= 0
    return out


def main() -> None:
    """Print the largest differences of the driven slider-crank over 10,000 steps."""
    case = get_case("slider-crank")
    start = mbd.consistent_state(case.mechanism, case.initial)
    inputs = case.make_inputs(case.steps)

    def simulated(theta: float) -> np.ndarray:
        given = {**case.initial, "theta1": theta}
        run = mbd.simulate(case.mechanism, case.times(), given, inputs=inputs, integrator="rk4")
        return np.concatenate([run.q, run.v], axis=1)[1:]

    program = trace_program(case.mechanism, name="m", dt_s=case.dt_s, entries=("init", "step"))
    given = (program, start, inputs, case.dt_s)
    exact, plain = moved(*given, (), True), moved(*given, (), False)
    fused = moved(*given, ("-march=native", "-ffp-contract=fast"), False)
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
