"""Uniform samples of a mechanism's accelerations, and of its steps as a stream without end.

The paper trains the slider-crank on independent samples of `(theta1, theta1', F, T)`. Each is
completed to a whole state by Newton's method, from the nearest of a few hundred anchors: states
spread over the range, each reached from the reference configuration in small steps. A mechanism
that can be assembled in several ways must stay in one of them: the ways are separated by
configurations where `det C_d` vanishes, so a sample is accepted when `det C_d` has its anchor's
sign, and is otherwise followed from the reference in small steps too.

Samples come in blocks of bounded size. A stream's chunk is sampled when it is needed, used, and let
go; it depends on the seed and its own number alone, so training that goes on from a checkpoint sees
what it would have seen.
"""

import abc
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.errors import UserError, check_memory
from mbdnode.factors import Factor, merge_all
from mbdnode.integrators import get_integrator
from mbdnode.multibody import (
    AbstractMechanism,
    Params,
    Partition,
    choose_partition,
    complete,
    complete_position,
    consistent_state,
    gamma,
    position_jacobian,
    resolve_parameters,
    tangent_from,
)
from mbdnode.naming import unknown_name
from mbdnode.simulation.held_inputs import rollout_held
from mbdnode.trajectory import Dataset, Samples, State

# Makes the factor of data; of a batch of windows, of the first so many.
MakeFactor = Callable[[Dataset, int | None], Factor]

# More at once would only take memory: a thousand keep every core busy.
BLOCK = 1_024
_PATH_STEPS = 64
# Anchors, and samples that are followed, come in blocks of this many.
_PATH_BLOCK = 256


class _Anchors(eqx.Module):
    """Configurations to start Newton's method from, and the tangent there."""

    positions: Float[Array, "*k nz"]
    q: Float[Array, "*k nq"]
    slope: Float[Array, "*k nq nz"]
    orientation: Float[Array, "*k"]


def sample_accelerations(
    mechanism: AbstractMechanism,
    ranges: Mapping[str, tuple[float, float]],
    count: int,
    *,
    seed: Any = 0,
    block: int = BLOCK,
    guess: Mapping[str, float] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> Iterator[Samples]:
    """Sample states and inputs uniformly, and compute the accelerations there.

    The samples depend on the seed alone, not on the size of the blocks.

    **Arguments:**

    - `mechanism`: whose accelerations; its constraints must not depend on time.
    - `ranges`: min and max, by name, of every independent coordinate, of its rate,
        and of every input.
    - `count`: how many samples in all.
    - `seed`: of the samples, a number or several.
    - `block`: how many at a time; memory is a few blocks, whatever the count.
    - `guess`: of the reference configuration, where the mechanism can be assembled in two ways.
    - `parameters`: values other than the defaults.

    **Returns:**

    An iterator over `Samples`, in order; the last block may be shorter.
    """
    if count < 1 or block < 1:
        raise UserError(f"count is {count} and block is {block}; both must be at least 1.")
    return Sampler(mechanism, ranges, guess, parameters).sample(count, seed, block)


class Sampler:
    """What all samples within the same bounds share: the partition and the anchors.

    **Arguments:**

    - `mechanism`, `ranges`, `guess`, `parameters`: as for `sample_accelerations`.
    """

    def __init__(
        self,
        mechanism: AbstractMechanism,
        ranges: Mapping[str, tuple[float, float]],
        guess: Mapping[str, float] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ):
        self.mechanism = mechanism
        self.mu = resolve_parameters(mechanism, parameters)
        self.reference = consistent_state(mechanism, {}, guess=guess, parameters=parameters)
        self.partition = choose_partition(mechanism, jnp.zeros(()), self.reference.q, self.mu)
        self.low, self.high = _bounds(mechanism, self.partition, ranges)

    @functools.cached_property
    def anchors(self) -> _Anchors:
        """Evenly spread, since the farthest sample from its anchor sets the pace of all."""
        from scipy.stats.qmc import Halton  # A second to load, for those who sample.

        spread = Halton(self.low.shape[0], scramble=False).random(_PATH_BLOCK)
        spread = jax.device_put(self.low + (self.high - self.low) * spread)
        return _anchors(self.mechanism, self.partition, self.reference, self.mu, spread)

    def sample(self, count: int, seed: Any, block: int = BLOCK) -> Iterator[Samples]:
        """As many samples, block by block."""
        mechanism, partition, mu = self.mechanism, self.partition, self.mu
        random = np.random.default_rng(seed)
        block = min(block, count)
        for first in range(0, count, block):
            size = min(block, count - first)
            points = random.uniform(self.low, self.high, (size, self.low.shape[0]))
            # One shape for every block, so that the last one is not compiled anew.
            padded = jax.device_put(np.resize(points, (block, points.shape[1])))
            samples, accepted = _evaluate(mechanism, partition, self.anchors, mu, padded)
            lost = np.flatnonzero(~np.asarray(accepted)[:size])
            if lost.size:
                reference = self.reference
                samples = _follow(mechanism, partition, reference, mu, points, samples, lost)
            whole = size == block
            yield samples if whole else jax.tree.map(lambda x: x[:size], samples)  # noqa: B023


def _bounds(mechanism, partition: Partition, ranges) -> tuple[np.ndarray, np.ndarray]:
    split = partition.position.independent, partition.velocity.independent
    places, speeds = (np.asarray(x) for x in split)
    positions = [mechanism.coordinate_names[i] for i in places]
    rates = [mechanism.rate_names[i] for i in speeds]
    names = [*positions, *rates, *mechanism.input_names]
    for name in ranges:
        if name not in names:
            raise unknown_name("independent coordinate, rate or input", name, names)
    for name in names:
        if name not in ranges:
            raise UserError(f"No range for {name!r}; give one for each of {', '.join(names)}.")
        low, high = ranges[name]
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            raise UserError(
                f"The range of {name!r} is ({low}, {high}); give two finite numbers, min first."
            )
    bounds = np.array([ranges[name] for name in names], float)
    return bounds[:, 0], bounds[:, 1]


@eqx.filter_jit
def _anchors(mechanism, partition: Partition, reference: State, mu: Params, points) -> _Anchors:
    """Follow paths to the positions; those that cannot be reached fall back to the start."""
    t = jnp.zeros(())

    def one(row):
        z, _, _ = _parts(partition, row)
        near, good = _path(mechanism, partition, reference, mu, z)
        q = jnp.where(good, near, reference.q)
        jacobian = position_jacobian(mechanism, t, q, mu)
        tangent = tangent_from(jacobian, jnp.zeros(jacobian.shape[0]), partition.position)
        slope = jax.vmap(tangent.velocity, in_axes=1, out_axes=1)(jnp.eye(z.shape[0]))
        position = partition.position.take_independent(q)
        return _Anchors(position, q, slope, tangent.orientation)

    return jax.vmap(one)(points)


@eqx.filter_jit
def _evaluate(mechanism, partition: Partition, anchors: _Anchors, mu: Params, points):
    """Complete every sample from its nearest anchor, and say which may be accepted."""
    t = jnp.zeros(())
    width = jnp.std(anchors.positions, axis=0)
    width = jnp.where(width > 0, width, 1.0)

    def one(row):
        z, s, u = _parts(partition, row)
        away = (z[None, :] - anchors.positions) / width[None, :]
        nearest = jnp.argmin(jnp.sum(away**2, axis=1))
        start = anchors.q[nearest] + anchors.slope[nearest] @ (z - anchors.positions[nearest])
        q, v, tangent, solved = complete(mechanism, partition, t, z, s, start, mu)
        jacobian = position_jacobian(mechanism, t, q, mu)
        side = tangent.orientation
        if partition.position.rows.shape != partition.velocity.rows.shape:
            none = jnp.zeros(jacobian.shape[0])
            side = tangent_from(jacobian, none, partition.position).orientation
        same = side == anchors.orientation[nearest]
        return _sample(mechanism, t, q, v, u, tangent, mu), solved & same

    return jax.vmap(one)(points)


def _sample(mechanism, t, q, v, u, tangent, mu) -> Samples:
    independent = mechanism.independent_acceleration(t, q, v, u, mu, tangent)
    return Samples(q, v, u, tangent.acceleration(independent, gamma(mechanism, t, q, v, mu)))


def _parts(partition: Partition, row):
    nz = partition.position.independent.shape[0]
    ns = partition.velocity.independent.shape[0]
    return row[:nz], row[nz : nz + ns], row[nz + ns :]


def _follow(mechanism, partition, reference, mu, points, samples: Samples, lost) -> Samples:
    """Complete the samples that a single Newton solve did not, by following a path to them."""
    for first in range(0, lost.size, _PATH_BLOCK):
        rows = lost[first : first + _PATH_BLOCK]
        padded = np.resize(points[rows], (_PATH_BLOCK, points.shape[1]))
        found, solved = _evaluate_path(mechanism, partition, reference, mu, jnp.asarray(padded))
        if not np.all(np.asarray(solved)[: rows.size]):
            bad = padded[int(np.argmin(np.asarray(solved)[: rows.size]))]
            names = [mechanism.coordinate_names[i] for i in partition.position.independent]
            where = ", ".join(f"{n} = {x:g}" for n, x in zip(names, bad, strict=False))
            raise UserError(
                f"The mechanism cannot be moved from its reference configuration to {where}. "
                "Narrow that range, or give a guess nearer to it."
            )
        put = lambda a, b: a.at[rows].set(b[: rows.size])  # noqa: B023, E731
        samples = jax.tree.map(put, samples, found)
    return samples


@eqx.filter_jit
def _evaluate_path(mechanism, partition: Partition, reference: State, mu: Params, points):
    """Complete every sample by following a path from the reference."""
    t = jnp.zeros(())

    def one(row):
        z, s, u = _parts(partition, row)
        near, good = _path(mechanism, partition, reference, mu, z)
        q, v, tangent, solved = complete(mechanism, partition, t, z, s, near, mu)
        return _sample(mechanism, t, q, v, u, tangent, mu), solved & good

    return jax.vmap(one)(points)


def _path(mechanism, partition: Partition, reference: State, mu: Params, z):
    """The configuration at independent positions `z`, reached in small steps."""
    split = partition.position
    z0 = split.take_independent(reference.q)

    def onward(carry, fraction):
        q, good = carry
        target = z0 + fraction * (z - z0)
        t = jnp.zeros(())
        q, solved = complete_position(mechanism, split, t, target, q, partition.scale, mu)
        return (q, good & solved), None

    fractions = jnp.arange(1, _PATH_STEPS + 1) / _PATH_STEPS
    return jax.lax.scan(onward, (reference.q, jnp.array(True)), fractions)[0]


class AbstractStream(abc.ABC):
    """Datasets of one shape, by number.

    `count` is how many of them make up the data, for who wants to see all of it; None if there is
    no end.
    """

    count: int | None = None

    @abc.abstractmethod
    def chunk(self, number: int) -> Dataset:
        """The data of one epoch."""

    def factors(
        self,
        make: MakeFactor,
        *,
        most_rows: int | None = None,
        report: Callable[[int, int], None] | None = None,
    ) -> Factor:
        """One factor of all chunks of a stream that ends, merged in their order.

        **Arguments:**

        - `make`: gives the factor of a chunk.
        - `most_rows`: that a batch should have, where the stream can choose.
        - `report`: called with how many parts of the data are done, of how many.

        **Returns:**

        The factor.
        """
        count = self.count
        assert count is not None

        def each() -> Iterator[Factor]:
            for number in range(count):
                yield make(self.chunk(number), None)
                if report is not None:
                    report(number + 1, count)

        return merge_all(each())


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
        self._times, self._integrator = np.array([0.0, dt_s]), get_integrator(integrator)

    def chunk(self, number: int) -> Dataset:
        """A batch of `size` trajectories of two rows each, as training takes it."""
        # Blocks of equal size, so that the step is compiled for one shape.
        block = -(-self._size // -(-self._size // BLOCK))
        runs, mechanism = [], self._sampler.mechanism
        for samples in self._sampler.sample(self._size, [self._seed, number], block):
            count = len(samples)
            resized = jax.tree.map(lambda x: np.resize(x, (block, *x.shape[1:])), samples)
            full = jax.device_put(resized)
            taken = rollout_held(
                mechanism,
                self._integrator,
                self._times,
                State(full.q, full.v),
                full.u,
                self._sampler.mu,
                self._sampler.partition,
                not mechanism.closed_on_minimal,
            )
            runs.append(jax.tree.map(lambda x: np.asarray(x)[:count], taken))  # noqa: B023
        steps = jax.tree.map(lambda *x: jax.device_put(np.concatenate(x)), *runs)
        return Dataset(steps, self._parameters)
