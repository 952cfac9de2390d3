"""Exported C, compiled and run: the rows of a motion, and how long a step takes.

Steps are timed by the processor's clock inside of the library, so that what calls it costs nothing.
"""

import ctypes
import re
import statistics
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

FAST = ("-std=c99", "-O3", "-march=native")

_DRIVER = """
#include "m.h"
#include <time.h>
double run(int steps, int turns, double dt, const double *q, const double *v, const double *u,
           double *out);
double run(int steps, int turns, double dt, const double *q, const double *v, const double *u,
           double *out)
{
    m_state start, state;
    NUMBER q0[M_NQ], v0[M_NQ], load[M_NU + 1] = {0};
    unsigned char known[2 * M_NQ];
    for (int i = 0; i < M_NQ; ++i) { q0[i] = q[i]; v0[i] = v[i]; }
    for (int i = 0; i < 2 * M_NQ; ++i) known[i] = 1;
    int code = m_init(&start, 0, q0, v0, known, m_default_parameters);
    const clock_t begin = clock();
    for (int turn = 0; turn < turns; ++turn) {
        state = start;
        for (int k = 0; k < steps && code <= 0; ++k) {
            const double from = k * dt, to = (k + 1) * dt;
            for (int i = 0; i < M_NU; ++i) load[i] = u[k * M_NU + i];
            code = m_step(&state, from, to - from, load, m_default_parameters);
            for (int i = 0; i < M_NQ; ++i) {
                out[2 * M_NQ * k + i] = (double)state.q[i];
                out[2 * M_NQ * k + M_NQ + i] = (double)state.v[i];
            }
        }
    }
    const clock_t end = clock();
    return code > 0 ? -1.0 : (double)(end - begin) / CLOCKS_PER_SEC / turns / steps;
}
"""


def build_library(
    folder: Path, sources: Mapping[str, str], flags: Sequence[str] = FAST
) -> ctypes.CDLL:
    """A library whose function `run` gives a double."""
    for name, text in sources.items():
        (folder / name).write_text(text)
    files = [name for name in sources if name.endswith(".c")]
    command = ["cc", *flags, "-shared", "-fPIC", *files, "-o", "m.so", "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    code = ctypes.CDLL(str(folder / "m.so"))
    code.run.restype = ctypes.c_double
    return code


def run_c(
    header: str,
    source: str,
    start: Any,
    inputs: np.ndarray,
    dt_s: float,
    *,
    steps: int,
    flags: Sequence[str] = FAST,
    wide: bool = False,
    turns: int = 1,
    repeats: int = 1,
) -> tuple[np.ndarray, float]:
    """Run a model that was exported under the name `m`.

    **Arguments:**

    - `header`, `source`: its texts.
    - `start`: a consistent state.
    - `inputs`: of each step.
    - `dt_s`, `steps`: the length of a step, and how many.
    - `flags`: of the compiler.
    - `wide`: whether it computes in `long double`.
    - `turns`, `repeats`: how often the motion is run, and how often that is timed.

    **Returns:**

    The state after each step, and the median of the seconds a step.
    """
    texts = {"m.h": header, "m.c": source}
    if wide:
        # Functions of <tgmath.h> follow the type of their arguments.
        more = lambda text: re.sub(r"\bdouble\b", "long double", text)  # noqa: E731
        texts = {name: more(text).replace("<math.h>", "<tgmath.h>") for name, text in texts.items()}
    texts["driver.c"] = _DRIVER.replace("NUMBER", "long double" if wide else "double")
    given = (start.q, start.v, np.append(inputs, 0.0))
    arrays = [np.ascontiguousarray(x, float) for x in given]
    out = np.zeros((steps, 2 * len(arrays[0])))
    with tempfile.TemporaryDirectory() as folder:
        code = build_library(Path(folder), texts, flags)
        pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in (*arrays, out)]
        call = lambda: code.run(steps, turns, ctypes.c_double(dt_s), *pointers)  # noqa: E731
        seconds = [call() for _ in range(repeats)]
    assert min(seconds) >= 0, "a step of the exported model failed"
    return out, statistics.median(seconds)
