"""Runs that take a moment."""

import os
import re
import signal
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


@pytest.fixture
def kill_worker():
    """End the process that an event came from, without a chance to say goodbye."""

    def kill(sign):
        os.kill(int(re.search(r"pid (\d+)", sign.where)[1]), signal.SIGKILL)

    return kill
