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

import contextlib
import sys
import time
import warnings
import xml.etree.ElementTree as ET
from dataclasses import dataclass, replace
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pinocchio as pin

import mbdnode as mbd
from mbdnode.data.logs.runs import Names, make_trajectory
from mbdnode.mechanisms.spatial.description import Motor
from mbdnode.mechanisms.spatial.urdf_file import read_urdf

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

    ours: mbd.SpatialMechanism
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
    return Robot(mbd.SpatialMechanism(replace(given, motors=motors)), theirs, joints)


def half_rates(e: np.ndarray) -> np.ndarray:
    """The matrix `E` of `e' = E omega`, with `omega` in the body's own axes."""
    w, x, y, z = e
    return np.array([[-x, -y, -z], [w, -z, y], [z, w, -x], [-y, x, w]]) / 2


def turn(e: np.ndarray) -> np.ndarray:
    """The rotation matrix of Euler parameters."""
    return np.array(pin.Quaternion(*e).toRotationMatrix())


class Conversion:
    """From Pinocchio's velocities to the derivatives of our coordinates: `q' = N(q) v`."""

    def __init__(self, robot: Robot):
        system, model = robot.ours, robot.theirs
        place = system.coordinate_names.index
        self.constant = np.zeros((len(system.coordinates), model.nv))
        for k, name in robot.joints.items():
            self.constant[place(name), model.joints[k].idx_v] = 1.0
        couplings = system.description.couplings
        for _ in couplings:  # As often as one may follow another.
            for coupling in couplings:
                follower, leader = map(place, coupling.coordinates)
                self.constant[follower] = coupling.coefficients[1] * self.constant[leader]
        root = system.description.joints[0].name
        self.slides, self.balls = (
            [place(f"{root}_{key}") for key in keys] if robot.floats else []
            for keys in ("xyz", ("e0", "e1", "e2", "e3"))
        )

    def matrix(self, q: np.ndarray) -> np.ndarray:
        """`N`."""
        found = self.constant.copy()
        if self.balls:
            found[self.slides, :3] = turn(q[self.balls])
            found[self.balls, 3:6] = half_rates(q[self.balls])
        return found

    def changing(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """`N' v`."""
        found = np.zeros(len(q))
        if self.balls:
            e, spin = q[self.balls], v[3:6]
            found[self.slides] = turn(e) @ np.cross(spin, v[:3])
            found[self.balls] = half_rates(half_rates(e) @ spin) @ spin
        return found


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
    couplings = system.description.couplings
    for _ in couplings:
        for coupling in couplings:
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


def motion(robot: Robot, q: np.ndarray, rates: np.ndarray, inputs: np.ndarray) -> Any:
    """Our states as the rows of a trajectory."""
    system = robot.ours
    names = Names(system.coordinate_names, system.rate_names, system.input_names)
    return make_trajectory(np.column_stack([np.arange(float(STATES)), q, rates, inputs]), names)


def beside(robot: Robot, seed: int = 0) -> np.ndarray:
    """The largest relative difference of each quantity, over all states."""
    q, theirs, v, a, torque = states(robot, seed)
    convert, model, system = Conversion(robot), robot.theirs, robot.ours
    matrices = [convert.matrix(row) for row in q]
    changing = [convert.changing(*row) for row in zip(q, v, strict=True)]
    rates = np.stack([matrix @ row for matrix, row in zip(matrices, v, strict=True)])
    order = [model.joints[k].idx_v for k in robot.joints]
    run = motion(robot, q, rates, torque[:, order])
    wanted = np.stack([n @ x + y for n, x, y in zip(matrices, a, changing, strict=True)])
    masses = np.asarray(mbd.mass_matrix(system, run))
    needed = np.asarray(mbd.inverse_dynamics(system, run, wanted))
    moved = np.asarray(mbd.accelerations(system, run))
    data, worst = model.createData(), np.zeros(len(COLUMNS))
    for k, matrix in enumerate(matrices):
        mass = np.array(pin.crba(model, data, theirs[k]))
        mass = np.triu(mass) + np.triu(mass, 1).T
        bias = np.array(pin.nonLinearEffects(model, data, theirs[k], v[k]))
        # Of what mimics, Pinocchio has no articulated-body algorithm.
        expected = (
            np.linalg.solve(mass, torque[k] - bias)
            if system.description.couplings
            else pin.aba(model, data, theirs[k], v[k], torque[k])
        )
        own = np.linalg.lstsq(matrix, moved[k] - changing[k])[0]
        pairs = (
            (matrix.T @ masses[k] @ matrix, mass),
            (matrix.T @ needed[k], mass @ a[k] + bias),
            (own, expected),
        )
        worst = np.maximum(worst, [np.abs(x - y).max() / np.abs(y).max() for x, y in pairs])
        worst[np.isnan(worst)] = np.inf
        # A joint that moves nothing with mass has no acceleration, in neither program.
        if np.linalg.matrix_rank(mass, hermitian=True) < model.nv:
            worst[2] = np.nan
    return worst


def bases(path: Path) -> list[str]:
    """The models of a file: what can move with its base fixed, floating, and with mimics."""
    fixed = pin.buildModelFromUrdf(str(path)).nv
    coupled = fixed
    with contextlib.suppress(ValueError):  # Some mimic what is not there.
        coupled = pin.buildModelFromUrdf(str(path), True).nv
    kinds = {"fixed": fixed > 0, "floating": True, "fixed, mimics": coupled < fixed}
    return [kind for kind, is_there in kinds.items() if is_there]


def main(words: tuple[str, ...] = ()) -> bool:
    """Compare and print a row for each model; whether all are within the goal."""
    print(f"Largest relative difference from Pinocchio at {STATES} random states:\n")
    heads = ("robot", "links", "base", "nq", "nv", *COLUMNS, "processor [s]")
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    missed, unread, singular = [], [], []
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
            jax.clear_caches()  # Of programs for one robot.
            sizes = len(robot.ours.coordinates), robot.theirs.nv
            links = len(robot.ours.description.bodies)
            cells = (label, links, base, *sizes, *(f"{x:.1e}" for x in worst), f"{spent:.1f}")
            print(f"| {' | '.join(map(str, cells))} |", flush=True)
            if np.isnan(worst[2]):
                singular.append(f"{label} ({base})")
            if not np.max(worst[:2]) <= GOAL or worst[2] > GOAL:
                missed.append(f"{label} ({base})")
    print(f"\nNot opened by Pinocchio: {', '.join(unread) or 'none'}")
    print(f"Accelerations are not defined: {', '.join(singular) or 'none'}")
    print(f"Above {GOAL:g}: {', '.join(missed) or 'none'}")
    return not missed


if __name__ == "__main__":
    sys.exit(not main(tuple(sys.argv[1:])))
