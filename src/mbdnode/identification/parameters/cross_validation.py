"""Held-out pieces: what a fit to the other pieces misses of each.

The segments of the runs go, in order, into so many pieces. Each piece in turn is left out of the
fit and then simulated from its initial states, under its inputs, without looking at it. The pieces
are segments of one layout, of which those that are left out do not count, so one compiled program
serves all fits. Initial states are not fitted here: they are as measured, or as fitted before.
"""

from dataclasses import dataclass

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from mbdnode.identification.parameters.output_error import OutputError, fit_output
from mbdnode.identification.parameters.segments import Lanes
from mbdnode.identification.parameters.unknowns import Unknowns

# They begin at a fit to all pieces, from which one to the others is near.
_ITERATIONS = 10


@dataclass(frozen=True)
class Pieces:
    """The data in pieces.

    **Arguments:**

    - `problem`: gives residuals and Jacobians.
    - `lanes`: the data, cut into segments.
    - `initial`: the initial state of each segment.
    - `substeps`: of the integrator in each step.
    - `count`: of pieces.
    """

    problem: OutputError
    lanes: Lanes
    initial: np.ndarray
    substeps: int
    count: int

    def masks(self) -> list[np.ndarray]:
        """Of each piece, whether a row is part of it."""
        blocks, found = self.lanes.blocks(), []
        for group in np.array_split(np.arange(len(blocks)), self.count):
            mask = np.zeros(self.lanes.counts.shape, bool)
            for number in group:
                run, _, rows = blocks[number]
                mask[run, rows] = True
            found.append(mask)
        return found

    def missed(self, mask: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Of some rows, the root mean square of the residuals in each column."""
        given = jnp.asarray(values), jnp.asarray(self.initial), self.lanes
        residuals = np.asarray(self.problem(*given, jnp.asarray(self.substeps))[0])[mask]
        return np.sqrt(np.mean(residuals**2, axis=0))


def cross_validate(pieces: Pieces, unknowns: Unknowns, values: np.ndarray) -> np.ndarray:
    """What fits to all pieces but one miss of that one.

    **Arguments:**

    - `pieces`: the data.
    - `unknowns`: what is sought, with its priors.
    - `values`: where to begin.

    **Returns:**

    For each piece and recorded column the root mean square of the residuals, in units of the
    noise; infinite where the simulation ends early.
    """
    found = []
    for mask in pieces.masks():
        rest = jnp.asarray(np.asarray(pieces.lanes.counts) & ~mask)
        lanes = eqx.tree_at(lambda x: x.counts, pieces.lanes, rest)
        fitted = fit_output(
            pieces.problem,
            lanes,
            unknowns,
            values,
            pieces.initial,
            pieces.substeps,
            held=True,
            iterations=_ITERATIONS,
        )
        missed = np.full(len(pieces.problem.columns), np.inf)
        if fitted is not None:
            missed = pieces.missed(mask, fitted.values)
        found.append(np.where(np.isfinite(missed), missed, np.inf))
    return np.array(found)
