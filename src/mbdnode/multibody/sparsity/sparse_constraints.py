"""The constraints of a large mechanism joint by joint, in place of one full matrix.

A joint couples two bodies, so that `C = Phi_q` has few entries in a row. Rows that are coupled to
the same others, as those of a joint are, are kept as one small block. With a diagonal mass matrix
the multipliers solve

    C M^-1 C^T lambda = C M^-1 F - gamma,       a = M^-1 (F - C^T lambda),

whose matrix has a block wherever two joints share a body (see `block_systems`), and is positive
definite where masses are positive and no constraint repeats others. The cost of accelerations then
grows as the number of bodies, and not as its cube.

Dependent coordinates that are explicit (see `elimination`) have slopes `S = -A^-1 C_w` that are
never written down, since only products with vectors are asked for. In a tree those are all; every
loop adds a few rows to a full matrix.
"""

import functools
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mbdnode.multibody.sparsity.block_systems import BlockGraph, Vectors, and_none, padded
from mbdnode.multibody.sparsity.constraint_structure import Coloring, Structure
from mbdnode.multibody.sparsity.elimination import Elimination

# Rows of a block; more that belong together become several blocks.
_MOST_ROWS = 3

Entries = Float[Array, "m k count"]


@dataclass(frozen=True)
class SparseConstraints:
    """Where the entries of `C` stand, in blocks of rows.

    **Arguments:**

    - `size`: the number of coordinates.
    - `rows`: of every block.
    - `columns`: of every block, those in which its rows may have an entry.
    - `colors`: of every coordinate, the directional derivative in which its entries are found; -1
        where all are constant.
    - `constants`: of those columns, each a row, a column and a value.
    """

    size: int
    rows: tuple[tuple[int, ...], ...]
    columns: tuple[tuple[int, ...], ...]
    colors: tuple[int, ...]
    constants: tuple[tuple[int, int, float], ...]

    @property
    def row_count(self) -> int:
        """How many constraints there are."""
        return sum(map(len, self.rows))

    @functools.cached_property
    def _row_places(self) -> np.ndarray:
        """The row of each place in a block; the one after the last where it has fewer rows."""
        return padded(self.rows, self.row_count)

    @functools.cached_property
    def _absent(self) -> np.ndarray:
        """Where a block has fewer rows."""
        return self._row_places == self.row_count

    @functools.cached_property
    def _column_places(self) -> np.ndarray:
        return padded(self.columns, self.size)

    @functools.cached_property
    def graph(self) -> BlockGraph:
        """Which blocks share a coordinate."""
        users: dict[int, list[int]] = {}
        for block, own in enumerate(self.columns):
            for column in own:
                users.setdefault(column, []).append(block)
        edges = {(u, v) for own in users.values() for u in own for v in own if u < v}
        return BlockGraph(len(self.rows), tuple(sorted(edges)))

    def entries(self, derivatives: Float[Array, "nc colors"]) -> Entries:
        """`C` in blocks, from the directional derivatives of the constraints."""
        held = {(row, column): value for row, column, value in self.constants}
        shape = (self._row_places.shape[0], *self._column_places.shape)
        places, constant = np.zeros(shape, np.int32), np.zeros(shape)
        varies = np.zeros(shape, bool)
        width = derivatives.shape[1]
        for block, (rows, columns) in enumerate(zip(self.rows, self.columns, strict=True)):
            for i, row in enumerate(rows):
                for k, column in enumerate(columns):
                    if self.colors[column] >= 0:
                        varies[i, k, block] = True
                        places[i, k, block] = row * width + self.colors[column]
                    else:
                        constant[i, k, block] = held.get((row, column), 0.0)
        constant = jnp.asarray(constant, derivatives.dtype)
        if not width:
            return constant
        return jnp.where(varies, derivatives.reshape(-1)[places], constant)

    def in_blocks(self, vector: Float[Array, " nc"]) -> Vectors:
        """Entries of a vector of all rows, by block."""
        return and_none(vector)[self._row_places]

    def in_rows(self, blocks: Vectors) -> Float[Array, " nc"]:
        """What `in_blocks` undoes."""
        where = np.zeros(self.row_count, np.int32)
        for block, rows in enumerate(self.rows):
            for i, row in enumerate(rows):
                where[row] = i * len(self.rows) + block
        return blocks.reshape(-1)[where]

    def _of_columns(self, values: Float[Array, " nq"]) -> Float[Array, "k count"]:
        return and_none(values)[self._column_places]

    def full_rows(self, entries: Entries, rows: np.ndarray) -> Float[Array, "n nq"]:
        """Some rows of `C` as a matrix."""
        size, width = entries.shape[2], entries.shape[1]
        places = np.full((len(rows), self.size), entries.size, np.int32)
        for block, (own, columns) in enumerate(zip(self.rows, self.columns, strict=True)):
            for i, row in enumerate(own):
                for found in np.flatnonzero(rows == row):
                    where = (i * width + np.arange(len(columns))) * size + block
                    places[found, list(columns)] = where
        return and_none(entries.reshape(-1))[places]

    def times(self, entries: Entries, values: Float[Array, " nq"]) -> Vectors:
        """`C values`."""
        return jnp.sum(entries * self._of_columns(values)[None], axis=1)

    def transposed_times(self, entries: Entries, blocks: Vectors) -> Float[Array, " nq"]:
        """`C^T blocks`."""
        parts = jnp.sum(entries * blocks[:, None], axis=0).reshape(-1)
        users: list[list[int]] = [[] for _ in range(self.size)]
        for block, own in enumerate(self.columns):
            for k, column in enumerate(own):
                users[column].append(k * len(self.columns) + block)
        table = padded(users, parts.shape[0])
        return functools.reduce(jnp.add, (and_none(parts)[row] for row in table))

    @functools.cached_property
    def _shared(self) -> tuple[np.ndarray, np.ndarray]:
        """Of every coupling, where the columns that it shares stand in either block."""
        first, second = [], []
        for u, v in self.graph.couplings:
            both = [c for c in self.columns[u] if c in self.columns[v]]
            first.append([self.columns[u].index(c) for c in both])
            second.append([self.columns[v].index(c) for c in both])
        none = self._column_places.shape[0]
        return padded(first, none), padded(second, none)

    def multipliers(
        self, entries: Entries, inverse_mass: Float[Array, " nq"], right: Vectors
    ) -> Vectors:
        """Solve `C M^-1 C^T x = right`."""

        def product(x):
            held = jnp.where(self._absent, x, 0.0)
            moved = inverse_mass * self.transposed_times(entries, x)
            return self.times(entries, moved) + held

        fixed = jax.lax.stop_gradient((entries, inverse_mass))
        factors = self.graph.factorize(*self._matrix(*fixed))
        return jax.lax.custom_linear_solve(
            product, right, lambda _, b: self.graph.solve(factors, b), symmetric=True
        )

    def _matrix(self, entries: Entries, inverse_mass: Float[Array, " nq"]):
        """The blocks of `C M^-1 C^T`, on the diagonal and of each coupling."""
        weighted = entries * self._of_columns(inverse_mass)[None]
        alone = np.eye(len(self._absent))[:, :, None] * self._absent[None]
        diagonal = _contract(weighted, entries) + jnp.asarray(alone, entries.dtype)
        pairs = np.array(self.graph.couplings, np.int32).reshape(-1, 2).T
        left, right = (
            jnp.pad(part, ((0, 0), (0, 1), (0, 0)))[:, places, block[None]]
            for part, places, block in zip((weighted, entries), self._shared, pairs, strict=True)
        )
        return diagonal, _contract(left, right)


class SparseSlope(eqx.Module):
    """The slopes `S` of the dependent coordinates, of which only products are formed.

    What is eliminated follows from all others, `v_x = -A^-1 C_w v_w`; those of the others that are
    dependent have slopes of their own, a row for each equation that a loop leaves.

    **Arguments:**

    - `entries`: of `C`, in blocks.
    - `rest`: the slopes of the dependent coordinates that are not eliminated.
    - `order`, `place`: the dependent coordinates and then the independent ones, and where each
        coordinate stands among them.
    - `sparse`, `elimination`: where entries stand, and what is eliminated.
    - `is_transposed`: whether it stands for `S^T`.
    """

    entries: Entries
    rest: Float[Array, "nr ni"]
    order: Int[Array | np.ndarray, " nq"]
    place: Int[Array | np.ndarray, " nq"]
    sparse: SparseConstraints = eqx.field(static=True)
    elimination: Elimination = eqx.field(static=True)
    is_transposed: bool = eqx.field(static=True, default=False)

    @property
    def T(self) -> "SparseSlope":
        """`S^T`."""
        parts = (self.entries, self.rest, self.order, self.place, self.sparse, self.elimination)
        return SparseSlope(*parts, not self.is_transposed)

    def __matmul__(self, right: Float[Array, "n *k"]) -> Float[Array, "m *k"]:
        product = self._transposed_times if self.is_transposed else self._times
        return product(right) if right.ndim == 1 else jax.vmap(product, 1, 1)(right)

    def full(self) -> Float[Array, "nd ni"]:
        """As a matrix."""
        return self @ jnp.eye(self.rest.shape[1], dtype=self.entries.dtype)

    def eliminated(
        self, rest: Float[Array, " nr"], independent: Float[Array, " ni"]
    ) -> Float[Array, " nx"]:
        """Velocities of what is eliminated, given those of all others."""
        none = jnp.zeros(self.elimination.count, self.entries.dtype)
        given = jnp.concatenate([none, rest, independent])[self.place]
        moved = self.sparse.in_rows(self.sparse.times(self.entries, given))
        return -self.elimination.solve_own(moved)

    def load(self, forces: Float[Array, " nx"]) -> Float[Array, " nq"]:
        """What forces on the eliminated coordinates do to the others, at the places of those."""
        places = np.full(self.sparse.row_count, self.elimination.count, np.int32)
        places[list(self.elimination.rows)] = np.arange(self.elimination.count)
        in_rows = and_none(self.elimination.solve_transposed(forces))[places]
        return -self.sparse.transposed_times(self.entries, self.sparse.in_blocks(in_rows))

    def _times(self, independent: Float[Array, " ni"]) -> Float[Array, " nd"]:
        rest = self.rest @ independent
        return jnp.concatenate([self.eliminated(rest, independent), rest])

    def _transposed_times(self, dependent: Float[Array, " nd"]) -> Float[Array, " ni"]:
        count, more = self.elimination.count, self.rest.shape[0]
        load = self.load(dependent[:count])[self.order[count:]]
        return load[more:] + self.rest.T @ (load[:more] + dependent[count:])


def plan_sparse(structure: Structure, coloring: Coloring) -> SparseConstraints | None:
    """Divide constraints into blocks.

    The blocks, or None where full matrices do better.
    """
    depends = structure.depends
    coupled = depends.astype(np.int32) @ depends.T.astype(np.int32) > 0
    alike: dict[bytes, list[int]] = {}
    for row, others in enumerate(coupled):
        alike.setdefault(others.tobytes(), []).append(row)
    rows = [
        tuple(group[i : i + _MOST_ROWS])
        for group in alike.values()
        for i in range(0, len(group), _MOST_ROWS)
    ]
    columns = [tuple(map(int, np.flatnonzero(depends[list(own)].any(axis=0)))) for own in rows]
    varies = structure.nonlinear.any(axis=0)
    colors = np.where(varies, coloring.color, -1)
    constants = tuple(
        (int(i), int(j), float(structure.coefficient[i, j]))
        for i, j in np.argwhere(np.where(varies, 0.0, structure.coefficient))
    )
    found = SparseConstraints(
        *(depends.shape[1], tuple(rows), tuple(columns), tuple(map(int, colors)), constants)
    )
    return found if found.graph.is_sparse else None


def _contract(left: Entries, right: Entries) -> Float[Array, "m m count"]:
    """Products of each matrix with the transpose of another, over the columns of both."""
    parts = (left[:, None, k] * right[None, :, k] for k in range(left.shape[1]))
    return functools.reduce(jnp.add, parts)
