"""A step of a robot arm beside Pinocchio and MuJoCo: Panda, nine joints, RK4, one trajectory.

Pinocchio has no integrator for this: four calls of its articulated-body algorithm are the least
that a step of RK4 would take. MuJoCo takes steps of its own RK4, without contacts. All by processor
time on one core, in one process; compilation apart, without a cache.

    make bench ONLY=robot_speed
"""

import sys
import time
import warnings
from importlib.metadata import distribution
from pathlib import Path

import jax
import mujoco
import numpy as np
import pinocchio as pin

import mbdnode as mbd
from benchmarks.exported_code import run_c
from mbdnode.exports import c_source, trace_program
from mbdnode.mechanisms.spatial import SpatialMechanism
from mbdnode.mechanisms.spatial.urdf_file import read_urdf

NAME = "panda"
STEPS, DT, REPEATS = 20_000, 1e-4, 5


def find_urdf(name: str) -> Path:
    """In the package example-robot-data."""
    files = distribution("example-robot-data").files or []
    return next(Path(str(f.locate())) for f in files if f.name == f"{name}.urdf")


def processor_seconds(call, repeats: int = REPEATS) -> float:
    """The least of several."""
    spent = []
    for _ in range(repeats):
        begin = time.process_time()
        call()
        spent.append(time.process_time() - begin)
    return min(spent)


def main() -> None:
    """One line each."""
    path = find_urdf(NAME)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # What is not taken over, such as limits and meshes.
        description = read_urdf(path)
    # Neither of the others couples the fingers.
    given = {f: getattr(description, f) for f in ("bodies", "joints", "gravity")}
    arm = SpatialMechanism(type(description)(NAME, **given))
    t = np.arange(STEPS + 1) * DT
    count = len(arm.coordinates)
    start = mbd.State(jax.numpy.linspace(-0.4, 0.5, count), jax.numpy.zeros(count))
    jax.config.update("jax_enable_compilation_cache", False)
    begin = time.perf_counter()
    run = mbd.simulate(arm, t, start, check_step=False)
    first = time.perf_counter() - begin
    simulate = lambda: jax.block_until_ready(mbd.simulate(arm, t, start, check_step=False).q)  # noqa: E731
    ours = processor_seconds(simulate) / STEPS
    c = c_source(trace_program(arm, name="m", dt_s=DT, entries=("init", "step")))
    rows, exported = run_c(
        c.header, c.source, start, np.zeros((STEPS, 0)), DT, steps=STEPS, repeats=REPEATS
    )
    model = pin.buildModelFromUrdf(str(path))
    data = model.createData()
    q, zero = pin.neutral(model), np.zeros(model.nv)

    def algorithm():
        for _ in range(STEPS):
            pin.aba(model, data, q, zero, zero)

    theirs = 4 * processor_seconds(algorithm) / STEPS
    spec = mujoco.MjSpec.from_string(_without_meshes(path))
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_RK4
    spec.option.timestep = DT
    compiled = spec.compile()
    state = mujoco.MjData(compiled)

    def steps():
        mujoco.mj_resetData(compiled, state)
        mujoco.mj_step(compiled, state, nstep=STEPS)

    soft = processor_seconds(steps) / STEPS
    print(f"first answer, with compilation: {first:.1f} s")
    for label, seconds in (
        ("simulate, RK4", ours),
        ("exported C, RK4", exported),
        ("Pinocchio, four calls of aba", theirs),
        ("MuJoCo, RK4", soft),
    ):
        ratio = f"{seconds / theirs:5.2f} times Pinocchio"
        print(f"{label:30} {1e6 * seconds:7.1f} us a step   {ratio}")
    end = np.concatenate([run.q[-1], run.v[-1]])
    print(f"|exported C - simulate| after {STEPS:,} steps: {np.max(np.abs(rows[-1] - end)):.1e}")


def _without_meshes(path: Path) -> str:
    """The file without what it looks like, which MuJoCo would read from other files."""
    import xml.etree.ElementTree as ET

    root = ET.parse(path).getroot()
    for link in root.iter("link"):
        for tag in ("visual", "collision"):
            for part in link.findall(tag):
                link.remove(part)
    return ET.tostring(root, encoding="unicode")


if __name__ == "__main__":
    sys.exit(main())
