"""A case as the gallery shows it: a row of its table and a scene for its figure."""

from dataclasses import dataclass

from mbdnode.cli.running import prepare
from mbdnode.experiments import Case
from mbdnode.report import Scene, summarise

NUMBERS = (
    "free",
    "steps",
    "compile\n[s]",
    "run\n[ms]",
    "position\nresidual",
    "velocity\nresidual",
    "energy\ndrift\n[J]",
)
HEADINGS = ("case", *NUMBERS[:2], "method", *NUMBERS[2:])


@dataclass(frozen=True)
class Exhibit:
    """One case, simulated.

    **Arguments:**

    - `row`: the values below `HEADINGS`.
    - `scene`: for a figure.
    - `failure`: what went wrong, if the rollout ended early.
    """

    row: tuple[str, ...]
    scene: Scene
    failure: str | None


def exhibit(case: Case) -> Exhibit:
    """Simulate a case twice: the first time compiles, the second does not."""
    run = prepare(case)
    _, with_compilation = run()
    trajectory, seconds = run()
    summary = summarise(case.mechanism, trajectory, run.parameters)
    row = (
        case.name,
        str(summary.degrees_of_freedom),
        f"{summary.rows - 1:,}",
        case.integrator,
        f"{with_compilation - seconds:.2f}",
        f"{1e3 * seconds:.1f}",
        _exponent(summary.position_residual),
        _exponent(summary.velocity_residual),
        _exponent(summary.energy_drift_j),
    )
    scene = Scene(
        name=case.name,
        title=case.title,
        mechanism=case.mechanism,
        trajectory=trajectory,
        parameters=run.parameters,
        train_end_s=case.train_steps * case.dt_s,
    )
    return Exhibit(
        row, scene, None if trajectory.status.ok else f"{case.name}: {trajectory.status}"
    )


def _exponent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1e}"
