"""Every model in every format, against `simulate`: errors, sizes, speed and time to export.

All is of the files that `mbd.export` writes: C, FMUs of FMI 2.0 and 3.0, ONNX and JavaScript. The
error is the largest difference over 100 steps of all coordinates and velocities. C, JavaScript,
Co-Simulation and ONNX are compared with the integrator that was exported (RK4), the importer's
Euler steps with forward Euler, the importer's CVODE with Dormand-Prince of order eight. FMPy
simulates the FMUs, onnxruntime runs the graph, node the script. Times are of the processor: those
of an export from the model to the file, compiler included, with nothing of it traced before.

`python -m benchmarks.export_table NAME ...` prints a line of JSON a model, then the tables in
Markdown. A format that a model cannot be exported to has the sentence that says so in its line.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import equinox as eqx
import fmpy
import jax
import numpy as np
import onnxruntime
from fmpy.fmi2 import FMU2Slave
from fmpy.fmi3 import FMU3Slave
from fmpy.validation import validate_fmu

import mbdnode as mbd
from benchmarks.exported_code import run_c
from mbdnode.exports import trace_program
from mbdnode.reproduction.cases import CASES

STEPS = 100
# Mechanism files, and starts of those that nothing would move.
FILES: dict[str, dict[str, float]] = {
    "four_bar": {},
    "quick_return": {},
    "five_link_chain": {"one_angle": -1.0, "three_angle": -2.0},
    "slider_crank": {"theta1": 1.0, "theta1_dot": 1.0},
    "double_wishbone": {},
}
LEARNED = ("law", "network", "hybrid", "joints", "joints of a crank")
NAMES = (*(name for name in CASES if ":" not in name), *FILES, *LEARNED)
ERRORS = ("C", "JS", "CS 2", "CS 3", "Euler 2", "Euler 3", "CVODE 2", "CVODE 3", "ONNX")
FORMATS = {"C": "m", "FMI 2": "m2.fmu", "FMI 3": "m3.fmu", "ONNX": "m.onnx", "JS": "m.js"}
SPEEDS = ("C", "JS", "FMI 2", "FMI 3", "ONNX")


def learned(kind: str) -> tuple[Any, dict[str, float], float]:
    """A law, a network or a hybrid: any weights have to be exported as they are."""
    damper, crank = mbd.mechanisms.SingleMassSpringDamper(), mbd.mechanisms.SliderCrank()
    pendulum = mbd.mechanisms.DoublePendulum()
    if kind == "law":
        data = mbd.simulate(damper, np.linspace(0.0, 10.0, 1_001), {"x": 1.0})
        return mbd.identify(damper, data, "fast").model, {"x": 1.0}, 0.01
    make, joints = mbd.MBDNODE.for_system, {"width": 16, "structure": "joints"}
    if kind == "network":
        return make(damper, width=256), {"x": 1.0}, 0.01
    if kind == "hybrid":
        return corrected(make(damper, width=16, correction_of=damper)), {"x": 1.0}, 0.01
    if kind == "joints":
        start = {"theta1": 1.0, "theta2": 0.5}
        return corrected(make(pendulum, correction_of=pendulum, **joints)), start, 0.01
    start = {"theta1": 1.0, "theta1_dot": 1.0}
    return corrected(make(crank, correction_of=crank, **joints)), start, 0.01


def corrected(hybrid: Any) -> Any:
    """The hybrid with drawn weights: an untrained correction is exactly zero, and left out."""
    random = np.random.default_rng(0)
    drawn = jax.tree.map(lambda x: jax.device_put(random.normal(size=x.shape) / 4), hybrid.network)
    return eqx.tree_at(lambda m: m.network, hybrid, drawn)


def model_of(name: str) -> tuple[Any, dict[str, float], float]:
    """A model by its name in the table, a start, and a step."""
    if name in CASES:
        case = CASES[name]
        return case.mechanism, dict(case.initial), case.dt_s
    if name in FILES:
        return mbd.read_mechanism(f"examples/mechanisms/{name}.toml"), FILES[name], 0.005
    return learned(name)


def processor_seconds(call: Callable[[], Any]) -> float:
    """Of this process and of the compilers that it starts."""
    spent = lambda: sum(os.times()[:4])  # noqa: E731
    began = spent()
    call()
    return spent() - began


def states(run: Any) -> np.ndarray:
    """Positions and velocities, row by row."""
    return np.concatenate([np.asarray(run.q), np.asarray(run.v)], axis=1)


def by_fmpy(path: Path, names: list[str], start: dict[str, float], dt: float, kind: str) -> Any:
    """The rows of an FMU, and its residuals in two more columns."""
    how = {
        "CS": {"fmi_type": "CoSimulation"},
        "Euler": {"fmi_type": "ModelExchange", "solver": "Euler", "step_size": dt},
        "CVODE": {"fmi_type": "ModelExchange", "solver": "CVode", "relative_tolerance": 1e-10},
    }[kind]
    wanted = [*names, "position_residual", "velocity_residual"]
    run = fmpy.simulate_fmu(
        str(path),
        stop_time=STEPS * dt,
        output_interval=dt,
        start_values=start,
        output=wanted,
        record_events=False,
        **how,
    )
    return np.array([run[name] for name in wanted]).T


def fmu_steps_a_second(path: Path, version: int, dt: float) -> float:
    """Communication steps from the model's own start, called through FMPy."""
    described = fmpy.read_model_description(str(path))
    assert described.coSimulation is not None
    fmu = (FMU2Slave if version == 2 else FMU3Slave)(
        guid=described.guid if version == 2 else described.instantiationToken,
        unzipDirectory=fmpy.extract(str(path)),
        modelIdentifier=described.coSimulation.modelIdentifier,
    )
    fmu.instantiate()
    if isinstance(fmu, FMU2Slave):
        fmu.setupExperiment(startTime=0.0)
    fmu.enterInitializationMode()
    fmu.exitInitializationMode()
    # The first 100 steps again and again, for half a second.
    first = fmu.getFMUstate() if isinstance(fmu, FMU2Slave) else fmu.getFMUState()
    begin, steps = time.process_time(), 0
    while (spent := time.process_time() - begin) < 0.5:
        if isinstance(fmu, FMU2Slave):
            fmu.setFMUstate(first)
        else:
            fmu.setFMUState(first)
        for k in range(STEPS):
            fmu.doStep(k * dt, dt)
        steps += STEPS
    fmu.terminate()
    fmu.freeInstance()
    return steps / spent


def by_onnx(path: Path, model: Any, start: np.ndarray, dt: float) -> tuple[np.ndarray, float]:
    """The rows of steps of the graph, and how many it makes a second."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    wanted = {x.name for x in session.get_inputs()}
    outputs = [x.name for x in session.get_outputs()]
    program = trace_program(model, name="m", dt_s=dt, entries=("init",))
    p = np.array([x.start for x in program.tables.parameters])
    u, half = np.zeros(len(program.tables.inputs)), len(start) // 2
    made = program.run("init", 0.0, start[:half], start[half:], np.ones(2 * half, np.uint8), p)
    state = dict(zip((field.name for field in program.state), made, strict=True))
    rows, began = [], time.process_time()
    for k in range(STEPS + 1):
        rows.append(np.concatenate([state["q"], state["v"]]))
        given = {**state, "t": np.array(k * dt), "dt": np.array(dt), "u": u, "p": p}
        found = session.run(outputs, {x: y for x, y in given.items() if x in wanted})
        state |= {x.removeprefix("next_"): y for x, y in zip(outputs, found, strict=True)}
    return np.array(rows), (STEPS + 1) / (time.process_time() - began)


# The first 100 steps again and again: for a second until V8 has compiled them, and a second more.
_SCRIPT = """
const m = require("./m.js"), given = JSON.parse(require("fs").readFileSync(0));
const p = Float64Array.from(m.tables.parameters.map((x) => x.start)), u = new Float64Array(m.NU);
const first = m.newState(), state = m.newState(), rows = [];
const f = (x) => Float64Array.from(x);
let code = m.init(first, 0, f(given.q), f(given.v), new Uint8Array(2 * m.NQ).fill(1), p);
const run = (each) => {
  for (const key of Object.keys(first)) {
    if (typeof first[key] === "object") state[key].set(first[key]); else state[key] = first[key];
  }
  for (let k = 0; k < given.steps && code <= 0; ++k) {
    code = m.step(state, k * given.dt, given.dt, u, p);
    if (each) each();
  }
};
run(() => rows.push([...state.q, ...state.v]));
const timed = (seconds) => {
  const begin = process.cpuUsage();
  let spent = 0, steps = 0;
  while (spent < seconds) {
    run();
    steps += given.steps;
    const now = process.cpuUsage(begin);
    spent = 1e-6 * (now.user + now.system);
  }
  return steps / spent;
};
timed(2);
console.log(JSON.stringify({code, rows, speed: timed(1)}));
"""


def by_node(path: Path, start: np.ndarray, dt: float) -> tuple[np.ndarray, float]:
    """The rows of the script, and how many steps it makes a second."""
    half = len(start) // 2
    given = {"q": start[:half].tolist(), "v": start[half:].tolist(), "dt": dt, "steps": STEPS}
    made = subprocess.run(
        ["node", "-e", _SCRIPT],
        input=json.dumps(given),
        cwd=path.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(made.stdout)
    assert found["code"] <= 0, f"a step of the script failed: {found['code']}"
    return np.array(found["rows"]), found["speed"]


class Row:
    """One line of the table, as plain data in `facts`."""

    def __init__(self, name: str, folder: Path):
        self.model, self.start, self.dt = model_of(name)
        self.folder, self.names = folder, [*self.model.coordinate_names, *self.model.rate_names]
        self.facts: dict[str, Any] = {"model": name, "problems": [], "refused": {}}
        t = self.dt * np.arange(STEPS + 1)
        self.truth = {
            kind: states(mbd.simulate(self.model, t, self.start, integrator=integrator))
            for kind, integrator in (("CS", "rk4"), ("Euler", "fe1"), ("CVODE", "dopri8"))
        }

    def fill(self) -> dict[str, Any]:
        """Export, run, compare."""
        for kind, file in FORMATS.items():
            path = self.folder / file
            try:
                self._export(kind, path)
            except mbd.UserError as error:
                self.facts["refused"][kind] = str(error)
                continue
            getattr(self, "_" + re.sub(r"\W", "_", kind).lower())(path)
        return self.facts

    def _export(self, kind: str, path: Path) -> None:
        # What was traced for another format would make this one look faster.
        jax.clear_caches()
        fmi = int(kind[-1]) if kind.startswith("FMI") else None
        write = lambda: mbd.export(self.model, path, name="m", dt_s=self.dt, fmi=fmi)  # noqa: E731
        self.facts[f"{kind} [s]"] = processor_seconds(write)
        size = (path / "m.c" if kind == "C" else path).stat().st_size
        self.facts[f"{kind} [kB]"] = size / 1e3

    def _compared(self, kind: str, rows: np.ndarray, truth: str = "CS") -> None:
        self.facts[kind] = float(np.max(np.abs(rows - self.truth[truth][-len(rows) :])))

    def _c(self, path: Path) -> None:
        header, source = ((path / f"m.{end}").read_text() for end in "hc")
        start = mbd.consistent_state(self.model, self.start)
        loads = np.zeros((STEPS, len(self.model.inputs)))
        given = (header, source, start, loads, self.dt)
        rows, seconds = run_c(*given, steps=STEPS, turns=200, repeats=5)
        self._compared("C", rows)
        self.facts["C a second"] = 1 / seconds

    def _fmi(self, path: Path, version: int) -> None:
        self.facts["problems"] += validate_fmu(str(path))
        described = fmpy.read_model_description(str(path))
        has_rates = described.modelExchange is not None
        self.facts["states"] = described.numberOfContinuousStates or len(described.derivatives)
        for kind in ("CS", "Euler", "CVODE") if has_rates else ("CS",):
            # All values: of some independent ones alone, `simulate` would move the others too.
            start = dict(zip(self.names, self.truth["CS"][0], strict=True))
            rows = by_fmpy(path, self.names, start, self.dt, kind)
            self._compared(f"{kind} {version}", rows[:, :-2], kind)
            residual = max(self.facts.get("residual", 0.0), float(np.max(rows[:, -2:])))
            self.facts["residual"] = residual
        self.facts[f"FMI {version} a second"] = fmu_steps_a_second(path, version, self.dt)

    def _fmi_2(self, path: Path) -> None:
        self._fmi(path, 2)

    def _fmi_3(self, path: Path) -> None:
        self._fmi(path, 3)

    def _onnx(self, path: Path) -> None:
        rows, speed = by_onnx(path, self.model, self.truth["CS"][0], self.dt)
        self._compared("ONNX", rows)
        self.facts["ONNX a second"] = speed

    def _js(self, path: Path) -> None:
        rows, speed = by_node(path, self.truth["CS"][0], self.dt)
        self._compared("JS", rows)
        self.facts["JS a second"] = speed


def markdown(lines: Iterable[dict[str, Any]]) -> str:
    """The tables: errors; sizes and times; speed."""
    tables = {
        "Largest difference from `simulate`": [(key, key, "{:.0e}") for key in ERRORS]
        + [("residual", "residual", "{:.0e}")],
        "Size [kB] and time to export [s]": [(key, f"{key} [kB]", "{:,.0f}") for key in FORMATS]
        + [(f"{key}, s", f"{key} [s]", "{:.1f}") for key in FORMATS],
        "Steps a second": [(key, f"{key} a second", "{:,.0f}") for key in SPEEDS],
    }
    texts = []
    for title, columns in tables.items():
        head = [title, *(name for name, _, _ in columns)]
        rule = ["---", *("---:" for _ in columns)]
        cell = lambda one, key, form: form.format(one[key]) if key in one else "-"  # noqa: E731
        rows = [head, rule]
        for one in lines:
            rows.append([one["model"], *(cell(one, key, form) for _, key, form in columns)])
        texts.append("\n".join(f"| {' | '.join(row)} |" for row in rows))
    return "\n\n".join(texts)


def main(names: list[str]) -> None:
    """Print each line as JSON as soon as it is known, and the tables at the end."""
    for name in names:
        if name not in NAMES:
            sys.exit(f"error: no model {name!r}; there are {', '.join(NAMES)}")
    lines = []
    for name in names or NAMES:
        with tempfile.TemporaryDirectory() as folder:
            lines.append(Row(name, Path(folder)).fill())
        print(json.dumps(lines[-1]), flush=True)
    print(f"\n{markdown(lines)}")


if __name__ == "__main__":
    main(sys.argv[1:])
