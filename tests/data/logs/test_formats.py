"""The same motion, whatever the file's form."""

import zipfile

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.io
import scipy.sparse

from mbdnode.data.logs import formats, open_logs, read
from mbdnode.data.logs.log import AbstractLog, Block, LogFormat
from mbdnode.data.logs.units import Heading

ROLES = {"time": "t", "coordinates": ["theta"], "rates": ["omega"], "inputs": ["torque"]}


def check(data, swing):
    run = data.trajectories[0]
    for name, values in swing.items():
        np.testing.assert_allclose(run[name], values, rtol=1e-15, atol=0)
    assert data.summary.account.adds_up
    assert data.summary.account.kept == len(swing["t"])


@pytest.mark.parametrize(
    ("delimiter", "decimal"),
    [(",", "."), (";", "."), (";", ","), ("\t", "."), ("\t", ","), ("  ", "."), (" \t ", ",")],
)
def test_delimiter_and_decimal_mark_are_recognized(swing, write_csv, delimiter, decimal):
    check(read(write_csv(swing, delimiter=delimiter, decimal=decimal), **ROLES), swing)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "latin-1"])
def test_encoding_is_recognized(swing, write_csv, encoding):
    columns = {"t": swing["t"], "θ" if encoding != "latin-1" else "µ [°]": swing["theta"]}
    data = read(write_csv(columns, encoding=encoding), time="t", coordinates=[list(columns)[1]])
    scale = np.pi / 180 if encoding == "latin-1" else 1.0
    expected = scale * swing["theta"]
    np.testing.assert_allclose(data.trajectories[0].q[:, 0], expected, rtol=1e-15)


@pytest.mark.parametrize(
    "heading",
    [
        '"t","theta","omega","torque"',
        "# recorded on a Monday\n\nt,theta,omega,torque",
        "% t theta omega torque",
        "#t,theta,omega,torque",
        "t,theta,omega,torque\ns,rad,rad/s,N m",
        "bench 7\nt,theta,omega,torque\n[s],[rad],[rad/s],[Nm]",
    ],
)
def test_headings_are_found_where_people_put_them(swing, write_csv, heading):
    check(read(write_csv(swing, heading=heading), **ROLES), swing)


def test_columns_without_headings_are_named_by_their_place(swing, write_csv):
    data = read(
        write_csv(swing, heading=""),
        time="column1",
        coordinates={"theta": "column2"},
        rates=["column3"],
        inputs={"torque": "column4"},
    )
    np.testing.assert_array_equal(data.trajectories[0]["theta"], swing["theta"])
    assert "no headings" in data.summary.warnings[0].text


def test_quotes_that_would_take_rows_into_a_label_are_refused(swing, write_csv):
    labels = ["a"] * 400
    labels[10], labels[20] = '"a', 'a"'
    path = write_csv({**swing, "trial": labels})
    with pytest.raises(ValueError, match="a quote that is not closed at line 12"):
        read(path, **ROLES, run="trial")


def test_lines_above_the_headings_are_counted(swing, write_csv):
    data = read(write_csv(swing, heading="bench 7\nby hand\nt,theta,omega,torque"), **ROLES)
    check(data, swing)
    assert "2 lines above the headings passed over" in str(data.summary)


def test_comments_and_blank_lines_between_rows_are_passed_over(swing, write_csv):
    path = write_csv(swing)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:50], "# paused", "", "   ", *lines[50:], "% end"]))
    data = read(path, **ROLES)
    check(data, swing)
    assert "2 comment lines passed over" in str(data.summary)


def test_a_row_that_begins_with_a_missing_value_is_no_comment(swing, write_csv):
    path = write_csv({"theta": ["#N/A", *map(repr, swing["theta"][1:].tolist())], "t": swing["t"]})
    data = read(path, time="t", coordinates=["theta"], gaps="split")
    assert (data.summary.account.read, data.summary.account.missing) == (400, 1)


def test_line_ends_of_other_systems_are_known(swing, write_csv):
    path = write_csv(swing)
    for end in ("\r\n", "\r"):
        path.write_bytes(path.read_bytes().decode().replace("\n", end).encode())
        check(read(path, **ROLES), swing)
        path = write_csv(swing)


def test_a_text_is_read_the_same_in_small_blocks(swing, write_csv):
    log = open_logs(write_csv(swing, delimiter=" "))[0]
    blocks = list(log.blocks([0, 1], rows=30))
    assert len(blocks) > 3
    np.testing.assert_array_equal(np.concatenate([b.numbers[1] for b in blocks]), swing["theta"])
    assert [b.first for b in blocks[:2]] == [0, len(blocks[0].numbers[0])]


@pytest.mark.parametrize("kind", ["parquet", "npz", "mat", "hdf5", "mat73"])
def test_binary_formats_are_told_by_their_content(swing, tmp_path, kind):
    path = tmp_path / "log.dat"
    if kind == "parquet":
        pyarrow.parquet.write_table(pa.table(swing), path)
    elif kind == "npz":
        with open(path, "wb") as file:
            np.savez(file, **swing)
    elif kind == "mat":
        scipy.io.savemat(path, swing, appendmat=False)
    else:
        block = 512 if kind == "mat73" else 0
        with h5py.File(path, "w", userblock_size=block) as file:
            for name, values in swing.items():
                file[name] = values[None, :] if kind == "mat73" else values
        if kind == "mat73":
            with open(path, "r+b") as file:
                file.write(b"MATLAB 7.3 MAT-file")
    data = read(path, **ROLES)
    check(data, swing)
    named = {"parquet": "Parquet", "npz": "NPZ", "mat": "MAT 5", "hdf5": "HDF5"}
    assert data.summary.of_kind("read")[0].text == named.get(kind, "MAT 7.3")


def test_groups_of_an_hdf5_file_are_runs_with_their_own_constants(swing, tmp_path):
    path = tmp_path / "log.h5"
    with h5py.File(path, "w") as file:
        file["length"] = 2.0
        for number in (1, 2):
            group = file.create_group(f"trial{number}")
            for name, values in swing.items():
                group[name] = values[: 200 * number]
            group["mass"] = 1.5 * number
            group["theta"].attrs["units"] = "deg"
    data = read(path, **ROLES, parameters=["mass", "length"])
    assert [len(run) for run in data.trajectories] == [200, 400]
    assert data.parameters == ({"mass": 1.5, "length": 2.0}, {"mass": 3.0, "length": 2.0})
    theta = np.deg2rad(swing["theta"])
    np.testing.assert_allclose(data.trajectories[1]["theta"], theta, rtol=1e-14)


def packed(kind, path, columns, attributes):
    """A file of stored values with attributes of columns; those of Parquet are text."""
    if kind == "hdf5":
        with h5py.File(path, "w") as file:
            for name, values in columns.items():
                file[name] = values
                file[name].attrs.update(attributes.get(name, {}))
        return
    text = {n: {k: str(x) for k, x in each.items()} for n, each in attributes.items()}
    fields = [
        pa.field(name, pa.from_numpy_dtype(values.dtype), metadata=text.get(name))
        for name, values in columns.items()
    ]
    pyarrow.parquet.write_table(pa.table(columns, pa.schema(fields)), path)


@pytest.mark.parametrize("kind", ["hdf5", "parquet"])
def test_packed_values_are_unpacked_before_their_unit_is_applied(kind, swing, tmp_path):
    path = tmp_path / "log"
    steps = np.arange(400, dtype=np.int16) ** 2 // 50 - 700
    stated = {"scale_factor": 0.025, "add_offset": -4.0, "units": "deg"}
    packed(kind, path, {"t": swing["t"], "theta": steps}, {"theta": stated})
    data = read(path, time="t", coordinates=["theta"])
    expected = np.deg2rad(0.025 * steps - 4.0)
    np.testing.assert_allclose(data.trajectories[0]["theta"], expected, rtol=1e-14, atol=1e-16)
    converted = [note.text for note in data.summary.of_kind("converted")]
    assert "'theta' as 0.025 times what is stored + -4" in converted


@pytest.mark.parametrize("kind", ["hdf5", "parquet"])
@pytest.mark.parametrize(
    ("stated", "stored"),
    [
        ({"_FillValue": -999}, -999),
        ({"missing_value": -999}, -999),
        ({"valid_min": -900}, -999),
        ({"valid_max": 32_000}, 32_767),
    ],
)
def test_stored_values_that_stand_for_none_are_missing(kind, stated, stored, swing, tmp_path):
    path = tmp_path / "log"
    steps = np.arange(400, dtype=np.int16)
    steps[[100, 101]] = stored
    packed(
        kind, path, {"t": swing["t"], "theta": steps}, {"theta": {"scale_factor": 0.01, **stated}}
    )
    log = open_logs(path)[0]
    (block,) = log.blocks([1])
    expected = 0.01 * np.arange(400)
    expected[[100, 101]] = np.nan
    np.testing.assert_allclose(block.numbers[0], expected, rtol=1e-15)


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"scale_factor": 0.0}, r"scale_factor of 'theta' of .*log' is 0.* not zero"),
        ({"scale_factor": [1.0, 2.0]}, r"scale_factor of 'theta' .*must be one number"),
        ({"add_offset": "five"}, r"add_offset of 'theta' .*'five'; it must be one number"),
        ({"valid_range": [0.0]}, r"valid_range of 'theta' .*must be two numbers"),
    ],
)
def test_attributes_that_pack_nothing_are_refused(stated, message, swing, tmp_path):
    path = tmp_path / "log"
    packed("hdf5", path, {"t": swing["t"], "theta": swing["theta"]}, {"theta": stated})
    with pytest.raises(ValueError, match=message):
        read(path, time="t", coordinates=["theta"])


def test_columns_of_a_matrix_and_constants_are_unpacked_too(swing, tmp_path):
    path = tmp_path / "log"
    both = np.arange(800, dtype=np.int32).reshape(400, 2)
    with h5py.File(path, "w") as file:
        file["t"], file["x"], file["length"] = swing["t"], both, np.int16(300)
        file["x"].attrs["scale_factor"] = 0.5
        file["length"].attrs.update(scale_factor=2.0, units="mm")
    data = read(path, time="t", coordinates=["x_1", "x_2"], parameters=["length"])
    for number in (0, 1):
        found = data.trajectories[0][f"x_{number + 1}"]
        np.testing.assert_array_equal(found, 0.5 * both[:, number])
    assert data.parameters == ({"length": 0.6},)


def test_parts_of_one_table_in_different_places_are_joined(swing, tmp_path):
    path = tmp_path / "log.mat"
    inner = {"theta": swing["theta"], "omega": swing["omega"]}
    scipy.io.savemat(path, {"t": swing["t"], "joint": inner, "motor": {"torque": swing["torque"]}})
    check(read(path, **ROLES), swing)


def test_a_time_that_all_groups_share_stands_beside_them(swing, tmp_path):
    path = tmp_path / "log.h5"
    with h5py.File(path, "w") as file:
        file["t"] = swing["t"]
        for name in ("a", "b"):
            file[f"{name}/theta"], file[f"{name}/omega"] = swing["theta"], swing["omega"]
    data = read(path, time="t", coordinates=["theta"], rates=["omega"])
    assert [len(run) for run in data.trajectories] == [400, 400]


def test_structures_of_a_mat_file_are_runs(swing, tmp_path):
    path = tmp_path / "log.mat"
    runs = np.empty((1, 2), dtype=[(name, object) for name in swing])
    for number, count in enumerate((100, 400)):
        runs[0, number] = tuple(values[:count] for values in swing.values())
    scipy.io.savemat(path, {"trial": runs, "note": "a text"})
    data = read(path, **ROLES)
    assert [len(run) for run in data.trajectories] == [100, 400]
    np.testing.assert_array_equal(data.trajectories[1]["theta"], swing["theta"])
    assert "note" in data.summary.warnings[0].text


def test_sparse_matrices_and_cells_of_a_mat_file_are_left_out_and_named(swing, tmp_path):
    path = tmp_path / "log.mat"
    others = {"s": scipy.sparse.eye(3).tocsc(), "c": np.array([1, "a"], dtype=object)}
    scipy.io.savemat(path, {**swing, **others}, do_compression=True)
    data = read(path, **ROLES)
    check(data, swing)
    assert data.summary.warnings[0].text.endswith("s, c")


def test_a_matrix_is_taken_apart_into_columns(swing, tmp_path):
    path = tmp_path / "log.npz"
    both = np.column_stack([swing["theta"], swing["omega"]])
    np.savez(path, t=swing["t"], x=both)
    data = read(path, time="t", coordinates=["x_1"], rates=["x_2"])
    np.testing.assert_array_equal(data.trajectories[0].q[:, 0], swing["theta"])


def test_time_stamps_become_seconds(swing, write_csv, tmp_path):
    whole = np.datetime64("2024-03-30T23:59:58", "us") + np.round(swing["t"] * 1e6).astype(int)
    theta, roles = swing["theta"], {"time": "when", "coordinates": ["theta"]}
    text = write_csv({"when": [f"{x}Z" for x in whole.astype(str)], "theta": theta})
    pyarrow.parquet.write_table(pa.table({"when": whole, "theta": theta}), tmp_path / "p")
    for path in (text, tmp_path / "p"):
        data = read(path, **roles)
        np.testing.assert_allclose(data.trajectories[0].t, swing["t"], atol=1e-9)
        assert "time stamps" in data.summary.of_kind("converted")[0].text


def test_a_time_stamp_that_is_not_there_is_a_missing_value(swing, write_csv):
    start = np.datetime64("2024-03-30T23:59:58", "us")
    stamps = (start + np.round(swing["t"] * 1e6).astype(int)).astype(str).tolist()
    stamps[7] = ""
    data = read(
        write_csv({"when": stamps, "theta": swing["theta"]}),
        time="when",
        coordinates=["theta"],
        gaps="split",
    )
    assert (data.summary.account.read, data.summary.account.missing) == (400, 1)
    np.testing.assert_allclose(data.trajectories[0].t, np.delete(swing["t"], 7), atol=1e-9)


@pytest.mark.parametrize(
    ("odd", "part"), [("Z", "with a zone, unlike the first"), ("!", "not a time stamp like")]
)
def test_a_time_stamp_unlike_the_others_is_refused_by_its_line(swing, write_csv, odd, part):
    start = np.datetime64("2024-03-30T23:59:58", "us")
    stamps = (start + np.round(swing["t"] * 1e6).astype(int)).astype(str).tolist()
    stamps[300] += odd
    path = write_csv({"when": stamps, "theta": swing["theta"]})
    with pytest.raises(ValueError, match=f"{part}.* at line 302 of"):
        read(path, time="when", coordinates=["theta"])


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"\x1f\x8b\x08\x00", "Decompress"),
        (b"\x93NUMPY\x01\x00", "numpy.savez"),
        (b"\x00\x01\x02\x03" * 50, "not a text file"),
        (b"PK\x03\x04 nothing", "not a whole NPZ file"),
    ],
)
def test_formats_that_are_not_read_are_refused_with_a_way_out(tmp_path, content, part):
    path = tmp_path / "log.bin"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=part) as caught:
        read(path, **ROLES)
    assert str(path) in str(caught.value)


def test_an_archive_that_would_run_code_is_not_run(tmp_path, swing):
    path = tmp_path / "log.npz"
    np.savez(path, **swing, note=np.array([{"a": 1}], dtype=object))
    data = read(path, **ROLES)
    assert "note" in data.summary.warnings[0].text


def test_column_of_objects_is_refused_with_a_way_out(tmp_path, swing):
    path = tmp_path / "log.npz"
    np.savez(path, **{**swing, "theta": swing["theta"].astype(object)})
    with pytest.raises(ValueError, match=r"'theta' of .*array of Python objects.*astype\(float\)"):
        read(path, **ROLES)
    np.savez(path, theta=swing["theta"].astype(object))
    with pytest.raises(ValueError, match=r"no columns of numbers; it holds theta \(an array of"):
        read(path, **ROLES)


def test_file_that_says_it_holds_ten_billion_rows_is_refused(tmp_path, swing):
    path = tmp_path / "log.h5"
    with h5py.File(path, "w") as file:
        for name in swing:
            file.create_dataset(name, shape=(10**10,), chunks=(1000,), dtype=float)
    assert path.stat().st_size < 100_000
    with pytest.raises(ValueError, match="says that it holds 320 GB of numbers"):
        read(path, **ROLES)


@pytest.mark.parametrize("kind", ["npz", "mat", "parquet", "hdf5"])
def test_small_file_that_unpacks_without_end_is_refused_before_it_does(tmp_path, monkeypatch, kind):
    monkeypatch.setattr("mbdnode.data.logs.log._UNPACKED_BYTES", 1_000_000)
    path, columns = tmp_path / "log.dat", {name: np.zeros(500_000) for name in ("t", "theta")}
    if kind == "npz":
        with open(path, "wb") as file:
            np.savez_compressed(file, **columns)
    elif kind == "mat":
        scipy.io.savemat(path, columns, appendmat=False, do_compression=True)
    elif kind == "parquet":
        pyarrow.parquet.write_table(pa.table(columns), path)
    else:
        with h5py.File(path, "w") as file:
            for name, values in columns.items():
                file.create_dataset(name, data=values, compression="gzip", chunks=(250_000,))
    with pytest.raises(ValueError, match="cannot be packed 100 to 1"):
        read(path, time="t", coordinates=["theta"])


def test_array_that_states_more_values_than_it_has_is_refused(tmp_path, swing):
    path = tmp_path / "log.npz"
    np.savez(path, **swing)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["theta.npy"] = members["theta.npy"].replace(b"(400,), } ", b"(4000000,)}")
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(ValueError, match="'theta' states 4,000,000 values and is shorter"):
        read(path, **ROLES)


def test_values_in_other_files_are_not_followed(tmp_path, swing):
    secret = tmp_path / "secret.bin"
    swing["theta"].tofile(secret)
    for kind in ("external", "virtual"):
        path = tmp_path / f"{kind}.h5"
        with h5py.File(path, "w") as file:
            for name in ("t", "omega", "torque"):
                file[name] = swing[name]
            if kind == "external":
                external = [(str(secret), 0, secret.stat().st_size)]
                file.create_dataset("theta", shape=(400,), dtype=float, external=external)
            else:
                layout = h5py.VirtualLayout(shape=(400,), dtype=float)
                layout[:] = h5py.VirtualSource(tmp_path / "external.h5", "t", shape=(400,))
                file.create_virtual_dataset("theta", layout)
        with pytest.raises(ValueError, match=r"'theta' of .* in other files, which are not follow"):
            read(path, **ROLES)


def test_groups_without_end_are_refused(tmp_path):
    path = tmp_path / "log.h5"
    with h5py.File(path, "w") as file:
        file.create_group("/".join(["g"] * 200))["t"] = np.arange(5.0)
    with pytest.raises(ValueError, match="more than 50 deep"):
        read(path, **ROLES)


def test_picture_beside_the_columns_is_left_out(tmp_path, swing):
    path = tmp_path / "log.npz"
    np.savez(path, **swing, picture=np.zeros((1100, 1200), np.uint8))
    data = read(path, **ROLES)
    check(data, swing)
    assert "picture" in data.summary.warnings[0].text


def test_heading_cannot_steer_the_terminal(swing, write_csv):
    path = write_csv({"t": swing["t"], "\x1b[31mtheta\x07": swing["theta"]})
    assert [h.raw for h in open_logs(path)[0].headings] == ["t", "[31mtheta"]
    path = write_csv({"t": swing["t"], "x" * 1000: swing["theta"]})
    with pytest.raises(ValueError, match="a heading of 1,000 characters"):
        open_logs(path)


class ColumnsOfDoubles(AbstractLog):
    """A format made up for the test: eight bytes of a mark, then four columns of doubles."""

    def blocks(self, numbers, labels=(), rows=100_000):
        table = np.frombuffer(self.path.read_bytes()[8:]).reshape(4, -1)
        yield Block(0, tuple(table[i] for i in numbers))


def _open_doubles(path):
    log = ColumnsOfDoubles(
        path, headings=tuple(Heading(n, n) for n in ["t", "theta", "omega", "torque"])
    )
    log.note("read", "columns of doubles")
    return [log]


@pytest.mark.parametrize(
    ("starts_so", "name"), [(lambda start: start[:8] == b"DOUBLES.", "log.bin"), (None, "log.DBL")]
)
def test_a_format_is_added_by_one_registration(swing, tmp_path, monkeypatch, starts_so, name):
    monkeypatch.setattr(formats, "FORMATS", list(formats.FORMATS))
    columns = [swing[name] for name in ("t", "theta", "omega", "torque")]
    (tmp_path / name).write_bytes(b"DOUBLES." + np.stack(columns).tobytes())
    with pytest.raises(ValueError, match="is not a text file"):
        read(tmp_path / name, **ROLES)
    formats.register_format(LogFormat("doubles", (".dbl",), _open_doubles, starts_so))
    check(read(tmp_path / name, **ROLES), swing)


def test_every_format_is_told_from_the_others_by_its_own_first_bytes():
    starts = {
        "Parquet": b"PAR1",
        "HDF5": b"\x89HDF\r\n\x1a\n",
        "MAT": b"MATLAB 5.0 MAT-file",
        "NPZ": b"PK\x03\x04",
        "delimited text": b"t,x\n0,1\n",
    }
    assert list(starts) == [known.name for known in formats.FORMATS]
    for name, start in starts.items():
        assert next(f.name for f in formats.FORMATS if f.fits(start, "")) == name
