"""Machines with closed loops from MJCF files, and how far their loops gape: ours and MuJoCo's.

A five-bar, a leg with two four-bars, as in Cassie, and a Delta robot: 10 s under motor torques.
Ours keeps the loops as constraints; in MuJoCo an equality is a spring and a damper, as stiff here
as the step allows (a time constant of two steps). The gap is the largest over all loops and steps.

`python -m benchmarks.loops [NAME ...]` takes the machines whose name contains one of the words.
"""

import sys
import tempfile
import time
import warnings
from pathlib import Path

import mujoco
import numpy as np

import mbdnode as mbd

DURATION_S, STEP_S = 10.0, 1e-3
GOAL_M = 1e-12
TORQUE_N_M = 0.2


def bar(name: str, length: float, inner: str = "", place: str = "0 0 0", spring: float = 0) -> str:
    """A bar along its x axis, hinged about the y axis where it begins, with a site at its end."""
    return (
        f'<body name="{name}" pos="{place}"><joint name="{name}_angle" axis="0 -1 0" '
        f'stiffness="{spring}"/><geom type="capsule" size="0.01" fromto="0 0 0 {length} 0 0"/>'
        f'<site name="{name}_end" pos="{length} 0 0"/>{inner}</body>'
    )


def machine(
    bodies: str, loops: list[tuple[str, str]], motors: list[str], start: list[float]
) -> str:
    """The text of a file: all loops are points that coincide."""
    closed = "".join(
        f'<connect site1="{a}" site2="{b}" solref="{2 * STEP_S} 1" solimp=".9999 .9999"/>'
        for a, b in loops
    )
    driven = "".join(f'<motor name="{name}_motor" joint="{name}_angle"/>' for name in motors)
    values = " ".join(map(str, start))
    return (
        f'<mujoco><compiler angle="radian"/><option integrator="RK4" timestep="{STEP_S}" '
        'iterations="200" tolerance="1e-14"><flag contact="disable"/></option>'
        '<default><joint damping="0.02"/></default>'
        f"<worldbody>{bodies}</worldbody><equality>{closed}</equality>"
        f'<actuator>{driven}</actuator><keyframe><key qpos="{values}"/></keyframe></mujoco>'
    )


def five_bar() -> str:
    """Two cranks, 0.1 m apart, whose couplers meet."""
    bodies = bar("left", 0.1, bar("left_coupler", 0.15, place="0.1 0 0"), spring=1) + bar(
        "right", 0.1, bar("right_coupler", 0.15, place="0.1 0 0"), "0.1 0 0", spring=1
    )
    start = [2.1, -1.26, 1.05, 1.26]
    return machine(bodies, [("left_coupler_end", "right_coupler_end")], ["left", "right"], start)


def leg() -> str:
    """A thigh, a shin and a foot; a crank on the thigh moves the shin, one on the shin the foot."""
    lever = '<site name="{}" pos="0 0 0.06"/>'
    foot = bar("foot", 0.15, lever.format("heel"), "0.4 0 0", spring=2)
    toe_drive = bar("toe_crank", 0.06, bar("toe_rod", 0.35, place="0.06 0 0"), "0.05 0 0")
    shin = bar("shin", 0.4, lever.format("knee") + toe_drive + foot, "0.4 0 0", spring=5)
    knee_drive = bar("knee_crank", 0.06, bar("knee_rod", 0.35, place="0.06 0 0"), "0.05 0 0")
    bodies = bar("thigh", 0.4, knee_drive + shin, spring=20)
    crank = np.pi / 2
    start = [-1.0, crank - 0.6, 0.6 - crank, -0.6, crank + 0.4, -0.4 - crank, 0.4]
    loops = [("knee_rod_end", "knee"), ("toe_rod_end", "heel")]
    return machine(bodies, loops, ["thigh", "knee_crank", "toe_crank"], start)


def delta() -> str:
    """Three arms, each with two rods to a platform that keeps its orientation."""
    base, arm, rod, half, rim, bent = 0.1, 0.2, 0.4, 0.04, 0.05, 0.3
    sideways = base + arm * np.cos(bent) - rim
    down = np.sqrt(rod**2 - sideways**2)
    turned = np.arctan2(down, -sideways) - bent
    bodies, sites, loops, start = "", "", [], []
    for k, angle in enumerate(2 * np.pi / 3 * np.arange(3)):
        c, s = np.cos(angle), np.sin(angle)
        rods = ""
        for side, y in (("a", -half), ("b", half)):
            rods += (
                f'<body name="rod{k}{side}" pos="{arm} {y} 0"><joint name="elbow{k}{side}" '
                'type="ball" damping="0"/>'
                f'<geom type="capsule" size="0.005" fromto="0 0 0 {rod} 0 0"/>'
                f'<site name="end{k}{side}" pos="{rod} 0 0"/></body>'
            )
            x, z = rim * c - y * s, rim * s + y * c
            sites += f'<site name="rim{k}{side}" pos="{x} {z} 0"/>'
            loops.append((f"end{k}{side}", f"rim{k}{side}"))
        start += [bent, *[np.cos(turned / 2), 0, np.sin(turned / 2), 0] * 2]
        bodies += (
            f'<body name="arm{k}" pos="{base * c} {base * s} 0" euler="0 0 {angle}">'
            f'<joint name="arm{k}_angle" axis="0 1 0" stiffness="5" springref="{bent}"/>'
            f'<geom type="capsule" size="0.01" fromto="0 0 0 {arm} 0 0"/>{rods}</body>'
        )
    height = -arm * np.sin(bent) - down
    bodies += (
        f'<body name="platform" pos="0 0 {height}"><freejoint/>'
        f'<geom type="cylinder" size="{rim} 0.005"/>{sites}</body>'
    )
    start += [0, 0, height, 1, 0, 0, 0]
    return machine(bodies, loops, ["arm0", "arm1", "arm2"], start)


MACHINES = {"five-bar": five_bar, "leg with two four-bars": leg, "Delta robot": delta}


def controls(count: int, steps: int) -> np.ndarray:
    """Torques of every motor at every step."""
    t = STEP_S * np.arange(steps)[:, None]
    return TORQUE_N_M * np.sin(2 * np.pi * (0.4 + 0.3 * np.arange(count)) * t + np.arange(count))


def mujoco_gap(text: str) -> float:
    """The largest distance between points that coincide, over a run of MuJoCo."""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    ends = model.eq_obj1id, model.eq_obj2id
    worst, begins = 0.0, round(1 / STEP_S)
    for step, torques in enumerate(controls(model.nu, round(DURATION_S / STEP_S))):
        data.ctrl[:] = torques
        mujoco.mj_step(model, data)
        if step >= begins:  # It pulls loops together that the keyframe leaves open.
            apart = data.site_xpos[ends[0]] - data.site_xpos[ends[1]]
            worst = max(worst, float(np.linalg.norm(apart, axis=1).max()))
    return worst


def our_run(text: str) -> tuple[mbd.Trajectory, int]:
    """The run, and how many degrees of freedom it has."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        path = Path(folder) / "machine.xml"
        path.write_text(text)
        system = mbd.read_mechanism(path)
    steps = round(DURATION_S / STEP_S)
    t = STEP_S * np.arange(steps + 1)
    inputs = controls(len(system.inputs), steps)
    run = mbd.simulate(system, t, mbd.consistent_state(system, {}), inputs=inputs)
    return run, len(system.coordinates)


def main(words: tuple[str, ...] = ()) -> bool:
    """Run all and print a row for each; whether all loops are closed."""
    print(f"{DURATION_S:g} s, RK4 with {STEP_S:g} s, largest gap of a loop:\n")
    heads = ("machine", "coordinates", "status", "ours [m]", "MuJoCo [m], after 1 s", "ours [s]")
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    good = True
    for name, make in MACHINES.items():
        if words and not any(word in name for word in words):
            continue
        start = time.process_time()
        run, count = our_run(make())
        spent = time.process_time() - start
        ours = float(np.max(np.asarray(run.position_residual)))
        theirs = mujoco_gap(make())
        status = str(run.status)
        cells = (name, count, status, f"{ours:.1e}", f"{theirs:.1e}", f"{spent:.0f}")
        print(f"| {' | '.join(map(str, cells))} |", flush=True)
        good &= bool(run.status.ok) and ours < GOAL_M
    return good


if __name__ == "__main__":
    sys.exit(not main(tuple(sys.argv[1:])))
