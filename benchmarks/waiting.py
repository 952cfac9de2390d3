"""What people wait for: CPU time of commands as multiples of `import jax`, first and second time.

Every command is a process of its own. The first time there is no cache of compiled programs, the
second time there is the first one's. Ratios alone mean anything on a shared machine, so `import
jax` is measured before every command, and the median of those is the unit. Byte code is there from
the start, as after an installation. Of the second time of a fit it is also measured how long it
traced and compiled, for each second that it computed.
"""

import compileall
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import mbdnode as mbd

# First and second, as multiples of `import jax`; None where there is no goal.
GOALS = {
    "cases": (0.7, 0.7),
    "inspect": (0.7, 0.7),
    "simulate cart-pole": (None, None),
    "simulate slider-crank": (6.0, 4.0),
    "run cart-pole --recipe best": (14.0, 6.0),
    "fit, two-link pendulum": (None, None),
    "fit, crank": (None, None),
    "predict": (None, None),
}
# Seconds of tracing and compiling for each of computing, the second time.
SHARES = {"fit, two-link pendulum": 2.0, "fit, crank": None}
TOOL = [sys.executable, "-c", "import sys; from mbdnode.cli import main; sys.exit(main())"]


def cpu_seconds(command: list[str], folder: Path) -> float:
    """Of one process and those that it starts."""
    variables = {**os.environ, "MBDNODE_CACHE": str(folder / "cache")}
    variables.pop("PYTHONDONTWRITEBYTECODE", None)  # Users have byte code.
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"error: {command} failed:\n{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def write_logs(folder: Path) -> None:
    """Fourteen short runs of a two-link pendulum, and eight of a driven slider-crank."""
    generator = np.random.default_rng(0)
    pendulum, crank = mbd.mechanisms.DoublePendulum(), mbd.mechanisms.SliderCrank()
    first, second = pendulum.coordinate_names
    t = 0.01 * np.arange(101)
    for number in range(14):
        a, b = generator.uniform(-1.5, 1.5, 2)
        mbd.write(mbd.simulate(pendulum, t, {first: a, second: b}), folder / f"links{number}.csv")
    for number in range(8):
        loads = np.repeat(generator.uniform(-5, 5, (10, 2)), 10, axis=0)
        start = {"theta1": float(generator.uniform(0.5, 2.0)), "theta1_dot": 1.0}
        mbd.write(mbd.simulate(crank, t, start, inputs=loads), folder / f"crank{number}.csv")


def commands(folder: Path) -> dict[str, list[str]]:
    """What is measured, by name; `OUT` is another place each time."""
    links, cranks = (
        [path.name for path in sorted(folder.glob(f"{name}*.csv"))] for name in ("links", "crank")
    )
    return {
        "cases": ["cases"],
        "inspect": ["inspect", *links[:3]],
        "simulate cart-pole": ["simulate", "cart-pole", "--out", "OUT.csv"],
        "simulate slider-crank": ["simulate", "slider-crank", "--out", "OUT.csv"],
        "run cart-pole --recipe best": ["run", "cart-pole", "--recipe", "best", "--out", "OUT"],
        "fit, two-link pendulum": ["fit", *links, "--role", *LINK_ROLES, "--out", "OUT"],
        "fit, crank": [
            *("fit", *cranks, "--mechanism", "slider-crank", "--role", *CRANK_ROLES),
            *("--out", "OUT"),
        ],
        "predict": ["predict", "fit__crank_2", "--like", cranks[0], "--out", "OUT.csv"],
    }


def _roles(system: mbd.AbstractMechanism) -> list[str]:
    names = ",".join(system.coordinate_names)
    rates = ",".join(system.rate_names)
    inputs = ",".join(system.input_names)
    roles = ["time=t", f"coordinates={names}", f"rates={rates}"]
    return roles + ([f"inputs={inputs}"] if inputs else [])


LINK_ROLES = _roles(mbd.mechanisms.DoublePendulum())
CRANK_ROLES = _roles(mbd.mechanisms.SliderCrank())


def main(console: Console, wanted: list[str]) -> int:
    """Measure and print; how many goals are missed."""
    table = Table(title="CPU time as multiples of import jax, first / second time")
    for column in ("command", "first", "second", "goal", "CPU seconds"):
        table.add_column(column, justify="left" if column == "command" else "right")
    units, missed = [], 0
    compileall.compile_dir(Path(mbd.__file__).parent, quiet=2)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_logs(folder)
        for what, words in commands(folder).items():
            if wanted and not any(what.startswith(start) for start in wanted):
                continue
            seconds = []
            for turn in (1, 2):
                units.append(cpu_seconds([sys.executable, "-c", "import jax"], folder))
                place = f"{what.replace(',', '_').replace(' ', '_')}_{turn}"
                given = [word.replace("OUT", place) for word in words]
                share = folder / f"{place}.json"
                timed = [
                    sys.executable,
                    str(Path(__file__).with_name("compile_share.py")),
                    str(share),
                ]
                seconds.append(cpu_seconds([*(timed if what in SHARES else TOOL), *given], folder))
            unit = statistics.median(units[-4:])
            ratios, goals = [x / unit for x in seconds], GOALS[what]
            missed += sum(g is not None and r > g for r, g in zip(ratios, goals, strict=True))
            goal = " / ".join("-" if g is None else f"{g:g}" for g in goals)
            spent = " / ".join(f"{x:.2f}" for x in seconds)
            table.add_row(what, *(f"{x:.2f}" for x in ratios), goal, spent)
            console.print(what, *(f"{x:.2f}" for x in ratios))
            if what in SHARES:
                parts = json.loads(share.read_text())
                found, goal = parts["compile"] / parts["compute"], SHARES[what]
                missed += goal is not None and found > goal
                console.print(
                    f"{what}, second time: {parts['compile']:.1f} s of tracing and compiling, "
                    f"{parts['compute']:.1f} s of computing: {found:.2f}"
                    + ("" if goal is None else f" (goal {goal:g})")
                )
    console.print(table)
    console.print(
        f"import jax: {statistics.median(units):.2f} s of CPU time "
        f"({min(units):.2f} to {max(units):.2f})"
    )
    return missed


if __name__ == "__main__":
    sys.exit(main(Console(width=110), sys.argv[1:]) > 0)
