"""Every integrator converges with the order in its name, on motions with closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbdnode.integrators import INTEGRATORS
from mbdnode.testing import fixed_step

MASS, STIFFNESS, LOAD, PULSE = 2.0, 3.0, 0.7, 1.9
END_S = 2.0


def position(t):
    """A mass on a spring from x = 1 at rest, under the force `LOAD cos(PULSE t)`."""
    natural = np.sqrt(STIFFNESS / MASS)
    response = LOAD / (STIFFNESS - MASS * PULSE**2)
    return (1 - response) * jnp.cos(natural * t) + response * jnp.cos(PULSE * t)


def velocity(t):
    return jax.grad(position)(t)


def make_error(integrator):
    """The error at the end, for `steps` steps and `w` being `unit` times the velocity."""
    integrator = fixed_step(integrator)

    @jax.jit
    def error(steps, unit):
        def rate(t, y):
            load = LOAD * jnp.cos(PULSE * t) - STIFFNESS * y[0]
            return y[1] / unit, unit * load / MASS

        dt = END_S / steps
        y = (jnp.ones(1), jnp.zeros(1))
        y = jax.lax.fori_loop(0, steps, lambda k, y: integrator.step(rate, k * dt, dt, y)[0], y)
        end = jnp.array(END_S)
        return jnp.hypot(y[0][0] - position(end), y[1][0] / unit - velocity(end))

    return error


# Steps over two seconds, so that the errors are small enough for the leading term to rule and
# at least a hundred times round-off.
STEPS = {1: 1024, 2: 512, 4: 128, 5: 96, 6: 48, 8: 8}


@pytest.mark.parametrize("name", INTEGRATORS)
def test_order_of_convergence_is_the_one_in_the_name(name):
    integrator = INTEGRATORS[name]
    error, steps = make_error(integrator), STEPS[integrator.order]
    for unit in (1.0, MASS):  # (q, v), then (q, p)
        found = np.log2(error(steps, unit) / error(2 * steps, unit))
        assert abs(found - integrator.order) < 0.1


def test_names_that_carry_a_digit_carry_the_order():
    digits = {name: int(name[-1]) for name in INTEGRATORS if name[-1].isdigit()}
    assert digits == {name: INTEGRATORS[name].order for name in digits}
    assert {n for n in INTEGRATORS if n not in digits} == {"backward-euler", "implicit-midpoint"}


def test_velocities_and_momenta_give_the_same_motion():
    # A change of unit that is a power of two does not even change the rounding.
    for name in ("lf2", "ys4", "fk6", "rk4"):
        error = make_error(INTEGRATORS[name])
        assert float(error(20, 1.0)) == float(error(20, 2.0))


def kepler(steps, integrator, eccentricity=0.3):
    """The end of one revolution in `steps` steps, and the start to which it should come back."""
    start = jnp.array([1 - eccentricity, 0.0])
    speed = jnp.array([0.0, np.sqrt((1 + eccentricity) / (1 - eccentricity))])
    rate = lambda t, y: (y[1], -y[0] / jnp.sum(y[0] ** 2) ** 1.5)  # noqa: E731
    dt = 2 * np.pi / steps

    @jax.jit
    def orbit(y):
        return jax.lax.fori_loop(0, steps, lambda k, y: integrator.step(rate, k * dt, dt, y)[0], y)

    end = orbit((start, speed))
    return float(jnp.linalg.norm(end[0] - start) + jnp.linalg.norm(end[1] - speed))


@pytest.mark.parametrize(("name", "steps"), [("lf2", 400), ("ys4", 400), ("fk6", 200)])
def test_compositions_close_the_orbit_of_a_planet_with_their_order(name, steps):
    integrator = INTEGRATORS[name]
    ratio = kepler(steps, integrator) / kepler(2 * steps, integrator)
    assert abs(np.log2(ratio) - integrator.order) < 0.1
