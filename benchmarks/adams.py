"""One body on one joint or force element: our motion beside curves that ADAMS computed.

    python -m benchmarks.adams [FOLDER] [CASE ...]

The curves are those with which projectchrono/chrono tests its joints (data/testing/joints there):
5 s at 0.01 s under gravity. Masses, inertias, markers and joints are read from the ADAMS models
(`*.adm`) in the same folder; numbers that no model has are in the notes that are printed.

Cases are built twice where that is possible: as a tree, whose coordinates are the joint's own, and
closed, where the body is free and the joint is a constraint of it. Reactions of the tree follow
from Newton's and Euler's equations, those of the closed mechanism from its multipliers. Three
differences are shown, each the largest over time: of the tree's and of the closed mechanism's
motion from ADAMS's; and, of accelerations and reactions, of the closed mechanism's at ADAMS's own
states, which is free of errors of integration on either side. Beside them are the size of the
quantity, the unit of its last printed digit, and the scatter of the curve: its largest distance
from smooth polynomials over eleven of its rows, half a digit where ADAMS is exact. Where no energy
can be lost, a line says how much the curves and our motion gain or lose, and how much of that may
be rounding.
"""

import argparse
import re
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.signal import savgol_filter
from scipy.spatial.transform import Rotation

import mbdnode as mbd
from mbdnode.evaluation import reactions
from mbdnode.mechanisms.spatial import SpatialDescription, SpatialMechanism
from mbdnode.mechanisms.spatial.description import Body, Drive, Frame, Joint, Output, Spring
from mbdnode.mechanisms.spatial.inertia import inertia_entries, inertia_matrix
from mbdnode.trajectory import Trajectory

FOLDER = Path(__file__).parents[2] / "shared" / "data" / "adams"
GRAVITY = (0.0, 0.0, -9.80665)
MOTION = {"Pos": "point", "Quat": "orientation", "Vel": "velocity", "Acc": "acceleration"}
MOTION |= {"Avel": "angular_velocity", "Aacc": "angular_acceleration"}
JOINTS = {"REVOLUTE": "revolute", "SPHERICAL": "spherical", "HOOKE": "universal"}
JOINTS |= {"TRANSLATIONAL": "prismatic", "CYLINDRICAL": "cylindrical"}
# Smaller numbers are round-off of ADAMS, for zero.
TINY = 1e-9


@dataclass(frozen=True)
class Case:
    """A body on a joint or on a force element.

    **Arguments:**

    - `body`: which moves.
    - `marker`: the frame at its mass center of which the curves tell.
    - `tree`: what holds it, with the joint's own coordinates; None where there is no joint.
    - `closed`: the same with the body free; None where something acts along a coordinate.
    - `at`: where reactions are taken, in the world; None to take forces alone.
    - `files`: of reactions, "force" or "torque", and 1 for those on the body, -1 on the ground.
    - `keeps_energy`: whether it does.
    - `notes`: to be printed.
    """

    body: Body
    marker: Frame
    tree: dict[str, Any] | None = None
    closed: dict[str, Any] | None = None
    at: tuple[float, float, float] = (0.0, 0.0, 0.0)
    files: tuple[tuple[str, str, float], ...] = (
        ("Rforce", "force", -1.0),
        ("Rtorque", "torque", -1.0),
    )
    keeps_energy: bool = True
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Motion:
    """What is compared: by the name of the file, rows over time."""

    curves: dict[str, np.ndarray]
    energy: np.ndarray


def read_model(path: Path) -> tuple[dict[int, Frame], dict[str, Any]]:
    """The markers and the statements of an ADAMS model; the body is part 2, its marker 201."""
    statements: list[str] = []
    for line in path.read_text(errors="replace").splitlines():
        if line.startswith(","):
            statements[-1] += line
        elif not line.startswith("!"):
            statements.append(line.strip())
    markers: dict[int, Frame] = {}
    model: dict[str, Any] = {}
    for statement in statements:
        kind, _, rest = statement.partition("/")
        name = re.match(r"\s*\d+", rest)
        number = int(name[0]) if name else 0
        if kind == "MARKER":
            angles = [float(a.strip(" D")) for a in _values(rest, "REULER") or ["0"] * 3]
            at = [float(x) for x in _values(rest, "QP") or ["0"] * 3]
            markers[number] = _frame(Rotation.from_euler("ZXZ", angles, degrees=True), at)
        elif kind == "PART" and number == 2:
            model["mass"] = float(_values(rest, "MASS")[0])
            model["moments"] = [float(x) for x in _values(rest, "IP")[:3]]
        elif kind == "JOINT":
            model["joint"] = rest.split(",")[1].strip()
            model["sides"] = int(_values(rest, "I")[0]), int(_values(rest, "J")[0])
        elif kind == "GCON":
            model["length"] = float(rest.rpartition("-")[2])
    return markers, model


def _values(statement: str, key: str) -> list[str]:
    """The values after a key of a statement, up to the next key."""
    found = re.search(rf"(?:^|,)\s*{key}\s*=\s*([^=]*?)(?=,\s*\w+\s*=|$)", statement)
    return found[1].split(",") if found else []


def _frame(turn: Rotation, at: Any) -> Frame:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # That of equal rotations one is chosen does not matter.
        roll, pitch, yaw = (float(a) for a in turn.as_euler("xyz"))
    x, y, z = (float(v) for v in at)
    return Frame((x, y, z), (roll, pitch, yaw))


def _turn(frame: Frame) -> Rotation:
    return Rotation.from_euler("xyz", frame.rpy)


def _body(mass: float, moments: Any, marker: Frame) -> Body:
    turn = _turn(marker).as_matrix()
    return Body("body", mass, marker.at, inertia_entries(turn @ np.diag(moments) @ turn.T))


def cases(folder: Path) -> dict[str, Case]:
    """Every case of which there are curves."""
    names = ("Revolute", "Spherical", "Universal", "Prismatic", "Cylindrical")
    found = {name: _on_a_joint(folder, name) for name in names}
    found["Distance"] = _on_a_rod(folder)
    found["RevSpherical"] = _on_a_link()
    found["TranSpring"] = found["TranSpringCB"] = _on_a_spring()
    found["RotSpring"] = _on_a_torsion_spring(folder)
    found["LinActuator"] = _on_an_actuator()
    return found


def _on_a_joint(folder: Path, name: str) -> Case:
    markers, model = read_model(folder / f"test_{name}_Case01.adm")
    first, second = (markers[side] for side in model["sides"])
    joint = Joint("joint", JOINTS[model["joint"]], ("ground", "body"), (first, second))
    if joint.type == "universal":
        joint = replace(joint, axis=(1.0, 0.0, 0.0), second_axis=(0.0, 1.0, 0.0))
    return Case(
        _body(model["mass"], model["moments"], markers[201]),
        markers[201],
        tree={"joints": (joint,)},
        closed={"joints": (replace(joint, cut=True), _free(markers[201]))},
        at=first.at,
    )


def _on_a_rod(folder: Path) -> Case:
    markers, model = read_model(folder / "test_Distance_Case01.adm")
    frames = markers[102], markers[202]
    rod = Joint("rod", "distance", ("ground", "body"), frames, length=model["length"])
    body = _body(model["mass"], model["moments"], markers[201])
    return Case(body, markers[201], closed={"joints": (rod, _free(markers[201]))})


def _on_a_link() -> Case:
    marker, end = Frame((0.0, 2.0, 0.0)), Frame((2.0, 0.0, 0.0))
    hinge = Joint("hinge", "revolute", ("ground", "link"))
    ball = Joint("ball", "spherical", ("link", "body"), (end, Frame()))
    free = _free(Frame((2.0, 2.0, 0.0)), marker)
    return Case(
        _body(1.0, (0.1, 0.04, 0.1), marker),
        marker,
        tree={"joints": (hinge, ball), "bodies": (Body("link"),)},
        closed={"joints": (hinge, replace(ball, cut=True), free), "bodies": (Body("link"),)},
        files=(
            ("Rforce_Body1", "force", -1.0),
            ("Rforce_Body2", "force", 1.0),
            ("Rtorque_Body1", "torque", -1.0),
        ),
        notes=(
            "There is no model. A link of 2 m without mass turns about z on the ground; its end "
            "carries the body by a ball, 2 m from its mass center. 1 kg and moments of 0.1, 0.04 "
            "and 0.1 kg m^2 give the accelerations that are printed.",
        ),
    )


def _on_a_spring() -> Case:
    spring = Spring("spring", ("ground", "body"), stiffness=10.0, damping=0.5)
    marker = Frame()
    return Case(
        _body(1.0, (0.04, 0.1, 0.1), marker),
        marker,
        closed={"joints": (_free(marker),), "springs": (spring,)},
        keeps_energy=False,
        notes=(
            "test_TransSpring_Case01.adm (100 N/m, 1 N s/m, from y = 2 m) is of another run. The "
            "printed forces over z and its velocity give 10 N/m and 0.5 N s/m, and no free length.",
        ),
    )


def _on_a_torsion_spring(folder: Path) -> Case:
    case = _on_a_joint(folder, "RotSpring")
    spring = Spring("spring", coordinate="joint", stiffness=200.0, damping=10.0)
    assert case.tree is not None
    return replace(
        case,
        tree={**case.tree, "springs": (spring,)},
        closed=None,
        keeps_energy=False,
        notes=(
            "The model's spring of 57.3 N m/rad and 2.86 N m s/rad is not that of the curves: the "
            "printed torques over angle and velocity give 200 and 10.",
        ),
    )


def _on_an_actuator() -> Case:
    slide = Joint("joint", "prismatic", ("ground", "body"))
    drive = Drive("motor", "joint", "rate", rate=1.0)
    return Case(
        _body(1.0, (0.04, 0.1, 0.1), Frame()),
        Frame(),
        tree={"joints": (slide,), "drives": (drive,)},
        files=(("RforceA", "force", 1.0),),
        keeps_energy=False,
        notes=(
            "There is no model. A body of 1 kg, since the printed force is its weight, slides "
            "along z at 1 m/s; RforceA is the actuator's force on it.",
        ),
    )


def _free(pose: Frame, marker: Frame | None = None) -> Joint:
    """A free body whose coordinates are the position and the Euler parameters of its marker."""
    e = np.roll(_turn(pose).as_quat(), 1)
    start = tuple(float(x) for x in (*pose.at, *e))
    frames = (Frame(), marker or pose)
    return Joint("free", "free", ("ground", "body"), frames, cut=False, start=start)


def built(case: Case, parts: dict[str, Any]) -> SpatialMechanism:
    """The mechanism, whose outputs are what the curves tell of."""
    given = {**parts, "bodies": (case.body, *parts.get("bodies", ()))}
    outputs = tuple(Output(name, kind, "body", case.marker) for name, kind in MOTION.items())
    return SpatialMechanism(
        SpatialDescription("adams", **given, outputs=outputs, gravity=GRAVITY)  # pyright: ignore
    )


def motion(case: Case, mechanism: SpatialMechanism, run: Trajectory, *, closed: bool) -> Motion:
    """Outputs and reactions along a trajectory."""
    seen = mbd.outputs(mechanism, run)
    rows = np.stack([np.asarray(column) for column in seen.values()], axis=1)
    widths = np.cumsum([4 if name == "Quat" else 3 for name in MOTION])
    curves = dict(zip(MOTION, np.split(rows, widths[:-1], axis=1), strict=True))
    if closed:
        force, torque = _from_multipliers(mechanism, run)
    else:
        force, torque = _from_motion(case, curves)
    # Taken at another point than the mass center.
    torque = torque + np.cross(curves["Pos"] - np.array(case.at), force)
    for name, kind, sign in case.files:
        curves[name] = sign * (force if kind == "force" else torque)
    return Motion(curves, _energy(case, curves))


def _from_motion(case: Case, curves: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Force and torque at the mass center, by Newton and Euler."""
    inertia = _inertia(case, curves["Quat"])
    spin = curves["Avel"]
    momentum = np.einsum("tij,tj->ti", inertia, spin)
    torque = np.einsum("tij,tj->ti", inertia, curves["Aacc"]) + np.cross(spin, momentum)
    return case.body.mass * (curves["Acc"] - np.array(GRAVITY)), torque


def _from_multipliers(
    mechanism: SpatialMechanism, run: Trajectory
) -> tuple[np.ndarray, np.ndarray]:
    """Force and torque at the mass center, from the forces of constraints on a free body."""
    forces = np.asarray(reactions(mechanism, run).forces)
    first = mechanism.coordinate_names.index("free_x")
    names = mechanism.coordinate_names
    place = [names.index(f"free_e{n}") for n in range(4)]
    e, q = np.asarray(run.q)[:, place], forces[:, place]
    # With omega = W(e) e', the power q.e' = torque.omega, and W W^T = 4.
    e0, ev = e[:, :1], e[:, 1:]
    torque = (e0 * q[:, 1:] - q[:, :1] * ev + np.cross(ev, q[:, 1:])) / 2
    return forces[:, first : first + 3], torque


def _inertia(case: Case, e: np.ndarray) -> np.ndarray:
    """About the mass center, in the axes of the world, at every time."""
    turn = Rotation.from_quat(np.roll(e, -1, axis=1)).as_matrix() @ _turn(case.marker).as_matrix().T
    return turn @ inertia_matrix(case.body.inertia) @ np.swapaxes(turn, 1, 2)


def _energy(case: Case, curves: dict[str, np.ndarray]) -> np.ndarray:
    momentum = np.einsum("tij,tj->ti", _inertia(case, curves["Quat"]), curves["Avel"])
    moving = case.body.mass * np.sum(curves["Vel"] ** 2, axis=1) / 2
    turning = np.sum(momentum * curves["Avel"], axis=1) / 2
    return moving + turning - case.body.mass * curves["Pos"] @ np.array(GRAVITY)


def at_states(case: Case, mechanism: SpatialMechanism, run: Trajectory, given: Motion) -> Motion:
    """The closed mechanism's accelerations and reactions at the states of the curves."""
    curves = given.curves
    e, spin = curves["Quat"], curves["Avel"]
    e0, ev = e[:, :1], e[:, 1:]
    lead = -np.sum(ev * spin, axis=1, keepdims=True)
    e_dot = np.hstack([lead, e0 * spin + np.cross(spin, ev)]) / 2
    q, v = np.array(run.q), np.array(run.v)
    first = mechanism.coordinate_names.index("free_x")
    names = mechanism.coordinate_names
    place = [names.index(f"free_e{n}") for n in range(4)]
    q[:, first : first + 3], v[:, first : first + 3] = curves["Pos"], curves["Vel"]
    q[:, place], v[:, place] = e, e_dot
    if "hinge" in names:
        arm = Rotation.from_quat(np.roll(e, -1, axis=1)).apply([0.0, -2.0, 0.0])
        end, speed = curves["Pos"] + arm, curves["Vel"] + np.cross(spin, arm)
        hinge = names.index("hinge")
        q[:, hinge] = np.arctan2(end[:, 1], end[:, 0])
        v[:, hinge] = np.cross(end, speed)[:, 2] / np.sum(end**2, axis=1)
    there = eqx.tree_at(lambda r: (r.q, r.v), run, (jnp.asarray(q), jnp.asarray(v)))
    return motion(case, mechanism, there, closed=True)


def read_curves(folder: Path, name: str, case: Case) -> tuple[np.ndarray, Motion, dict[str, float]]:
    """Times, curves, and the unit of the last printed digit of the largest value of each."""
    t, curves, digits = np.zeros(0), {}, {}
    for quantity in (*MOTION, *(file for file, _, _ in case.files)):
        path = folder / f"{name}_Case01_ADAMS_{quantity}.txt"
        rows = [line.split() for line in path.read_text().splitlines()[3:] if line.strip()]
        t, curves[quantity] = np.split(np.array(rows, float), [1], axis=1)
        # Some files have a digit less, and a zero in its place.
        short = all(number.split("E")[0].endswith("0") for row in rows for number in row[1:])
        size = np.max(np.abs(curves[quantity]))
        exponent = np.floor(np.log10(size)) if size > TINY else 0.0
        digits[quantity] = 10.0 ** (exponent - (5 if short else 6))
    return t[:, 0], Motion(curves, _energy(case, curves)), digits


def difference(name: str, ours: np.ndarray, theirs: np.ndarray) -> float:
    """The largest; Euler parameters of either sign are the same rotation."""
    theirs = theirs[: len(ours)]  # Up to where a rollout ended.
    apart = np.abs(ours - theirs)
    if name == "Quat":
        apart = np.minimum(apart.max(axis=1), np.abs(ours + theirs).max(axis=1))
    return float(np.max(apart))


def _say(console: Console, kind: str, run: Trajectory) -> None:
    if not run.status.ok:
        console.print(f"{kind}: {run.status}")


def scatter(curve: np.ndarray) -> str:
    """The largest distance from smooth polynomials."""
    smooth = savgol_filter(curve, 11, 6, axis=0)
    return f"{np.max(np.abs(curve - smooth)):.1e}"


def _rounding(case: Case, given: Motion, digits: dict[str, float]) -> float:
    """How much the energy may vary because numbers are printed with few digits."""
    rotated = np.einsum("tij,tj->ti", _inertia(case, given.curves["Quat"]), given.curves["Avel"])
    slopes = {
        "Pos": case.body.mass * np.array(GRAVITY)[None],
        "Vel": case.body.mass * given.curves["Vel"],
        "Avel": rotated,
    }
    # Half a digit on either side of the exact value, at two times.
    return sum(digits[key] * np.max(np.abs(slope).sum(axis=1)) for key, slope in slopes.items())


def main() -> None:
    """Compare the cases that are named, or all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("words", nargs="*", metavar="FOLDER | CASE")
    words = parser.parse_args().words
    folder = Path(words.pop(0)) if words and Path(words[0]).is_dir() else FOLDER
    console = Console(width=110)
    for name, case in cases(folder).items():
        if not words or name in words:
            compare(console, folder, name, case)


def compare(console: Console, folder: Path, name: str, case: Case) -> None:
    """Print the table of a case."""
    t, given, digits = read_curves(folder, name, case)
    columns: dict[str, Motion] = {}
    if case.tree is not None:
        tree = built(case, case.tree)
        run = mbd.simulate(tree, t, {}, integrator="dopri8")
        columns["tree"] = motion(case, tree, run.kept, closed=False)
        _say(console, "tree", run)
    if case.closed is not None:
        closed = built(case, case.closed)
        run = mbd.simulate(closed, t, {}, integrator="dopri8")
        # A spring's force is not a constraint's.
        from_multipliers = "springs" not in case.closed
        columns["closed"] = motion(case, closed, run.kept, closed=from_multipliers)
        if from_multipliers:
            columns["at ADAMS's states"] = at_states(case, closed, run, given)
        _say(console, "closed", run)
    table = Table("quantity", "size", "digit", "scatter", *columns, title=name)
    for column in table.columns[1:]:
        column.justify = "right"
    for quantity, theirs in given.curves.items():
        size = np.max(np.abs(theirs))
        is_state = quantity in ("Pos", "Quat", "Vel", "Avel")
        ours = [
            ""
            if kind.startswith("at") and is_state
            else f"{difference(quantity, found.curves[quantity], theirs):.1e}"
            for kind, found in columns.items()
        ]
        if size > TINY:
            table.add_row(
                *(quantity, f"{size:.4g}", f"{digits[quantity]:.0e}", scatter(theirs), *ours)
            )
        else:
            table.add_row(quantity, "0", "", "", *ours)
    console.print(table)
    if case.keeps_energy:
        moving = [found for kind, found in columns.items() if not kind.startswith("at")]
        ours = ", ".join(f"{np.ptp(found.energy):.1e}" for found in moving)
        console.print(
            f"Energy varies by {np.ptp(given.energy):.1e} J in ADAMS's curves (rounding: up to "
            f"{_rounding(case, given, digits):.1e} J), by {ours} J in ours."
        )
    for note in case.notes:
        console.print(note)
    console.print()


if __name__ == "__main__":
    main()
