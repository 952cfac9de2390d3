"""Laws on Dask workers: the same bits as here, however many there are and whoever dies."""

import os
import signal
from dataclasses import replace
from types import SimpleNamespace

import jax
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from motions import acceleration, as_trajectory, stepped, with_noise

import mbdnode as mbd
from mbdnode import parallel
from mbdnode.data.logs import Columns
from mbdnode.data.logs import stream as stream_module
from mbdnode.factors import merge_all, triangle
from mbdnode.identification import law_candidates, law_forms, law_search
from mbdnode.identification.parameters import search as parameter_search
from mbdnode.identification.regression import least_squares
from mbdnode.identification.search_checkpoint import SearchCheckpoint
from mbdnode.mechanisms import SinglePendulum
from mbdnode.recipes import identification_config
from mbdnode.workflow.config import FitConfig
from mbdnode.workflow.fit import fit_and_score, read_and_check

ROLES = {"time": "t", "coordinates": ["theta"], "rates": ["omega"], "run": "run"}
ROLES["inputs"] = [one.name for one in SinglePendulum().inputs]
DT_S = 0.02
# So that three runs in a file are four or five batches, and the sample is a part of the data.
SIZES = {"window": 40, "chunk_rows": 500}


def law(theta, rate):
    return -9.81 * np.sin(theta) - 0.1 * rate


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Three runs with noise in each of five files, one of them of text."""
    folder = tmp_path_factory.mktemp("logs")
    for number in range(5):
        states = [
            with_noise(
                stepped(law, (0.4 + 0.2 * k, 0.1 * number), DT_S, 200), 0.02, seed=k + number
            )
            for k in range(3)
        ]
        table = np.concatenate(states)
        columns = {
            "t": np.tile(DT_S * np.arange(201), 3),
            "theta": table[:, 0],
            "omega": table[:, 1],
            "run": np.repeat(np.arange(3), 201),
            **dict.fromkeys(ROLES["inputs"], np.zeros(603)),
        }
        place = folder / f"{number}.parquet"
        if number < 4:
            pyarrow.parquet.write_table(pa.table(columns), place)
            continue
        rows = zip(*(map(repr, map(float, x)) for x in columns.values()), strict=True)
        text = "\n".join([",".join(columns), *(",".join(row) for row in rows)])
        (folder / f"{number}.csv").write_text(text)
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def one_shard_a_file():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream_module, "BYTES", 1)
        yield


@pytest.fixture(scope="module")
def scheduler(dask_processes):
    """With one worker; tests add more."""
    with dask_processes() as processes:
        processes.add_worker()
        yield processes


def with_workers(processes, count):
    """Its address, with at least so many workers."""
    with parallel.remote_workers(processes.address) as client:
        there = len(client.nthreads())
    for _ in range(count - there):
        processes.add_worker()
    with parallel.remote_workers(processes.address) as client:
        client.wait_for_workers(count, timeout=60)
    return processes.address


def found_in(stream, **options):
    config = replace(identification_config("fast"), structure="linear")
    return mbd.identify(SinglePendulum(), stream, config, **options)


def bits(found):
    return [np.asarray(x).tobytes() for x in jax.tree.leaves(found.model) if np.ndim(x)]


@pytest.fixture(scope="module")
def here(files, one_shard_a_file):
    stream = mbd.LogStream(files, **ROLES, **SIZES)
    return stream, found_in(stream)


def test_law_of_all_shards_is_the_true_one(here):
    stream, found = here
    assert (stream.count, len(stream.places)) == (7, 75)
    for theta, rate in [(0.5, 0.0), (0.8, 1.0), (-0.6, 2.0)]:
        away = acceleration(found.model, theta, rate) - law(theta, rate)
        assert abs(away) < 0.02 * 9.81


def test_one_worker_and_two_give_the_bits_of_one_process(here, files, scheduler):
    stream, found = here
    one = found_in(stream, cluster=with_workers(scheduler, 1))
    assert bits(one) == bits(found)
    address = with_workers(scheduler, 2)
    there = mbd.LogStream(files, **ROLES, **SIZES, cluster=address)
    assert there.places == stream.places
    assert there.summary.account == stream.summary.account
    two = found_in(there)
    there.close()
    assert bits(two) == bits(found)
    assert two.candidates == found.candidates


def test_worker_killed_over_a_shard_changes_no_bit(here, scheduler, tmp_path, monkeypatch):
    stream, found = here
    died = tmp_path / "died"

    def deadly(*given):
        from mbdnode.identification.regression.least_squares import _factor_of_chunk

        if not died.exists():
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return _factor_of_chunk(*given)

    address = with_workers(scheduler, 2)
    monkeypatch.setattr(least_squares, "_factor_of_chunk", deadly)
    again = found_in(stream, cluster=address)
    assert died.exists()
    assert bits(again) == bits(found)


@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_merged_factors_are_the_factor_of_all_rows(count):
    rng = np.random.default_rng(count)
    blocks = [rng.normal(size=(12, 4)) for _ in range(count)]
    parts = [(triangle(block), np.array(float(k))) for k, block in enumerate(blocks)]
    found, total = merge_all(parts)
    whole = np.vstack(blocks)
    # R.T R is A.T A, whatever the signs of the rows; to a few units in the last place.
    np.testing.assert_allclose(found.T @ found, whole.T @ whole, rtol=0, atol=1e-13 * 12 * count)
    assert total == sum(range(count))


def unlike_any_form(theta, rate):
    return -9.81 * np.sin(theta) - 0.4 * rate**3 + 0.8 * np.tanh(3 * theta * rate)


def runs_of(noise, force):
    """Under a force that jumps, if any, of a law that no form has."""
    rng, runs = np.random.default_rng(0), []
    for k in range(2):
        forces, states = force * np.repeat(rng.normal(size=22), 5), [(0.5 + 0.3 * k, 0.0)]
        for f in forces:
            moved = lambda theta, rate, f=f: unlike_any_form(theta, rate) + f  # noqa: E731
            states.append(tuple(stepped(moved, states[-1], DT_S, 1)[1]))
        held = np.append(forces, 0.0)[:, None]
        noisy = with_noise(np.array(states), noise, seed=k)
        runs.append(as_trajectory(SinglePendulum(), DT_S * np.arange(111), noisy, held))
    return mbd.Dataset(runs)


def search(structure, noise, force, **options):
    config = replace(identification_config("fast"), structure=structure)
    return mbd.identify(SinglePendulum(), runs_of(noise, force), config, **options)


# With terms that rollouts choose; and under inputs of which it is to be found how they change.
NOISY, DRIVEN = ("lagrangian", 0.01, 0.0), ("mechanical", 0.0, 1.0)


@pytest.fixture(scope="module")
def searched():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(law_forms, "_FEW_FORMS", 1)
        patch.setattr(law_search, "_FEW_REFINED", 2)
        yield search(*NOISY)


def told(found):
    return bits(found), found.candidates, found.status


def functions_taken(monkeypatch):
    """What workers were called for, where their results are taken."""
    taken, submit, result = [], parallel.Workers.submit, parallel.Workers.result

    def noted(workers, function, *args):
        future = submit(workers, function, *args)
        future.function = getattr(function, "__name__", "")
        return future

    def taken_from(workers, future):
        taken.append(future.function)
        return result(workers, future)

    monkeypatch.setattr(parallel.Workers, "submit", noted)
    monkeypatch.setattr(parallel.Workers, "result", taken_from)
    return taken


def test_candidates_of_a_search_are_shared_by_workers(searched, scheduler, tmp_path, monkeypatch):
    taken = functions_taken(monkeypatch)
    kept = SearchCheckpoint(tmp_path)
    found = search(*NOISY, cluster=with_workers(scheduler, 2), kept=kept)
    assert told(found) == told(searched)
    assert {"proposals_of", "_fit_and_score", "_selected_numbers"} <= set(taken)
    # What workers computed is kept like the rest.
    assert told(search(*NOISY, kept=SearchCheckpoint(tmp_path))) == told(searched)


@pytest.fixture(scope="module")
def searched_driven():
    return search(*DRIVEN)


def test_one_worker_beside_this_process_finds_the_same(searched_driven, scheduler, monkeypatch):
    taken = functions_taken(monkeypatch)
    found = search(*DRIVEN, cluster=with_workers(scheduler, 1))
    assert told(found) == told(searched_driven)
    assert {"_unexplained_by", "_fit_and_score"} <= set(taken)


def test_worker_killed_over_a_candidate_changes_no_bit(
    searched_driven, scheduler, tmp_path, monkeypatch
):
    died = tmp_path / "died"

    def deadly(*given):
        from mbdnode.identification.law_candidates import _fit_and_score

        if not died.exists():
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return _fit_and_score(*given)

    address = with_workers(scheduler, 2)
    monkeypatch.setattr(law_candidates, "_fit_and_score", deadly)
    assert told(search(*DRIVEN, cluster=address)) == told(searched_driven)
    assert died.exists()


def test_search_says_that_the_scheduler_is_gone(dask_processes, monkeypatch):
    with dask_processes() as processes:
        processes.add_worker()

        def try_late(*given):
            processes.end()
            law_candidates.try_ahead(*given)

        monkeypatch.setattr(law_search, "try_ahead", try_late)
        with pytest.raises(parallel.ClusterLost, match="The Dask scheduler"):
            search("mechanical", 0.0, 0.0, cluster=processes.address)


def parameters(**options):
    """Of a pendulum under a force that jumps, with a friction that the mechanism does not have, so
    that held-out pieces choose how long segments are.
    """
    bounds = {"m": (0.2, 5.0), "L": (0.2, 5.0)}
    data = runs_of(1e-4, 1.0)
    options |= {"pieces": 2, "bootstrap": 20}
    return mbd.identify(SinglePendulum(), data, unknown=bounds, **options)


@pytest.fixture(scope="module")
def found_parameters():
    return parameters()


def told_of_parameters(found):
    values = {
        **found.parameters,
        "interpolation": found.interpolation,
        "cut": found.segment_seconds,
    }
    return values, found.held_out, found.covariance.tobytes(), found.status


def test_unknown_parameters_are_shared_by_workers(
    found_parameters, scheduler, tmp_path, monkeypatch
):
    taken = functions_taken(monkeypatch)
    kept = SearchCheckpoint(tmp_path)
    found = parameters(cluster=with_workers(scheduler, 2), kept=kept)
    assert told_of_parameters(found) == told_of_parameters(found_parameters)
    # Fits with other inputs between samples, to pieces that are cut otherwise, and to resampled
    # runs.
    assert {"fit_arrays", "cross_validate"} <= set(taken)
    assert len(set(taken)) == 3
    # What workers computed is kept like the rest.
    again = parameters(kept=SearchCheckpoint(tmp_path))
    assert told_of_parameters(again) == told_of_parameters(found_parameters)


def test_worker_killed_over_a_held_out_piece_changes_no_bit(
    found_parameters, scheduler, tmp_path, monkeypatch
):
    died = tmp_path / "died"

    def deadly(*given):
        from mbdnode.identification.parameters.cross_validation import cross_validate

        if not died.exists():
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return cross_validate(*given)

    address = with_workers(scheduler, 2)
    monkeypatch.setattr(parameter_search, "cross_validate", deadly)
    found = parameters(cluster=address)
    assert died.exists()
    assert told_of_parameters(found) == told_of_parameters(found_parameters)


def test_fit_of_unknown_parameters_reads_logs_here_and_has_the_bits_of_one_process(
    files, scheduler
):
    both = []
    for address in (None, with_workers(scheduler, 2)):
        config = FitConfig(
            tuple(map(str, files)),
            Columns(**ROLES),
            mechanism="single-pendulum",
            model="parameters",
            unknown={"L": (0.2, 5.0)},
            bootstrap=10,
        )
        with read_and_check(config, cluster=address) as prepared:
            assert prepared.stream is None
            both.append(fit_and_score(prepared))
    here, there = both
    assert told_of_parameters(there.fit) == told_of_parameters(here.fit)
    assert there.scores.nrmse == here.scores.nrmse
    assert there.metrics()["bootstrap_standard_errors"]["L"] > 0


@pytest.mark.parametrize(("there", "why"), [(None, "does not find"), (1, "finds another file as")])
def test_worker_without_the_files_is_named_with_the_way_out(files, there, why):
    client = SimpleNamespace(run=lambda _, names: {"tcp://a": dict.fromkeys(names, there)})
    with pytest.raises(mbd.UserError, match=rf"worker tcp://a {why} .*0\.parquet.* share"):
        parallel.check_files(client, files, "Put them in a folder that all machines share.")


def test_worker_without_the_package_is_named(monkeypatch):
    answers = {"tcp://a": parallel.__version__, "tcp://b": ImportError("No module 'mbdnode'")}
    client = SimpleNamespace(wait_for_workers=lambda *_, **__: None, run=lambda *_, **__: answers)
    with pytest.raises(mbd.UserError, match=r"worker tcp://b .* cannot load mbdnode .*Install"):
        parallel._check_workers(client, "tcp://s")


@pytest.mark.parametrize("address", ["nonsense", "", "foo://a:1", "tcp://127.0.0.1:99999"])
def test_what_is_no_address_makes_no_client(address, monkeypatch):
    import distributed

    # One that was made and could not connect is waited for at the end of the process.
    monkeypatch.setattr(distributed, "Client", lambda *_, **__: pytest.fail("made a client"))
    with pytest.raises(mbd.UserError, match="is no address"), parallel.remote_workers(address):
        pass


@pytest.mark.parametrize(
    ("given", "flags"),
    [
        ("", "--xla_cpu_multi_thread_eigen=false"),
        ("--xla_a=1", "--xla_a=1 --xla_cpu_multi_thread_eigen=false"),
        ("flags.txt", "flags.txt"),  # A file of flags is named alone.
    ],
)
def test_local_workers_keep_the_users_flags(given, flags, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", given)
    assert parallel._one_thread()["XLA_FLAGS"] == flags


def test_a_single_network_is_refused_before_anything_is_read(files):
    config = FitConfig(tuple(map(str, files)), Columns(**ROLES), recipe="paper")
    with pytest.raises(mbd.UserError, match="is mbd-node by 'paper', one network in one process"):
        read_and_check(config, cluster="tcp://127.0.0.1:1")
