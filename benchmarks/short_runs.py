"""Many short runs: rows that are read in a second of CPU.

    python -m benchmarks.short_runs [ROWS] [ROWS_OF_A_RUN]

The recordings of `benchmarks.large_logs`, cut into runs of a hundred rows, are written as Parquet
and as CSV and read as a stream, with their measured rates and with rates that are estimated.
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from rich.console import Console

import mbdnode as mbd
from benchmarks.large_logs import BATCH, ROWS, write


def seconds_to_read(path: Path, rows_of_a_run: int, rates: dict[str, str] | None) -> float:
    """Of CPU, with windows as long as a run."""
    begin = time.process_time()
    stream = mbd.LogStream(
        path,
        time="t",
        run="run",
        coordinates=["theta", "x"],
        rates=rates,
        inputs=["u"],
        window=rows_of_a_run - 1,
        cache=path.parent,
    )
    taken = time.process_time() - begin
    stream.close()
    return taken


def main(console: Console, rows: int, rows_of_a_run: int) -> None:
    """Write, read, and print what it took."""
    with tempfile.TemporaryDirectory() as folder:
        whole, parquet, csv = (Path(folder) / name for name in ("whole", "a.parquet", "a.csv"))
        write(whole, max(rows, BATCH * ROWS))
        table = pq.read_table(whole).slice(0, rows)
        runs = pa.array(np.arange(rows) // rows_of_a_run)
        table = table.set_column(table.column_names.index("run"), "run", runs)
        pq.write_table(table, parquet)
        pyarrow.csv.write_csv(table, csv)
        # What is imported and compiled by the first is in no figure.
        seconds_to_read(parquet, rows_of_a_run, None)
        for path in (parquet, csv):
            for name, rates in (("measured", {"theta": "omega", "x": "v"}), ("estimated", None)):
                taken = seconds_to_read(path, rows_of_a_run, rates)
                console.print(
                    f"{path.suffix}, rates {name}: {taken:.1f} s of CPU, {rows / taken:,.0f} rows/s"
                )


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    main(Console(), count, int(sys.argv[2]) if len(sys.argv) > 2 else 100)
