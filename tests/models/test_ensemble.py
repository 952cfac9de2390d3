"""An ensemble is its members: their mean, their spread, their constraints, one file."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy
from toys import Pendulum

from mbdnode.evaluation import evaluate
from mbdnode.mechanisms import CartPole, SingleMassSpring, SinglePendulum
from mbdnode.models import FCNN, HNN, LNN, LSTM, MBDNODE, Ensemble, load, save
from mbdnode.models.function_library import Library
from mbdnode.models.learned_mechanism import LearnedMechanism
from mbdnode.simulation import simulate
from mbdnode.trajectory import State

TIMES = np.arange(31) * 0.02
START = {"theta": 0.5, "theta_dot": 1.0}


def leaves(tree):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def same_bits(one, other):
    return all(
        a.dtype == b.dtype and a.tobytes() == b.tobytes()
        for a, b in zip(leaves(one), leaves(other), strict=True)
    )


def with_numbers(model, seed):
    """The model with every array of its own drawn anew, also those that start at zero."""
    random = np.random.default_rng(seed)
    drawn = lambda x: jnp.asarray(0.5 + random.uniform(size=x.shape))  # noqa: E731
    return jax.tree.map(drawn, model)


@pytest.fixture(scope="module")
def members():
    shape = {"width": 4, "hidden_layers": 1, "activation": "relu"}
    return [MBDNODE.for_system(SinglePendulum(), seed=seed, **shape) for seed in range(3)]


@pytest.fixture(scope="module")
def singles(members):
    return [simulate(member, TIMES, START) for member in members]


@pytest.fixture(scope="module")
def run(members):
    return simulate(Ensemble(members), TIMES, START)


def test_members_come_back_as_they_were(members):
    ensemble = Ensemble(members)
    assert len(ensemble) == 3
    assert len(list(ensemble)) == 3
    for before, after in zip(members, ensemble, strict=True):
        assert same_bits(before, after)
    assert same_bits(ensemble[-1], members[2])
    with pytest.raises(IndexError, match="no member 3; there are 3"):
        ensemble[3]


def test_map_gives_what_each_member_gives(members):
    t, z, s, u = jnp.zeros(()), jnp.array([0.3]), jnp.array([1.0]), jnp.array([2.0])
    rate = lambda model: model.minimal_rates(t, z, s, u, {})[1]  # noqa: E731
    found = Ensemble(members).map(rate)
    np.testing.assert_allclose(found, [rate(member) for member in members], rtol=1e-14)


def test_mean_and_spread_are_those_of_single_simulations(run, singles):
    assert bool(run.status.ok)
    for name in ("q", "v"):
        every = np.stack([getattr(single, name) for single in singles])
        assert np.ptp(every[:, -1], axis=0).min() > 0.01
        np.testing.assert_allclose(getattr(run, name), every.mean(axis=0), atol=1e-14)
        spread = getattr(run.spread, name)
        np.testing.assert_allclose(spread, every.std(axis=0, ddof=1), atol=1e-14)
    np.testing.assert_array_equal(run.spread.q[0], 0.0)


def test_pieces_of_a_run_keep_their_spread(run, singles):
    np.testing.assert_array_equal(run.rows(2, 5).spread.q, run.spread.q[2:6])
    np.testing.assert_array_equal(run.kept.spread.v, run.spread.v)
    assert singles[0].spread is None
    assert evaluate(singles[0], run).mse > 0


def test_many_starts_at_once_have_a_spread_each(members, run):
    starts = State(jnp.array([[0.5], [0.1]]), jnp.array([[1.0], [0.0]]))
    batch = jax.vmap(lambda start: simulate(Ensemble(members), TIMES, start))(starts)
    assert batch.spread.q.shape == (2, 31, 1)
    np.testing.assert_allclose(batch.q[0], run.q, atol=1e-13)
    np.testing.assert_allclose(batch.spread.v[0], run.spread.v, atol=1e-13)


def test_one_member_has_no_spread(members, singles):
    run = simulate(Ensemble(members[:1]), TIMES, START)
    np.testing.assert_allclose(run.q, singles[0].q, atol=1e-14)
    assert np.all(np.isnan(run.spread.q))


def test_mean_ends_with_the_member_that_fails_first(members):
    def runaway(rate):
        """Accelerations of `rate * (theta + theta_dot + F)`, about: a motion without bounds."""
        pushed = lambda x: jnp.full_like(x, np.sqrt(rate) / 2)  # noqa: E731
        network = jax.tree.map(pushed, members[0].network)
        return eqx.tree_at(lambda m: m.network, members[0], network)

    broken = [runaway(1e8), runaway(1e6)]
    ends = [simulate(member, TIMES, START).status for member in broken]
    assert not any(bool(end.ok) for end in ends)
    assert 0 < int(ends[0].step) < int(ends[1].step) < 30
    run = simulate(Ensemble([members[0], broken[1], broken[0]]), TIMES, START)
    assert str(run.status) == str(ends[0])
    last = int(run.status.step)
    for rows in (run.q, run.v, run.spread.q, run.spread.v):
        # A spread squares its numbers, and may be infinite where the mean is not.
        assert not np.any(np.isnan(rows[: last + 1]))
        assert np.all(np.isnan(rows[last + 1 :]))
    assert len(run.kept) == last + 1


@pytest.mark.slow
def test_mean_of_constrained_members_stays_on_the_constraints():
    # A point on a rod of 1.5 m; networks of x alone decide its motion.
    models = [MBDNODE.for_system(Pendulum(), width=4, seed=seed) for seed in (1, 2, 5)]
    pushed = [jax.tree.map(lambda x: 3.0 * x, model) for model in models]
    start = {"x": 0.6, "x_dot": 0.2}
    singles = [simulate(member, TIMES, start) for member in pushed]
    run = simulate(Ensemble(pushed), TIMES, start)
    assert run.status.ok, str(run.status)
    every = np.stack([single.q for single in singles])
    mean = every.mean(axis=0)
    assert np.max(np.abs(np.hypot(*mean.T) - 1.5)) > 1e-3
    x, y = np.asarray(run.q).T
    vx, vy = np.asarray(run.v).T
    np.testing.assert_allclose(x, mean[:, 0], atol=1e-14)
    np.testing.assert_allclose(y, -np.sqrt(1.5**2 - x**2), atol=1e-14)
    np.testing.assert_allclose(x * vx + y * vy, 0.0, atol=1e-13)
    assert np.max(run.position_residual) < 1e-14
    assert np.max(run.velocity_residual) < 1e-13
    np.testing.assert_allclose(run.spread.q, every.std(axis=0, ddof=1), atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [FCNN, LSTM])
def test_forecasters_have_a_mean_and_a_spread(kind):
    settings = {"past": 3, "layers": 1} if kind is LSTM else {"hidden_layers": 1}
    models = [
        with_numbers(kind.for_system(SingleMassSpring(), width=2, **settings), seed)
        for seed in (0, 1)
    ]
    t, rows = np.arange(8) * 0.1, jnp.asarray([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
    if kind is LSTM:
        models = [eqx.tree_at(lambda m: m.dt_s, model, jnp.array(0.1)) for model in models]
        any_run = simulate(SingleMassSpring(), t[:3], {"x": 0.1})
        past = eqx.tree_at(lambda r: (r.q, r.v), any_run, (rows[:, :1], rows[:, 1:]))
    else:
        start = jnp.array([0.1, 0.2])
        models = [eqx.tree_at(lambda m: m.start, model, start) for model in models]
        past = State(start[:1], start[1:])
    run = simulate(Ensemble(models), t, past)
    every = np.stack([simulate(model, t, past).q for model in models])
    assert np.ptp(every[:, -1]) > 1e-3
    np.testing.assert_allclose(run.q, every.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(run.spread.q, every.std(axis=0, ddof=1), rtol=1e-9, atol=1e-12)


KINDS = {
    MBDNODE: (SinglePendulum(), {"width": 2}),
    HNN: (SingleMassSpring(), {"width": 2}),
    LNN: (SingleMassSpring(), {"width": 2}),
    LSTM: (SingleMassSpring(), {"width": 2}),
    FCNN: (SingleMassSpring(), {"width": 2}),
    Library: (SinglePendulum(), {"features": 3}),
    LearnedMechanism: (SinglePendulum(), {}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_ensemble_of_any_kind_comes_back_from_one_file_bit_for_bit(kind, tmp_path):
    system, settings = KINDS[kind]
    blank = kind.for_system(system, **settings)
    ensemble = Ensemble([with_numbers(blank, seed) for seed in range(3)])
    save(ensemble, tmp_path / "several.safetensors")
    again = load(tmp_path / "several.safetensors")
    assert isinstance(again, Ensemble)
    assert len(again) == 3
    assert same_bits(ensemble, again)
    assert again[1].settings == blank.settings
    assert [path.name for path in tmp_path.iterdir()] == ["several.safetensors"]


BAD_FILES = {
    "other number": ({"members": 3}, r"shape \(2,.*first axis must have length 3"),
    "gigantic number": ({"members": 10**12}, "first axis must have length"),
    "number as truth": ({"members": True}, "holds True models"),
    "none": ({"members": 0}, "holds 0 models"),
    "null": ({"members": None}, "holds None models"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_file_that_does_not_hold_its_members_is_refused(case, members, tmp_path):
    changes, message = BAD_FILES[case]
    path = tmp_path / "several.safetensors"
    save(Ensemble(members[:2]), path)
    with safetensors.safe_open(path, framework="numpy") as file:
        header = json.loads(file.metadata()["mbdnode"])
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    text = json.dumps({**header, **changes})
    safetensors.numpy.save_file(arrays, path, metadata={"mbdnode": text})
    with pytest.raises(ValueError, match=message):
        load(path)


def test_members_that_are_not_alike_are_refused(members):
    first = members[0]
    in_float32 = jax.tree.map(lambda x: x.astype("float32"), first)
    others = {
        "kind 'lnn', but the first is of kind 'mbd-node'": LNN.for_system(SingleMassSpring()),
        "other settings.*width=5": MBDNODE.for_system(
            SinglePendulum(), width=5, hidden_layers=1, activation="relu"
        ),
        "another CartPole than the first, whose.*SinglePendulum": MBDNODE.for_system(
            CartPole(), width=4, hidden_layers=1, activation="relu"
        ),
        "differ.*in number, shape or precision": in_float32,
    }
    for message, other in others.items():
        with pytest.raises(ValueError, match=f"Member 1 .*{message}|member 1 {message}"):
            Ensemble([first, other])
    with pytest.raises(ValueError, match="at least one model"):
        Ensemble([])
