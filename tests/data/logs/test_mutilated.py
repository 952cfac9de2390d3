"""Logs with something wrong: each is refused with a reason, or read rightly.

What is read must be what stands in the file, and every line of it is accounted for.
"""

import contextlib
import datetime
import io
import re

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.io

from mbdnode.data.logs import Summary, open_logs, read
from mbdnode.data.logs.column_statistics import summarize
from mbdnode.data.logs.columns import Columns
from mbdnode.data.logs.reading import Reader, find_pieces

ROLES = {"time": "t", "coordinates": ["theta"], "rates": ["omega"], "inputs": ["torque"]}
# What is read is compared with what was written, and a mutilated number may be an outlier.
ROLES |= {"outliers": "keep"}
NAMES = ("t", "theta", "omega", "torque")
T = np.arange(60) * 0.05
TRUTH = np.column_stack([T, np.sin(2 * T), 2 * np.cos(2 * T), np.floor(T)])
CELLS = [[repr(float(x)) for x in row] for row in TRUTH]
HEADING = ",".join(NAMES)


def text(rows=CELLS, heading=HEADING, delimiter=","):
    lines = [heading.replace(",", delimiter), *(delimiter.join(row) for row in rows)]
    return ("\n".join(lines) + "\n").encode()


def with_cell(value, seed):
    random = np.random.default_rng(seed)
    rows = [list(row) for row in CELLS]
    for _ in range(1 + seed % 3):
        rows[random.integers(len(rows))][random.integers(4)] = value
    return text(rows)


def with_line(line, seed):
    lines = text().split(b"\n")
    lines.insert(2 + 7 * seed % 50, line)
    return b"\n".join(lines)


def binary(kind):
    file, columns = io.BytesIO(), dict(zip(NAMES, TRUTH.T.copy(), strict=True))
    if kind == "parquet":
        pyarrow.parquet.write_table(pa.table(columns), file)
    elif kind == "npz":
        np.savez(file, **columns)
    elif kind == "mat":
        scipy.io.savemat(file, columns)
    else:
        with h5py.File(file, "w") as opened:
            for name, values in columns.items():
                opened[name] = values
    return file.getvalue()


def cut_short(content, seed):
    return content[: np.random.default_rng(seed).integers(1, len(content))]


def damaged(content, seed):
    random, changed = np.random.default_rng(seed), bytearray(content)
    for place in random.integers(0, len(content), 20):
        changed[place] = random.integers(256)
    return bytes(changed)


def shuffled(seed):
    order = np.random.default_rng(seed).permutation(len(CELLS))
    return text([CELLS[i] for i in order])


START = "2024-02-29T12:00:00.000"


def dated(form):
    start = np.datetime64(START, "ms")
    moments = (start + (1000 * T).round().astype(int)).astype(object)
    return text([[m.strftime(form), *row[1:]] for m, row in zip(moments, CELLS, strict=True)])


WORDS = ("nan", "NaN", "inf", "-Inf", "", "NA", "null", "oops", "1.2.3", "12:30", "1e999", "--")
WORDS += ("1,5", '"', "0x1F", "1e300", "-1e308", "\x00", "\u221e", "1 2", "true", "9" * 400)
SINGLE = {
    "nothing": b"",
    "one newline": b"\n",
    "spaces": b"   \n \t \n",
    "only a byte order mark": b"\xef\xbb\xbf",
    "only comments": b"# nothing\n% here\n",
    "only a heading": HEADING.encode() + b"\n",
    "one row": text(CELLS[:1]),
    "two rows": text(CELLS[:2]),
    "no heading": text()[len(HEADING) + 1 :],
    "words only": b"the quick brown fox\njumps over\n" * 20,
    "zeros": bytes(5000),
    "an image": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4,
    "a page": b"<html><body>404 not found</body></html>\n",
    "reversed time": text(CELLS[::-1]),
    "constant time": text([["1.0", *row[1:]] for row in CELLS]),
    "constant columns": text([[row[0], "1.0", "0.0", "0.0"] for row in CELLS]),
    "every row twice": text([row for row in CELLS for _ in range(2)]),
    "twice over": text(CELLS + CELLS),
    "huge": text([[row[0], "1e300", row[2], row[3]] for row in CELLS]),
    "large": text([[row[0], f"{1e90 * i}", row[2], row[3]] for i, row in enumerate(CELLS)]),
    "a spike": with_cell("1e9", 1),
    "duplicate names": text(heading="t,theta,theta,torque"),
    "empty names": text(heading="t,,,"),
    "fewer names": text(heading="theta,omega,torque"),
    "more names": text(heading="t,theta,omega,torque,more"),
    "missing column": text([row[:3] for row in CELLS], "t,theta,omega"),
    "another delimiter half way": text(CELLS[:30]) + text(CELLS[30:], "", ";")[1:],
    "another delimiter in the heading": text().replace(HEADING.encode(), b"t;theta;omega;torque"),
    "a column of words": text([[*row[:3], "left"] for row in CELLS]),
    "all missing": text([[row[0], "", "", ""] for row in CELLS]),
    "every other row": text([row if i % 2 else ["", "", "", ""] for i, row in enumerate(CELLS)]),
    "decimal commas among commas": text([[c.replace(".", ",") for c in row] for row in CELLS]),
    "thousands": text([[f"{1e4 * float(c):,.2f}" for c in row] for row in CELLS], delimiter=";"),
    "trailing delimiters": text([[*row, ""] for row in CELLS]),
    "dates": dated("%Y-%m-%dT%H:%M:%S.%f"),
    "dates with a zone": dated("%Y-%m-%d %H:%M:%S.%fZ"),
    "dates of another kind": dated("%d.%m.%Y %H:%M:%S"),
    "UTF-16 without its first byte": text().decode().encode("utf-16")[1:],
    "UTF-32": text().decode().encode("utf-32"),
    "EBCDIC": text().decode().encode("cp500"),
    "UTF-16 cut in a character": text().decode().encode("utf-16")[:1001],
    "Latin-1 heading": text(heading="t,theta,omega,torque \u00b5").decode().encode("latin-1"),
    "one column": b"t\n" + b"\n".join(row[0].encode() for row in CELLS),
    "one long line": b"1," * 10_000,
    "an open quote": text().replace(b"theta", b'"theta', 1),
    "an open quote in the first row": text().replace(b"\n0.0", b'\n"0.0', 1),
    "an open quote in the last column": text().replace(b",0.0\n", b',"0.0\n', 1),
    "old Mac lines": text().replace(b"\n", b"\r"),
    "mixed line ends": text(CELLS[:30]) + text(CELLS[30:], "").replace(b"\n", b"\r\n"),
    "time as text": text([[f"t{row[0]}", *row[1:]] for row in CELLS]),
    "integers that are too large": text([[row[0], "9" * 30, *row[2:]] for row in CELLS]),
    "gap": text(CELLS[:20] + CELLS[45:]),
    "a spreadsheet": b"PK\x03\x04" + bytes(300),
    "a compressed file": b"\x1f\x8b\x08" + bytes(30),
}
CASES = dict(SINGLE)
CASES |= {f"cut short {seed}": cut_short(text(), seed) for seed in range(25)}
CASES |= {f"damaged {seed}": damaged(text(), seed) for seed in range(15)}
CASES |= {f"random {seed}": np.random.default_rng(seed).bytes(3000) for seed in range(8)}
CASES |= {f"shuffled {seed}": shuffled(seed) for seed in range(3)}
CASES |= {f"value {w[:9]!r} {s}": with_cell(w, s) for w in WORDS for s in range(3)}
for number, odd in enumerate((b"1,2", b"1,2,3,4,5", b",,,", HEADING.encode(), b";;;", b"ERROR")):
    CASES |= {f"line {odd.decode()!r} {s}": with_line(odd, s + number) for s in range(2)}
for form in ("parquet", "npz", "mat", "hdf5"):
    CASES |= {f"{form} cut short {seed}": cut_short(binary(form), seed) for seed in range(5)}
    CASES |= {f"{form} damaged {seed}": damaged(binary(form), seed) for seed in range(5)}
# SciPy alone would bring down the process on one of these.
CASES |= {f"mat damaged {seed}": damaged(binary("mat"), seed) for seed in range(1000, 1015)}


# Of what is made by hand, these can be read, and so many rows of them are kept: as they are, and
# with gaps cut. All else is refused in both ways.
KEPT = {
    "two rows": (2, 2),
    "reversed time": (60, 60),
    "constant columns": (60, 60),
    "every row twice": (60, 60),
    "twice over": (None, 120),
    "large": (60, 60),
    "a spike": (60, 60),
    "every other row": (None, 30),
    "trailing delimiters": (60, 60),
    "dates": (60, 60),
    "dates with a zone": (60, 60),
    "old Mac lines": (60, 60),
    "mixed line ends": (60, 60),
    "integers that are too large": (60, 60),
    "gap": (None, 35),
}
# What can be read but looks wrong, and what is said of it.
SAID = {
    "reversed time": "time runs backwards",
    "constant columns": "'theta' never changes",
    "every row twice": "a quarter of the times are repeated",
    "large": "does not look like the derivative",
    "a spike": "1 outlier of 'omega' kept",
    "integers that are too large": "'theta' never changes",
}


def as_written(kind, content):
    """The rows of a file, by other means than ours: Python's own float, or the format's library."""
    libraries = {"parquet": pyarrow.parquet.read_table, "npz": np.load}
    libraries |= {"mat": scipy.io.loadmat, "hdf5": h5py.File}
    if kind in libraries:
        file = libraries[kind](io.BytesIO(content))
        return np.column_stack([np.asarray(file[name]).ravel() for name in NAMES])
    lines = re.split("\r\n|\r|\n", content.decode(errors="replace").lstrip("\ufeff"))
    lines = [line for line in lines if line.strip() and line.strip()[0] not in "#%"][1:]
    return np.array(
        [[as_number(field) for field in (*row.split(","), *"????")[:4]] for row in lines]
    )


def as_number(field):
    with contextlib.suppress(ValueError):
        return float(field)
    with contextlib.suppress(ValueError):
        moment = datetime.datetime.fromisoformat(field).replace(tzinfo=None)
        return (moment - datetime.datetime.fromisoformat(START)).total_seconds()
    return np.nan


# Both ways for what is made by hand; what is drawn goes one way or the other.
WAYS = [(name, gaps) for name in SINGLE for gaps in ("refuse", "split")]
WAYS += [(name, ("refuse", "split")[n % 2]) for n, name in enumerate(CASES) if name not in SINGLE]


@pytest.mark.parametrize(("name", "gaps"), WAYS)
def test_a_mutilated_log_is_refused_with_a_reason_or_read_rightly(tmp_path, name, gaps):
    path = tmp_path / "run.log"
    path.write_bytes(CASES[name])
    tables, summary, message = [], None, ""
    try:
        if name in SINGLE:
            data = read(path, **ROLES, gaps=gaps)
            summary = data.summary
            parts = [(run.t, run.q, run.v, run.u) for run in data.trajectories]
            tables = [np.column_stack([np.asarray(x) for x in part]) for part in parts]
        else:
            # All that `read` does before it makes arrays of JAX, which takes most of its time.
            columns = Columns(**ROLES, gaps=gaps)
            reader = Reader(find_pieces(path, columns), columns)
            tables = [table for table, _ in reader.segments()]
            summary = Summary(tuple(reader.runs), tuple(reader.notes))
    except ValueError as error:
        message = str(error)
    if name in SINGLE:
        rows = None if summary is None else summary.account.kept
        assert rows == KEPT.get(name, (None, None))[gaps == "split"]
    if summary is None:
        assert str(path) in message
        assert message.endswith((".", "?"))
        assert len(message) < 800
    else:
        written = as_written(name.split()[0], CASES[name])
        assert summary.account.adds_up
        assert summary.account.read == len(written)
        assert summary.account.kept == sum(map(len, tables))
        for row in np.concatenate(tables):
            assert np.any(np.all(np.isclose(written, row, rtol=1e-12, atol=1e-9), axis=1))
        assert SAID.get(name, "") in " ".join(note.text for note in summary.warnings)
    with contextlib.suppress(ValueError):
        summarize(open_logs(path)[0])
