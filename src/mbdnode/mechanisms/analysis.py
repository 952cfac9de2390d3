"""How a mechanism can move: its degrees of freedom, their coordinates, redundant constraints.

Constraints that repeat others show as a matrix `C` whose rows are not independent: there is a
combination `w` with `w^T C = 0`, and the joints in it hold each other twice.

Also here is what can be wrong with a mechanism file although each of its values is right.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from mbdnode.errors import UserError
from mbdnode.mechanisms.described import AbstractDescribed
from mbdnode.multibody import (
    choose_partition,
    consistent_state,
    position_residual,
    resolve_parameters,
    velocity_constraints,
)
from mbdnode.trajectory import State


@dataclass(frozen=True)
class Redundancy:
    """A constraint that follows from others.

    **Arguments:**

    - `constraint`: which is left out of the equations.
    - `repeats`: those from which it follows.
    """

    constraint: str
    repeats: tuple[str, ...]


@dataclass(frozen=True)
class Analysis:
    """What `analyze` finds at the assembled configuration.

    **Arguments:**

    - `state`: assembled; at rest, but for what is given or driven.
    - `degrees_of_freedom`: how many coordinates are independent.
    - `independent`: which were chosen.
    - `constraints`: all, by name.
    - `redundant`: those that repeat others, or do so in this configuration.
    - `residual`: the largest of the constraints', in meters and radians.
    """

    state: State
    degrees_of_freedom: int
    independent: tuple[str, ...]
    constraints: tuple[str, ...]
    redundant: tuple[Redundancy, ...]
    residual: float


def analyze(
    mechanism: AbstractDescribed,
    known: Mapping[str, float] | None = None,
    *,
    parameters: Mapping[str, Any] | None = None,
    t: float = 0.0,
) -> Analysis:
    """Assemble a mechanism and count its degrees of freedom there.

    **Arguments:**

    - `mechanism`: from a file; redundant constraints are reported also where it refuses them.
    - `known`: coordinates and velocities to assemble it with.
    - `parameters`: values other than the defaults.
    - `t`: the time, for drives.

    **Returns:**

    An `Analysis`. Raises `UserError` if it cannot be assembled.
    """
    mu = resolve_parameters(mechanism, parameters)
    state = consistent_state(mechanism, known or {}, t=t, parameters=parameters)
    time = jnp.asarray(t, float)
    try:
        partition = choose_partition(mechanism, time, state.q, mu)
    except UserError:
        partition = choose_partition(mechanism.lenient(), time, state.q, mu)
    names = mechanism.constraint_names
    jacobian = np.asarray(velocity_constraints(mechanism, time, state.q, mu)[0])
    scaled = jacobian * np.asarray(partition.scale)[None, :]
    residual = np.asarray(position_residual(mechanism, time, state.q, mu))
    chosen = np.sort(np.asarray(partition.velocity.independent))
    return Analysis(
        state=state,
        degrees_of_freedom=partition.degrees_of_freedom,
        independent=tuple(mechanism.coordinate_names[int(i)] for i in chosen),
        constraints=names,
        redundant=_redundancies(scaled, partition.redundant, names),
        residual=float(np.max(np.abs(residual), initial=0.0)),
    )


def _redundancies(
    jacobian: np.ndarray, rows: tuple[int, ...], names: tuple[str, ...]
) -> tuple[Redundancy, ...]:
    """Each redundant row as a combination of the others."""
    kept = [n for n in range(len(names)) if n not in rows]
    found = []
    for row in rows:
        weights = np.linalg.lstsq(jacobian[kept].T, jacobian[row], rcond=1e-10)[0]
        size = np.max(np.abs(weights), initial=0.0)
        used = [names[n] for n, w in zip(kept, weights, strict=True) if abs(w) > 1e-6 * size]
        found.append(Redundancy(names[row], tuple(used)))
    return tuple(found)
