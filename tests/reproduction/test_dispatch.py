"""Runs on Dask workers: the same results as here, whoever dies on the way."""

import json

import pytest

from mbdnode import parallel
from mbdnode.parallel import ClusterLost, local_workers, remote_workers
from mbdnode.reproduction.dispatch import run_here, run_on

# Long enough to be killed in the middle of it, and never waited for to the end.
LONG = {"epochs": "1000000"}


def nothing(sign):
    pass


# These start a scheduler and workers, which load JAX.
@pytest.mark.slow
def test_worker_killed_in_mid_run_costs_nothing_but_time(
    dask_processes, kill_worker, tiny_run, tmp_path
):
    runs = [tiny_run(f"run-{seed}", seed=seed, epochs="20") for seed in range(2)]
    bad = tiny_run("bad", window="100000")
    signs, killed = [], []

    def kill_first(sign):
        signs.append(sign)
        # The bad one may have failed before anybody hears that it runs.
        if sign.state == "running" and sign.run != "bad" and not killed:
            killed.append(sign)
            kill_worker(sign)

    with dask_processes() as processes:
        victims = [processes.add_worker() for _ in range(2)]
        with remote_workers(processes.address) as client:
            client.wait_for_workers(2, timeout=60)
            rows = run_on(client, [*runs, bad], tmp_path / "there", kill_first)
        assert sorted(worker.poll() is None for worker in victims) == [False, True]

    assert set(rows) == {"run-0", "run-1", "bad"}
    assert max(sign.attempt for sign in signs if sign.run == killed[0].run) == 2
    here = run_here(runs, tmp_path / "here", nothing)
    for run in runs:
        folders = [tmp_path / place / run.name for place in ("here", "there")]
        names = [{path.name for path in folder.iterdir()} for folder in folders]
        assert names[0] == names[1]
        stored = json.loads((folders[1] / "metrics.json").read_text())
        assert rows[run.name] == stored
        assert stored["mse"] == pytest.approx(here[run.name]["mse"], rel=1e-3)
    # What raises would raise again, so it is not tried again.
    assert rows["bad"]["outcome"] == "failed"
    assert rows["bad"]["status"].startswith("The window is 100000 steps")
    assert "check" in (tmp_path / "there" / "bad" / "error.txt").read_text()
    assert sum(sign.run == "bad" and sign.state == "running" for sign in signs) <= 2


@pytest.mark.slow
def test_run_that_kills_its_workers_is_a_row_and_a_stopped_one_frees_its_worker(
    dask_processes, kill_worker, tiny_run, tmp_path
):
    def kill(sign):
        if sign.state == "running":
            kill_worker(sign)

    def press_ctrl_c(sign):
        if sign.done:
            raise KeyboardInterrupt

    with dask_processes(DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="0") as processes:
        processes.add_worker()
        with remote_workers(processes.address) as client:
            rows = run_on(client, [tiny_run("deadly", **LONG)], tmp_path, kill)
            assert rows["deadly"]["outcome"] == "failed"
            assert rows["deadly"]["status"].startswith("its worker died")
            assert (tmp_path / "deadly" / "error.txt").is_file()

            processes.add_worker()
            client.wait_for_workers(1, timeout=60)
            with pytest.raises(KeyboardInterrupt):
                run_on(client, [tiny_run("long", **LONG)], tmp_path, press_ctrl_c)
            assert not (tmp_path / "long").exists()
            # The only worker would be busy for hours if it had not let go of the other run.
            rows = run_on(client, [tiny_run("short")], tmp_path, nothing)
            assert rows["short"]["outcome"] == "completed"


@pytest.mark.slow
def test_lost_scheduler_ends_the_campaign(dask_processes, tiny_run, tmp_path):
    with dask_processes() as processes:
        processes.add_worker()

        def end_it(sign):
            processes.started[0].kill()

        with (
            pytest.raises(ClusterLost, match="scheduler"),
            remote_workers(processes.address) as client,
        ):
            run_on(client, [tiny_run(**LONG)], tmp_path, end_it)
    assert list(tmp_path.iterdir()) == []


def test_scheduler_without_workers_is_refused(dask_processes, monkeypatch):
    monkeypatch.setattr(parallel, "_FIRST_WORKER_S", 0.2)
    with (
        dask_processes() as processes,
        pytest.raises(ValueError, match=r"no workers.*dask worker tcp://"),
        remote_workers(processes.address),
    ):
        pass


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("tcp://127.0.0.1:9", "No Dask scheduler answers"),
        ("nowhere", "'nowhere', which is no address"),
        ("ftp://127.0.0.1:9", "'ftp://127.0.0.1:9', which is no address"),
        ("", "'', which is no address"),
    ],
)
def test_address_without_a_scheduler_is_refused(monkeypatch, address, said):
    monkeypatch.setattr(parallel, "_CONNECT_S", 0.5)
    with pytest.raises(ValueError, match=said), remote_workers(address):
        pass


@pytest.mark.slow
def test_processes_of_this_machine_do_the_same(tiny_run, tmp_path):
    signs = []
    with local_workers(1) as client:
        rows = run_on(client, [tiny_run()], tmp_path, signs.append)
        addresses = list(client.scheduler_info()["workers"])
    assert rows["tiny"]["outcome"] == "completed"
    assert all(address.startswith("tcp://127.0.0.1:") for address in addresses)
    assert signs[-1].state == "finished"
