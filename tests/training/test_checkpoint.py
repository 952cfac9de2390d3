"""Training that is stopped in any way goes on to the same bits."""

import dataclasses
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest

from mbdnode.mechanisms import SinglePendulum
from mbdnode.models import MBDNODE
from mbdnode.training import Checkpoint, TrainingConfig, fit

CONFIG = TrainingConfig(integrator="fe1", epochs=6, batch_size=4, shuffle=True)
SEED = 5


def bits(model):
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(model)]


@pytest.fixture(scope="module")
def whole(swing):
    """The run that nobody stops."""
    return fit(MBDNODE.for_system(SinglePendulum(), width=4), swing, CONFIG, seed=SEED)


class Stopped(Exception):
    pass


def stop_at(epoch):
    def report(row, total):
        if row["epoch"] == epoch:
            raise Stopped

    return report


def same_history(one, other):
    strip = lambda rows: [{**row, "seconds": 0} for row in rows]  # noqa: E731
    return strip(one.history) == strip(other.history)


def test_run_goes_on_to_the_same_bits(swing, pendulum_model, whole, tmp_path):
    keep = Checkpoint(tmp_path / "c.safetensors", interval_s=0.0)
    with pytest.raises(Stopped):
        fit(pendulum_model, swing, CONFIG, seed=SEED, checkpoint=keep, report=stop_at(3))
    seen = []
    result = fit(
        pendulum_model,
        swing,
        CONFIG,
        seed=SEED,
        checkpoint=dataclasses.replace(keep, resume=True),
        report=lambda row, total: seen.append(row["epoch"]),
    )
    # The third epoch was over, but not yet written, when it was stopped.
    assert seen == [3, 4, 5]
    assert bits(result.model) == bits(whole.model)
    assert same_history(result, whole)
    assert (result.updates, result.outcome) == (whole.updates, "completed")


def test_checkpoints_do_not_change_the_result(swing, pendulum_model, whole, tmp_path):
    keep = Checkpoint(tmp_path / "c.safetensors", interval_s=0.0)
    result = fit(pendulum_model, swing, CONFIG, seed=SEED, checkpoint=keep)
    assert bits(result.model) == bits(whole.model)
    assert [path.name for path in tmp_path.iterdir()] == ["c.safetensors"]
    # Finished: nothing is left to do, and the result is the same again.
    again = fit(
        pendulum_model, swing, CONFIG, seed=SEED, checkpoint=Checkpoint(keep.path, resume=True)
    )
    assert bits(again.model) == bits(whole.model)


def test_interrupt_leaves_a_checkpoint_and_says_where(swing, pendulum_model, whole, tmp_path):
    keep = Checkpoint(tmp_path / "c.safetensors", interval_s=1e9)

    def press(row, total):
        if row["epoch"] == 2:
            os.kill(os.getpid(), signal.SIGINT)

    first = fit(pendulum_model, swing, CONFIG, seed=SEED, checkpoint=keep, report=press)
    assert first.outcome == "interrupted"
    assert str(keep.path) in first.status
    keep = Checkpoint(keep.path, resume=True)
    result = fit(pendulum_model, swing, CONFIG, seed=SEED, checkpoint=keep)
    assert bits(result.model) == bits(whole.model)


def test_run_stopped_for_lack_of_progress_does_not_go_on(swing, pendulum_model, tmp_path):
    config = TrainingConfig(
        integrator="fe1", epochs=50, batch_size=None, learning_rate=3.0, decay=1.0, patience=3
    )
    keep = Checkpoint(tmp_path / "c.safetensors", interval_s=0.0)
    first = fit(pendulum_model, swing, config, checkpoint=keep)
    assert first.outcome == "stopped"
    again = fit(pendulum_model, swing, config, checkpoint=dataclasses.replace(keep, resume=True))
    assert again.outcome == "stopped"
    assert bits(again.model) == bits(first.model)
    assert again.status == first.status


def test_multipliers_are_kept(crank, tmp_path):
    from mbdnode.mechanisms import SliderCrank

    model = MBDNODE.for_system(SliderCrank(), width=4, constraints="augmented")
    config = TrainingConfig(integrator="fe1", epochs=3, batch_size=None)
    keep = Checkpoint(tmp_path / "c.safetensors", interval_s=0.0)
    with pytest.raises(Stopped):
        fit(model, crank, config, checkpoint=keep, report=stop_at(1))
    result = fit(model, crank, config, checkpoint=dataclasses.replace(keep, resume=True))
    assert bits(result.model) == bits(fit(model, crank, config).model)


KILLED = """
    import os, signal, sys
    sys.path[:0] = [{folder!r}, {tests!r}]
    import conftest as training
    from mbdnode.mechanisms import SinglePendulum
    from mbdnode.models import MBDNODE
    from mbdnode.training import Checkpoint, TrainingConfig, fit
    from pathlib import Path

    def report(row, total):
        if row["epoch"] == 4:
            os.kill(os.getpid(), signal.SIGKILL)

    run = training.swing.__wrapped__()
    config = TrainingConfig(integrator="fe1", epochs=6, batch_size=4, shuffle=True)
    keep = Checkpoint(Path({path!r}), interval_s=0.0)
    model = MBDNODE.for_system(SinglePendulum(), width=4)
    fit(model, run, config, seed={seed}, checkpoint=keep, report=report)
"""


def test_killed_process_goes_on_to_the_same_bits(swing, pendulum_model, whole, tmp_path):
    here, path = Path(__file__).parent, tmp_path / "c.safetensors"
    script = textwrap.dedent(KILLED).format(
        tests=str(here.parent), folder=str(here), path=str(path), seed=SEED
    )
    killed = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        check=False,
        env={**os.environ, "JAX_ENABLE_X64": "true"},
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    keep = Checkpoint(path, resume=True)
    seen = []
    result = fit(
        pendulum_model,
        swing,
        CONFIG,
        seed=SEED,
        checkpoint=keep,
        report=lambda row, total: seen.append(row["epoch"]),
    )
    assert seen == [4, 5]
    assert bits(result.model) == bits(whole.model)


@pytest.fixture(scope="module")
def kept(swing, tmp_path_factory):
    path = tmp_path_factory.mktemp("kept") / "c.safetensors"
    model = MBDNODE.for_system(SinglePendulum(), width=4)
    fit(model, swing, CONFIG, seed=SEED, checkpoint=Checkpoint(path))
    return Checkpoint(path, resume=True)


def test_checkpoint_of_another_run_is_refused(swing, pendulum_model, kept):
    def resume(model=pendulum_model, run=swing, config=CONFIG, seed=SEED):
        fit(model, run, config, seed=seed, checkpoint=kept)

    other = MBDNODE.for_system(SinglePendulum(), width=4, seed=9)
    with pytest.raises(ValueError, match=r"another run.*first weights"):
        resume(model=other)
    with pytest.raises(ValueError, match=r"another run.*model"):
        resume(model=MBDNODE.for_system(SinglePendulum(), width=4, activation="relu"))
    with pytest.raises(ValueError, match=r"another run.*seed"):
        resume(seed=6)
    with pytest.raises(ValueError, match=r"another run.*training"):
        resume(config=dataclasses.replace(CONFIG, learning_rate=2e-3))
    with pytest.raises(ValueError, match=r"another run.*data"):
        resume(run=eqx.tree_at(lambda run: run.q, swing, swing.q.at[4, 0].add(1e-6)))


def test_damaged_checkpoint_is_refused(swing, pendulum_model, kept, tmp_path):
    content = kept.path.read_bytes()
    for number, piece in enumerate((b"", content[:100], content[:-1], content + b"x")):
        path = tmp_path / f"{number}.safetensors"
        path.write_bytes(piece)
        with pytest.raises(ValueError, match="not a whole safetensors file"):
            fit(pendulum_model, swing, CONFIG, seed=SEED, checkpoint=Checkpoint(path, resume=True))


def test_model_file_is_no_checkpoint(swing, pendulum_model, tmp_path):
    from mbdnode.models import save

    path = tmp_path / "model.safetensors"
    save(pendulum_model, path)
    with pytest.raises(ValueError, match="not a checkpoint"):
        fit(pendulum_model, swing, CONFIG, seed=SEED, checkpoint=Checkpoint(path, resume=True))


def test_checkpoint_is_no_model(kept):
    from mbdnode.models import load

    with pytest.raises(ValueError, match="kind 'checkpoint'"):
        load(kept.path)


def test_without_a_file_resuming_starts_anew(swing, pendulum_model, whole, tmp_path):
    keep = Checkpoint(tmp_path / "c.safetensors", resume=True)
    result = fit(pendulum_model, swing, CONFIG, seed=SEED, checkpoint=keep)
    assert bits(result.model) == bits(whole.model)
