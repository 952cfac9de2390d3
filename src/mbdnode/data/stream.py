"""Data without end: drawn when it is needed, used, and let go.

Each chunk depends on the seed and its own number alone, so training that goes on from a checkpoint
sees what it would have seen.
"""

import abc
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.data.sampling import sample_accelerations
from mbdnode.multibody import (
    AbstractMechanism,
    choose_partition,
    consistent_state,
    resolve_parameters,
)
from mbdnode.simulation import simulate
from mbdnode.trajectory import Dataset, State


class AbstractStream(abc.ABC):
    """Datasets of one shape, by number."""

    @abc.abstractmethod
    def chunk(self, number: int) -> Dataset:
        """The data of one epoch."""


class StepStream(AbstractStream):
    """Uniform draws of states and inputs, and one step from each.

    **Arguments:**

    - `mechanism`, `ranges`, `guess`, `parameters`: as for `sample_accelerations`.
    - `size`: how many steps make a chunk.
    - `dt_s`: the step, over which the inputs are held.
    - `integrator`: which takes it.
    - `seed`: of the draws.
    """

    def __init__(
        self,
        mechanism: AbstractMechanism,
        ranges: Mapping[str, tuple[float, float]],
        size: int,
        dt_s: float,
        *,
        integrator: str = "rk4",
        seed: int = 0,
        guess: Mapping[str, float] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ):
        if size < 1:
            raise ValueError(f"size is {size}; a chunk needs at least one step.")
        self._draw = dict(
            mechanism=mechanism, ranges=ranges, count=size, guess=guess, parameters=parameters
        )
        self._seed, self._parameters = seed, dict(parameters or {})
        times = np.array([0.0, dt_s])
        partition = choose_partition(
            mechanism,
            jnp.zeros(()),
            consistent_state(mechanism, {}, guess=guess, parameters=parameters).q,
            resolve_parameters(mechanism, parameters),
        )

        # Compiled once for all chunks.
        @jax.jit
        @jax.vmap
        def step(q, v, u):
            return simulate(
                mechanism,
                times,
                State(q, v),
                inputs=u[None] if u.shape[0] else None,
                parameters=parameters,
                integrator=integrator,
                independent=partition,
            )

        self._step = step

    def chunk(self, number: int) -> Dataset:
        """A batch of `size` trajectories of two rows each, as training takes it."""
        blocks = sample_accelerations(**self._draw, seed=[self._seed, number])
        runs = [jax.tree.map(np.asarray, self._step(b.q, b.v, b.u)) for b in blocks]
        steps = jax.tree.map(lambda *x: jnp.asarray(np.concatenate(x)), *runs)
        return Dataset(steps, self._parameters)
