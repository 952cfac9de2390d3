"""Playgrounds of a fit and of a mechanism: what `mbdnode play` shows."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import numpy as np

from mbdnode.data.folders import MODEL
from mbdnode.data.logs import read
from mbdnode.errors import UserError
from mbdnode.integrators import get_integrator
from mbdnode.mechanisms.described import AbstractDescribed
from mbdnode.mechanisms.planar import PlanarKinematics
from mbdnode.models import FittedMechanism
from mbdnode.multibody import AbstractMechanism, consistent_state
from mbdnode.report.playground import Play
from mbdnode.simulation import Domain
from mbdnode.trajectory import State, Trajectory
from mbdnode.workflow.config import PARAMETERS
from mbdnode.workflow.systems import find_system, first_member, used_parameters

if TYPE_CHECKING:
    from mbdnode.workflow.folder import StoredFit

# Of a mechanism without data nothing says how fine its motion is.
DT_S = 0.01


def play_mechanism(
    name: str,
    initial: Mapping[str, float],
    *,
    parameters: Mapping[str, float] | None = None,
    integrator: str = "rk4",
    dt_s: float | None = None,
) -> Play:
    """A playground of a mechanism, by its file or `module:name`.

    Raises `UserError` for a file without masses, which has no motion.
    """
    system = find_system(name)
    if isinstance(system, PlanarKinematics):
        system.force(None, None, None, None, {})  # Refuses, and says which masses are missing.
    consistent_state(system, initial, parameters=parameters)
    if isinstance(system, AbstractDescribed):
        title, short = system.description.name, Path(name).stem
    else:
        title, short = name, name.rpartition(":")[2]
    return Play(
        title=title,
        name=short,
        system=system,
        label="mechanism",
        initial=dict(initial),
        parameters=parameters or {},
        integrator=integrator,
        dt_s=DT_S if dt_s is None else dt_s,
    )


def play_fit(
    folder: Path,
    stored: "StoredFit",
    initial: Mapping[str, float],
    *,
    parameters: Mapping[str, float] | None = None,
    integrator: str | None = None,
    dt_s: float | None = None,
) -> Play:
    """A playground of a fit: the model, and beside it the mechanism if its masses are known.

    Without `initial` values it starts as the first held-out run does.
    """
    config, model = stored.config, first_member(stored.model)
    held_out = folder / "held-out-0-truth.csv"
    motion = read(held_out).trajectories[0].kept if held_out.is_file() else None
    if motion is not None and motion.columns[1:] != (
        *model.coordinate_names,
        *model.rate_names,
        *model.input_names,
    ):
        raise UserError(
            f"'{held_out}' has the columns {', '.join(motion.columns)}, which are not those of "
            f"{folder / MODEL}. Copy the folder again, or fit again."
        )
    play = make_fit_play(
        stored.model,
        title=config.title,
        label=str(stored.metrics["model"]),
        integrator=integrator or config.integrator,
        domain=stored.domain,
        motions=[] if motion is None else [motion],
        parameters={**config.given_parameters, **(parameters or {})},
    )
    if initial:
        play = replace(play, initial=dict(initial), motion=None, held={})
    return play if dt_s is None else replace(play, dt_s=dt_s)


def make_fit_play(
    model: Any,
    *,
    title: str,
    label: str,
    integrator: str,
    domain: Any,
    motions: Sequence[Trajectory],
    parameters: Mapping[str, float],
) -> Play:
    """A playground of a fitted model.

    The first of the recorded `motions` with a state inside the training data says where to start,
    by which step and how far it goes. An integrator that chooses its own steps becomes rk4.
    """
    first = first_member(model)
    body = first.body
    is_found = isinstance(first, FittedMechanism)
    inputs, initial, held = {}, {}, {}
    motion = None
    if motions:
        motion, row, held = _start_inside(motions, domain)
        initial = State(motion.q[row], motion.v[row])
        for name in first.input_names:
            largest = float(np.max(np.abs(np.asarray(motion[name]))))
            inputs[name] = (-1.5 * largest, 1.5 * largest) if largest > 0 else (-1.0, 1.0)
    return Play(
        title=title,
        name=title,
        system=model,
        label="fitted mechanism" if label == PARAMETERS else label.split(":")[0],
        initial=initial,
        truth=body if isinstance(body, AbstractMechanism) and not is_found else None,
        parameters=parameters,
        integrator="rk4" if get_integrator(integrator).controls_error else integrator,
        dt_s=DT_S if motion is None else float(np.median(np.diff(np.asarray(motion.t)))),
        inputs=inputs,
        domain=domain,
        used=used_parameters(first),
        motion=motion,
        held=held,
    )


def _start_inside(
    motions: Sequence[Trajectory], domain: Domain
) -> tuple[Trajectory, int, dict[str, float]]:
    """A motion, a row of it inside the training data, and its inputs: zero where that is inside.

    The first row of the first motion, where no row of any is.
    """
    for motion in motions:
        none = jax.device_put(np.zeros(motion.u.shape))
        free = eqx.tree_at(lambda run: run.u, motion, none)
        for run in (free, motion):
            rows = np.flatnonzero(~domain.outside(run))
            if rows.size:
                row = int(rows[0])
                held = dict(zip(run.inputs, np.asarray(run.u)[row].tolist(), strict=True))
                return motion, row, held
    return motions[0], 0, {}
