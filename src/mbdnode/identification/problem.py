"""What all candidates of one fit share, and what a candidate is."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mbdnode.data.rows import Noise, Rows
from mbdnode.identification.regression.least_squares import Chunks
from mbdnode.identification.search_checkpoint import NO_CHECKPOINT, SearchCheckpoint
from mbdnode.models import AbstractRateModel
from mbdnode.models.function_library import Forces, Known
from mbdnode.simulation import Interpolation


@dataclass(frozen=True)
class Problem:
    """What all candidates share.

    **Arguments:**

    - `system`: gives the names and the constraints.
    - `integrator`: of the training steps.
    - `refined`: whether all candidates are tried and refined by shooting; a few if not.
    - `seed`: of the random features.
    - `noise`: of the data.
    - `parameters`: those that differ between runs, by name.
    - `structure`: a family of candidates, or "chosen" for all of them.
    - `known`: what of the system need not be learned.
    - `forces`: whether what the inputs do is learned, or added.
    - `chunks`: of the data that do not fit in memory together; None where they do.
    - `estimated`: the coordinates whose rates were estimated and not measured, by number.
    - `interpolation`: of the inputs between samples.
    - `segments`: the shapes of the segments of shooting, as `segment_shapes` has them.
    - `by_steps`: whether the motion is smooth over single steps alone, as under inputs that change.
    - `needs_joint_laws`: whether no form without laws of the joints can explain the noisy data.
    - `kept`: what was finished before, and what is finished now.
    """

    system: Any
    integrator: Any
    refined: bool
    seed: int
    noise: Noise
    parameters: tuple[str, ...] = ()
    structure: str = "chosen"
    known: Known = "nothing"
    forces: Forces = "inputs"
    chunks: Chunks | None = None
    estimated: tuple[int, ...] = ()
    interpolation: Interpolation = "constant"
    segments: tuple[tuple[int, int], ...] = ()
    by_steps: bool = False
    needs_joint_laws: bool = False
    kept: SearchCheckpoint = field(default=NO_CHECKPOINT, compare=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """What goes to another machine: neither the data nor what is kept here."""
        return {**self.__dict__, "chunks": None, "kept": NO_CHECKPOINT}

    @property
    def measured(self) -> np.ndarray:
        """Of every coordinate whether its rate was measured."""
        return ~np.isin(np.arange(len(self.noise.s)), self.estimated)


def chunks_of(problem: Problem, rows: Rows) -> Chunks | None:
    """All chunks of the data, for the last fit; None for fits to what was not held out."""
    # What was held out was a part of the first chunk, in whose place are rows of no weight.
    return problem.chunks if bool(np.all(np.asarray(rows.weight) > 0)) else None


@dataclass(frozen=True)
class Candidate:
    """One way to fit.

    **Arguments:**

    - `structure`: its family.
    - `name`: for people.
    - `fit`: from rows to a model; None where it cannot.
    - `refine`: from a fitted model and the rows to one whose rollouts over longer segments come
        nearer to them; None for what has no such refinement.
    - `terms`: of the law, by which laws compare; zero where they are not counted.
    - `select`: from a fitted model and the rows to a `SelectedLaw`, whose terms its rollouts have
        chosen; None for what has no terms to choose.
    - `reselected`: the candidate with the terms of such a model.
    """

    structure: str
    name: str
    fit: Callable[[Rows], AbstractRateModel | None]
    refine: Callable[[Any, Rows], AbstractRateModel | None] | None = None
    terms: int = 0
    select: Callable[[Any, Rows], Any] | None = None
    reselected: Callable[[Any], "Candidate"] | None = None
