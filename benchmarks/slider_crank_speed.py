"""Slider-crank: steps a second beside SciPy and MuJoCo, and ten million samples.

All in one run, since only ratios mean anything on a shared machine; by the clock, and by the
processor's time, of which the shortest of several runs counts. SciPy gets the same nine
coordinates, as a NumPy user would write them: the KKT system assembled and solved at every
evaluation, one `solve_ivp` for each held input, at the tolerance that RK4 reaches with this step.
"""

import resource
import time

import jax
import mujoco
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.integrate import solve_ivp

import mbdnode as mbd
from benchmarks.timing import measure
from mbdnode.reproduction.cases import get_case
from tests.mechanisms.test_against_mujoco import SLIDER_CRANK

CASE = get_case("slider-crank")
RANGES = {"theta1": (0.0, 2 * np.pi), "theta1_dot": (-4.0, 4.0), "F": (-10, 10), "T": (-10, 10)}
MASS = np.diag([3.0, 3, 4, 6, 6, 32, 1, 1, 1])


def kkt_right_hand_side(t, y, force, torque):
    """The paper's first equation with the numbers of its appendix."""
    q, v = y[:9], y[9:]
    s1, c1, s2, c2 = np.sin(q[2]), np.cos(q[2]), np.sin(q[5]), np.cos(q[5])
    jacobian = np.array(
        [
            [1, 0, s1, 0, 0, 0, 0, 0, 0],
            [0, 1, -c1, 0, 0, 0, 0, 0, 0],
            [1, 0, -s1, -1, 0, -2 * s2, 0, 0, 0],
            [0, 1, c1, 0, -1, 2 * c2, 0, 0, 0],
            [0, 0, 0, 1, 0, -2 * s2, -1, 0, 0],
            [0, 0, 0, 0, 1, 2 * c2, 0, -1, 0],
            [0, 0, 0, 0, 0, 0, 0, 1, 0],
            [0, 0, 0, 0, 0, 0, 0, 0, 1],
        ]
    )
    w1, w2 = v[2] ** 2, 2 * v[5] ** 2
    gamma = [-w1 * c1, -w1 * s1, w1 * c1 + w2 * c2, w1 * s1 + w2 * s2, w2 * c2, w2 * s2, 0, 0]
    matrix = np.zeros((17, 17))
    matrix[:9, :9], matrix[:9, 9:], matrix[9:, :9] = MASS, jacobian.T, jacobian
    right = np.concatenate([[0, 0, torque, 0, 0, 0, force, 0, 0], gamma])
    return np.concatenate([v, np.linalg.solve(matrix, right)[:9]])


def scipy_seconds_a_step(start, inputs, clock=time.perf_counter) -> float:
    """`solve_ivp` over each held input."""
    y = np.concatenate([start.q, start.v])
    begin = clock()
    for load in inputs:
        y = solve_ivp(
            kkt_right_hand_side, (0.0, CASE.dt_s), y, args=tuple(load), rtol=1e-8, atol=1e-10
        ).y[:, -1]
    return (clock() - begin) / len(inputs)


def mujoco_seconds_a_step(start, inputs) -> float:
    """MuJoCo's own loop at the same step."""
    model = mujoco.MjModel.from_xml_string(SLIDER_CRANK.format(step=CASE.dt_s, twice=2 * CASE.dt_s))
    data = mujoco.MjData(model)
    theta1, theta2, x3 = np.asarray(start.q)[[2, 5, 6]]
    data.qpos[:] = [theta1, theta2 - theta1, x3 - 6.0]
    begin = time.perf_counter()
    for load in inputs:
        data.ctrl[:] = load
        mujoco.mj_step(model, data)
    return (time.perf_counter() - begin) / len(inputs)


def main(console: Console) -> None:
    """Measure and print."""
    start = mbd.consistent_state(CASE.mechanism, CASE.initial)
    inputs = CASE.make_inputs(CASE.steps)
    given = {"inputs": inputs, "integrator": "rk4", "check_step": False}
    one = measure(lambda: mbd.simulate(CASE.mechanism, CASE.times(), start, **given), repeats=9)
    many, steps = 1_000, 100
    loads = np.random.default_rng(1).uniform(-10, 10, (many, steps, 2))
    # Without `jit`, so that it is compiled as a mechanism is.
    batch = jax.vmap(lambda u: mbd.simulate(CASE.mechanism, CASE.times(steps), start, inputs=u))
    parallel = measure(lambda: batch(loads), repeats=3)
    ours, ours_many = one.run_s / CASE.steps, parallel.run_s / (many * steps)
    scipy_s, mujoco_s = (
        scipy_seconds_a_step(start, inputs[:500]),
        mujoco_seconds_a_step(start, inputs),
    )
    # In short runs, since of a busy machine the shortest ones are the least disturbed.
    scipy_cpu_s = min(
        scipy_seconds_a_step(start, inputs[:20], time.process_time) for _ in range(25)
    )
    table = Table(title="Slider-crank, RK4 at 0.01 s, random force and torque")
    columns = ("what", "compile \\[s]", "steps a second", "times SciPy", "by CPU", "times MuJoCo")
    for column in columns:
        table.add_column(column, justify="left" if column == "what" else "right")
    rows = (
        ("mbdnode, one trajectory", one.compile_s, ours, one.cpu_s / CASE.steps),
        ("mbdnode, 1,000 at once", parallel.compile_s, ours_many, parallel.cpu_s / (many * steps)),
        ("SciPy solve_ivp on the KKT equations", 0.0, scipy_s, scipy_cpu_s),
        ("MuJoCo mj_step (soft loop closure)", 0.0, mujoco_s, None),
    )
    for name, compile_s, seconds, cpu_s in rows:
        table.add_row(
            name,
            f"{compile_s:.1f}" if compile_s else "-",
            f"{1 / seconds:,.0f}",
            f"{scipy_s / seconds:.1f}",
            "-" if cpu_s is None else f"{scipy_cpu_s / cpu_s:.1f}",
            f"{mujoco_s / seconds:.2f}",
        )
    console.print(table)
    _sampling(console)


def _sampling(console: Console, count: int = 10_000_000) -> None:
    next(mbd.sample_accelerations(CASE.mechanism, RANGES, 4_096))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin, seen = time.perf_counter(), 0
    for samples in mbd.sample_accelerations(CASE.mechanism, RANGES, count):
        seen += len(samples)
    jax.block_until_ready(samples)
    seconds = time.perf_counter() - begin
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    console.print(
        f"{seen:,} uniform samples of slider-crank accelerations, streamed: {seconds:.0f} s, "
        f"{seconds / seen * 1e6:.1f} us each, {grown:.0f} MB more memory at the end than at the "
        "start"
    )


if __name__ == "__main__":
    main(Console(width=110))
