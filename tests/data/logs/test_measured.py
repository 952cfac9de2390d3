"""Recordings of real systems, as they were published; skipped where they are not at hand."""

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from mbdnode.data.logs import guess_roles, open_logs, read
from mbdnode.data.signal import find_outliers

BESIDE = Path(__file__).parents[4] / "shared" / "data" / "measured"
HOME = Path(os.environ.get("MBDNODE_RECORDINGS", BESIDE))
FILES = {"real_linear_h_1.txt": ("x", 870), "real_pend_h_1.txt": ("o", 556)}

pytestmark = pytest.mark.skipif(
    not all((HOME / name).is_file() for name in FILES),
    reason=f"there are no {' and '.join(FILES)} in {HOME}: they are in the supplement of Schmidt "
    "and Lipson, Science 324 (2009) 81; name their folder in MBDNODE_RECORDINGS",
)


@pytest.mark.parametrize("name", FILES)
def test_recording_is_read_with_nothing_but_the_roles(name):
    coordinate, count = FILES[name]
    data = read(HOME / name, time="column2", coordinates=[coordinate], rates=["v"], run="column1")
    run = data.trajectories[0]
    expected = np.loadtxt(HOME / name, comments="%")
    np.testing.assert_array_equal(np.column_stack([run.t, run.q, run.v]), expected[:, 1:])
    assert data.summary.account.kept == count


@pytest.mark.parametrize("name", FILES)
def test_roles_are_guessed_from_the_values(name):
    guess = guess_roles(open_logs(HOME / name)[0])
    coordinate = FILES[name][0]
    assert (guess.time, guess.coordinates) == ("column2", (coordinate,))
    assert dict(guess.rates) == {coordinate: "v"}


@pytest.mark.parametrize("name", FILES)
def test_estimated_rate_is_near_the_published_one(name):
    coordinate = FILES[name][0]
    ours, theirs = (
        np.asarray(
            read(HOME / name, time="column2", coordinates=[coordinate], rates=rates)
            .trajectories[0]
            .v
        )
        for rates in (None, ["v"])
    )
    # Both are estimates of the same rate from the same positions.
    assert np.sqrt(np.mean((ours - theirs) ** 2)) < 0.05 * np.std(theirs)


ARM = HOME / "single_arm" / "SinglePE.mat"


@pytest.mark.skipif(
    not ARM.is_file(), reason=f"there is no {ARM}, of dynamicslab/MultiArm-Pendulum"
)
def test_an_encoder_whose_counts_were_smoothed_has_no_outliers():
    content = scipy.io.loadmat(ARM)
    for run in (*content["Y_id"].ravel(), *content["Y_vad"].ravel()):
        for column in run if run.shape[0] == 2 else run.T:
            t = 1e-3 * np.arange(len(column))
            assert find_outliers(t, np.asarray(column, float)).rows.tolist() == []
