"""Driven machines, with noise and without: how far ahead the laws found by regression predict.

    python -m benchmarks.driven_machines [--recipe best] [--noise 0,0.01] [--runs 6] [MACHINE ...]
    python -m benchmarks.driven_machines --write FOLDER [--noise 0.01] [MACHINE ...]

Each machine is stepped by the classical Runge-Kutta method at a twentieth of the recorded step
(its error is near 1e-10 of the motion), from random states under random inputs. Torques and forces
of motors are held over each recorded step; the acceleration of a moving base is smooth and is
recorded at the samples alone. Noise is normal, a part of each column's standard deviation. Two more
runs, with the same noise, are held out whole; nothing of them is seen in the fit. Printed are the
NRMSE of their predictions and the valid prediction time, as `mbdnode fit` has them.

With `--write` nothing is fitted: time, positions and inputs of the same runs are written as CSV
files, without rates, for `mbdnode fit`; the runs that are held out are `test*.csv`.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

import mbdnode as mbd
from mbdnode.evaluation import measure_horizon, predict_runs, score
from mbdnode.simulation import training_domain
from mbdnode.trajectory import Dataset, Trajectory

HELD_OUT, STEPS, SUBSTEPS = 2, 400, 20
GRAVITY = 9.81


@dataclass(frozen=True)
class Machine:
    """A machine with numbers of its own.

    **Arguments:**

    - `acceleration`: `a(t, q, v, u, mu)`.
    - `coordinates`: of it.
    - `initial`: the standard deviations of positions and velocities at the start of a run.
    - `inputs`: their names.
    - `sizes`: of the inputs: standard deviations where they are held, amplitudes where smooth.
    - `smooth`: whether the input is a smooth function of time, else held over three steps.
    - `dt_s`: the recorded step.
    - `center`: the mean of the positions at the start; zeros if not given.
    - `feedback`: added to the held inputs at every recorded step, from positions and velocities.
    """

    acceleration: Callable
    coordinates: tuple
    initial: tuple[tuple[float, ...], tuple[float, ...]]
    inputs: tuple[str, ...]
    sizes: tuple[float, ...]
    smooth: bool = False
    dt_s: float = 0.02
    center: tuple[float, ...] = ()
    feedback: Callable | None = None

    def system(self) -> mbd.AccelerationFunction:
        """What the fit is told: names, and nothing of the law."""
        return mbd.AccelerationFunction(
            self.acceleration, self.coordinates, inputs=tuple(mbd.Input(x) for x in self.inputs)
        )


def _solved(mass, force):
    return jnp.linalg.solve(jnp.array(mass), jnp.array(force))


def _acrobot_absolute(t, q, v, u, mu):
    """Two links, both angles from the vertical, a motor between them."""
    m1, m2, l1, c1, c2, i1, i2 = 1.1, 0.8, 0.9, 0.45, 0.4, 0.09, 0.05
    coupled = m2 * l1 * c2
    across = coupled * jnp.cos(q[0] - q[1])
    mass = [[i1 + m1 * c1**2 + m2 * l1**2, across], [across, i2 + m2 * c2**2]]
    turn = coupled * jnp.sin(q[0] - q[1])
    rate = 0.05 * (v[1] - v[0])
    force = [
        -turn * v[1] ** 2
        - (m1 * c1 + m2 * l1) * GRAVITY * jnp.sin(q[0])
        - 0.08 * v[0]
        + rate
        - u[0],
        turn * v[0] ** 2 - m2 * c2 * GRAVITY * jnp.sin(q[1]) - rate + u[0],
    ]
    return _solved(mass, force)


def _acrobot_relative(t, q, v, u, mu):
    """The same machine with the second angle from the first link."""
    absolute = _acrobot_absolute(
        t, jnp.array([q[0], q[0] + q[1]]), jnp.array([v[0], v[0] + v[1]]), u, mu
    )
    return jnp.array([absolute[0], absolute[1] - absolute[0]])


def _furuta(t, q, v, u, mu):
    """An arm about the vertical axis, driven, with a pendulum at its end."""
    arm, link, across = 0.012, 0.006, 0.005
    sine, cosine = jnp.sin(q[1]), jnp.cos(q[1])
    mass = [[arm + link * sine**2, across * cosine], [across * cosine, link]]
    force = [
        u[0] - 0.004 * v[0] - 2 * link * sine * cosine * v[0] * v[1] + across * sine * v[1] ** 2,
        link * sine * cosine * v[0] ** 2 - 0.25 * sine - 0.0004 * v[1],
    ]
    return _solved(mass, force)


def _cart(t, q, v, u, mu):
    """A cart that is pushed, with a pendulum on it."""
    cart, bob, length = 1.3, 0.4, 0.6
    across = bob * length * jnp.cos(q[1])
    mass = [[cart + bob, across], [across, bob * length**2]]
    force = [
        u[0] - 0.5 * v[0] + bob * length * jnp.sin(q[1]) * v[1] ** 2,
        -bob * GRAVITY * length * jnp.sin(q[1]) - 0.01 * v[1],
    ]
    return _solved(mass, force)


def _moving_base(t, q, v, u, mu):
    """A pendulum whose pivot is shaken sideways."""
    return jnp.array([-(GRAVITY * jnp.sin(q[0]) + u[0] * jnp.cos(q[0])) / 0.5 - 0.1 * v[0]])


def _crane(t, q, v, u, mu):
    """A trolley, a cable whose length is hoisted, a load that sways."""
    trolley, load = 4.0, 1.5
    sine, cosine, length = jnp.sin(q[2]), jnp.cos(q[2]), q[1]
    mass = [
        [trolley + load, load * sine, load * length * cosine],
        [load * sine, load, 0.0],
        [load * length * cosine, 0.0, load * length**2],
    ]
    force = [
        u[0] - 2.0 * v[0] - load * (2 * v[1] * cosine * v[2] - length * sine * v[2] ** 2),
        u[1] - 3.0 * v[1] + load * length * v[2] ** 2 + load * GRAVITY * cosine,
        -2 * load * length * v[1] * v[2] - load * GRAVITY * length * sine - 0.05 * v[2],
    ]
    return _solved(mass, force)


def _crane_servo(q, v):
    """The trolley is drawn to its track's middle, the load is held at 1.4 m."""
    return np.array([-2 * q[0], -1.5 * GRAVITY - 12 * (q[1] - 1.4) - 6 * v[1]])


def _two_link_arm(t, q, v, u, mu):
    """Two links with a motor in each joint, the second angle from the first link."""
    m1, m2, l1, c1, c2, i1, i2 = 2.1, 1.3, 0.5, 0.25, 0.22, 0.05, 0.03
    coupled, far = m2 * l1 * c2, i2 + m2 * c2**2
    near = i1 + far + m1 * c1**2 + m2 * l1**2
    across, turn = coupled * jnp.cos(q[1]), coupled * jnp.sin(q[1])
    outer = m2 * c2 * GRAVITY * jnp.sin(q[0] + q[1])
    mass = [[near + 2 * across, far + across], [far + across, far]]
    force = [
        u[0]
        - 0.4 * v[0]
        + turn * (2 * v[0] * v[1] + v[1] ** 2)
        - (m1 * c1 + m2 * l1) * GRAVITY * jnp.sin(q[0])
        - outer,
        u[1] - 0.25 * v[1] - turn * v[0] ** 2 - outer,
    ]
    return _solved(mass, force)


def _sprung_base(t, q, v, u, mu):
    """A pushed mass on a spring, with a pendulum on it that the air brakes."""
    base, bob, length = 2.2, 0.7, 0.45
    across = bob * length * jnp.cos(q[1])
    mass = [[base + bob, across], [across, bob * length**2]]
    force = [
        u[0] - 38.0 * q[0] - 1.7 * v[0] + bob * length * jnp.sin(q[1]) * v[1] ** 2,
        -bob * GRAVITY * length * jnp.sin(q[1]) - 0.022 * v[1] * jnp.abs(v[1]),
    ]
    return _solved(mass, force)


def _ball_and_beam(t, q, v, u, mu):
    """A ball that rolls on a beam, which a motor turns."""
    ball, beam = 0.35, 0.14
    mass = [[1.4 * ball, 0.0], [0.0, beam + ball * q[0] ** 2]]
    force = [
        ball * q[0] * v[1] ** 2 - ball * GRAVITY * jnp.sin(q[1]) - 0.06 * v[0],
        u[0] - 2 * ball * q[0] * v[0] * v[1] - ball * GRAVITY * q[0] * jnp.cos(q[1]) - 0.09 * v[1],
    ]
    return _solved(mass, force)


def _beam_servo(q, v):
    """The beam is turned against the ball's distance and speed, its weight is carried."""
    wanted = 0.3 * q[0] + 0.25 * v[0]
    return np.array([0.35 * GRAVITY * q[0] + 4.0 * (wanted - q[1]) - 1.0 * v[1]])


def _two_mass_drive(t, q, v, u, mu):
    """A motor that turns a load through an elastic shaft, in bearings with viscous friction."""
    motor, load, stiffness, inside = 0.02, 0.05, 6.0, 0.012
    twist = stiffness * (q[0] - q[1]) + inside * (v[0] - v[1])
    return jnp.array([(u[0] - twist - 0.03 * v[0]) / motor, (twist - 0.05 * v[1]) / load])


MACHINES = {
    "acrobot, absolute angles": Machine(
        _acrobot_absolute,
        (mbd.angle("theta1"), mbd.angle("theta2")),
        ((1.0, 1.0), (1.0, 1.0)),
        ("torque",),
        (1.5,),
    ),
    "acrobot, relative angles": Machine(
        _acrobot_relative,
        (mbd.angle("theta1"), mbd.angle("theta2")),
        ((1.0, 1.0), (1.0, 1.0)),
        ("torque",),
        (1.5,),
    ),
    "furuta pendulum": Machine(
        _furuta,
        (mbd.angle("arm"), mbd.angle("pendulum")),
        ((0.5, 1.0), (1.0, 2.0)),
        ("torque",),
        (0.06,),
        dt_s=0.01,
    ),
    "driven cart-pole": Machine(
        _cart,
        (mbd.length("x"), mbd.angle("theta")),
        ((0.3, 1.0), (0.5, 2.0)),
        ("force",),
        (5.0,),
    ),
    "pendulum on a moving base": Machine(
        _moving_base,
        (mbd.angle("theta"),),
        ((0.8,), (1.0,)),
        ("acceleration",),
        (6.0,),
        smooth=True,
        dt_s=0.05,
    ),
    "crane": Machine(
        _crane,
        (mbd.length("x"), mbd.length("l"), mbd.angle("sway")),
        ((0.2, 0.1, 0.4), (0.2, 0.1, 0.4)),
        ("trolley force", "hoist force"),
        (8.0, 1.5),
        center=(0.0, 1.4, 0.0),
        feedback=_crane_servo,
    ),
    "two-link arm": Machine(
        _two_link_arm,
        (mbd.angle("shoulder"), mbd.angle("elbow")),
        ((0.8, 0.8), (0.0, 0.0)),
        ("shoulder torque", "elbow torque"),
        (5.0, 2.0),
        dt_s=0.01,
    ),
    "pendulum on a sprung base": Machine(
        _sprung_base,
        (mbd.length("x"), mbd.angle("theta")),
        ((0.1, 1.0), (0.3, 2.0)),
        ("force",),
        (20.0,),
    ),
    "ball and beam": Machine(
        _ball_and_beam,
        (mbd.length("r"), mbd.angle("beam")),
        ((0.15, 0.1), (0.1, 0.1)),
        ("torque",),
        (1.0,),
        feedback=_beam_servo,
    ),
    "two-mass drive": Machine(
        _two_mass_drive,
        (mbd.angle("motor"), mbd.angle("load")),
        ((0.5, 0.5), (1.0, 1.0)),
        ("torque",),
        (1.0,),
        dt_s=0.01,
    ),
}


def run_of(machine: Machine, seed: int, *, steps: int = STEPS) -> Trajectory:
    """A run without noise, from a random state under random inputs."""
    random = np.random.default_rng(seed)
    q, v = (random.normal(size=len(x)) * np.array(x) for x in machine.initial)
    q = q + np.array(machine.center or np.zeros(len(q)))
    fine = np.arange(steps * SUBSTEPS + 1) * (machine.dt_s / SUBSTEPS)
    if machine.smooth:
        # Up to a sixth of the sampling rate.
        frequency = random.uniform(0.2, 1 / (6 * machine.dt_s), 5)
        phase = random.uniform(0, 2 * np.pi, 5)
        waves = np.sin(2 * np.pi * frequency * fine[:, None] + phase)
        samples = machine.sizes[0] * np.sqrt(0.4) * np.sum(waves, axis=1)[:, None]
        return _recorded(machine, fine, q, v, samples, "cubic")
    held = random.normal(size=(steps // 3 + 1, len(machine.sizes))) * np.array(machine.sizes)
    held = np.repeat(held, 3, axis=0)[: steps + 1]
    if machine.feedback is not None:
        held = _with_feedback(machine, fine[: SUBSTEPS + 1], q, v, held)
    samples = np.repeat(held, SUBSTEPS, axis=0)[: len(fine)]
    return _recorded(machine, fine, q, v, samples, "constant")


def _with_feedback(machine: Machine, one: np.ndarray, q, v, held: np.ndarray) -> np.ndarray:
    """The inputs of a closed loop, step by step."""
    assert machine.feedback is not None
    system, applied = machine.system(), held.copy()
    for k in range(len(held)):
        applied[k] += machine.feedback(np.asarray(q), np.asarray(v))
        inputs = np.repeat(applied[k : k + 1], len(one), axis=0)
        run = mbd.simulate(system, one, mbd.State(jnp.asarray(q), jnp.asarray(v)), inputs=inputs)
        q, v = run.q[-1], run.v[-1]
    return applied


def _recorded(machine: Machine, fine: np.ndarray, q, v, samples: np.ndarray, how) -> Trajectory:
    """The simulated run at the recorded steps."""
    start = mbd.State(jnp.asarray(q), jnp.asarray(v))
    run = mbd.simulate(machine.system(), fine, start, inputs=samples, interpolation=how)
    if int(run.status.step) != len(fine) - 1:
        raise RuntimeError(f"the simulation ended: {run.status}")
    every = lambda x: jnp.asarray(np.asarray(x)[::SUBSTEPS]) if np.ndim(x) else x  # noqa: E731
    last = jnp.asarray((len(fine) - 1) // SUBSTEPS)
    return eqx.tree_at(lambda r: r.status.step, jax.tree.map(every, run), last)


def with_noise(runs: list[Trajectory], part: float, seed: int) -> list[Trajectory]:
    """Normal noise of a part of each column's standard deviation over all runs."""
    random = np.random.default_rng(seed)
    sizes = [
        part * np.std(np.concatenate([np.asarray(x) for x in parts]), axis=0)
        for parts in zip(*((run.q, run.v) for run in runs), strict=True)
    ]
    noisy = []
    for run in runs:
        moved = tuple(
            x + jnp.asarray(random.normal(size=x.shape) * size)
            for x, size in zip((run.q, run.v), sizes, strict=True)
        )
        noisy.append(eqx.tree_at(lambda r: (r.q, r.v), run, moved))
    return noisy


def write(machine: Machine, part: float, count: int, seed: int, folder: Path) -> None:
    """Positions and inputs of the runs that `measure` would fit, and of those that it holds out."""
    clean = [run_of(machine, 100 * seed + k) for k in range(count + HELD_OUT)]
    runs = with_noise(clean, part, seed) if part else clean
    folder.mkdir(parents=True, exist_ok=True)
    for k, run in enumerate(runs):
        states = [f"{c.name} [{c.unit}]" for c in machine.coordinates]
        names = ("time [s]", *states, *machine.inputs)
        table = np.column_stack([np.asarray(x) for x in (run.t, run.q, run.u)])
        path = folder / (f"run{k}.csv" if k < count else f"test{k - count}.csv")
        np.savetxt(path, table, delimiter=",", header=",".join(names), comments="", fmt="%.10g")


def measure(machine: Machine, part: float, recipe: str, count: int, seed: int = 0) -> dict:
    """Fit all runs but the last ones, and predict those."""
    clean = [run_of(machine, 100 * seed + k) for k in range(count + HELD_OUT)]
    runs = with_noise(clean, part, seed) if part else clean
    training, rest = runs[:count], runs[count:]
    system = machine.system()
    begun = time.perf_counter()
    found = mbd.identify(system, Dataset(training), recipe)
    seconds = time.perf_counter() - begun
    named = [(f"run {k}", run, {}) for k, run in enumerate(rest)]
    return _judged(found, named, training, system) | {"seconds": seconds}


def _judged(found: Any, named: list, training: list, system: Any) -> dict:
    domain = training_domain(found.model, training)
    held_out = predict_runs(found.model, named, None, domain, "rk4")
    scores = score(held_out, system.coordinates, training)
    horizon = measure_horizon(found.model, named, None, scores.scales, "rk4", noise=scores.noise)
    return {
        "nrmse": scores.nrmse,
        "valid": str(horizon),
        "tried": len(found.candidates),
        "compile": found.compile_seconds,
        "status": found.status,
        "law": found,
    }


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("machines", nargs="*", help="all of them if none is named")
    parser.add_argument("--recipe", default="best")
    parser.add_argument("--noise", default="0,0.01", help="parts, with commas")
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--equations", action="store_true")
    parser.add_argument("--write", type=Path, help="a folder for CSV files; then nothing is fitted")
    given = parser.parse_args()
    chosen = [name for name in MACHINES if not given.machines or name in given.machines]
    if given.write is not None:
        for name in chosen:
            for part in (float(x) for x in given.noise.split(",")):
                folder = given.write / f"{name} {part:g}".replace(",", "").replace(" ", "-")
                write(MACHINES[name], part, given.runs, given.seed, folder)
                print(folder)
        return
    table = Table(
        title=f"Driven machines, recipe {given.recipe}, {given.runs} runs of {STEPS} steps"
    )
    for column in ("machine", "noise", "NRMSE", "valid", "tried", "s (compile)", "how"):
        table.add_column(column)
    console = Console(width=160)
    for name in chosen:
        for part in (float(x) for x in given.noise.split(",")):
            row = measure(MACHINES[name], part, given.recipe, given.runs, given.seed)
            nrmse = "ended" if row["nrmse"] is None else f"{row['nrmse']:.2g}"
            times = f"{row['seconds']:.0f} ({row['compile']:.0f})"
            cells = (f"{part:g}", nrmse, row["valid"], str(row["tried"]), times, row["status"])
            table.add_row(name, *cells)
            console.print(name, *cells, style="dim")
            if given.equations:
                console.print(str(row["law"].equations))
            jax.clear_caches()
    console.print(table)


if __name__ == "__main__":
    main()
