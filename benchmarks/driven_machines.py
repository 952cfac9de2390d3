"""Driven machines, with noise and without: how far ahead the laws found by regression predict.

    python -m benchmarks.driven_machines [--recipe best] [--noise 0,0.01] [--runs 6] [MACHINE ...]

Each machine is stepped by the classical Runge-Kutta method at a twentieth of the recorded step
(its error is near 1e-10 of the motion), from random states under random inputs. Torques and forces
of motors are held over each recorded step; the acceleration of a moving base is smooth and is
recorded at the samples alone. Noise is normal, a part of each column's standard deviation. Two more
runs, with the same noise, are held out whole; nothing of them is seen in the fit. Printed are the
NRMSE of their predictions and the valid prediction time, as `mbdnode fit` has them.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
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
    - `input`: its name; empty for a machine that nothing drives.
    - `size`: of the input: its standard deviation where it is held, its amplitude where smooth.
    - `smooth`: whether the input is a smooth function of time, else held over three steps.
    - `dt_s`: the recorded step.
    """

    acceleration: Callable
    coordinates: tuple
    initial: tuple[tuple[float, ...], tuple[float, ...]]
    input: str
    size: float
    smooth: bool = False
    dt_s: float = 0.02

    def system(self) -> mbd.AccelerationFunction:
        """What the fit is told: names, and nothing of the law."""
        return mbd.AccelerationFunction(
            self.acceleration, self.coordinates, inputs=(mbd.Input(self.input),)
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


MACHINES = {
    "acrobot, absolute angles": Machine(
        _acrobot_absolute,
        (mbd.angle("theta1"), mbd.angle("theta2")),
        ((1.0, 1.0), (1.0, 1.0)),
        "torque",
        1.5,
    ),
    "acrobot, relative angles": Machine(
        _acrobot_relative,
        (mbd.angle("theta1"), mbd.angle("theta2")),
        ((1.0, 1.0), (1.0, 1.0)),
        "torque",
        1.5,
    ),
    "furuta pendulum": Machine(
        _furuta,
        (mbd.angle("arm"), mbd.angle("pendulum")),
        ((0.5, 1.0), (1.0, 2.0)),
        "torque",
        0.06,
        dt_s=0.01,
    ),
    "driven cart-pole": Machine(
        _cart,
        (mbd.length("x"), mbd.angle("theta")),
        ((0.3, 1.0), (0.5, 2.0)),
        "force",
        5.0,
    ),
    "pendulum on a moving base": Machine(
        _moving_base,
        (mbd.angle("theta"),),
        ((0.8,), (1.0,)),
        "acceleration",
        6.0,
        smooth=True,
        dt_s=0.05,
    ),
}


def run_of(machine: Machine, seed: int, *, steps: int = STEPS) -> Trajectory:
    """A run without noise, from a random state under a random input."""
    random = np.random.default_rng(seed)
    q, v = (random.normal(size=len(x)) * np.array(x) for x in machine.initial)
    fine = np.arange(steps * SUBSTEPS + 1) * (machine.dt_s / SUBSTEPS)
    if machine.smooth:
        # Up to a sixth of the sampling rate.
        frequency = random.uniform(0.2, 1 / (6 * machine.dt_s), 5)
        phase = random.uniform(0, 2 * np.pi, 5)
        samples = (
            machine.size
            * np.sqrt(0.4)
            * np.sum(np.sin(2 * np.pi * frequency * fine[:, None] + phase), axis=1)
        )
        how = "cubic"
    else:
        held = machine.size * np.repeat(random.normal(size=steps // 3 + 1), 3 * SUBSTEPS)
        samples, how = held[: len(fine)], "constant"
    system = machine.system()
    start = mbd.State(jnp.asarray(q), jnp.asarray(v))
    run = mbd.simulate(system, fine, start, inputs=samples[:, None], interpolation=how)
    if int(run.status.step) != len(fine) - 1:
        raise RuntimeError(f"the simulation ended: {run.status}")
    every = lambda x: jnp.asarray(np.asarray(x)[::SUBSTEPS]) if np.ndim(x) else x  # noqa: E731
    coarse = jax.tree.map(every, run)
    last = jnp.asarray(steps)
    return eqx.tree_at(lambda r: r.status.step, coarse, last)


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
    horizon = measure_horizon(found.model, named, None, scores.scales, "rk4")
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
    given = parser.parse_args()
    chosen = [name for name in MACHINES if not given.machines or name in given.machines]
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
