"""A control task with the user's changes: checked, run, written.

trajectory.csv      the plant's states, and the inputs
decisions.csv       how each input was found, what it took, how far from the target the plant was
control.json        settings, whether and when it settled, times; against the truth if learned
truth.csv           the loop that plans with the equations of motion, beside a learned one
figure.png          every state and input
motion.gif          the plant in motion
mbdnode.json        that this is a result of `mbdnode mpc`, and which files are its own
"""

import csv
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mbdnode.control import MPC
from mbdnode.data import write
from mbdnode.data.files import replace_file, write_json
from mbdnode.data.folders import MODEL, replace_folder
from mbdnode.errors import UserError
from mbdnode.models import load
from mbdnode.multibody import AbstractMechanism
from mbdnode.reproduction.cases import CONTROL_TASKS
from mbdnode.reproduction.cases.control_task import ControlTask, compare_with_truth
from mbdnode.trajectory import Trajectory

TRUTH, KIND = "truth", "mpc"


@dataclass(frozen=True)
class ControlResult:
    """The closed loop of a task on its plant, and the content of control.json.

    Beside a loop that plans with a learned model, `exact` is the one that plans with the equations
    of motion.
    """

    task: ControlTask
    plant: AbstractMechanism
    loop: Trajectory
    exact: Trajectory | None
    summary: Mapping[str, Any]


def run_control_task(
    name: str,
    planned_with: str,
    changes: Mapping[str, Any],
    steps: int | None,
    report: Callable[[int, int], None],
) -> ControlResult:
    """Run a task by name, planned with "truth" or with the model of a finished run's folder."""
    task, case = CONTROL_TASKS[name]
    plant, exact = case.mechanism, None
    model = plant if planned_with == TRUTH else load(Path(planned_with) / MODEL)
    if model.coordinate_names != plant.coordinate_names:
        raise UserError(
            f"The model in '{planned_with}' is of a system with the coordinates "
            f"{', '.join(model.coordinate_names)}; the task {name!r} is of another one, with "
            f"{', '.join(plant.coordinate_names)}. Train a model of that one: mbdnode run "
            f"{case.name} --recipe best --out RUN_DIR."
        )
    controller = task.controller(model, **changes)
    loop = task.run(plant, controller, steps=steps, report=report)
    summary = _summary(task, name, planned_with, controller, loop)
    if model is not plant:
        exact = task.run(plant, task.controller(plant, **changes), steps=steps, report=report)
        summary["against_truth"] = {
            **compare_with_truth(task, plant, model, exact, loop),
            "cost_with_truth": controller.cost_of(exact),
        }
    return ControlResult(task, plant, loop, exact, summary)


def _summary(
    task: ControlTask, name: str, planned_with: str, controller: MPC, loop: Trajectory
) -> dict[str, Any]:
    decisions = loop.decisions
    assert decisions is not None
    seconds = np.asarray(decisions.seconds)[:-1]
    # The first decision compiles.
    later = seconds[1:][np.isfinite(seconds[1:])]
    later = later if later.size else seconds[:1]
    return {
        "task": name,
        "title": task.title,
        "model": planned_with,
        "horizon": controller.horizon,
        "dt_s": controller.dt,
        "relinearize": controller.relinearize,
        "terminal": bool(np.any(controller.terminal)),
        "steps": len(loop) - 1,
        "settled_s": decisions.settled_at(task.tolerance),
        "tolerance": task.tolerance,
        "cost": controller.cost_of(loop),
        "verdict": decisions.verdict(task.tolerance),
        "fallbacks": decisions.fallbacks,
        "softened": decisions.softened,
        "first_decision_s": float(seconds[0]),
        "decision_median_s": float(np.median(later)),
        "decision_p99_s": float(np.percentile(later, 99)),
        "rollout": str(loop.status),
    }


def write_control(out: Path, result: ControlResult) -> None:
    """Write all files of a task, in place of an earlier one in the same folder."""
    replace_folder(out, KIND, lambda part: _fill(part, result))


def _fill(out: Path, result: ControlResult) -> None:
    # Here, since what draws takes a third of the time of a refusal to load.
    from mbdnode.report.pictures import save_animation
    from mbdnode.report.style import save_figure
    from mbdnode.reproduction.figures import draw_loops

    write(result.loop, out / "trajectory.csv")
    if result.exact is not None:
        write(result.exact, out / "truth.csv")
    found, exact = {"the learned model": result.loop}, result.exact
    if exact is None:
        found, exact = {}, result.loop
    save_figure(draw_loops(result.plant, found, exact, result.task.title), out / "figure.png")
    save_animation(result.plant, result.loop, out / "motion.gif", title=result.task.title)
    replace_file(out / "decisions.csv", lambda file: file.write(_decisions(result.loop).encode()))
    write_json(out / "control.json", result.summary)


def _decisions(loop: Trajectory) -> str:
    decisions = loop.decisions
    assert decisions is not None
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("t", "error", "seconds", "status"))
    for t, error, seconds, status in zip(
        decisions.t[:-1],
        decisions.error[:-1],
        decisions.seconds[:-1],
        decisions.statuses[:-1],
        strict=True,
    ):
        rows.writerow((f"{t:.10g}", f"{error:.6g}", f"{seconds:.3g}", status))
    return text.getvalue()


def describe_control(result: ControlResult) -> list[tuple[str, str]]:
    """What the user reads: labels and values."""
    loop, summary = result.loop, result.summary
    ranges = (
        f"{name} {np.min(column):.4g} to {np.max(column):.4g}"
        for name, column in zip(loop.inputs, np.asarray(loop.kept.u).T, strict=True)
    )
    how = "along the plan at every step" if summary["relinearize"] == "each" else "once"
    median, most = 1e3 * summary["decision_median_s"], 1e3 * summary["decision_p99_s"]
    cost, beside = f"{summary['cost']:.5g}", summary.get("against_truth")
    if beside:
        more = 100 * (summary["cost"] / beside["cost_with_truth"] - 1)
        cost += f", {more:+.2g} % of that with the equations of motion"
    lines = [
        ("task", f"{result.task.title}, {summary['steps']:,} steps of {summary['dt_s']:g} s"),
        ("planned with", f"{summary['model']}, {summary['horizon']} steps, linearized {how}"),
        ("terminal cost", "infinite-horizon cost-to-go" if summary["terminal"] else "none"),
        ("verdict", summary["verdict"]),
        ("cost of the loop", cost),
        ("inputs", ", ".join(ranges)),
        ("a decision took", f"{median:.2f} ms (median), {most:.2f} ms (99th percentile)"),
    ]
    if beside:
        error = f"A {beside['jacobian_error_A']:.1e}, B {beside['jacobian_error_B']:.1e}"
        lines.append(("Jacobian error", error))
        lines.append(("against the truth", _difference(beside["largest_difference"])))
    return [*lines, ("status", summary["rollout"])]


def _difference(columns: Mapping[str, float | None]) -> str:
    known = {name: value for name, value in columns.items() if value is not None}
    if len(known) < len(columns):
        return "the loops cannot be compared, since one ended early"
    name = max(known, key=lambda column: known[column])
    return f"largest difference {100 * known[name]:.2g} % of the range, in {name}"
