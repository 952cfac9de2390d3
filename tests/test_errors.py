"""Users' mistakes have one class, and what does not fit in memory is one of them."""

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
    # Those of our own reports, and one that is caught a line later.
    ours = {"report/tables.py", "reproduction/report/motion_figures.py", "control/problem.py"}
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
