"""Models as environments of Gymnasium, judged by Gymnasium's own checker and by our own loops."""

import math

import numpy as np
import pytest

import mbdnode as mbd

gymnasium = pytest.importorskip("gymnasium", reason="the extra `gym` is not installed")

CART = mbd.mechanisms.CartPole()
# A coordinate has no bounds of its own; the checker finds that worth a word.
pytestmark = pytest.mark.filterwarnings("ignore:.*infinity. This is probably too:UserWarning")

TASK = mbd.EpisodeTask(
    initial={"theta": 0.1, "x": 0.0},
    spread={"theta": 0.05},
    steps=20,
    limits=mbd.Limits(u_bounds=(-10.0, 10.0), z_bounds={"theta": (-0.5, 0.5)}),
    cost=mbd.QuadraticCost(R=(0.01,)),
)


@pytest.fixture(scope="module")
def environment():
    made = gymnasium.make(mbd.gym(CART, TASK))
    yield made
    made.close()


def test_gymnasium_accepts_a_mechanism_as_an_environment(environment):
    from gymnasium.utils.env_checker import check_env

    check_env(environment.unwrapped)


@pytest.mark.slow  # compiles passages through singular configurations
def test_gymnasium_accepts_a_mechanism_with_constraints_as_an_environment():
    from gymnasium.utils.env_checker import check_env

    pendulum = mbd.mechanisms.SinglePendulumCartesian()
    task = mbd.EpisodeTask(
        initial={"x": 0.3, "x_dot": 0.0},
        spread={"x": 0.2},
        limits=mbd.Limits(u_bounds=(-2.0, 2.0)),
    )
    made = gymnasium.make(mbd.gym(pendulum, task, "Pendulum")).unwrapped
    check_env(made)
    made.reset(seed=3)
    state, *_ = made.step(made.action_space.sample())
    half = state.shape[0] // 2
    mu = {p.name: p.default for p in pendulum.parameters}
    # The joint is closed to round-off, of coordinates of order one.
    assert np.max(np.abs(np.asarray(pendulum.constraint(0.0, state[:half], mu)))) < 1e-14


def test_an_episode_moves_as_simulate_does(environment):
    start, _ = environment.reset(seed=1)
    actions = np.random.default_rng(0).uniform(-0.3, 0.3, (8, 1))
    found = [start] + [environment.step(action)[0] for action in actions]
    t = TASK.dt * np.arange(9)
    names = environment.unwrapped.observation_names
    known = dict(zip(names, map(float, start), strict=True))
    run = mbd.simulate(CART, t, known, inputs=10.0 * actions)
    expected = np.concatenate([np.asarray(run.q), np.asarray(run.v)], axis=1)
    # The same steps in another program: a few units in the last place.
    np.testing.assert_allclose(np.array(found), expected, rtol=0, atol=1e-13)


def test_the_reward_is_minus_the_quadratic_cost(environment):
    environment.reset(seed=2)
    state, reward, *_ = environment.step(np.array([0.25]))
    np.testing.assert_allclose(reward, -(state @ state) - 0.01 * 2.5**2, rtol=1e-13)


def test_an_episode_ends_at_a_bound_and_at_the_number_of_steps(environment):
    environment.reset(seed=3)
    for _ in range(20):
        state, reward, ended, cut, _ = environment.step(np.array([-1.0]))
        if ended:
            break
    assert ended
    assert not cut
    assert abs(state[0]) > 0.5
    assert reward < -1e4
    controller = mbd.MPC(CART, horizon=30, dt=TASK.dt, limits=mbd.Limits(u_bounds=(-10.0, 10.0)))
    state, _ = environment.reset(seed=3)
    for _ in range(20):
        u = controller(np.asarray(state), near=state[:2]).u
        state, _, ended, cut, _ = environment.step(u / 10.0)
    assert cut
    assert not ended


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"limits": mbd.Limits()}, "has no bounds"),
        ({"spread": {"phi": 0.1}}, "phi"),
        ({"spread": {"theta": -0.1}}, "must not be negative"),
        ({"steps": 0}, "at least 1"),
        ({"dt": math.nan}, "dt"),
    ],
)
def test_a_task_that_makes_no_sense_is_refused_before_it_is_registered(changes, message):
    from dataclasses import replace

    with pytest.raises(mbd.UserError, match=message):
        mbd.gym(CART, replace(TASK, **changes), "Refused")
    assert "mbdnode/Refused-v0" not in gymnasium.registry


def test_a_name_that_gymnasium_could_not_read_is_refused():
    with pytest.raises(mbd.UserError, match="letters, digits"):
        mbd.gym(CART, TASK, "my cart/2")
