"""Measured motions: learn the first two thirds, predict the last third.

    python -m benchmarks.measured_data FILE ... [--without-lstm]

A file has the columns trial, time, coordinate and rate, with blanks between them; `%` begins a
comment. Names with `pend` in them are read as angles. The error is the root mean square over
coordinate and rate in units of their own standard deviation (NRMSE), beside that of the last state
held (persistence) and of an LSTM.
"""

import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

import mbdnode as mbd
from mbdnode.status import completed
from mbdnode.training import TrainingConfig, fit
from mbdnode.trajectory import Dataset, Trajectory

TRAINED = 2 / 3
# The LSTM as in the paper, on a step that is the median of the recording's.
LSTM = TrainingConfig(epochs=400, learning_rate=5e-4, batch_size=16, shuffle=True)


def read(path: Path) -> tuple[mbd.AccelerationFunction, Trajectory]:
    """A system that is known by its coordinate alone, and its recorded motion."""
    columns = np.loadtxt(path, comments="%").T
    _, t, x, rate = columns
    angle = "pend" in path.name
    coordinate = mbd.angle("theta") if angle else mbd.length("x")
    system = mbd.AccelerationFunction(lambda t, q, v, u, mu: jnp.zeros_like(q), (coordinate,))
    return system, _trajectory(system, t, x[:, None], rate[:, None])


def _trajectory(system, t, q, v) -> Trajectory:
    count = len(t)
    return Trajectory(
        t=jnp.asarray(t),
        q=jnp.asarray(q),
        v=jnp.asarray(v),
        u=jnp.zeros((count, 0)),
        position_residual=jnp.zeros(count),
        velocity_residual=jnp.zeros(count),
        status=completed(jnp.asarray(t[-1]), jnp.array(count - 1), system.coordinate_names),
        coordinates=system.coordinate_names,
        rates=system.rate_names,
        inputs=(),
    )


def error(found, truth) -> float:
    """Root mean square in units of the truth's own standard deviation."""
    parts = [
        (np.asarray(a) - np.asarray(b)) / np.std(np.asarray(b), axis=0)
        for a, b in zip(found, truth, strict=True)
    ]
    return float(np.sqrt(np.mean(np.concatenate(parts, axis=1) ** 2)))


def forecasts(system, run: Trajectory, *, with_lstm: bool) -> dict[str, tuple[float, str]]:
    """The error of every method over the last third."""
    last = int((len(run) - 1) * TRAINED)
    known, rest = run.rows(0, last), run.rows(last, len(run) - 1)
    truth = rest.q[1:], rest.v[1:]
    held = [jnp.broadcast_to(x[:1], x[1:].shape) for x in (rest.q, rest.v)]
    found = {"persistence": (error(held, truth), "the last state, held")}
    for recipe in ("fast", "best"):
        trained = mbd.identify(system, known, recipe)
        start = mbd.estimate_state(trained.model, known)
        ahead = mbd.simulate(trained.model, rest.t, start)
        found[recipe] = error((ahead.q[1:], ahead.v[1:]), truth), trained.status
    if with_lstm:
        found["lstm"] = _lstm(system, known, rest, truth)
    return found


def _lstm(system, known: Trajectory, rest: Trajectory, truth) -> tuple[float, str]:
    """On an even grid, which is what an LSTM needs; compared at the measured times."""
    step = float(np.median(np.diff(known.t)))
    grid = np.arange(float(known.t[0]), float(known.t[-1]), step)
    even = lambda x: np.stack([np.interp(grid, known.t, c) for c in np.asarray(x).T], 1)  # noqa: E731
    data = _trajectory(system, grid, even(known.q), even(known.v))
    model = mbd.LSTM.for_system(system)
    trained = fit(model, Dataset(data), LSTM)
    past = model.history
    steps = int(np.ceil((float(rest.t[-1]) - grid[-1]) / step)) + past
    times = grid[-past] + step * np.arange(steps)
    ahead = mbd.simulate(trained.model, times, data.rows(len(grid) - past, len(grid) - 1))
    at = lambda x: np.stack([np.interp(rest.t[1:], times, c) for c in np.asarray(x).T], 1)  # noqa: E731
    return error((at(ahead.q), at(ahead.v)), truth), trained.status


def main(console: Console, paths: list[Path], with_lstm: bool) -> None:
    """Learn every file, and print."""
    table = Table(title="Measured motions: NRMSE over the last third")
    for column in ("file", "method", "error", "how"):
        table.add_column(column, justify="right" if column == "error" else "left")
    for path in paths:
        system, run = read(path)
        for method, (size, how) in forecasts(system, run, with_lstm=with_lstm).items():
            table.add_row(path.name, method, f"{size:.3f}", how)
    console.print(table)


if __name__ == "__main__":
    given = [x for x in sys.argv[1:] if not x.startswith("--")]
    if not given:
        sys.exit("error: name at least one recording")
    main(Console(width=150), [Path(x) for x in given], "--without-lstm" not in sys.argv)
