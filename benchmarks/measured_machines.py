"""Measured machines whose structure is known: parameters by output error, tested on other runs.

    python -m benchmarks.measured_machines emps|silverbox|arm FOLDER

The folders hold what the publishers give: `DATA_EMPS.mat` and `DATA_EMPS_PULSES.mat` (a positioning
drive, A. Janot and others 2019), `SNLS80mV.mat` (an electronic Duffing oscillator, T. Wigren and
J. Schoukens 2013), `SinglePE.mat` and `SingleEP.mat` (a pendulum arm, MultiArm-Pendulum).
Each mechanism has one set of terms, fixed before its test part was looked at. The parameters come
from the training part alone; a test is a free run under the recorded inputs.
"""

import sys
from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from scipy.interpolate import CubicSpline
from scipy.io import loadmat

import mbdnode as mbd
from mbdnode.data.signal import estimate_rate
from mbdnode.status import completed


class Drive(mbd.AbstractMechanism):
    """A carriage on a ball screw: inertia, viscous and dry friction, an offset of the force."""

    coordinates = (mbd.length("q"),)
    inputs = (mbd.Input("force", "N"),)
    parameters = (
        mbd.positive("mass", 50.0, "kg"),
        mbd.nonnegative("viscous", 50.0, "N s/m"),
        mbd.nonnegative("dry", 5.0, "N"),
        mbd.Parameter("offset", 0.0, "N"),
    )

    def mass_matrix(self, q, mu):
        """The moved mass."""
        return [mu["mass"]]

    def force(self, t, q, v, u, mu):
        """The motor's, against viscous friction."""
        return [u[0] - mu["viscous"] * v[0] - mu["offset"]]

    def dry_friction(self, t, q, v, u, mu):
        """Of the screw and the guides."""
        return [[1.0]], [mu["dry"]]


class AsymmetricDrive(mbd.AbstractMechanism):
    """The same carriage with friction that differs between forward and backward."""

    coordinates = (mbd.length("q"),)
    inputs = (mbd.Input("force", "N"),)
    parameters = (
        mbd.positive("mass", 50.0, "kg"),
        mbd.nonnegative("viscous_forward", 50.0, "N s/m"),
        mbd.nonnegative("viscous_backward", 50.0, "N s/m"),
        mbd.nonnegative("dry_forward", 5.0, "N"),
        mbd.nonnegative("dry_backward", 5.0, "N"),
    )

    def mass_matrix(self, q, mu):
        """The moved mass."""
        return [mu["mass"]]

    def force(self, t, q, v, u, mu):
        """The motor's, against viscous friction."""
        viscous = jnp.where(v[0] > 0, mu["viscous_forward"], mu["viscous_backward"])
        return [u[0] - viscous * v[0]]

    def dry_friction(self, t, q, v, u, mu):
        """Of the screw and the guides: backward, and forward."""
        return [[1.0]], [[mu["dry_backward"], mu["dry_forward"]]]


class Oscillator(mbd.AbstractMechanism):
    """A Duffing oscillator of unit mass, with damping that depends on the position."""

    coordinates = (mbd.Coordinate("y", "V"),)
    inputs = (mbd.Input("u", "V"),)
    parameters = (
        mbd.nonnegative("c", 10.0),
        mbd.nonnegative("k", 1e5),
        mbd.Parameter("k2", 0.0),
        mbd.Parameter("k3", 0.0),
        mbd.Parameter("gain", 1e5),
        mbd.Parameter("offset", 0.0),
        mbd.Parameter("c1", 0.0),
        mbd.Parameter("c2", 0.0),
    )

    def mass_matrix(self, q, mu):
        """One: the other parameters are per unit of mass."""
        return [1.0]

    def force(self, t, q, v, u, mu):
        """Input, damping and a spring of third degree."""
        y = q[0]
        damping = mu["c"] + mu["c1"] * y + mu["c2"] * y**2
        spring = y * (mu["k"] + y * (mu["k2"] + y * mu["k3"]))
        return [mu["gain"] * u[0] + mu["offset"] - damping * v[0] - spring]


class Arm(mbd.AbstractMechanism):
    """A pendulum per unit of inertia, `theta` from the upward vertical, on a bearing."""

    coordinates = (mbd.angle("theta"),)
    parameters = (
        mbd.positive("weight", 50.0, "1/s^2", "m g l / J"),
        mbd.nonnegative("viscous", 0.1, "1/s"),
        mbd.nonnegative("dry", 0.1, "1/s^2"),
    )

    def mass_matrix(self, q, mu):
        """One."""
        return [1.0]

    def force(self, t, q, v, u, mu):
        """Weight and viscous friction."""
        return [mu["weight"] * jnp.sin(q[0]) - mu["viscous"] * v[0]]

    def dry_friction(self, t, q, v, u, mu):
        """Of the bearing."""
        return [[1.0]], [mu["dry"]]


def recorded(system, t, x, inputs=None, rate=None) -> mbd.Trajectory:
    """One recorded column, with its rate estimated if it was not recorded."""
    count = len(t)
    v = estimate_rate(t, x).values if rate is None else rate
    u = np.zeros((count, 0)) if inputs is None else inputs[:, None]
    nothing = jnp.zeros(count)
    return mbd.Trajectory(
        t=jnp.asarray(t),
        q=jnp.asarray(x[:, None]),
        v=jnp.asarray(v[:, None]),
        u=jnp.asarray(u),
        position_residual=nothing,
        velocity_residual=nothing,
        status=completed(jnp.asarray(t[-1]), jnp.array(count - 1), system.coordinate_names),
        coordinates=system.coordinate_names,
        rates=system.rate_names,
        inputs=system.input_names,
    )


def identified(system, runs, columns, unknown, **settings):
    """The parameters, with progress and the result on the screen."""
    print(f"{type(system).__name__}: {sum(len(run) for run in runs):,} rows", flush=True)
    data = mbd.Dataset(runs, recorded=columns)
    tell = lambda row, count: print(f"  length {row['epoch'] + 1} of {count}", flush=True)  # noqa: E731
    found = mbd.identify(system, data, unknown=unknown, report=tell, **settings)
    print(found)
    print(f"inputs: {found.interpolation}; substeps: {found.substeps}")
    print(f"{found.train_seconds:.0f} s, and {found.compile_seconds:.0f} s of compilation")
    return found


def emps(folder: Path) -> None:
    """Train on the reference motion, test on the one with pulses: RMSE in mm over all of it.

    Without the second file nothing is tested, and choices can be made without sight of it.
    """

    def run(name):
        data = {k: x.ravel() for k, x in loadmat(folder / name).items() if k[0] != "_"}
        t = data["t"] - data["t"][0]
        rate = estimate_rate(t, data["qm"]).values
        rate[0] = 0.0  # The drive starts at rest.
        return recorded(Drive(), t, data["qm"], data["gtau"][0] * data["vir"], rate)

    files = {"train": "DATA_EMPS.mat", "test": "DATA_EMPS_PULSES.mat"}
    runs = {name: run(file) for name, file in files.items() if (folder / file).exists()}
    for drive in (Drive(), AsymmetricDrive()):
        names = list(drive.parameter_names)
        # The controller holds its output over each sample.
        found = identified(drive, [runs["train"]], ["q"], names, interpolation="constant")
        for name, one in runs.items():
            start = mbd.State(one.q[0], jnp.zeros(1))
            again = mbd.simulate(drive, one.t, start, inputs=one.u, parameters=found.parameters)
            error = 1e3 * float(np.sqrt(np.mean((again.q - one.q) ** 2)))
            print(f"{type(drive).__name__}, {name}: RMSE {error:.2f} mm")


def silverbox(folder: Path) -> None:
    """Train on three quarters of the multisine; RMSE in mV on the rest and on the full arrow."""
    data = loadmat(folder / "SNLS80mV.mat")
    u, y, h = data["V1"][0], data["V2"][0], 1 / 610.35
    parts = {"train": (40650, 105712), "multisine": (105712, 127400), "arrow": (100, 40575)}
    runs = {
        name: recorded(Oscillator(), np.arange(b - a) * h, y[a:b], u[a:b])
        for name, (a, b) in parts.items()
    }
    names = list(Oscillator().parameter_names)
    found = identified(Oscillator(), [runs["train"]], ["y"], names, sensors={"y": ("u",)})
    through = found.sensors["y per u"]
    for name, one in runs.items():
        start = fitted_start(one.rows(0, 49), found)
        fine, loads = finer(one, 4)
        again = mbd.simulate(
            Oscillator(),
            fine,
            start,
            inputs=loads,
            interpolation="cubic",
            parameters=found.parameters,
        )
        read = np.asarray(again.q[::4, 0]) + through * np.asarray(one.u[:, 0])
        error = read[50:] - np.asarray(one.q[50:, 0])
        print(f"{name}: RMSE {1e3 * float(np.sqrt(np.mean(error**2))):.3f} mV")


def fitted_start(head: mbd.Trajectory, found) -> mbd.State:
    """The state at the first of fifty rows, by a fit in which nothing else is unknown."""
    data = mbd.Dataset(
        eqx.tree_at(lambda r: r.q, head, head.q - found.sensors["y per u"] * head.u),
        found.parameters,
        recorded=["y"],
    )
    # A parameter that a prior holds: the initial state alone is free.
    held = {"c": mbd.Unknown(mean=found.parameters["c"], std=1e-6 * found.parameters["c"])}
    return mbd.identify(Oscillator(), data, unknown=held, interpolation="cubic").initial_states[0]


def finer(run: mbd.Trajectory, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Times and inputs at so many substeps, the inputs by a cubic spline."""
    t = np.asarray(run.t)
    fine = np.interp(np.arange(count * (len(t) - 1) + 1) / count, np.arange(len(t)), t)
    return fine, CubicSpline(t, np.asarray(run.u))(fine)


def arm(folder: Path) -> None:
    """Four runs train, two test: RMSE of the angle over 9 s, beside the authors' own values."""
    data = loadmat(folder / "SinglePE.mat")
    mass, center, inertia, friction, g = loadmat(folder / "SingleEP.mat")["EstimatedParameters"][0]
    total = inertia + mass * center**2
    theirs = {"weight": mass * g * center / total, "viscous": friction / total, "dry": 0.0}

    def runs(key):
        return [
            recorded(Arm(), np.arange(y.shape[1]) * 1e-3, y[0], rate=y[1]) for y in data[key][:, 0]
        ]

    found = identified(Arm(), runs("Y_id"), ["theta"], list(Arm().parameter_names))
    for number, one in enumerate(runs("Y_vad")):
        start = mbd.State(one.q[0], one.v[0])
        for name, mu in (("ours", found.parameters), ("the authors'", theirs)):
            again = mbd.simulate(Arm(), one.t, start, parameters=mu)
            error = float(np.sqrt(np.mean((again.q - one.q) ** 2)))
            print(f"test run {number + 1}, {name}: RMSE {error:.4f} rad")


MACHINES = {"emps": emps, "silverbox": silverbox, "arm": arm}

if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in MACHINES:
        sys.exit(__doc__)
    MACHINES[sys.argv[1]](Path(sys.argv[2]))
