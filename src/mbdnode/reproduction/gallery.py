"""The work behind `mbdnode gallery`: every case as a row of a table and a scene for a figure."""

import time
from dataclasses import dataclass

import jax

from mbdnode.report import Scene, summarize
from mbdnode.reproduction.cases.case import Case
from mbdnode.reproduction.run import simulate_truth
from mbdnode.trajectory import Trajectory

GALLERY_NUMBERS = (
    "DOF",
    "steps",
    "compile\n[s]",
    "run\n[ms]",
    "position\nresidual",
    "velocity\nresidual",
    "energy\ndrift\n[J]",
)
GALLERY_COLUMNS = ("case", *GALLERY_NUMBERS[:2], "method", *GALLERY_NUMBERS[2:])


@dataclass(frozen=True)
class GalleryEntry:
    """One case, simulated: values below `GALLERY_COLUMNS`; why its rollout ended early, if so."""

    row: tuple[str, ...]
    scene: Scene
    failure: str | None


def simulate_entry(case: Case) -> GalleryEntry:
    """Simulate a case twice: the first time compiles, the second does not."""
    _, with_compilation = _timed(case)
    trajectory, seconds = _timed(case)
    summary = summarize(case.mechanism, trajectory, case.parameters)
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
        parameters=case.parameters,
        train_end_s=case.train_steps * case.dt_s,
    )
    failure = None if trajectory.status.ok else f"{case.name}: {trajectory.status}"
    return GalleryEntry(row, scene, failure)


def _timed(case: Case) -> tuple[Trajectory, float]:
    began = time.perf_counter()
    trajectory = simulate_truth(case)
    return jax.block_until_ready(trajectory), time.perf_counter() - began


def _exponent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1e}"
