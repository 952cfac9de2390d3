"""Measured machines whose structure is known: parameters by output error, tested on other runs.

    python -m benchmarks.measured_machines emps|silverbox|arm FOLDER [--train] [DRIVE ...]

The folders hold what the publishers give: `DATA_EMPS.mat` and `DATA_EMPS_PULSES.mat` (a positioning
drive, A. Janot and others 2019), `SNLS80mV.mat` (an electronic Duffing oscillator, T. Wigren and
J. Schoukens 2013), `SinglePE.mat` and `SingleEP.mat` (a pendulum arm, MultiArm-Pendulum).
Each mechanism has one set of terms, fixed before its test part was looked at: with `--train` no
test part is read, and mechanisms are compared on pieces of the training part, each predicted by a
fit to the others. Parameters come from the training part alone; a test is a free run under the
recorded inputs.
"""

import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.io import loadmat

import mbdnode as mbd
from mbdnode.data.signal import estimate_rate
from mbdnode.simulation.interpolation import input_polynomials
from mbdnode.status import completed

# The drive's rows are taken in fives for the fit, and one by one for the test.
EVERY = 5


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
        mbd.positive("mass", 90.0, "kg"),
        mbd.nonnegative("viscous_forward", 160.0, "N s/m"),
        mbd.nonnegative("viscous_backward", 240.0, "N s/m"),
        mbd.nonnegative("dry_forward", 20.0, "N"),
        mbd.nonnegative("dry_backward", 20.0, "N"),
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


class DriftingDrive(AsymmetricDrive):
    """The same with a force that the motor gains or loses evenly with the time."""

    parameters = (*AsymmetricDrive.parameters, mbd.Parameter("drift", 0.0, "N/s"))

    def force(self, t, q, v, u, mu):
        """The motor's, with its drift."""
        return [super().force(t, q, v, u, mu)[0] - mu["drift"] * t]


_FORWARD = mbd.profile("dry_forward", 20.0, "N", over=(0.0, 0.25), count=8)
_BACKWARD = mbd.profile("dry_backward", 20.0, "N", over=(0.0, 0.25), count=8)


class WornDrive(AsymmetricDrive):
    """Dry friction that changes along the screw, and no drift, which is of a run and not of the
    machine.
    """

    parameters = (
        *(p for p in AsymmetricDrive.parameters if not p.name.startswith("dry")),
        *_FORWARD.parameters,
        *_BACKWARD.parameters,
    )
    profiles = (_FORWARD, _BACKWARD)

    def dry_friction(self, t, q, v, u, mu):
        """Of the screw and the guides: backward, and forward, at this place."""
        return [[1.0]], [[_BACKWARD(q[0], mu), _FORWARD(q[0], mu)]]


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
    """A pendulum per unit of inertia, `theta` from the upward vertical, on a bearing, in air."""

    coordinates = (mbd.angle("theta"),)
    parameters = (
        mbd.positive("weight", 50.0, "1/s^2", "m g l / J"),
        mbd.Parameter("upright", 0.0, "rad", meaning="what the encoder reads there"),
        mbd.nonnegative("viscous", 0.1, "1/s"),
        mbd.nonnegative("dry", 0.1, "1/s^2"),
        mbd.nonnegative("drag", 0.001, "1/rad"),
    )

    def mass_matrix(self, q, mu):
        """One."""
        return [1.0]

    def force(self, t, q, v, u, mu):
        """Weight, viscous friction and drag."""
        losses = (mu["viscous"] + mu["drag"] * jnp.abs(v[0])) * v[0]
        return [mu["weight"] * jnp.sin(q[0] - mu["upright"]) - losses]

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


def coarser(run: mbd.Trajectory, count: int) -> mbd.Trajectory:
    """Every so manieth row; inputs that are held over a row are averaged over those left out."""
    steps = (len(run.t) - 1) // count
    mean = np.asarray(run.u)[: steps * count].reshape(steps, count, -1).mean(axis=1)
    picked = jax.tree.map(lambda x: x[: steps * count + 1 : count] if np.ndim(x) else x, run)
    whole = eqx.tree_at(lambda r: r.status.step, picked, jnp.asarray(steps))
    return eqx.tree_at(lambda r: r.u, whole, jnp.asarray(np.concatenate([mean, mean[-1:]])))


DRIVES = (Drive, AsymmetricDrive, DriftingDrive, WornDrive)


def emps(folder: Path, tested: bool, drives: list[str]) -> None:
    """Train on the reference motion, test on the one with pulses: RMSE in mm over all of it.

    Mechanisms, by the names of their classes, are compared on four pieces of the training run;
    without a name all are, and the test is of the one with four parameters, and of the one that was
    chosen by the pieces.
    """

    def run(name):
        data = {k: x.ravel() for k, x in loadmat(folder / name).items() if k[0] != "_"}
        t = data["t"] - data["t"][0]
        return recorded(Drive(), t, data["qm"], data["gtau"][0] * data["vir"])

    files = {"train": "DATA_EMPS.mat"} | ({"test": "DATA_EMPS_PULSES.mat"} if tested else {})
    runs = {name: run(file) for name, file in files.items()}
    training = coarser(runs["train"], EVERY)
    chosen = (Drive, AsymmetricDrive) if tested else DRIVES
    for kind in [one for one in DRIVES if one.__name__ in drives] if drives else chosen:
        drive = kind()
        own = [x for x in drive.parameter_names if not x.startswith("dry_")]
        unknown = [*own, *(("dry_forward", "dry_backward") if not isinstance(drive, Drive) else ())]
        # The controller holds its output over each sample.
        found = identified(drive, [training], ["q"], unknown, interpolation="constant", pieces=4)
        pieces = 1e3 * np.array(found.held_out["q"])
        print(f"held out: {np.sqrt(np.mean(pieces**2)):.2f} mm, {np.round(pieces, 2)}")
        print(f"variation: {found.variation}")
        for name, one in runs.items():
            # Both motions are under way at the first row: its velocity is that of the first rows.
            start = mbd.State(one.q[0], one.v[0])
            again = mbd.simulate(drive, one.t, start, inputs=one.u, parameters=found.parameters)
            error = 1e3 * float(np.sqrt(np.mean((again.q - one.q) ** 2)))
            print(f"{type(drive).__name__}, {name}: RMSE {error:.2f} mm", flush=True)


def silverbox(folder: Path, tested: bool) -> None:
    """Train on three quarters of the multisine; RMSE in mV on the rest and on the full arrow."""
    data = loadmat(folder / "SNLS80mV.mat")
    u, y, h = data["V1"][0], data["V2"][0], 1 / 610.35
    parts = {"train": (40650, 105712), "multisine": (105712, 127400), "arrow": (100, 40575)}
    runs = {
        name: recorded(Oscillator(), np.arange(b - a) * h, y[a:b], u[a:b])
        for name, (a, b) in parts.items()
    }
    runs = runs if tested else {"train": runs["train"]}
    names = list(Oscillator().parameter_names)
    found = identified(Oscillator(), [runs["train"]], ["y"], names, sensors={"y": ("u",)})
    through = found.sensors["y per u"]
    for name, one in runs.items():
        head = one.rows(0, 49)
        head = eqx.tree_at(lambda r: r.q, head, head.q - through * head.u)
        start = fitted_start(head, Oscillator(), found.parameters, "c", found.interpolation)
        fine, loads = finer(one, 4, found.interpolation)
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


def fitted_start(
    head: mbd.Trajectory, system, parameters: dict, one: str, interpolation: str
) -> mbd.State:
    """The state at the first of some rows, by a fit in which nothing else is unknown."""
    data = mbd.Dataset(head, parameters, recorded=list(system.coordinate_names))
    # A parameter that a prior holds: the initial state alone is free.
    value = parameters[one]
    held = {one: mbd.Unknown(mean=value, std=1e-6 * value)}
    return mbd.identify(system, data, unknown=held, interpolation=interpolation).initial_states[0]


def finer(run: mbd.Trajectory, count: int, how: str) -> tuple[np.ndarray, np.ndarray]:
    """Times and inputs at so many substeps, close enough for a spline between them."""
    t, u = np.asarray(run.t), np.asarray(run.u)
    fine = np.interp(np.arange(count * (len(t) - 1) + 1) / count, np.arange(len(t)), t)
    polynomials = input_polynomials(t, u, how)
    later = (fine[:-1] - np.repeat(t[:-1], count)).reshape(-1, count)
    powers = later[:, :, None] ** np.arange(polynomials.shape[1])
    inside = np.einsum("kjp,kpi->kji", powers, polynomials).reshape(-1, u.shape[1])
    return fine, np.concatenate([inside, u[-1:]])


def arm(folder: Path, tested: bool) -> None:
    """Four runs train, two test: RMSE of the angle over 9 s, beside the authors' own values.

    The rollouts begin at the recorded first row, and once more at the state that fits the first
    0.3 s best, since recorded rates are smoothed and least right at the ends of a run.
    """
    data = loadmat(folder / "SinglePE.mat")
    mass, center, inertia, friction, g = loadmat(folder / "SingleEP.mat")["EstimatedParameters"][0]
    total = inertia + mass * center**2
    theirs = {"weight": mass * g * center / total, "viscous": friction / total}
    theirs |= {"upright": 0.0, "dry": 0.0, "drag": 0.0}

    def runs(key):
        return [
            recorded(Arm(), np.arange(y.shape[1]) * 1e-3, y[0], rate=y[1]) for y in data[key][:, 0]
        ]

    names = list(Arm().parameter_names)
    training = [coarser(run, EVERY) for run in runs("Y_id")]
    found = identified(Arm(), training, ["theta"], names, pieces=len(training))
    pieces = np.array(found.held_out["theta"])
    print(f"held out: {np.sqrt(np.mean(pieces**2)):.4f} rad, {np.round(pieces, 4)}")
    if not tested:
        return
    for number, one in enumerate(runs("Y_vad")):
        for name, mu in (("ours", found.parameters), ("the authors'", theirs)):
            for where in ("the first row", "the first 0.3 s"):
                start = mbd.State(one.q[0], one.v[0])
                if where != "the first row":
                    head = one.rows(0, 299)
                    start = fitted_start(head, Arm(), mu, "weight", found.interpolation)
                again = mbd.simulate(Arm(), one.t, start, parameters=mu)
                error = float(np.sqrt(np.mean((again.q - one.q) ** 2)))
                print(f"test run {number + 1}, {name}, from {where}: RMSE {error:.4f} rad")


MACHINES = {"emps": emps, "silverbox": silverbox, "arm": arm}


def main(arguments: list[str]) -> None:
    """Read what is asked for, and measure it."""
    names = [one for one in arguments[2:] if one != "--train"]
    known = {one.__name__ for one in DRIVES} if arguments[:1] == ["emps"] else set()
    if len(arguments) < 2 or arguments[0] not in MACHINES or not known.issuperset(names):
        sys.exit(__doc__)
    given = (names,) if arguments[0] == "emps" else ()
    MACHINES[arguments[0]](Path(arguments[1]), "--train" not in arguments, *given)


if __name__ == "__main__":
    main(sys.argv[1:])
