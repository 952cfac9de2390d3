"""Users' mistakes have one class, and what does not fit in memory is one of them."""

import subprocess
import sys
from pathlib import Path

import pytest

import mbdnode as mbd
from mbdnode import errors
from mbdnode.models.network import make_network
from mbdnode.trajectory import check_trajectory_size


@pytest.fixture
def small_machine(monkeypatch):
    monkeypatch.setattr(errors, "free_memory", lambda: 10**9)


def test_user_error_is_a_value_error():
    with pytest.raises(ValueError, match="'massless'"):
        mbd.mechanisms.get_mechanism("massless")
    with pytest.raises(mbd.UserError):
        mbd.mechanisms.get_mechanism("massless")


def test_no_other_value_error_is_raised_for_a_user():
    # Those of our own reports; and those of damaged files, which `open_logs` catches and words.
    ours = {"report/tables.py", "data/logs/formats/mat.py", "data/logs/formats/npz.py"}
    source = Path(mbd.__file__).parent
    raising = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if "raise ValueError(" in path.read_text()
    }
    assert raising - ours == set(), "Raise UserError for what a user did wrong."


@pytest.mark.usefixtures("small_machine")
def test_what_fits_is_not_refused():
    errors.check_memory(10**9, "It", "Take less.")
    with pytest.raises(mbd.UserError, match=r"It would take about 2\.0 GB .* 1\.0 GB are free"):
        errors.check_memory(2 * 10**9, "It", "Take less.")


def test_what_is_not_known_is_not_refused(monkeypatch):
    monkeypatch.setattr(errors, "free_memory", lambda: None)
    errors.check_memory(10**30, "It", "Take less.")


@pytest.mark.usefixtures("small_machine")
def test_large_requests_are_refused_before_anything_is_allocated():
    cart_pole = mbd.mechanisms.CartPole()
    ranges = dict.fromkeys(("x", "theta", "x_dot", "theta_dot", "u"), (0.0, 1.0))
    with pytest.raises(mbd.UserError, match="2,000,000,000 steps"):
        check_trajectory_size(2_000_000_000, 5)
    with pytest.raises(mbd.UserError, match=r"weights .* Lower its width"):
        make_network((2, 10**8, 10**8, 1), "tanh", "xavier", 0)
    with pytest.raises(mbd.UserError, match="chunk of 2,000,000,000 steps"):
        mbd.StepStream(cart_pole, ranges, 2_000_000_000, 0.01)
    with pytest.raises(mbd.UserError, match="horizon of 2,000,000,000 steps"):
        mbd.MPC(cart_pole, horizon=2_000_000_000, dt=0.1)


def test_container_with_less_than_the_machine_counts(tmp_path, monkeypatch):
    files = {
        "/proc/meminfo": "MemTotal: 16 kB\nMemAvailable:    8 kB\n",
        "/proc/self/cgroup": "0::/job\n",
        "/sys/fs/cgroup/job/memory.max": "5000\n",
        "/sys/fs/cgroup/job/memory.current": "1000\n",
    }
    for name, text in files.items():
        place = tmp_path / name[1:]
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    monkeypatch.setattr(errors, "Path", lambda name: tmp_path / name[1:])
    assert errors.free_memory() == 4000
    (tmp_path / "sys/fs/cgroup/job/memory.max").write_text("max\n")
    assert errors.free_memory() == 8 * 1024


def test_free_memory_of_this_machine_is_a_size():
    size = errors.free_memory()
    assert size is None or 10**6 < size < 10**16


# Where types are checked at every call, as in these tests, no wrong one arrives.
_WRONG_TYPES = """
import mbdnode as mbd
import numpy as np

pendulum = mbd.mechanisms.SinglePendulum()
run = mbd.simulate(pendulum, np.linspace(0.0, 1.0, 11), {"theta": 1.0})
for call in (
    lambda: mbd.save("model.safetensors", run),
    lambda: mbd.save(mbd.MBDNODE.for_system(pendulum), 3),
    lambda: mbd.energy(pendulum, 3),
    lambda: mbd.reactions(pendulum, mbd.State(run.q[0], run.v[0])),
    lambda: mbd.evaluate(run, 3),
    lambda: mbd.evaluate(np.ones(3), run),
    lambda: mbd.training_domain(pendulum, [3]),
    lambda: mbd.write("run.csv", run),
    lambda: mbd.write(run, 3),
    lambda: mbd.read_mechanism(3),
    lambda: mbd.export(pendulum, 3),
    lambda: mbd.fit(mbd.MBDNODE.for_system(pendulum), run, callback=3),
    lambda: mbd.fit(mbd.MBDNODE.for_system(pendulum), run, checkpoint="kept"),
    lambda: mbd.fit(mbd.MBDNODE.for_system(pendulum), run, {"epochs": 3}),
    lambda: mbd.identify(pendulum, mbd.Dataset([run], [{"M": 1.0}])),
):
    try:
        call()
    except mbd.UserError as error:
        print(error)
"""


def test_arguments_of_a_wrong_type_are_refused_in_a_sentence():
    run = subprocess.run([sys.executable, "-c", _WRONG_TYPES], capture_output=True, text=True)
    told = run.stdout.splitlines()
    assert len(told) == 15, run.stderr
    assert told[0].startswith("save was given str as its model")
    assert told[2] == (
        "energy takes a Trajectory, but this is of type int. Use simulate, read, or "
        "Trajectory.from_frame for a frame."
    )
    paths = [line for line in told if "A path is text" in line]
    assert len(paths) == 4
    assert told[-4:] == [
        "callback is 3; give a function of the model and the history.",
        "checkpoint is 'kept'; give a mbdnode.training.Checkpoint(path).",
        "The recipe is {'epochs': 3}; give a key of RECIPES or a TrainingConfig.",
        "Unknown parameter 'M'. Did you mean 'm'? Known: m, L, c, g.",
    ]
