"""Large mechanisms joint by joint: what the full matrices give, and NumPy's solution of the KKT
equations.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbdnode as mbd
from mbdnode.mechanisms import from_dict
from mbdnode.multibody import (
    Split,
    accelerations,
    choose_partition,
    complete_position,
    gamma,
    kkt,
    resolve_parameters,
    tangent_at,
    velocity_constraints,
)
from tests.toys import bars

NOW = jnp.asarray(0.3)


def chain():
    """Seven bars in a row."""
    return from_dict(bars(7)[0])


def tree():
    """Ten bars, of which one carries three others."""
    return from_dict(bars(10, {4: 2, 6: 2, 8: 3, 10: 5})[0])


def loop():
    """Eight bars between two pins on the ground."""
    description, ends = bars(8)
    description["joints"]["last"] = {
        "type": "revolute",
        "bodies": ["bar8", "ground"],
        "points": [[0.5, 0.0], list(map(float, ends[8]))],
    }
    return from_dict(description)


def mixed():
    """Nine bars, of which the first slides and one is welded, with a rod and a spring."""
    description, ends = bars(9)
    angles = {name: body["angle"] for name, body in description["bodies"].items()}
    slides = {"type": "prismatic", "direction": 0.2, "angle": angles["bar1"]}
    description["joints"]["pin1"] |= slides
    welded = {"type": "fixed", "angle": angles["bar4"] - angles["bar3"]}
    description["joints"]["pin4"] |= welded
    description["joints"]["rod"] = {
        "type": "distance",
        "bodies": ["bar6", "bar9"],
        "points": [[0.0, 0.0], [0.5, 0.0]],
        "length": float(np.linalg.norm(description["bodies"]["bar6"]["center"] - ends[9])),
    }
    description["springs"] = {
        "wire": {
            "type": "linear",
            "bodies": ["ground", "bar8"],
            "points": [[1.0, 3.0], [0.0, 0.0]],
            "stiffness": 20.0,
            "free_length": 0.5,
        }
    }
    return from_dict(description)


def driven():
    """Eight bars, of which the first turns as time says."""
    description, _ = bars(8)
    angle = description["bodies"]["bar1"]["angle"]
    description["drives"] = {
        "turn": {"motion": "rate", "joint": "pin1", "rate": 2.0, "start": float(angle)}
    }
    return from_dict(description)


def rubbing():
    """Seven bars with dry friction in two pins."""
    description, _ = bars(7)
    description["friction"] = {
        "first": {"joint": "pin2", "limit": 2.0},
        "second": {"joint": "pin5", "limit": 1.0, "viscous": 0.1},
    }
    return from_dict(description)


MECHANISMS = {"chain": chain, "tree": tree, "loop": loop, "mixed": mixed}


def state_of(mechanism):
    """Parameters, partition, and a consistent state in motion."""
    mu = resolve_parameters(mechanism)
    start = mbd.consistent_state(mechanism, {})
    partition = choose_partition(mechanism, NOW, start.q, mu)
    z = partition.position.take_independent(start.q)
    z = z + 0.05 * jnp.asarray(np.sin(3.0 * np.arange(z.shape[0])))
    q, closed = complete_position(
        mechanism, partition.position, NOW, z, start.q, partition.scale, mu
    )
    assert closed
    s = jnp.asarray(np.cos(2.0 * np.arange(partition.velocity.independent.shape[0])))
    v = tangent_at(mechanism, partition.velocity, NOW, q, mu).velocity(s)
    return mu, partition.velocity, q, v


@eqx.filter_jit
def motion_of(mechanism, split: Split, q, v, mu):
    """Accelerations and multipliers."""
    return accelerations(mechanism, split, NOW, q, v, jnp.zeros(0), mu)


def in_full(split: Split) -> Split:
    return Split(split.rows, split.dependent, split.independent, split.elimination)


@pytest.fixture(params=MECHANISMS, scope="module")
def case(request):
    mechanism = MECHANISMS[request.param]()
    return mechanism, *state_of(mechanism)


def test_large_mechanisms_are_kept_joint_by_joint(case):
    split = case[2]
    assert split.sparse is not None
    assert sum(map(len, split.sparse.rows)) == split.rows.shape[0]


def test_accelerations_and_multipliers_solve_the_kkt_equations(case):
    mechanism, mu, split, q, v = case
    u = jnp.zeros(0)
    matrix, right = kkt(mechanism, NOW, q, v, u, mu)
    expected = np.linalg.solve(matrix, right)
    a, multipliers = motion_of(mechanism, split, q, v, mu)
    size = float(np.max(np.abs(expected)))
    condition = np.linalg.cond(matrix)
    found = np.concatenate([a, multipliers])
    np.testing.assert_allclose(found, expected, rtol=0, atol=10 * 2e-16 * condition * size)


def test_completed_velocities_keep_the_constraints_to_round_off(case):
    mechanism, mu, _, q, v = case
    jacobian, right = velocity_constraints(mechanism, NOW, q, mu)
    assert np.max(np.abs(np.asarray(jacobian @ v - right))) < 2e-14


def test_products_are_those_of_the_full_tangent(case):
    mechanism, mu, split, q, v = case
    own, full = (tangent_at(mechanism, s, NOW, q, mu) for s in (split, in_full(split)))
    close = lambda a, b: np.testing.assert_allclose(a, b, rtol=0, atol=1e-13)  # noqa: E731
    close(own.full_slope, full.full_slope)
    close(own.reduce(v), full.reduce(v))
    both = jnp.stack([v, q], axis=1)
    close(own.reduce(both), full.reduce(both))
    right = gamma(mechanism, NOW, q, v, mu)
    close(own.curve(right), full.curve(right))
    load = jnp.asarray(np.sin(1.0 * np.arange(split.rows.shape[0])))
    close(own.solve_transposed(load), full.solve_transposed(load))
    assert own.steepness.shape == full.steepness.shape
    close(own.steepness, full.steepness)


def test_derivatives_of_accelerations_are_those_of_the_full_matrices(case):
    mechanism, mu, split, q, v = case

    @eqx.filter_jit
    def motion(own: Split, q, v):
        def found(q, masses):
            a, _ = motion_of(mechanism, own, q, v, {**mu, **masses})
            return a[own.independent]

        masses = {"bar2_mass": mu["bar2_mass"]}
        forward = jax.jvp(found, (q, masses), (v, {"bar2_mass": jnp.ones(())}))[1]
        back = jax.grad(lambda q, m: jnp.sum(found(q, m) ** 2), argnums=(0, 1))(q, masses)
        return forward, *jax.tree.leaves(back)

    for ours, theirs in zip(motion(split, q, v), motion(in_full(split), q, v), strict=True):
        size = float(jnp.max(jnp.abs(theirs)))
        # Both lose as many digits as their matrices cost, some thousand units in the last place.
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-11 * size)


def test_constraints_that_move_with_time_are_followed():
    mechanism = driven()
    mu, split, q, v = state_of(mechanism)
    assert split.sparse is not None
    jacobian, right = velocity_constraints(mechanism, NOW, q, mu)
    assert np.max(np.abs(np.asarray(jacobian @ v - right))) < 2e-14
    assert float(v[2]) == pytest.approx(2.0, abs=1e-14)


def test_dry_friction_holds_and_slips_as_with_full_matrices():
    mechanism = rubbing()
    mu, split, q, v = state_of(mechanism)
    assert split.sparse is not None
    for moving in (v, jnp.zeros_like(v)):
        own, full = (motion_of(mechanism, s, q, moving, mu) for s in (split, in_full(split)))
        np.testing.assert_allclose(own[0], full[0], rtol=0, atol=1e-9)


def test_masses_that_may_be_zero_ask_for_full_matrices():
    mechanism = from_dict(bars(7, inertia=0.0)[0])
    mu, split, q, v = state_of(mechanism)
    assert split.sparse is None
    matrix, right = kkt(mechanism, NOW, q, v, jnp.zeros(0), mu)
    a, _ = motion_of(mechanism, split, q, v, mu)
    np.testing.assert_allclose(a, np.linalg.solve(matrix, right)[: len(a)], rtol=1e-9)


def test_a_partition_is_looked_at_again_where_another_mass_is_zero():
    mechanism = chain()
    start = mbd.consistent_state(mechanism, {})
    partition = choose_partition(mechanism, NOW, start.q, resolve_parameters(mechanism))
    t = np.linspace(0.0, 0.1, 11)
    massless = {"bar7_inertia": 0.0}
    run = mbd.simulate(mechanism, t, start, parameters=massless, independent=partition)
    fresh = mbd.simulate(mechanism, t, start, parameters=massless)
    assert "completed" in str(run.status)
    np.testing.assert_allclose(run.q, fresh.q, rtol=0, atol=1e-12)


def test_traced_masses_ask_for_full_matrices():
    mechanism = chain()
    start = mbd.consistent_state(mechanism, {})
    t = np.linspace(0.0, 0.1, 11)

    def end(mass):
        return mbd.simulate(mechanism, t, start, parameters={"bar3_mass": mass}).q[-1]

    many = jax.vmap(end)(jnp.array([1.0, 2.0]))
    np.testing.assert_allclose(many[1], end(2.0), rtol=0, atol=1e-12)


def test_a_chain_of_two_hundred_bars_keeps_its_energy_and_constraints():
    description, _ = bars(200)
    mechanism = from_dict(description)
    t = np.linspace(0.0, 0.02, 21)
    run = mbd.simulate(mechanism, t, mbd.consistent_state(mechanism, {}))
    assert "completed" in str(run.status)
    assert float(np.max(run.position_residual)) < 1e-12
    mu = resolve_parameters(mechanism)

    def energy(q, v):
        return 0.5 * v @ (mechanism.given_mass(q, mu) * v) + mechanism.potential_energy(q, mu)

    before, after = (float(energy(run.q[k], run.v[k])) for k in (0, -1))
    # Against what has changed its kind: the weight of 11 t per 200 bars, fallen for 0.02 s.
    moved = float(0.5 * run.v[-1] @ (mechanism.given_mass(run.q[-1], mu) * run.v[-1]))
    assert abs(after - before) < 1e-8 * moved
