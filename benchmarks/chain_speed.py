"""Chains of bars from a description: time a step as they grow, beside MuJoCo's tree.

RK4 in both, on one core. MuJoCo has one angle for each bar; we have three coordinates for each, and
the joints as constraints. Times are the processor's, since a machine is shared: of a long run less
those of a short one, so that neither the call nor what is compiled counts. Numbers of bars may be
named, `python -m benchmarks.chain_speed 5 40`.
"""

import os
import sys
import time

import jax
import mujoco
import numpy as np
from rich.console import Console
from rich.table import Table

import mbdnode as mbd
from mbdnode.mechanisms import from_dict

COUNTS = (2, 5, 10, 20, 40)
DT_S = 1e-3
SHORT, LONG, REPEATS = 50, 550, 3


def chain(count: int):
    """Uniform bars of one meter and one kilogram, each pinned to the last, under gravity."""
    bodies, joints = {}, {}
    for n in range(1, count + 1):
        before = "ground" if n == 1 else f"bar{n - 1}"
        bodies[f"bar{n}"] = {"center": [n - 0.5, 0.0], "mass": 1.0, "inertia": 1 / 12}
        joints[f"pin{n}"] = {
            "type": "revolute",
            "bodies": [before, f"bar{n}"],
            "points": [[0.0, 0.0] if n == 1 else [0.5, 0.0], [-0.5, 0.0]],
        }
    return from_dict({"name": "chain", "gravity": [0.0, -9.81], "bodies": bodies, "joints": joints})


def mujoco_chain(count: int) -> mujoco.MjModel:
    """The same in MuJoCo; the bars swing in its x-z plane."""
    bar = '<body pos="{x} 0 0"><joint type="hinge" axis="0 -1 0"/><inertial pos="0.5 0 0" mass="1" '
    bar += 'diaginertia="0.0833333333333 0.0833333333333 0.0833333333333"/>'
    bars = "".join(bar.format(x=0 if n == 0 else 1) for n in range(count)) + "</body>" * count
    option = f'<option timestep="{DT_S}" integrator="RK4" gravity="0 0 -9.81"/>'
    return mujoco.MjModel.from_xml_string(f"<mujoco>{option}<worldbody>{bars}</worldbody></mujoco>")


def seconds_a_step(run) -> float:
    """Of processor time; `run` takes a number of steps."""

    def best(steps: int) -> float:
        times = []
        for _ in range(REPEATS):
            begin = time.process_time()
            run(steps)
            times.append(time.process_time() - begin)
        return min(times)

    return (best(LONG) - best(SHORT)) / (LONG - SHORT)


def measure_chain(count: int):
    """Compile time, our time and MuJoCo's for a step, residuals, and how far apart they end."""
    mechanism = chain(count)
    start = mbd.consistent_state(mechanism, {})

    def ours(steps: int):
        times = np.arange(steps + 1) * DT_S
        run = mbd.simulate(mechanism, times, start, integrator="rk4", check_step=False)
        return jax.block_until_ready(run)

    begin = time.process_time()
    ours(SHORT)
    compile_s = time.process_time() - begin
    found = ours(LONG)
    model = mujoco_chain(count)
    data = mujoco.MjData(model)

    def theirs(steps: int):
        mujoco.mj_resetData(model, data)
        for _ in range(steps):
            mujoco.mj_step(model, data)

    theirs(LONG)
    apart = np.max(np.abs(np.asarray(found.q[-1, 2::3]) - np.cumsum(data.qpos)))
    residual = max(np.max(found.position_residual), np.max(found.velocity_residual))
    return compile_s, seconds_a_step(ours), seconds_a_step(theirs), residual, apart


def main(console: Console, counts=COUNTS) -> None:
    """Measure and print."""
    # One core for both. Affinity is where the system has it; elsewhere it is left to the system.
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    table = Table(title=f"Chains of bars, RK4 at {DT_S} s, one core, processor time")
    columns = ("bars", "compile \\[s]", "us a step", "MuJoCo", "times MuJoCo", "residual", "apart")
    for column in columns:
        table.add_column(column, justify="right")
    for count in counts:
        compile_s, ours, theirs, residual, apart = measure_chain(count)
        table.add_row(
            str(count),
            f"{compile_s:.1f}",
            f"{ours * 1e6:.0f}",
            f"{theirs * 1e6:.1f}",
            f"{ours / theirs:.1f}",
            f"{residual:.0e}",
            f"{apart:.0e}",
        )
    console.print(table)


if __name__ == "__main__":
    main(Console(width=110), tuple(map(int, sys.argv[1:])) or COUNTS)
