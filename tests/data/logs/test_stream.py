"""Logs larger than memory: the same rows, in chunks of one shape."""

import gc

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from mbdnode import parallel
from mbdnode.data.logs import LogStream, open_logs, read
from mbdnode.data.logs import stream as stream_module

ROLES = {"time": "t", "coordinates": ["x"], "rates": ["v"], "inputs": ["F"], "run": "run"}


@pytest.fixture
def log(tmp_path, monkeypatch):
    """Three runs of 95, 40 and 3 rows, read 50 rows at a time."""
    monkeypatch.setattr(stream_module, "PART", 50)
    lengths = (95, 40, 3)
    t = np.concatenate([np.arange(n) * 0.1 for n in lengths])
    run, mass = (np.repeat(x, lengths) for x in ([1, 2, 3], [1.0, 2.0, 3.0]))
    table = {"t": t, "x": np.sin(t) + run, "v": np.cos(t), "F": 0 * t, "run": run, "mass": mass}
    pyarrow.parquet.write_table(pa.table(table), tmp_path / "log.parquet")
    return tmp_path / "log.parquet", table


def rows_of(run):
    columns = [np.asarray(x).reshape(-1) for x in (run.t, run.q, run.v, run.u)]
    return set(zip(*columns, strict=True))


def test_every_row_is_in_some_window_and_short_runs_are_counted(log, tmp_path):
    path, table = log
    stream = LogStream(path, **ROLES, window=9, chunk_rows=35, cache=tmp_path, parameters=["mass"])
    chunks = [stream.chunk(number) for number in range(stream.count)]
    shapes = {chunk.trajectories[0].q.shape for chunk in chunks}
    assert len(shapes) == 1
    seen = set()
    for chunk in chunks:
        run, mass = chunk.trajectories[0], chunk.parameters[0]["mass"]
        np.testing.assert_allclose(run.q[..., 0], np.sin(run.t) + mass[:, None], atol=1e-15)
        assert np.all(np.diff(run.t, axis=1) > 0)
        for i, m in enumerate(mass):
            seen |= {(float(m), round(float(x), 6)) for x in np.asarray(run.t[i])}
    kept = table["run"] < 3
    mass, t = table["mass"][kept], table["t"][kept]
    # A long run is read in parts, and the rest of it is never too short for a window.
    assert seen == {(float(m), round(float(x), 6)) for m, x in zip(mass, t, strict=True)}
    account = stream.summary.account
    assert account.adds_up
    assert (account.read, account.kept, account.too_short) == (138, 135, 3)


def test_chunks_begin_again_after_the_last(log):
    stream = LogStream(log[0], **ROLES, window=9, chunk_rows=35)
    first, again = stream.chunk(0), stream.chunk(stream.count)
    np.testing.assert_array_equal(first.trajectories[0].q, again.trajectories[0].q)


def test_windows_factors_and_summary_are_the_same_to_the_bit_with_any_number_of_threads(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(stream_module, "ROWS", 300)
    monkeypatch.setattr(stream_module, "PART", 300)
    random, count = np.random.default_rng(0), 3_000
    t, run = 0.1 * (np.arange(count) % 100), np.arange(count) // 100
    x = np.sin(t + run) + 0.01 * random.normal(size=count)
    table = pa.table({"t": t, "x": x, "v": np.cos(t + run), "F": random.normal(size=count)})
    table = table.append_column("run", pa.array(run))
    pyarrow.parquet.write_table(table, tmp_path / "log.parquet", row_group_size=300)

    def made(data, windows):
        some = data.trajectories[0]
        rows = np.concatenate([np.asarray(x) for x in (some.q, some.v, some.u)], axis=-1)
        return (rows[:windows].reshape(-1, 3),)

    found = []
    for number in (1, 2, 4):
        monkeypatch.setattr(parallel, "usable_cores", lambda n=number: n)
        stream = LogStream(tmp_path / "log.parquet", **ROLES, window=9, chunk_rows=100)
        rows = [np.asarray(stream.chunk(i).trajectories[0].q).tobytes() for i in range(3)]
        (triangle,) = stream.factors(made)
        found.append((stream.identity, str(stream.summary), rows, triangle.tobytes()))
        assert triangle.shape == (3, 3)
    assert found[0] == found[1] == found[2]


def test_text_is_streamed_to_the_same_windows(log, tmp_path):
    path, table = log
    rows = zip(*table.values(), strict=True)
    text = "\n".join(",".join(repr(float(x)) for x in row) for row in rows)
    (tmp_path / "log.csv").write_text(",".join(table) + "\n" + text + "\n")
    both = [LogStream(p, **ROLES, window=2) for p in (path, tmp_path / "log.csv")]
    runs = [stream.chunk(0).trajectories[0] for stream in both]
    whole = read(tmp_path / "log.csv", **ROLES)
    for run in runs:
        assert rows_of(run) == {row for one in whole.trajectories for row in rows_of(one)}


def test_progress_is_reported_and_the_temporary_file_goes_with_the_stream(log, tmp_path):
    cache, seen = tmp_path / "cache", []
    cache.mkdir()
    stream = LogStream(
        log[0], **ROLES, window=9, cache=cache, report=lambda *state: seen.append(state)
    )
    assert seen[-1] == (138, 138)
    assert len(list(cache.iterdir())) == 1
    del stream
    gc.collect()
    assert list(cache.iterdir()) == []


def test_nothing_is_left_behind_by_a_log_that_is_refused(log, tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir()
    with pytest.raises(ValueError, match="is long enough"):
        LogStream(log[0], **ROLES, window=500, chunk_rows=1000, cache=cache)
    assert list(cache.iterdir()) == []


def test_a_run_that_comes_back_is_refused(tmp_path):
    columns = {"t": np.arange(20.0), "x": np.arange(20.0), "run": np.arange(20) // 5 % 2}
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "log.parquet")
    with pytest.raises(ValueError, match=r"Run '0' .* goes on at row 11 after another one"):
        LogStream(tmp_path / "log.parquet", time="t", coordinates=["x"], run="run", window=2)


@pytest.mark.parametrize("sizes", [{"window": 0}, {"window": 10, "chunk_rows": 10}])
def test_sizes_must_make_sense(log, sizes):
    with pytest.raises(ValueError, match="at least one window"):
        LogStream(log[0], **ROLES, **sizes)


@pytest.fixture
def in_row_groups(tmp_path):
    """Runs of 30 rows in row groups of 50, with times as stamps."""
    t, run = np.tile(np.arange(30) * 0.1, 8), np.repeat(np.arange(8), 30)
    stamps = pa.array((t * 1e9).astype(np.int64)).cast(pa.timestamp("ns"))
    table = {"t": stamps, "x": np.sin(t) + run, "v": np.cos(t), "F": 0 * t, "run": run}
    pyarrow.parquet.write_table(pa.table(table), tmp_path / "log.parquet", row_group_size=50)
    return tmp_path / "log.parquet"


def test_parts_of_a_parquet_file_begin_with_runs_and_hold_every_row_once(in_row_groups):
    (log,) = open_logs(in_row_groups)
    spans = log.spans(60, 40, 4)
    assert spans == [(0, 90), (90, 150), (150, 240)]
    # Runs that are longer than what may be held are cut where a row group ends.
    assert log.spans(60, 5, 4) == [(0, 100), (100, 200), (200, 240)]
    assert log.spans(60, 40, None) == [(0, 100), (100, 200), (200, 240)]
    blocks = [block for span in spans for block in log.blocks_in(span, [0, 1], [4], 20)]
    (whole,) = log.blocks([0, 1], [4], 1000)
    for k in range(2):
        np.testing.assert_array_equal(
            np.concatenate([block.numbers[k] for block in blocks]), whole.numbers[k]
        )
    assert blocks[0].first == 0
    ends = np.cumsum([len(block.numbers[0]) for block in blocks])
    assert [block.first for block in blocks[1:]] == ends[:-1].tolist()


def test_windows_do_not_depend_on_the_parts_that_are_read(in_row_groups, monkeypatch):
    whole = LogStream(in_row_groups, **ROLES, window=9, chunk_rows=100)
    monkeypatch.setattr(stream_module, "ROWS", 60)
    parts = LogStream(in_row_groups, **ROLES, window=9, chunk_rows=100)
    assert parts.places == whole.places
    assert parts.runs == whole.runs
    assert parts.summary.account == whole.summary.account
    for number in range(whole.count):
        for name in ("t", "q", "v", "u"):
            np.testing.assert_array_equal(
                *(getattr(one.chunk(number).trajectories[0], name) for one in (whole, parts))
            )


def test_factor_of_all_windows_counts_each_once(in_row_groups, monkeypatch):
    monkeypatch.setattr(stream_module, "ROWS", 60)
    stream = LogStream(in_row_groups, **ROLES, window=9, chunk_rows=100)

    def make(data, count):
        q = np.asarray(data.trajectories[0].q)[:count]
        return q.reshape(-1, 1), np.array(q.size)

    told = []
    found, count = stream.factors(make, report=lambda *state: told.append(state))
    windows = [one for place in range(8) for one in stream.places if one.run == place]
    assert count == 10 * len(windows)
    every = np.concatenate([np.asarray(stream.stretch([i]).trajectories[0].q) for i in range(32)])
    assert float(found[0, 0]) ** 2 == pytest.approx(np.sum(every**2), rel=1e-12)
    assert told == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize(("lengths", "window"), [((900, 700), 500), ((41,) * 30, 40), ((4,), 11)])
def test_windows_are_as_long_as_most_runs_are(tmp_path, lengths, window):
    t = np.concatenate([np.arange(n) * 0.1 for n in (*lengths, 12)])
    run = np.repeat(np.arange(len(lengths) + 1), (*lengths, 12))
    table = {"t": t, "x": np.sin(t), "v": np.cos(t), "F": 0 * t, "run": run}
    pyarrow.parquet.write_table(pa.table(table), tmp_path / "log.parquet")
    stream = LogStream(tmp_path / "log.parquet", **ROLES)
    assert stream.window == window
    assert stream.chunk(0).trajectories[0].t.shape[-1] == window + 1
