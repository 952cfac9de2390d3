"""Every model as FMUs and as ONNX, against `simulate`: the largest difference over 100 steps.

Co-Simulation is compared with the integrator that was exported (RK4), the importer's Euler steps
with forward Euler, the importer's CVODE with Dormand-Prince of order eight. FMPy simulates the
FMUs, onnxruntime runs the graph. A model that cannot be exported is listed with the sentence that
says so.
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import fmpy
import numpy as np
import onnxruntime
from fmpy.validation import validate_fmu
from rich.console import Console
from rich.table import Table

import mbdnode as mbd
from mbdnode.exports import trace_program
from mbdnode.exports.fmu import write_fmu
from mbdnode.exports.onnx import onnx_model
from mbdnode.reproduction.cases import CASES

STEPS = 100
# Mechanism files, and starts of those that nothing would move.
FILES: dict[str, dict[str, float]] = {
    "four_bar": {},
    "quick_return": {},
    "five_link_chain": {},
    "double_wishbone": {},
    "slider_crank": {"theta1": 1.0, "theta1_dot": 1.0},
}
COLUMNS = ("CS 2", "CS 3", "Euler 2", "Euler 3", "CVODE 2", "CVODE 3", "ONNX")


def learned(kind: str) -> tuple[Any, dict[str, float], float]:
    """A law, a network or a hybrid of the damped mass, which is learned in a moment."""
    damper = mbd.mechanisms.SingleMassSpringDamper()
    if kind == "law":
        data = mbd.simulate(damper, np.linspace(0.0, 10.0, 1_001), {"x": 1.0})
        return mbd.identify(damper, data, "fast").model, {"x": 1.0}, 0.01
    base = damper if kind == "hybrid" else None
    # Its accuracy is no matter here: any weights have to be exported as they are.
    settings = {"width": 256} if base is None else {"width": 16, "correction_of": base}
    return mbd.MBDNODE.for_system(damper, **settings), {"x": 1.0}, 0.01


def model_of(name: str) -> tuple[Any, dict[str, float], float]:
    """A model by its name in the table, a start, and a step."""
    if name in CASES:
        case = CASES[name]
        return case.mechanism, dict(case.initial), case.dt_s
    if name in FILES:
        return mbd.read_mechanism(f"examples/mechanisms/{name}.toml"), FILES[name], 0.005
    return learned(name)


def states(run: Any) -> np.ndarray:
    """Positions and velocities, row by row."""
    return np.concatenate([np.asarray(run.q), np.asarray(run.v)], axis=1)


def by_fmpy(path: Path, model: Any, start: dict[str, float], dt: float, kind: str) -> np.ndarray:
    """The same of an FMU, and its residuals in two more columns."""
    how = {
        "CS": {"fmi_type": "CoSimulation"},
        "Euler": {"fmi_type": "ModelExchange", "solver": "Euler", "step_size": dt},
        "CVODE": {"fmi_type": "ModelExchange", "solver": "CVode", "relative_tolerance": 1e-10},
    }[kind]
    names = [*model.coordinate_names, *model.rate_names, "position_residual", "velocity_residual"]
    run = fmpy.simulate_fmu(
        str(path),
        stop_time=STEPS * dt,
        output_interval=dt,
        start_values=start,
        output=names,
        record_events=False,
        **how,
    )
    return np.array([run[name] for name in names]).T


def by_onnx(program: Any, start: np.ndarray, dt: float) -> tuple[np.ndarray, int]:
    """The rows of steps of the graph, and its size in bytes."""
    data = onnx_model(program).SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    wanted = {x.name for x in session.get_inputs()}
    outputs = [x.name for x in session.get_outputs()]
    p = np.array([x.start for x in program.tables.parameters])
    u = np.zeros(len(program.tables.inputs))
    half, fields = len(start) // 2, [field.name for field in program.state]
    known = np.ones(len(start), np.uint8)
    made = program.run("init", 0.0, start[:half], start[half:], known, p)
    state, rows = dict(zip(fields, made, strict=True)), []
    for k in range(STEPS + 1):
        rows.append(np.concatenate([state["q"], state["v"]]))
        given = {**state, "t": np.array(k * dt), "dt": np.array(dt), "u": u, "p": p}
        found = session.run(outputs, {x: y for x, y in given.items() if x in wanted})
        state |= {x.removeprefix("next_"): y for x, y in zip(outputs, found, strict=True)}
    return np.array(rows), len(data)


def row(name: str, folder: Path) -> dict[str, Any]:
    """One line of the table, as plain data."""
    model, start, dt = model_of(name)
    began = time.process_time()
    program = trace_program(model, name="model", dt_s=dt, entries=("init", "step", "rates"))
    made: dict[str, Any] = {"model": name, "problems": [], "trace_s": time.process_time() - began}
    t = dt * np.arange(STEPS + 1)
    truth = {
        kind: states(mbd.simulate(model, t, start, integrator=integrator))
        for kind, integrator in (("CS", "rk4"), ("Euler", "fe1"), ("CVODE", "dopri8"))
    }
    residual = 0.0
    for version in (2, 3):
        path = folder / f"{name.replace(':', '-')}{version}.fmu"
        began = time.perf_counter()
        motion = write_fmu(program, path, version)
        made[f"write {version} [s]"] = time.perf_counter() - began
        made[f"FMI {version} [kB]"] = path.stat().st_size / 1e3
        made["problems"] += validate_fmu(str(path))
        for kind in ("CS", "Euler", "CVODE") if motion.has_rates else ("CS",):
            found = by_fmpy(path, model, start, dt, kind)
            made[f"{kind} {version}"] = float(np.max(np.abs(found[:, :-2] - truth[kind])))
            residual = max(residual, float(np.max(found[:, -2:])))
    made |= {"residual": residual, "states": motion.size, "exchanges": motion.exchanges}
    try:
        rows, size = by_onnx(program, truth["CS"][0], dt)
        made |= {"ONNX": float(np.max(np.abs(rows - truth["CS"]))), "ONNX [kB]": size / 1e3}
    except mbd.UserError as error:
        made["ONNX refused"] = str(error)
    return made


def main(names: list[str]) -> None:
    """Print the table; each line as JSON as soon as it is known."""
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names or [*CASES, *FILES, "law", "network", "hybrid"]:
            try:
                lines.append(row(name, Path(folder)))
            except mbd.UserError as error:
                lines.append({"model": name, "refused": str(error)})
            print(json.dumps(lines[-1]), flush=True)
    table = Table("model", "states", *COLUMNS, "residual", "FMI 3 [kB]", "ONNX [kB]")
    for one in lines:
        if "refused" in one:
            table.add_row(one["model"], one["refused"])
            continue
        cells = [f"{one[key]:.1e}" if key in one else "-" for key in (*COLUMNS, "residual")]
        sizes = [f"{one[key]:.0f}" if key in one else "-" for key in ("FMI 3 [kB]", "ONNX [kB]")]
        table.add_row(one["model"], str(one["states"]), *cells, *sizes)
    Console(width=160).print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
