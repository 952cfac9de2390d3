"""A UR10e from its logs: currents of its motors, learned from one run, predicted for two others.

Inverse dynamics is linear in the ten inertial parameters of every body and in friction,

    i_j = (Y_j(q, v, a) p + f_c sign(v_j) + f_v v_j + f_0) / k_j,

with the current `i_j` of motor j. The gains `k_j` of the motors are not known, so every joint has
a regression of its own. Of parameters that motions cannot tell apart the combinations are found by
the singular values of `Y` (base parameters). `Y` is the derivative of our inverse dynamics by the
parameters of the mechanism; beside it stands the regressor that Pinocchio has by hand, fitted in
the same way. Accelerations are derivatives of the recorded velocities.

    python -m benchmarks.ur10e ../shared/data/ur10e
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin

import mbdnode as mbd
from mbdnode.data.signal import estimate_rate
from mbdnode.multibody import resolve_parameters

TRAINING = "ur-20_02_19_14harm50sec.csv"
TESTS = ("ur-20_02_12-40sec_12harm.csv", "ur-20_02_05-20sec_8harm.csv")
# Below this share of the largest, a singular value is a combination that no motion tells.
RANK_TOLERANCE = 1e-9
# Where friction has half of its size, rad/s; the encoders are not exact at rest.
STILL = 0.01


def read(path: Path) -> tuple[np.ndarray, ...]:
    """Angles, velocities, accelerations and currents, a row for each time."""
    table = np.loadtxt(path, delimiter=",")
    t, q, v, current = table[:, 0], table[:, 1:7], table[:, 7:13], table[:, 13:19]
    a = np.stack([estimate_rate(t, column).values for column in v.T], axis=1)
    return q, v, a, current


def our_regressor(path: Path):
    """`Y` of every row, by the derivative of inverse dynamics."""
    robot = mbd.read_mechanism(path)
    mu = resolve_parameters(robot)
    names = [n for n in mu if "_center_" not in n and ("_mass" in n or "_inertia_" in n)]
    bodies = [n.removesuffix("_mass") for n in names if n.endswith("_mass")]

    def torques(p, q, v, a):
        # In mass, first moment and inertia about the body's origin it is linear.
        values = dict(mu)
        for body, (m, hx, hy, hz, xx, yy, zz, xy, xz, yz) in zip(bodies, p, strict=True):
            c = jnp.stack([hx, hy, hz]) / m
            away = m * ((c @ c) * jnp.eye(3) - jnp.outer(c, c))
            values[f"{body}_mass"] = m
            for k, axis in enumerate("xyz"):
                values[f"{body}_center_{axis}"] = c[k]
            own = {"xx": xx, "yy": yy, "zz": zz, "xy": xy, "xz": xz, "yz": yz}
            for key, value in own.items():
                i, j = ("xyz".index(letter) for letter in key)
                values[f"{body}_inertia_{key}"] = value - away[i, j]
        still = jnp.zeros(len(robot.inputs))
        load = robot.force(jnp.zeros(()), q, v, still, values)
        return robot.mass(q, values) @ a - load

    base = jnp.tile(jnp.array([1.0, 0.1, 0.1, 0.1, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0]), (len(bodies), 1))
    slope = jax.jit(jax.vmap(jax.jacfwd(torques), in_axes=(None, 0, 0, 0)))
    return lambda q, v, a: np.asarray(slope(base, q, v, a)).reshape(len(q), q.shape[1], -1)


def their_regressor(path: Path):
    """The same by Pinocchio."""
    model = pin.buildModelFromUrdf(str(path))
    data = model.createData()
    return lambda q, v, a: np.stack(
        [
            pin.computeJointTorqueRegressor(model, data, *row).copy()
            for row in zip(q, v, a, strict=True)
        ]
    )


def columns(regressor: np.ndarray, v: np.ndarray, joint: int) -> np.ndarray:
    """Of one joint, with its friction and an offset."""
    own = v[:, joint]
    friction = np.stack([np.tanh(own / STILL), own, np.ones_like(own)], axis=1)
    return np.concatenate([regressor[:, joint], friction], axis=1)


def main() -> None:
    """One table: NRMSE of each joint's current in every run."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/data/ur10e")
    runs = {name: read(folder / name) for name in (TRAINING, *TESTS)}
    print("NRMSE of currents [%], joints 1 to 6")
    predicted = {}
    for label, make in (("ours", our_regressor), ("Pinocchio", their_regressor)):
        regressor = make(folder / "ur10e.urdf")
        rows = {name: regressor(*run[:3]) for name, run in runs.items()}
        for name, (_, v, _, current) in runs.items():
            errors, counts = [], []
            for joint in range(6):
                known = columns(rows[TRAINING], runs[TRAINING][1], joint)
                size = np.maximum(np.linalg.norm(known, axis=0), 1e-300)
                found, _, rank, _ = np.linalg.lstsq(
                    known / size, runs[TRAINING][3][:, joint], rcond=RANK_TOLERANCE
                )
                guess = columns(rows[name], v, joint) @ (found / size)
                predicted[label, name, joint] = guess
                errors.append(100 * np.std(current[:, joint] - guess) / np.std(current[:, joint]))
                counts.append(int(rank))
            what = "training" if name == TRAINING else "test"
            figures = "  ".join(f"{e:5.1f}" for e in errors)
            print(f"{label:10} {what:8} {name:32} {figures}   base parameters {counts}")
    pairs = [
        (predicted["ours", n, j], predicted["Pinocchio", n, j]) for n in runs for j in range(6)
    ]
    apart = max(np.max(np.abs(ours - theirs)) for ours, theirs in pairs)
    print(f"largest difference between the two predictions: {apart:.1e} A")


if __name__ == "__main__":
    main()
