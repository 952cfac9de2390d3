import dataclasses
import os
import stat
from pathlib import Path
from unittest.mock import Mock

import jax.numpy as jnp
import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

from mbdnode.data import check_destination, write
from mbdnode.data.logs import read
from mbdnode.errors import UserError
from mbdnode.status import Outcome, Status
from mbdnode.trajectory import Trajectory

COLUMNS = ["t", "x", "theta", "x_dot", "theta_dot", "F"]


def trajectory_from(table, *, last=None):
    """A trajectory with these columns that ended well, or failed after the row `last`."""
    table = jnp.asarray(table, float)
    last, code = (len(table) - 1, 0) if last is None else (last, Outcome.NOT_FINITE.value)
    status = Status(jnp.array(code), jnp.array(last), table[last, 0], jnp.array(-1), ("x", "theta"))
    return Trajectory(
        t=table[:, 0],
        q=table[:, 1:3],
        v=table[:, 3:5],
        u=table[:, 5:],
        position_residual=jnp.zeros(len(table)),
        velocity_residual=jnp.zeros(len(table)),
        status=status,
        coordinates=("x", "theta"),
        rates=("x_dot", "theta_dot"),
        inputs=("F",),
    )


def awkward_numbers():
    """Doubles of every size with all bits in use, and the ends of the range."""
    random = np.random.default_rng(0)
    numbers = random.uniform(-1, 1, (300, 6)) * 10.0 ** random.integers(-300, 300, (300, 6))
    numbers[0] = [0.0, -0.0, 5e-324, -5e-324, 1.7976931348623157e308, 2.2250738585072014e-308]
    numbers[1] = [0.1, 1 / 3, 1e22, 1e23, 123456789012345680.0, -1.0]
    return numbers


def bits(values):
    return np.ascontiguousarray(values, dtype=np.float64).view(np.uint64)


@pytest.fixture
def trajectory():
    return trajectory_from(np.arange(30.0).reshape(5, 6) / 7)


def test_csv_is_read_back_bit_for_bit(tmp_path):
    numbers = awkward_numbers()
    write(trajectory_from(numbers), tmp_path / "run.csv")
    header = (tmp_path / "run.csv").read_text().splitlines()[0]
    assert header == ",".join(COLUMNS)
    read = np.loadtxt(tmp_path / "run.csv", delimiter=",", skiprows=1)
    np.testing.assert_array_equal(bits(read), bits(numbers))


def test_parquet_is_read_back_bit_for_bit(tmp_path):
    numbers = awkward_numbers()
    write(trajectory_from(numbers), tmp_path / "run.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "run.parquet")
    assert table.column_names == COLUMNS
    read = np.column_stack([column.to_numpy() for column in table.columns])
    np.testing.assert_array_equal(bits(read), bits(numbers))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_read_is_the_inverse_of_write(tmp_path, suffix):
    numbers = awkward_numbers()
    # As far apart as one likes, and nearer than a log's clock would tell.
    numbers[:, 0] = np.geomspace(1e-300, 1e3, len(numbers))
    run = trajectory_from(numbers)
    write(run, tmp_path / f"run.{suffix}")
    data = read(tmp_path / f"run.{suffix}")
    (again,) = data.trajectories
    assert again.columns == run.columns
    np.testing.assert_array_equal(bits(again.table), bits(run.table))
    assert again.outside is None
    assert data.recorded == ("x", "theta", "x_dot", "theta_dot")
    assert "by its headings: coordinates x, theta, inputs F" in str(data.summary)
    assert "the longest step is" in data.summary.warnings[0].text


def test_marks_of_rows_outside_the_training_data_are_read_again(tmp_path, trajectory):
    outside = jnp.array([False, False, True, True, False])
    write(dataclasses.replace(trajectory, outside=outside), tmp_path / "run.csv")
    (again,) = read(tmp_path / "run.csv").trajectories
    np.testing.assert_array_equal(again.outside, outside)
    np.testing.assert_array_equal(bits(again.table), bits(trajectory.table))


def test_several_written_files_are_several_trajectories(tmp_path, trajectory):
    for number in range(3):
        write(trajectory, tmp_path / f"run{number}.csv")
    data = read(tmp_path / "run*.csv")
    assert len(data.trajectories) == 3
    assert data.summary.account.kept == 15


@pytest.mark.parametrize(
    "text",
    [
        "t,x,x_dot\n0,1,0\n1,,0\n2,3,0\n",  # A value is missing.
        "t,x,x_dot\n0,1,0\n1,2,0\n1,3,0\n",  # Time stands still.
        "t,x,y,x_dot\n0,1,0,0\n1,2,0,0\n2,3,0,0\n",  # Without all rates.
        "time,x,x_dot\n0,1,0\n1,2,0\n2,3,0\n",
    ],
)
def test_what_was_not_written_so_needs_roles(tmp_path, text):
    (tmp_path / "log.csv").write_text(text)
    with pytest.raises(ValueError, match="never guessed silently"):
        read(tmp_path / "log.csv")


def test_suffix_may_be_in_capitals(tmp_path, trajectory):
    write(trajectory, tmp_path / "RUN.CSV")
    assert (tmp_path / "RUN.CSV").read_text().startswith("t,x,")


def test_rows_after_a_failure_are_left_out(tmp_path):
    table = np.arange(30.0).reshape(5, 6)
    table[3:, 1:] = np.nan
    write(trajectory_from(table, last=2), tmp_path / "run.csv")
    read = np.loadtxt(tmp_path / "run.csv", delimiter=",", skiprows=1)
    np.testing.assert_array_equal(read, table[:3])


def test_batch_is_refused(tmp_path, trajectory):
    import jax

    batch = jax.tree.map(lambda x: jnp.stack([x, x]), trajectory)
    with pytest.raises(ValueError, match=r"batch of shape \(2,\)"):
        write(batch, tmp_path / "run.csv")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("stop", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("old", [None, "precious"])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_failure_in_the_middle_leaves_what_was_there(
    tmp_path, trajectory, monkeypatch, stop, old, suffix
):
    path = tmp_path / f"run{suffix}"
    if old is not None:
        path.write_text(old)

    def half(table, file, *options):
        file.write(b"t,x,theta\n0.0,0.")
        file.flush()
        assert len(list(tmp_path.iterdir())) == 1 + (old is not None), "written elsewhere"
        raise stop

    monkeypatch.setattr(pyarrow.csv, "write_csv", half)
    monkeypatch.setattr(pyarrow.parquet, "write_table", half)
    with pytest.raises(type(stop)) as caught:
        write(trajectory, path)
    if isinstance(stop, OSError):
        assert "No space left" in str(caught.value)
        assert str(path) in str(caught.value)
    assert [p.name for p in tmp_path.iterdir()] == ([] if old is None else [path.name])
    if old is not None:
        assert path.read_text() == old


def test_failure_of_the_last_step_leaves_what_was_there(tmp_path, trajectory, monkeypatch):
    path = tmp_path / "run.csv"
    path.write_text("precious")

    def refuse(source, destination):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="Input/output error"):
        write(trajectory, path)
    assert [p.name for p in tmp_path.iterdir()] == ["run.csv"]
    assert path.read_text() == "precious"


def test_replaced_file_keeps_its_permissions_and_a_new_one_gets_the_usual(tmp_path, trajectory):
    old, new, usual = tmp_path / "old.csv", tmp_path / "new.csv", tmp_path / "usual"
    old.write_text("before")
    old.chmod(0o640)
    usual.touch()
    write(trajectory, old)
    write(trajectory, new)
    mode = lambda path: stat.S_IMODE(path.stat().st_mode)  # noqa: E731
    assert mode(old) == 0o640
    assert mode(new) == mode(usual)


def test_link_stays_a_link(tmp_path, trajectory):
    target, link = tmp_path / "target.csv", tmp_path / "link.csv"
    target.write_text("before")
    link.symlink_to(target)
    write(trajectory, link)
    assert link.is_symlink()
    assert target.read_text().startswith("t,x,")


@pytest.mark.parametrize(
    ("name", "kind", "parts"),
    [
        ("run.txt", ValueError, ("run.txt", ".txt", ".csv", ".parquet")),
        ("run", ValueError, ("run", ".csv", ".parquet")),
        ("folder.csv", UserError, ("folder.csv", "is a directory")),
        ("missing/run.csv", UserError, ("missing", "is not a directory", "Create it")),
        ("file/run.csv", UserError, ("file", "is not a directory", "another")),
        ("pipe.csv", UserError, ("pipe.csv", "not a regular file")),
    ],
)
def test_place_that_cannot_be_written_is_named_with_a_way_out(tmp_path, name, kind, parts):
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe.csv")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(kind) as caught:
        check_destination(tmp_path / name)
    assert all(part in str(caught.value) for part in parts)
    assert sorted(tmp_path.iterdir()) == before


# The administrator may write anywhere, so what the system would answer others is played.
@pytest.mark.parametrize("protected", ["file", "directory"])
def test_write_protection_is_respected(tmp_path, trajectory, monkeypatch, protected):
    path = tmp_path / "run.csv"
    path.write_text("precious")
    if protected == "file":
        monkeypatch.setattr(os, "access", lambda place, mode: False)
    else:
        refusal = PermissionError(13, "Permission denied")
        monkeypatch.setattr(Path, "touch", Mock(side_effect=refusal))
    with pytest.raises(UserError, match=r"change (its|the directory's) permissions"):
        write(trajectory, path)
    assert path.read_text() == "precious"
