"""Large symmetric systems of small blocks, `N x = b`, in a time that grows as their number.

Blocks are the vertices of a graph, coupled where `N` has an entry. A vertex `v` is eliminated by

    D = N_vv,   H_u = D^-1 N_vu,       N_uw -= N_uv H_w,       b_u -= N_uv D^-1 b_v

for its neighbors `u`, `w`, and found at last from theirs, `x_v = D^-1 b_v - sum H_u x_u`. Vertices
that are no neighbors do not disturb each other, so that in every round all those with the fewest
neighbors are eliminated at once, as one operation on arrays. A chain is halved by each round; every
tree takes a number of rounds that grows as the logarithm of its size, and a loop leaves a few more
neighbors to its vertices. Which vertex goes when is decided at set-up, from the graph alone.

Blocks are the first two axes of arrays, vertices the last one.
"""

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

# Vertices with more neighbors than this ask for a full matrix.
_MOST_NEIGHBORS = 12

Blocks = Float[Array, "m m count"]
Vectors = Float[Array, "m count"]


class _Round(NamedTuple):
    """One round, by places in the arrays that it starts from.

    **Arguments:**

    - `pivots`: of the vertices that are eliminated, among those that are left.
    - `couplings`: of the blocks to their neighbors, among the couplings; the neighbors are the
        first axis, and the place after the last is that of none.
    - `neighbors`: among the vertices that are left after the round.
    - `pairs`: of neighbors whose coupling changes, by their numbers.
    - `kept`: of every vertex that is left, among those before and then among the changes; several
        are added.
    - `coupled`: of every coupling that is left, likewise.
    - `order`: of the vertices before the round, among the pivots and then those that are left.
    """

    pivots: np.ndarray
    couplings: np.ndarray
    neighbors: np.ndarray
    pairs: tuple[tuple[int, int], ...]
    kept: np.ndarray
    coupled: np.ndarray
    order: np.ndarray


class Factors(NamedTuple):
    """Of each round the inverses of the pivots, the couplings `N_vu` and `H_u`."""

    inverse: list[Blocks]
    coupling: list[Float[Array, "m m d count"]]
    product: list[Float[Array, "m m d count"]]


@dataclass(frozen=True)
class BlockGraph:
    """Which blocks of a symmetric matrix are not zero.

    **Arguments:**

    - `count`: the number of vertices.
    - `edges`: pairs of vertices, the smaller first.
    """

    count: int
    edges: tuple[tuple[int, int], ...]

    @functools.cached_property
    def _elimination(self) -> list[tuple[list[int], dict[int, tuple[int, ...]]]]:
        """Of every round its vertices, and the neighbors that each has left then."""
        around: dict[int, set[int]] = {v: set() for v in range(self.count)}
        for u, v in self.edges:
            around[u].add(v)
            around[v].add(u)
        rounds = []
        while around:
            fewest = min(map(len, around.values()))
            taken: list[int] = []
            blocked: set[int] = set()
            # Up to two neighbors cost about the same, and chains are halved by taking both.
            for v in sorted(around, key=lambda v: (len(around[v]), v)):
                if len(around[v]) <= max(fewest, 2) and v not in blocked:
                    taken.append(v)
                    blocked |= around[v]
            left = {v: tuple(sorted(around.pop(v))) for v in taken}
            for v, own in left.items():
                for u in own:
                    around[u].discard(v)
                    around[u] |= set(own) - {u}
            rounds.append((taken, left))
        return rounds

    @property
    def most_neighbors(self) -> int:
        """Of any vertex when it is eliminated."""
        return max((len(n) for _, left in self._elimination for n in left.values()), default=0)

    @property
    def is_sparse(self) -> bool:
        """Whether it is worth to be solved block by block."""
        return self.most_neighbors <= _MOST_NEIGHBORS

    @functools.cached_property
    def _turn(self) -> dict[int, int]:
        """At which place each vertex is eliminated."""
        order = [v for taken, _ in self._elimination for v in taken]
        return {v: place for place, v in enumerate(order)}

    def oriented(self, edges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        """Pairs of vertices, the one that is eliminated first at the first place."""
        return [(u, v) if self._turn[u] < self._turn[v] else (v, u) for u, v in edges]

    @functools.cached_property
    def couplings(self) -> list[tuple[int, int]]:
        """The edges, in the orientation and order in which `factorize` takes their blocks."""
        return self.oriented(self.edges)

    @functools.cached_property
    def _rounds(self) -> list[_Round]:
        vertices, edges, found = list(range(self.count)), self.couplings, []
        for taken, left in self._elimination:
            rest = [v for v in vertices if v not in left]
            place = {v: i for i, v in enumerate(vertices)}
            after = {v: i for i, v in enumerate(rest)}
            at = {edge: i for i, edge in enumerate(edges)}
            # The earlier one first, so that changes have the orientation of couplings.
            near = {v: sorted(left[v], key=self._turn.__getitem__) for v in taken}
            most = max(map(len, near.values()))
            couplings = np.full((most, len(taken)), len(edges), np.int32)
            neighbors = np.zeros((most, len(taken)), np.int32)
            pairs = tuple((i, j) for i in range(most) for j in range(i + 1, most))
            changes: dict[int, list[int]] = {v: [] for v in rest}
            filled: dict[tuple[int, int], list[int]] = {
                edge: [at[edge]] for edge in edges if edge[0] in after and edge[1] in after
            }
            for column, v in enumerate(taken):
                for i, u in enumerate(near[v]):
                    couplings[i, column], neighbors[i, column] = at[(v, u)], after[u]
                    changes[u].append(len(vertices) + i * len(taken) + column)
                for number, (i, j) in enumerate(pairs):
                    if j < len(near[v]):
                        edge = (near[v][i], near[v][j])
                        change = len(edges) + number * len(taken) + column
                        filled.setdefault(edge, []).append(change)
            joined = [*taken, *rest]
            where = {v: i for i, v in enumerate(joined)}
            found.append(
                _Round(
                    np.array([place[v] for v in taken], np.int32),
                    couplings,
                    neighbors,
                    pairs,
                    padded([[place[v], *changes[v]] for v in rest], _size(vertices, most, taken)),
                    padded(list(filled.values()), _size(edges, len(pairs), taken)),
                    np.array([where[v] for v in vertices], np.int32),
                )
            )
            vertices, edges = rest, list(filled)
        return found

    def factorize(self, diagonal: Blocks, couplings: Float[Array, "m m edges"]) -> Factors:
        """Eliminate all blocks of a positive definite matrix.

        **Arguments:**

        - `couplings`: of every pair in `couplings`, with the rows of its first vertex.
        """
        factors = Factors([], [], [])
        for step in self._rounds:
            inverse = _inverse(_take(diagonal, step.pivots))
            coupling = _take(and_none(couplings), step.couplings)
            product = _times(inverse[:, :, None], coupling)
            for kept, new in zip(factors, (inverse, coupling, product), strict=True):
                kept.append(new)
            across = jnp.swapaxes(coupling, 0, 1)
            changes = _flat(-_times(across, product))
            diagonal = _sum(jnp.concatenate([diagonal, changes], axis=-1), step.kept)
            pairs = np.array(step.pairs, np.int32).reshape(-1, 2)
            filled = _flat(-_times(across[:, :, pairs[:, 0]], product[:, :, pairs[:, 1]]))
            couplings = _sum(jnp.concatenate([couplings, filled], axis=-1), step.coupled)
        return factors

    def solve(self, factors: Factors, right: Vectors) -> Vectors:
        """`N^-1 right`."""
        halves = []
        for step, inverse, coupling in zip(
            self._rounds, factors.inverse, factors.coupling, strict=True
        ):
            half = _apply(inverse, _take(right, step.pivots))
            halves.append(half)
            changes = _flat(-_apply(jnp.swapaxes(coupling, 0, 1), half[:, None]))
            right = _sum(jnp.concatenate([right, changes], axis=-1), step.kept)
        x = right
        for step, half, product in zip(
            reversed(self._rounds), reversed(halves), reversed(factors.product), strict=True
        ):
            if step.neighbors.size:
                half = half - jnp.sum(_apply(product, _take(x, step.neighbors)), axis=1)
            x = _take(jnp.concatenate([half, x], axis=-1), step.order)
        return x


def _size(before: list, changes: int, taken: list[int]) -> int:
    return len(before) + changes * len(taken)


def padded(lists: Sequence[Sequence[int]], none: int) -> np.ndarray:
    """An array of places whose columns are the lists; `none` stands where a list has ended."""
    table = np.full((max(map(len, lists), default=1), len(lists)), none, np.int32)
    for column, own in enumerate(lists):
        table[: len(own), column] = own
    return table


def _take(values: Array, places: np.ndarray) -> Array:
    return values[..., places]


def and_none(values: Array) -> Array:
    """The values, and a zero after the last of them."""
    return jnp.concatenate([values, jnp.zeros((*values.shape[:-1], 1), values.dtype)], axis=-1)


def _sum(values: Array, places: np.ndarray) -> Array:
    """The sum over the first axis of places, of which the one after the last is none."""
    source = and_none(values) if np.any(places == values.shape[-1]) else values
    total = _take(source, places[0])
    for row in places[1:]:
        total = total + _take(source, row)
    return total


def _flat(values: Array) -> Array:
    """The last two axes as one."""
    return values.reshape(*values.shape[:-2], -1)


def _times(left: Array, right: Array) -> Array:
    """Products of matrices in the first two axes, written out."""
    parts = (left[:, k, None] * right[None, k] for k in range(left.shape[1]))
    return functools.reduce(jnp.add, parts)


def _apply(matrix: Array, vector: Array) -> Array:
    """Matrices in the first two axes times vectors in the first one."""
    parts = (matrix[:, k] * vector[None, k] for k in range(matrix.shape[1]))
    return functools.reduce(jnp.add, parts)


def _inverse(matrix: Blocks) -> Blocks:
    """Of positive definite blocks, written out without pivoting."""
    size = matrix.shape[0]
    rows = [[matrix[i, j] for j in range(size)] for i in range(size)]
    if size == 1:
        return 1 / matrix
    if size == 2:
        (a, b), (_, d) = rows
        scale = 1 / (a * d - b * b)
        return jnp.stack([jnp.stack([d * scale, -b * scale]), jnp.stack([-b * scale, a * scale])])
    # Gauss-Jordan in place: after step k the first k+1 unknowns are exchanged with right sides.
    for k in range(size):
        pivot = 1 / rows[k][k]
        scaled = [entry * pivot for entry in rows[k]]
        for i in range(size):
            if i != k:
                factor = rows[i][k]
                rows[i] = [
                    -factor * pivot if j == k else rows[i][j] - factor * scaled[j]
                    for j in range(size)
                ]
        rows[k] = [pivot if j == k else scaled[j] for j in range(size)]
    return jnp.stack([jnp.stack(row) for row in rows])
