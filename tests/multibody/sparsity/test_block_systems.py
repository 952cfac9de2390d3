"""Block by block, the solution of the full matrix."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbdnode.multibody.sparsity.block_systems import BlockGraph

GRAPHS = {
    "one": (1, []),
    "apart": (4, []),
    "chain": (13, [(i, i + 1) for i in range(12)]),
    "star": (7, [(0, i) for i in range(1, 7)]),
    "tree": (15, [((i - 1) // 2, i) for i in range(1, 15)]),
    "ring": (9, [*((i, i + 1) for i in range(8)), (0, 8)]),
    "ladder": (12, [*((i, i + 2) for i in range(10)), *((2 * i, 2 * i + 1) for i in range(6))]),
    "all": (5, [(i, j) for i in range(5) for j in range(i + 1, 5)]),
}


def system(name: str, size: int):
    """A positive definite matrix with these couplings, as one and in blocks."""
    rng = np.random.default_rng(3)
    count, edges = GRAPHS[name]
    full = np.zeros((count, size, count, size))
    for u, v in edges:
        full[u, :, v] = rng.normal(size=(size, size))
        full[v, :, u] = full[u, :, v].T
    flat = full.reshape(count * size, count * size)
    flat += np.diag(np.abs(flat).sum(axis=1) + 1)
    graph = BlockGraph(count, tuple(edges))
    diagonal = np.stack([full[v, :, v] for v in range(count)], axis=-1)
    couplings = [full[u, :, v] for u, v in graph.couplings]
    couplings = np.stack(couplings, axis=-1) if couplings else np.zeros((size, size, 0))
    return graph, flat, jnp.asarray(diagonal), jnp.asarray(couplings)


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("name", GRAPHS)
def test_a_system_of_blocks_is_solved_as_the_full_matrix_is(name, size):
    graph, full, diagonal, couplings = system(name, size)
    right = np.random.default_rng(4).normal(size=(size, graph.count))
    solve = jax.jit(lambda d, c, b: graph.solve(graph.factorize(d, c), b))
    found = solve(diagonal, couplings, jnp.asarray(right))
    expected = np.linalg.solve(full, right.T.reshape(-1)).reshape(graph.count, size).T
    # The matrix is diagonally dominant, so that a few units in the last place are lost.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)


def test_a_chain_is_halved_by_each_round():
    graph = BlockGraph(1_000, tuple((i, i + 1) for i in range(999)))
    assert len(graph._rounds) <= 11
    assert graph.most_neighbors == 2


def test_a_graph_in_which_all_are_coupled_is_not_sparse():
    edges = tuple((i, j) for i in range(20) for j in range(i + 1, 20))
    assert not BlockGraph(20, edges).is_sparse


def test_many_right_hand_sides_share_the_factors():
    graph, full, diagonal, couplings = system("tree", 2)
    right = np.random.default_rng(5).normal(size=(3, 2, graph.count))
    factors = jax.jit(graph.factorize)(diagonal, couplings)
    found = jax.jit(jax.vmap(lambda b: graph.solve(factors, b)))(jnp.asarray(right))
    flat = np.moveaxis(right, 0, -1).swapaxes(0, 1).reshape(-1, 3)
    expected = np.linalg.solve(full, flat).reshape(graph.count, 2, 3)
    np.testing.assert_allclose(found, np.moveaxis(expected.swapaxes(0, 1), -1, 0), atol=1e-14)
