"""What an integrator keeps (phase-space area, time reversal) and when it says that it failed."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbdnode.integrators import INTEGRATORS, Adaptive, RungeKutta4, get_integrator

HERE, STEP = jnp.array(0.2), jnp.array(0.3)
START = (jnp.array([0.5, -0.3]), jnp.array([0.2, 0.7]))
FIXED = [n for n in INTEGRATORS if not isinstance(INTEGRATORS[n], Adaptive)]


def chain(t, y):
    """Two coupled pendulums, pushed by a force that depends on time."""
    x, p = y
    return p, -jnp.sin(x) + 0.5 * jnp.sin(x[::-1] - x) + 0.3 * jnp.cos(t)


def area_defect(integrator):
    def flow(y):
        (x, p), _ = integrator.step(chain, HERE, STEP, (y[:2], y[2:]))
        return jnp.concatenate([x, p])

    jacobian = np.asarray(jax.jit(jax.jacfwd(flow))(jnp.concatenate(START)))
    form = np.block([[np.zeros((2, 2)), np.eye(2)], [-np.eye(2), np.zeros((2, 2))]])
    return np.max(np.abs(jacobian.T @ form @ jacobian - form))


@pytest.mark.parametrize("name", FIXED)
def test_phase_space_area_is_kept_by_exactly_those_that_say_so(name):
    integrator = INTEGRATORS[name]
    expected = {"lf2", "ys4", "fk6", "implicit-midpoint"}
    assert integrator.symplectic == (name in expected)
    # Round-off, against defects of the order of step^(order + 1) for the others.
    assert (area_defect(integrator) < 1e-12) == (name in expected)


@pytest.mark.parametrize("name", FIXED)
def test_step_back_undoes_a_step_for_the_symmetric_ones(name):
    integrator = INTEGRATORS[name]

    @jax.jit
    def there_and_back(y):
        y, _ = integrator.step(chain, HERE, STEP, y)
        return integrator.step(chain, HERE + STEP, -STEP, y)[0]

    off = jax.tree.map(lambda a, b: np.max(np.abs(a - b)), there_and_back(START), START)
    symmetric = name in {"lf2", "ys4", "fk6", "implicit-midpoint"}
    assert (max(off) < 1e-13) == symmetric


def test_a_thousand_revolutions_keep_the_energy_bounded_with_leapfrog_only():
    def largest_energy_error(integrator):
        def advance(y, _):
            y, _ = integrator.step(lambda t, y: (y[1], -y[0]), HERE, jnp.array(0.1), y)
            return y, 0.5 * jnp.sum(y[0] ** 2 + y[1] ** 2)

        start = (jnp.ones(1), jnp.zeros(1))
        energies = jax.lax.scan(advance, start, None, length=62_832)[1]
        return float(jnp.max(jnp.abs(energies - 0.5)))

    # Leapfrog keeps a nearby energy that is off by h^2/8; RK4 loses h^6/72 a step, forever.
    assert largest_energy_error(INTEGRATORS["lf2"]) < 0.1**2 / 4
    assert largest_energy_error(INTEGRATORS["rk4"]) > 100 * 0.1**6 / 72


def sine(t, y):
    """`w = cos t` attracts at the rate 1, and `x` is its integral."""
    return y[1], -(y[1] - jnp.cos(t)) - jnp.sin(t)


def off_sine(integrator, end=6.0):
    start = (jnp.zeros(1), jnp.ones(1))
    (x, w), solved = jax.jit(lambda y: integrator.step(sine, jnp.zeros(()), jnp.array(end), y))(
        start
    )
    assert bool(solved)
    return max(abs(float(x[0]) - np.sin(end)), abs(float(w[0]) - np.cos(end)))


@pytest.mark.parametrize("name", ["dopri5", "dopri8", "kvaerno5"])
def test_adaptive_integrator_meets_its_tolerance_in_one_long_interval(name):
    integrator = INTEGRATORS[name]
    assert isinstance(integrator, Adaptive)
    # The tolerance is for a step; some tens of steps may add up.
    assert off_sine(integrator) < 100 * integrator.rtol


def test_tighter_tolerance_gives_a_smaller_error():
    loose, tight = (
        off_sine(Adaptive(diffrax.Dopri5(), 5, rtol=tol, atol=tol)) for tol in (1e-4, 1e-8)
    )
    assert tight < 1e-3 * loose


def stiff(t, y):
    """`w = cos t` attracts within microseconds, and `x` is its integral."""
    return y[1], -1e6 * (y[1] - jnp.cos(t)) - jnp.sin(t)


def test_stiff_integrator_takes_a_stiff_step_that_the_explicit_one_cannot():
    start, end = (jnp.zeros(1), jnp.ones(1)), jnp.ones(())

    def solve(name):
        step = INTEGRATORS[name].step
        return jax.jit(lambda y: step(stiff, jnp.zeros(()), end, y))(start)

    (x, w), solved = solve("kvaerno5")
    assert bool(solved)
    np.testing.assert_allclose([x[0], w[0]], [np.sin(1.0), np.cos(1.0)], rtol=1e-6)
    # Stability holds an explicit step below about 3e-6, which is more than its 4,096 steps.
    _, solved = solve("dopri5")
    assert not bool(solved)


@pytest.mark.parametrize(
    ("name", "factor"), [("backward-euler", 1e-4), ("implicit-midpoint", -1.0), ("rk4", 1e16 / 24)]
)
def test_far_too_long_a_step_shows_the_stability_function(name, factor):
    # The distance to w = cos t is multiplied by R(-1e4): 1/(1 + z), (2 - z)/(2 + z), z^4/24.
    start, dt = (jnp.zeros(1), jnp.zeros(1)), jnp.array(0.01)
    (_, w), _ = INTEGRATORS[name].step(stiff, jnp.zeros(()), dt, start)
    # The next terms of R are smaller by 4/z, and cos t moves by 5e-5 in the step.
    np.testing.assert_allclose((float(w[0]) - 1.0) / -1.0, factor, rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["backward-euler", "implicit-midpoint"])
def test_implicit_step_without_a_solution_is_reported(name):
    # x1 = x + h x1^2 has no real root when 4 h x > 1 (h x > 1 for the midpoint's x1).
    square = lambda t, y: (y[0] ** 2, jnp.zeros_like(y[1]))  # noqa: E731
    start = (jnp.array([2.0]), jnp.zeros(1))
    step = INTEGRATORS[name].step
    _, solved = step(square, jnp.zeros(()), jnp.array(1.0), start)
    assert not bool(solved)
    (x, _), solved = step(square, jnp.zeros(()), jnp.array(0.1), start)
    assert bool(solved)
    if name == "backward-euler":
        np.testing.assert_allclose(x[0], (1 - np.sqrt(1 - 0.8)) / 0.2, rtol=1e-12)


def test_too_many_steps_are_reported():
    few = Adaptive(diffrax.Dopri5(), 5, rtol=1e-9, atol=1e-9, max_steps=4)
    start = (jnp.zeros(1), jnp.ones(1))
    _, solved = few.step(sine, jnp.zeros(()), jnp.array(6.0), start)
    assert not bool(solved)


def test_one_tolerance_without_the_other_is_refused():
    with pytest.raises(ValueError, match=r"rtol.*1e-09.*atol"):
        Adaptive(diffrax.Dopri5(), 5, rtol=1e-9)
    with pytest.raises(ValueError, match=r"atol.*1e-09"):
        Adaptive(diffrax.Dopri5(), 5, atol=1e-9)


def test_integrators_are_found_by_name_in_any_case():
    assert get_integrator("RK4") == RungeKutta4()
    assert get_integrator("Implicit-Midpoint") is INTEGRATORS["implicit-midpoint"]
    assert get_integrator(RungeKutta4()) == RungeKutta4()


@pytest.mark.parametrize(
    ("name", "near"),
    [("rk45", "rk4"), ("doprii5", "dopri5"), ("backwards-euler", "backward-euler")],
)
def test_unknown_integrator_is_refused_with_the_nearest(name, near):
    with pytest.raises(ValueError, match=rf"integrator '{name}'.*Did you mean '{near}'.*kvaerno5"):
        get_integrator(name)


def test_integrator_class_in_place_of_an_instance_is_refused():
    with pytest.raises((TypeError, ValueError), match=r"RungeKutta4\(\)"):
        get_integrator(RungeKutta4)
