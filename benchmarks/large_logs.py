"""Ten million rows of measurements, fitted in bounded memory.

    python -m benchmarks.large_logs [ROWS] [RECIPE] [WORKERS,WORKERS...]

Cart-poles are released hanging askew, each pushed to and fro by a force of its own, and recorded
for fifty seconds with noise of a hundredth of the motion. The recordings are written to Parquet,
read as a stream and fitted; the law that comes out predicts motions that were not among them. Both
must stay below two gigabytes of resident memory, and are set beside the time in which pyarrow reads
the same file.

With numbers of workers, such as `1,2`, the same is done on so many Dask workers of this machine,
each a process of its own on one core, and the laws are compared to the bit. Workers read and fit a
smaller file first, so that what they load and compile is not in the times. Of each process the
seconds of CPU are told: what this one spends, while workers wait, cannot be shared among them.
"""

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

import mbdnode as mbd
from mbdnode.models import AbstractModel
from mbdnode.parallel import remote_workers

CART = mbd.mechanisms.CartPole()
ROWS, DT_S, NOISE = 5_000, 0.01, 0.01
TIMES = jnp.arange(ROWS) * DT_S
# Runs that are simulated at a time; steps of a window; rows of a motion that is predicted.
BATCH, WINDOW, AHEAD = 20, 500, 500
MOST_BYTES = 2e9


@jax.jit
@jax.vmap
def motion(angle, push, pace):
    """From rest, with the pole's angle from hanging down."""
    start = mbd.State(jnp.stack([jnp.pi + angle, 0.0]), jnp.zeros(2))
    run = mbd.simulate(CART, TIMES, start, inputs=(push * jnp.cos(pace * TIMES))[:, None])
    return jnp.concatenate([run.q, run.v, run.u], axis=1)


def sampled(rng: np.random.Generator, count: int) -> np.ndarray:
    """So many motions: angle, position, their rates and the push, at every time."""
    ranges = ((-1.5, 1.5), (-1.0, 1.0), (1.0, 3.0))
    return np.array(motion(*(rng.uniform(*own, count) for own in ranges)))


def write(path: Path, rows: int, seed: int = 0) -> None:
    """Recordings with noise, a batch of runs at a time."""
    rng, writer, run = np.random.default_rng(seed), None, 0
    level = np.array([0.0])
    for first in range(0, rows // ROWS, BATCH):
        table = sampled(rng, BATCH)
        if first == 0:
            level = NOISE * np.std(table[..., :4], axis=(0, 1))
        table[..., :4] += level * rng.standard_normal(table[..., :4].shape)
        columns: dict[str, np.ndarray] = dict(
            zip(("theta", "x", "omega", "v", "u"), table.reshape(-1, 5).T, strict=True)
        )
        columns["t"] = np.tile(np.asarray(TIMES), BATCH)
        columns["run"] = np.repeat(np.arange(run, run + BATCH), ROWS)
        batch = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, batch.schema)
        writer.write_table(batch)
        run += BATCH
    assert writer is not None
    writer.close()


def prediction_error(model: AbstractModel, seed: int = 1) -> float:
    """Over new motions, NRMSE of the positions."""
    rng, away = np.random.default_rng(seed), []
    for truth in sampled(rng, 8)[:, :AHEAD]:
        start = mbd.State(jnp.asarray(truth[0, :2]), jnp.asarray(truth[0, 2:4]))
        run = mbd.simulate(model, TIMES[:AHEAD], start, inputs=truth[:, 4:])
        away.append((np.asarray(run.q) - truth[:, :2]) / np.std(truth[:, :2], axis=0))
    return float(np.sqrt(np.mean(np.square(away))))


def peak_bytes() -> float:
    """Most of the process's memory that was ever resident."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def opened(path: Path, folder: str, cluster: str | None = None) -> mbd.LogStream:
    """The recordings as a stream."""
    return mbd.LogStream(
        path,
        time="t",
        run="run",
        coordinates=["theta", "x"],
        rates={"theta": "omega", "x": "v"},
        inputs=["u"],
        window=WINDOW,
        cache=folder,
        cluster=cluster,
    )


@contextmanager
def dask_cluster(workers: int, folder: str) -> Iterator[str]:
    """The address of a scheduler with so many workers, all of which end with the block."""
    dask = [sys.executable, "-m", "dask"]
    where = ["--host", "127.0.0.1", "--no-dashboard"]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    started = [subprocess.Popen([*dask, "scheduler", *where, "--port", "0"], **quiet)]
    try:
        log = started[0].stderr
        assert log is not None
        found = (re.search(r"Scheduler at:\s+(tcp://\S+)", line) for line in log)
        address = next(match[1] for match in found if match)
        place = ["--nthreads", "1", "--no-nanny", "--local-directory", folder]
        quiet["stderr"] = subprocess.DEVNULL
        cores = sorted(os.sched_getaffinity(0))
        for number in range(workers):
            worker = subprocess.Popen([*dask, "worker", address, *where, *place], **quiet)
            # One that computes with several threads would leave nothing for a second one to gain.
            os.sched_setaffinity(worker.pid, {cores[number % len(cores)]})
            started.append(worker)
        with remote_workers(address) as client:
            client.wait_for_workers(workers, timeout=120)
        yield address
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()


def cpu_of_each(address: str) -> list[float]:
    """Seconds of this process, and of every worker."""
    with remote_workers(address) as client:
        found = client.run(time.process_time)
        assert isinstance(found, dict)
        return [time.process_time(), *(found[worker] for worker in sorted(found))]


def bits(model: AbstractModel) -> list[bytes]:
    """All numbers of a model."""
    return [np.asarray(x).tobytes() for x in jax.tree.leaves(model) if eqx.is_array(x)]


def compare_workers(
    console: Console, path: Path, folder: str, recipe: str, numbers: list[int], alone: AbstractModel
) -> bool:
    """Print the times of so many workers, and return whether all laws are the same to the bit."""
    small, same = Path(folder) / "small.parquet", True
    write(small, 4 * BATCH * ROWS, seed=2)
    for workers in numbers:
        with dask_cluster(workers, folder) as address:
            first = opened(small, folder, address)
            mbd.identify(CART, first, recipe)
            first.close()
            before = cpu_of_each(address)
            begin = time.perf_counter()
            stream = opened(path, folder, address)
            read_s = time.perf_counter() - begin
            found = mbd.identify(CART, stream, recipe)
            total_s = time.perf_counter() - begin
            own, *theirs = (b - a for a, b in zip(before, cpu_of_each(address), strict=True))
            stream.close()
        alike = bits(found.model) == bits(alone)
        same = same and alike
        console.print(
            f"{workers} worker(s): read {read_s:.1f} s, read + fit {total_s:.1f} s, "
            f"{'the same bits' if alike else 'OTHER BITS'} as one process; CPU {own:.1f} s here, "
            f"{' + '.join(f'{one:.1f}' for one in theirs)} s there"
        )
    return same


def main(console: Console, rows: int, recipe: str, numbers: list[int]) -> int:
    """Write, read, fit, predict, and print what it took."""
    stages = [(time.perf_counter(), time.process_time())]
    taken: dict[str, tuple[float, float]] = {}

    def note(name: str, stage: str) -> None:
        stages.append((time.perf_counter(), time.process_time()))
        seconds, cpu_s = (now - before for now, before in zip(stages[-1], stages[-2], strict=True))
        taken[name] = seconds, cpu_s
        most = f"at most {peak_bytes() / 1e9:.2f} GB so far"
        console.print(f"{stage}: {seconds:.1f} s ({cpu_s:.1f} s of CPU), {most}")

    def report(row, total):
        if row["epoch"] % 20 == 0 or row["stage"] == "form":
            done, error = row["epoch"] + 1, row["loss"]
            console.print(f"  {row['stage']} {done} of {total}, error {error:.1e}")

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.parquet"
        write(path, rows)
        note("write", f"wrote {rows:,} rows, {path.stat().st_size / 1e6:.0f} MB")
        stream = opened(path, folder)
        note("read", f"read {stream.count} chunks")
        found = mbd.identify(CART, stream, recipe, report=report)
        note("fit", "fitted")
        peak = peak_bytes()
        # Last, since it holds all of the file.
        pq.read_table(path)
        note("pyarrow", "pyarrow read the same file")
        same = compare_workers(console, path, folder, recipe, numbers, found.model)
    for what in (("read",), ("read", "fit")):
        wall, cpu = (sum(taken[k][i] for k in what) / taken["pyarrow"][i] for i in (0, 1))
        console.print(f"{' + '.join(what)} / pyarrow: {wall:.1f}, of CPU {cpu:.1f}")
    console.print(found.status)
    console.print(f"error on motions that were not recorded: {prediction_error(found.model):.1e}")
    console.print(f"peak memory {peak / 1e9:.2f} GB of {MOST_BYTES / 1e9:.0f} GB allowed")
    return int(peak > MOST_BYTES or not same)


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    workers = [int(n) for n in sys.argv[3].split(",")] if len(sys.argv) > 3 else []
    sys.exit(main(Console(), count, sys.argv[2] if len(sys.argv) > 2 else "fast", workers))
