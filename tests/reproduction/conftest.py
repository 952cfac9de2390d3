"""Runs that take a moment, and Dask's own processes on loopback."""

import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace

import pytest

from mbdnode.reproduction.config import configure, with_changes
from mbdnode.reproduction.plan import Plan, PlannedRun, Request

CASE = "single-mass-spring-damper"
TINY = {"width": "4", "epochs": "3", "batch_size": "100", "integrator": "fe1"}


@pytest.fixture(scope="session")
def tiny_run():
    """A small network and few epochs; fields as text change that."""

    def make(name="tiny", *, seed=0, **changes):
        config = with_changes(configure(CASE), {**TINY, **changes})
        return PlannedRun(name, replace(config, seed=seed))

    return make


@pytest.fixture(scope="session")
def tiny_plan(tiny_run):
    """A plan of two seeds."""
    request = Request(cases=(CASE,), models=("mbd-node",), seeds=2)
    return Plan(request, tuple(tiny_run(f"tiny-{seed}", seed=seed) for seed in range(2)))


class DaskProcesses:
    """A scheduler and workers, each a process of its own."""

    def __init__(self, scratch, **settings):
        self.scratch = scratch
        self.environment = {**os.environ, **{f"DASK_{k}": v for k, v in settings.items()}}
        self.started = []
        where = ["--host", "127.0.0.1", "--no-dashboard"]
        scheduler = self._start(["scheduler", *where, "--port", "0"])
        self.address = self._wait_for(scheduler, r"Scheduler at:\s+(tcp://\S+)")

    def add_worker(self):
        options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1"]
        scratch = ["--local-directory", str(self.scratch)]
        return self._start(["worker", self.address, *options, *scratch])

    def _start(self, arguments):
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", *arguments],
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def _wait_for(self, process, pattern):
        seen = []
        for line in process.stderr:
            seen.append(line)
            if found := re.search(pattern, line):
                # What it says later must go somewhere, or it waits for a reader.
                threading.Thread(target=process.stderr.read, daemon=True).start()
                return found[1]
        raise AssertionError("".join(seen))

    def end(self):
        for process in reversed(self.started):
            process.kill()
        for process in self.started:
            process.wait(timeout=30)
            process.stderr.close()


@pytest.fixture(scope="session")
def dask_processes(tmp_path_factory):
    """Start a scheduler; whatever was started ends with the block."""

    @contextmanager
    def start(**settings):
        processes = DaskProcesses(tmp_path_factory.mktemp("dask"), **settings)
        try:
            yield processes
        finally:
            processes.end()

    return start


@pytest.fixture
def kill_worker():
    """End the process that an event came from, without a chance to say goodbye."""

    def kill(sign):
        os.kill(int(re.search(r"pid (\d+)", sign.where)[1]), signal.SIGKILL)

    return kill
