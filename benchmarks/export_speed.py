"""Exported C beside SciPy and MuJoCo, and a network beside its matrix-vector products.

Every figure is of processor time on one core, the median of several runs, all in one process, so
that they are of the same machine under the same load. It ends with an error if a goal is missed.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import mbdnode as mbd
from benchmarks.exported_code import build_library, run_c
from benchmarks.slider_crank_speed import CASE, mujoco_seconds_a_step, scipy_seconds_a_step
from mbdnode.exports import c_source, trace_program

REPEATS = 7

_PRODUCTS = """
#include <time.h>
static double w1[256 * {n}], w2[256 * 256], w3[256], x[{n}], y1[256], y2[256];
double run(int turns);
double run(int turns)
{{
    for (int i = 0; i < 256 * {n}; ++i) w1[i] = 1e-3 * i;
    for (int i = 0; i < 256 * 256; ++i) w2[i] = 1e-6 * i;
    for (int i = 0; i < 256; ++i) w3[i] = 1e-3 * i;
    double kept = 0;
    const clock_t begin = clock();
    for (int k = 0; k < turns; ++k) {{
        for (int i = 0; i < {n}; ++i) x[i] = 1e-3 * (k + i) + 1e-9 * kept;
        for (int i = 0; i < 256; ++i) {{
            double sum = 0;
            for (int j = 0; j < {n}; ++j) sum += w1[i * {n} + j] * x[j];
            y1[i] = sum;
        }}
        for (int i = 0; i < 256; ++i) {{
            double sum = 0;
            for (int j = 0; j < 256; ++j) sum += w2[i * 256 + j] * y1[j];
            y2[i] = sum;
        }}
        double sum = 0;
        for (int j = 0; j < 256; ++j) sum += w3[j] * y2[j];
        kept = sum > 1e300 ? 0 : sum;
    }}
    const clock_t end = clock();
    return kept != kept ? -1.0 : (double)(end - begin) / CLOCKS_PER_SEC / turns;
}}
"""


def _seconds_a_step(model, start, inputs, steps: int, dt_s: float) -> tuple[float, np.ndarray]:
    c = c_source(trace_program(model, name="m", dt_s=dt_s, entries=("init", "step")))
    given = (c.header, c.source, start, inputs, dt_s)
    rows, seconds = run_c(*given, steps=steps, repeats=REPEATS)
    return seconds, rows[-1]


def _products_seconds(features: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        code = build_library(Path(folder), {"products.c": _PRODUCTS.format(n=features)})
        return statistics.median(code.run(2_000) for _ in range(REPEATS))


def main(console: Console) -> bool:
    """Measure and print; whether every goal is met."""
    start = mbd.consistent_state(CASE.mechanism, CASE.initial)
    inputs = CASE.make_inputs(CASE.steps)
    assert inputs is not None
    exported, out = _seconds_a_step(CASE.mechanism, start, inputs, CASE.steps, CASE.dt_s)
    begin = time.process_time()
    scipy_wall = scipy_seconds_a_step(start, inputs[:300])
    scipy_s = min(scipy_wall, (time.process_time() - begin) / 300)
    rows = []
    for _ in range(3):
        begin = time.process_time()
        mujoco_seconds_a_step(start, inputs)
        rows.append((time.process_time() - begin) / len(inputs))
    mujoco_s = statistics.median(rows)
    run = mbd.simulate(CASE.mechanism, CASE.times(), start, inputs=inputs, integrator="rk4")
    end = np.concatenate([run.q[-1], run.v[-1]])
    table = Table(title="Slider-crank, RK4 at 0.01 s, random force and torque, one core")
    for column in ("what", "steps a second", "times SciPy", "times MuJoCo"):
        table.add_column(column, justify="left" if column == "what" else "right")
    for name, seconds in (
        ("exported C, -O3 -march=native", exported),
        ("SciPy solve_ivp on the KKT equations", scipy_s),
        ("MuJoCo mj_step (soft loop closure)", mujoco_s),
    ):
        cells = (f"{1 / seconds:,.0f}", f"{scipy_s / seconds:.1f}", f"{mujoco_s / seconds:.2f}")
        table.add_row(name, *cells)
    console.print(table)
    console.print(f"after {CASE.steps:,} steps: |C - simulate| = {np.max(np.abs(out - end)):.1e}")

    pendulum = mbd.mechanisms.SinglePendulum()
    network = mbd.MBDNODE.for_system(pendulum, width=256, hidden_layers=2)
    home = mbd.consistent_state(network, {"theta": 0.5})
    step_s, _ = _seconds_a_step(network, home, np.zeros(2_000), 2_000, 0.01)
    # A step of RK4 evaluates the network four times.
    products_s = 4 * _products_seconds(2)
    share = products_s / step_s
    console.print(
        f"network of 2 x 256, RK4: {1 / step_s:,.0f} steps a second; its matrix-vector products "
        f"alone, as loops in C with -O3: {1 / products_s:,.0f}; a step is {share:.2f} times as fast"
    )

    begin = time.process_time()
    c_source(trace_program(CASE.mechanism, name="m"))
    export_s = time.process_time() - begin
    damper = mbd.mechanisms.SingleMassSpringDamper()
    data = mbd.simulate(damper, np.linspace(0.0, 5.0, 501), {"x": 1.0})
    law = c_source(trace_program(mbd.identify(damper, data, "fast").model, name="m"))
    console.print(
        f"export of the slider-crank with all entries: {export_s:.1f} s of processor time; C of a "
        f"law: {len(law.source):,} bytes"
    )
    goals = {
        "20 times SciPy": scipy_s / exported >= 20,
        "faster than MuJoCo": mujoco_s / exported > 1,
        "half of the products' speed": share >= 0.5,
        "export within 10 s": export_s <= 10,
        "a law under 100 kB": len(law.source) < 100_000,
    }
    for goal, met in goals.items():
        console.print(f"  {goal:<28} {'met' if met else 'MISSED'}")
    return all(goals.values())


if __name__ == "__main__":
    sys.exit(0 if main(Console(width=110)) else 1)
