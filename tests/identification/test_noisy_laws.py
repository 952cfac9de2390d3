"""Laws of noisy data, by equations that are weighted by their noise."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from motions import as_trajectory

import mbdnode as mbd
from mbdnode.data.rows import estimate_noise, rows_of
from mbdnode.data.signal import estimate_rate
from mbdnode.identification.mechanical_laws import mechanisms
from mbdnode.identification.problem import Problem
from mbdnode.identification.regression.motion_equations import (
    condition_numbers,
    weighted_equations,
)
from mbdnode.identification.regression.noisy_laws import (
    Likelihood,
    WeightedEquations,
    first_law,
    fit_law,
    in_order,
    weighted_supports,
)
from mbdnode.identification.regression.null_vector import compress, find_law
from mbdnode.identification.regression.weak_form import make_windows, smoothed
from mbdnode.integrators import get_integrator
from mbdnode.mechanisms import SinglePendulum

DT_S, STEPS, SUBSTEPS = 0.01, 400, 5


def furuta(q, v, torque):
    """A pendulum at the end of a driven arm; with numbers of its own."""
    sine, cosine = np.sin(q[1]), np.cos(q[1])
    mass = np.array([[0.015 + 0.0052 * sine**2, 0.0041 * cosine], [0.0041 * cosine, 0.0052]])
    turning = -2 * 0.0052 * sine * cosine * v[0] * v[1] + 0.0041 * sine * v[1] ** 2
    force = [
        torque - 0.006 * v[0] + turning,
        0.0052 * sine * cosine * v[0] ** 2 - 0.19 * sine - 0.0003 * v[1],
    ]
    return np.linalg.solve(mass, force)


def furuta_run(seed: int):
    """Positions under a torque that is held over three rows, and the torque."""
    random = np.random.default_rng(seed)
    torque = np.repeat(random.normal(0.0, 0.07, STEPS // 3 + 1), 3)[:STEPS]
    y, h = np.concatenate([random.normal(size=2), random.normal(size=2) * 2]), DT_S / SUBSTEPS
    rate = lambda y, u: np.concatenate([y[2:], furuta(y[:2], y[2:], u)])  # noqa: E731
    rows = []
    for u in torque:
        rows.append(y[:2])
        for _ in range(SUBSTEPS):
            k1 = rate(y, u)
            k2 = rate(y + h / 2 * k1, u)
            k3 = rate(y + h / 2 * k2, u)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(y + h * k3, u))
    return np.stack(rows), torque


@pytest.fixture(scope="module")
def measured():
    """Four runs with 0.5 % noise on the positions, as a problem and its rows."""
    system = mbd.AccelerationFunction(
        lambda t, q, v, u, mu: 0 * q,
        (mbd.angle("arm"), mbd.angle("pendulum")),
        inputs=(mbd.Input("torque"),),
    )
    runs = [furuta_run(seed) for seed in range(4)]
    size = 0.005 * np.std(np.concatenate([q for q, _ in runs]), axis=0)
    random, t = np.random.default_rng(9), np.arange(STEPS) * DT_S
    trajectories = []
    for q, torque in runs:
        noisy = q + size * random.normal(size=q.shape)
        rates = np.stack([estimate_rate(t, noisy[:, k]).values for k in range(2)], axis=1)
        states = np.concatenate([noisy, rates], axis=1)
        trajectories.append(as_trajectory(system, t, states, torque[:, None]))
    data = mbd.Dataset(trajectories, recorded=("arm", "pendulum"))
    rows = rows_of(system, (0, 1), data)
    return (
        Problem(
            system,
            get_integrator("rk4"),
            False,
            0,
            estimate_noise(rows),
            estimated=(0, 1),
            by_steps=True,
        ),
        rows,
    )


def test_gains_of_noise_are_those_of_many_samples_of_it():
    t = np.arange(4_000) * 0.02
    noise = np.random.default_rng(0).normal(size=t.size)
    rates = np.gradient(noise, 0.02)
    states = np.stack([np.sin(t), np.cos(t)], axis=1)
    rows = rows_of(
        SinglePendulum(),
        (0,),
        mbd.Dataset(as_trajectory(SinglePendulum(), t, states, np.zeros((t.size, 1)))),
    )
    for times in (1, 2):
        windows = make_windows(rows, 200, times)
        of_rates, of_positions = windows.noise_gains()
        # A few hundred independent windows tell a standard deviation to a tenth.
        assert np.std(windows.integral_of_rate(noise)) == pytest.approx(of_rates, rel=0.15)
        assert np.std(windows.integral_of_rate(rates)) == pytest.approx(of_positions, rel=0.15)


def test_coordinate_that_is_measured_worse_is_not_left_out():
    # Two masses on springs: q'' = -4 q, and s'' = -9 s with ten times the noise. The part of the
    # inertia that is left is smallest for a law of the first alone; its mass is singular.
    random = np.random.default_rng(0)
    a = random.normal(size=(200, 2))
    q = -a / np.array([4.0, 9.0])
    a = a + np.array([0.01, 0.1]) * random.normal(size=a.shape)
    whole, mass = np.zeros((200, 2, 4)), np.zeros((200, 2, 2, 4))
    for i in range(2):
        whole[:, i, i], whole[:, i, 2 + i], mass[:, i, i, i] = a[:, i], q[:, i], 1.0
    masses = np.array([True, True, False, False])
    inertia = np.where(masses, whole, 0.0)
    plain = compress(whole.reshape(-1, 4), inertia.reshape(-1, 4), masses)
    alone, _ = find_law(plain, np.arange(4))
    assert abs(alone[1]) < 0.01 * abs(alone[0])
    equations = WeightedEquations(whole, mass, masses, np.array([0.01, 0.1]), 400.0)
    law = fit_law(equations, np.arange(4), np.array([1.0, 1.0, 1.0, 1.0]))
    assert law is not None
    # Noise of the right size, whose mean square over 400 equations is one within a tenth or so.
    assert law.squares == pytest.approx(1.0, rel=0.25)
    assert law.values[2] / law.values[0] == pytest.approx(4.0, rel=0.01)
    assert law.values[3] / law.values[1] == pytest.approx(9.0, rel=0.03)
    # One of two masses less, or one of two springs, would be another law: none is cheaper.
    columns = np.arange(4)
    first = first_law(equations, columns, [law.values])
    path = weighted_supports(equations, columns, first, columns)
    assert min(path, key=lambda one: one.criterion(400.0)).support.size == 4


def test_constant_is_found_where_other_functions_nearly_add_up_to_it():
    # q'' = -5 sin q over a small range, where 1, cos q, sin q and sin 2q are nearly dependent.
    random = np.random.default_rng(2)
    q = random.uniform(0.8, 1.4, 400)
    a = -5 * np.sin(q) + 0.05 * random.normal(size=q.size)
    inertial = np.stack([np.ones_like(q), np.cos(q), np.sin(q), np.sin(2 * q)], axis=1)
    force = np.stack([np.sin(q), np.cos(q), np.sin(2 * q)], axis=1)
    whole = np.concatenate([a[:, None] * inertial, force], axis=1)[:, None, :]
    mass = np.concatenate([inertial, np.zeros_like(force)], axis=1)[:, None, None, :]
    equations = WeightedEquations(whole, mass, np.arange(7) < 4, np.array([0.05]), 400.0)
    start = np.array([0.1, 1.0, 1.0, -0.5, 5.0, 0.1, 0.1])
    first = first_law(equations, np.arange(7), [start])
    path = weighted_supports(equations, np.arange(7), first, np.array([0, 4, 5]))
    best = min(path, key=lambda one: one.criterion(400.0))
    assert best.support.tolist() == [0, 4]
    assert best.values[1] / best.values[0] == pytest.approx(5.0, rel=0.01)


def test_laws_are_tried_by_their_terms_where_they_are_equally_likely():
    # Of windows of one length the first is unlikely; of the other length there is one law alone.
    laws = [Likelihood(1, 50.0, 3), Likelihood(1, 2.0, 6), Likelihood(1, 0.0, 7)]
    assert in_order([*laws, Likelihood(2, 900.0, 5)]) == [3, 1, 2, 0]


def test_positions_are_smoothed_by_their_rates_and_not_drawn_away_by_filtered_ones():
    t = np.arange(2_000) * 0.01
    noise = 1e-3 * np.random.default_rng(3).normal(size=(t.size, 2))
    truth = np.stack([np.sin(2 * t), 2 * np.cos(2 * t)], axis=1)
    filtered = np.stack([np.sin(2 * t), 1.8 * np.cos(2 * t - 0.1)], axis=1)
    # Half of a rate of 0.2 over a hundred rows would draw a position away by 0.1.
    for states, most in ((truth, 0.3e-3), (filtered, 1.1e-3)):
        run = as_trajectory(SinglePendulum(), t, states + noise, np.zeros((t.size, 1)))
        rows = rows_of(SinglePendulum(), (0,), mbd.Dataset(run))
        smooth = smoothed(rows, estimate_noise(rows), np.array([True]))
        assert np.std(np.asarray(smooth.z)[:, 0] - truth[:-1, 0]) < most
        # Rows that follow each other still do.
        assert np.array_equal(np.asarray(smooth.z)[1:], np.asarray(smooth.z_next)[:-1])


def test_singular_start_is_refused():
    whole, mass = np.ones((3, 2, 2)), np.zeros((3, 2, 2, 2))
    equations = WeightedEquations(whole, mass, np.array([True, False]), np.ones(2), 6.0)
    assert fit_law(equations, np.arange(2), np.ones(2)) is None


def test_runs_that_are_shorter_than_a_window_give_no_equations(measured):
    problem, rows = measured
    blank = mbd.models.learned_mechanism.LearnedMechanism.for_system(problem.system)
    assert weighted_equations(problem, blank, rows, 40) is None


@eqx.filter_jit
def accelerations(model, z, s, u):
    return jax.vmap(lambda z, s, u: model.minimal_rates(0.0, z, s, u, {})[1])(z, s, u)


@pytest.mark.slow
def test_law_of_a_furuta_pendulum_is_among_the_proposals(measured):
    problem, rows = measured
    random = np.random.default_rng(3)
    states = random.normal(size=(30, 4)) * np.array([1.0, 1.0, 2.0, 4.0])
    torques = random.normal(0.0, 0.07, 30)
    truth = np.stack([furuta(y[:2], y[2:], u) for y, u in zip(states, torques, strict=True)])
    given = tuple(jnp.asarray(x) for x in (states[:, :2], states[:, 2:], torques[:, None]))
    errors = []
    every = mechanisms(problem, rows, joint_laws=False)
    for candidate in (one for some in every for one in some):
        model = candidate.fit(rows)
        assert model is not None
        found = np.asarray(accelerations(model, *given))
        terms = int(candidate.name.split()[2])
        errors.append((terms, float(np.sqrt(np.mean((found - truth) ** 2) / np.mean(truth**2)))))
        if errors[-1][1] < 0.05:
            break
    # Eight terms make the law: three masses (one in two terms), gravity, two dampings, the torque.
    # Its coefficients are those of a regression, before any shooting.
    terms, error = min(errors, key=lambda pair: pair[1])
    assert error < 0.05, errors
    assert terms <= 10, errors


@pytest.mark.parametrize("size", [1, 2, 3])
def test_condition_numbers_of_small_matrices_are_those_of_their_singular_values(size):
    random = np.random.default_rng(size)
    # Up to 1e6, beyond which rounding of the entries themselves is seen in the fourth digit.
    left, right = (np.linalg.qr(random.normal(size=(200, size, size)))[0] for _ in range(2))
    values = 10.0 ** random.uniform(-3, 3, (200, size))
    matrices = left * values[:, None] @ right
    expected = np.max(values, axis=1) / np.min(values, axis=1)
    np.testing.assert_allclose(condition_numbers(matrices), expected, rtol=1e-4)
    singular = np.zeros((1, size, size))
    assert condition_numbers(singular)[0] > 1e15
