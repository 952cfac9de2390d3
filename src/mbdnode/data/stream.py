"""Data without end: sampled when it is needed, used, and let go.

Each chunk depends on the seed and its own number alone, so training that goes on from a checkpoint
sees what it would have seen.
"""

import abc
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.data.sampling import BLOCK, Sampler
from mbdnode.errors import UserError, check_memory
from mbdnode.multibody import AbstractMechanism
from mbdnode.simulation import simulate
from mbdnode.trajectory import Dataset, State


class AbstractStream(abc.ABC):
    """Datasets of one shape, by number.

    `count` is how many of them make up the data, for who wants to see all of it; None if there is
    no end.
    """

    count: int | None = None

    @abc.abstractmethod
    def chunk(self, number: int) -> Dataset:
        """The data of one epoch."""


class StepStream(AbstractStream):
    """Uniform samples of states and inputs, and one step from each.

    **Arguments:**

    - `mechanism`, `ranges`, `guess`, `parameters`: as for `sample_accelerations`.
    - `size`: how many steps make a chunk.
    - `dt_s`: the step, over which the inputs are held.
    - `integrator`: which takes it.
    - `seed`: of the samples.
    - `count`: how many chunks there are; None for no end.
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
        count: int | None = None,
        guess: Mapping[str, float] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ):
        if size < 1:
            raise UserError(f"size is {size}; a chunk needs at least one step.")
        if count is not None and count < 1:
            raise UserError(f"count is {count}; a stream that ends needs at least one chunk.")
        columns = 1 + 2 * len(mechanism.coordinates) + len(mechanism.inputs)
        # Two rows a step; sampled, stepped, joined, cut into examples and cast.
        needed_bytes = 5 * 8 * 2 * size * columns
        check_memory(
            needed_bytes,
            f"A chunk of {size:,} steps",
            "Take fewer, or the same in more chunks, which are one for each epoch.",
        )
        self.count = count
        self._sampler = Sampler(mechanism, ranges, guess, parameters)
        self._size, self._seed, self._parameters = size, seed, dict(parameters or {})
        times, partition = np.array([0.0, dt_s]), self._sampler.partition

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
        # Blocks of equal size, so that the step is compiled for one shape.
        block = -(-self._size // -(-self._size // BLOCK))
        runs = []
        for samples in self._sampler.sample(self._size, [self._seed, number], block):
            count = len(samples)
            full = jax.tree.map(lambda x: np.resize(x, (block, *x.shape[1:])), samples)
            taken = self._step(full.q, full.v, full.u)
            runs.append(jax.tree.map(lambda x: np.asarray(x)[:count], taken))  # noqa: B023
        steps = jax.tree.map(lambda *x: jnp.asarray(np.concatenate(x)), *runs)
        return Dataset(steps, self._parameters)
