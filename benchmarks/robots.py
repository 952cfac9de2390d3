"""Every robot of the package example-robot-data, beside Pinocchio.

Each URDF file that Pinocchio opens, with its base fixed and with it floating, at 20 random states:
mass matrix, inverse dynamics and accelerations under random torques. Where joints mimic others, a
third model has them coupled. Damping and dry friction of the files are left out on both sides,
since Pinocchio's algorithms have none.

Pinocchio's velocity of a free base is that of the body in its own axes. With the matrix `N` in
`q' = N(q) v`, its mass matrix is `N^T M N`, its torques are `N^T (M q'' - F)`, and its
accelerations follow from `q'' = N v' + N' v`.

`python -m benchmarks.robots [NAME ...]` takes the files whose path contains one of the words.
"""

import sys
import time
import warnings
import xml.etree.ElementTree as ET
from dataclasses import dataclass, replace
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
from rich.console import Console
from rich.table import Table

from mbdnode.mechanisms.spatial import SpatialMechanism
from mbdnode.mechanisms.spatial.description import Motor
from mbdnode.mechanisms.spatial.urdf_file import read_urdf
from mbdnode.multibody import accelerations, choose_partition, resolve_parameters
from mbdnode.multibody.lie import quaternion_rates, quaternion_rotation

STATES = 20
GOAL = 1e-10
COLUMNS = ("mass matrix", "inverse dynamics", "accelerations")


@dataclass(frozen=True)
class Robot:
    """A file, as both programs read it.

    **Arguments:**

    - `ours`, `theirs`: the models.
    - `joints`: the name of our coordinate of each of Pinocchio's joints with one.
    """

    ours: SpatialMechanism
    theirs: Any
    joints: dict[int, str]

    @property
    def floats(self) -> bool:
        """Whether its base is free."""
        return len(self.theirs.joints) > 1 and self.theirs.joints[1].nq == 7


def robot_files() -> list[Path]:
    """The URDF files of the package."""
    files = distribution("example-robot-data").files or []
    return sorted(Path(str(f.locate())) for f in files if f.suffix == ".urdf")


def opens(path: Path) -> bool:
    """Whether Pinocchio opens a file."""
    try:
        pin.buildModelFromUrdf(str(path))
    except ValueError:
        return False
    return True


def read(path: Path, *, floating: bool = False, mimic: bool = False) -> Robot:
    """A file in both programs."""
    base = (pin.JointModelFreeFlyer(),) if floating else ()
    theirs = pin.buildModelFromUrdf(str(path), *base, mimic)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # Limits, contacts.
        given = read_urdf(path, floating=floating)
    given = replace(given, springs=(), friction=(), couplings=given.couplings if mimic else ())
    tags = ET.parse(path).getroot().findall("joint")
    # The first joint of ours is that of the base; the others are in the order of the file.
    names = {tag.get("name"): joint.name for tag, joint in zip(tags, given.joints[1:], strict=True)}
    joints = {
        k: names[theirs.names[k]]
        for k, joint in enumerate(theirs.joints)
        if k > 0 and joint.nv == 1 and not joint.shortname().startswith("JointModelMimic")
    }
    motors = tuple(Motor(f"{name}_motor", name) for name in joints.values())
    return Robot(SpatialMechanism(replace(given, motors=motors)), theirs, joints)


def velocity_matrix(robot: Robot, q: Any) -> Any:
    """`N`: the derivatives of our coordinates from Pinocchio's velocities."""
    system, place = robot.ours, robot.ours.coordinate_names.index
    matrix = np.zeros((len(system.coordinates), robot.theirs.nv))
    for k, name in robot.joints.items():
        matrix[place(name), robot.theirs.joints[k].idx_v] = 1.0
    waiting = list(system.description.couplings)
    while waiting:  # One that follows another comes after it.
        coupling = waiting.pop(0)
        follower, leader = map(place, coupling.coordinates)
        matrix[follower] = coupling.coefficients[1] * matrix[leader]
        if not matrix[follower].any():
            waiting.append(coupling)
    found = jnp.asarray(matrix)
    if not robot.floats:
        return found
    root = system.description.joints[0].name
    slides = np.array([place(f"{root}_{axis}") for axis in "xyz"])
    turns = np.array([place(f"{root}_e{k}") for k in range(4)])
    e = q[turns]
    found = found.at[slides, :3].set(quaternion_rotation(e))
    # Of a unit quaternion: `e' = (1/4) rates(e) omega`, since `rates^T rates` is four times one.
    return found.at[turns, 3:6].set(quaternion_rates(e) / 4)


def compute(robot: Robot) -> Any:
    """A compiled function of many states: mass matrices, torques, accelerations."""
    system, mu = robot.ours, resolve_parameters(robot.ours)
    order = np.array([robot.theirs.joints[k].idx_v for k in robot.joints], int)

    def one(q, v, a, torque):
        matrix = velocity_matrix(robot, q)
        rates = matrix @ v
        _, changing = jax.jvp(lambda x: velocity_matrix(robot, x) @ v, (q,), (rates,))
        mass = system.mass(q, mu)
        none = jnp.zeros(len(system.inputs))
        needed = mass @ (matrix @ a + changing) - system.force(0.0, q, rates, none, mu)
        partition = choose_partition(system, 0.0, q, mu, assume_full_rank=True)
        split = partition.velocity
        moved, _ = accelerations(system, split, 0.0, q, rates, torque[order], mu)
        own = jnp.linalg.lstsq(matrix, moved - changing)[0]
        return matrix.T @ mass @ matrix, matrix.T @ needed, own

    return jax.jit(jax.vmap(one))


def states(robot: Robot, seed: int) -> tuple[np.ndarray, ...]:
    """Random configurations of ours and of Pinocchio's, velocities, accelerations and torques."""
    rng, model, system = np.random.default_rng(seed), robot.theirs, robot.ours
    place = system.coordinate_names.index
    ours = np.zeros((STATES, len(system.coordinates)))
    theirs = np.tile(pin.neutral(model), (STATES, 1))
    for k, name in robot.joints.items():
        value, joint = rng.normal(size=STATES), model.joints[k]
        ours[:, place(name)] = value
        both = [np.cos(value), np.sin(value)] if joint.nq == 2 else [value]
        theirs[:, joint.idx_q : joint.idx_q + joint.nq] = np.stack(both, axis=1)
    for _ in system.description.couplings:  # As often as one may follow another.
        for coupling in system.description.couplings:
            follower, leader = map(place, coupling.coordinates)
            ours[:, follower] = np.polyval(coupling.coefficients[::-1], ours[:, leader])
    if robot.floats:
        root = system.description.joints[0].name
        position, e = rng.normal(size=(STATES, 3)), rng.normal(size=(STATES, 4))
        e /= np.linalg.norm(e, axis=1, keepdims=True)
        ours[:, [place(f"{root}_{axis}") for axis in "xyz"]] = position
        ours[:, [place(f"{root}_e{k}") for k in range(4)]] = e
        theirs[:, :7] = np.concatenate([position, np.roll(e, -1, axis=1)], axis=1)
    v, a, torque = rng.normal(size=(3, STATES, model.nv))
    if robot.floats:
        torque[:, :6] = 0.0  # Nothing pushes the base.
    return ours, theirs, v, a, torque


def beside(robot: Robot, seed: int = 0) -> list[float]:
    """The largest relative difference of each quantity, over all states."""
    ours, theirs, v, a, torque = states(robot, seed)
    found = [np.asarray(x) for x in compute(robot)(ours, v, a, torque)]
    data, worst = robot.theirs.createData(), np.zeros(3)
    for k in range(STATES):
        mass = np.array(pin.crba(robot.theirs, data, theirs[k]))
        mass = np.triu(mass) + np.triu(mass, 1).T
        bias = np.array(pin.nonLinearEffects(robot.theirs, data, theirs[k], v[k]))
        # Of what mimics, Pinocchio has no articulated-body algorithm.
        moved = (
            np.linalg.solve(mass, torque[k] - bias)
            if robot.ours.description.couplings
            else pin.aba(robot.theirs, data, theirs[k], v[k], torque[k])
        )
        right = (mass, mass @ a[k] + bias, moved)
        own = [
            np.max(np.abs(x[k] - y)) / np.max(np.abs(y)) for x, y in zip(found, right, strict=True)
        ]
        worst = np.maximum(worst, own)  # What is not a number stays.
    return list(worst)


def bases(path: Path) -> list[str]:
    """The models of a file: what can move with its base fixed, floating, and with mimics."""
    fixed = pin.buildModelFromUrdf(str(path))
    mimics = pin.buildModelFromUrdf(str(path), True)
    kinds = {"fixed": fixed.nv > 0, "floating": True, "fixed, mimics": mimics.nv < fixed.nv}
    return [kind for kind, is_there in kinds.items() if is_there]


def main(console: Console, words: tuple[str, ...] = ()) -> bool:
    """Compare and print; whether every robot is within the goal."""
    table = Table(title=f"Largest relative difference from Pinocchio, {STATES} random states")
    for name in ("robot", "links", "base", "nq", "nv", *COLUMNS, "processor [s]"):
        table.add_column(name, justify="left" if name in ("robot", "base") else "right")
    missed, unread = [], []
    for path in robot_files():
        label = f"{path.parents[1].name}/{path.name}".replace("_description", "")
        if words and not any(word in label for word in words):
            continue
        if not opens(path):
            unread.append(label)
            continue
        for base in bases(path):
            start = time.process_time()
            robot = read(path, floating=base == "floating", mimic="mimics" in base)
            worst = beside(robot)
            spent = time.process_time() - start
            cells = [f"{x:.1e}" for x in worst]
            sizes = len(robot.ours.coordinates), robot.theirs.nv
            links = len(robot.ours.description.bodies)
            table.add_row(label, str(links), base, *map(str, sizes), *cells, f"{spent:.1f}")
            if not max(worst) <= GOAL:
                missed.append(f"{label} ({base})")
    console.print(table)
    console.print(f"Not opened by Pinocchio: {', '.join(unread) or 'none'}")
    console.print(f"Above {GOAL:g}: {', '.join(missed) or 'none'}")
    return not missed


if __name__ == "__main__":
    sys.exit(not main(Console(width=150), tuple(sys.argv[1:])))
