"""Numbers that change along a coordinate: their values, and how they are found in data."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.interpolate import BSpline

import mbdnode as mbd
from mbdnode.identification.parameters import make_unknowns

GUIDE = mbd.profile("dry", 2.0, "N", over=(0.0, 1.0), count=6)


class Carriage(mbd.AbstractMechanism):
    """A mass on a guide whose dry friction depends on the place, and on a spring."""

    coordinates = (mbd.length("x"),)
    inputs = (mbd.Input("u", "N"),)
    parameters = (mbd.positive("m", 1.5, "kg"), mbd.nonnegative("k", 0.0), *GUIDE.parameters)
    profiles = (GUIDE,)

    def mass_matrix(self, q, mu):
        return [mu["m"]]

    def force(self, t, q, v, u, mu):
        return [u[0] - mu["k"] * (q[0] - 0.5)]

    def dry_friction(self, t, q, v, u, mu):
        return [[1.0]], [GUIDE(q[0], mu)]


def values(*numbers):
    return dict(zip(GUIDE.names, numbers, strict=True))


def test_profile_is_the_cubic_spline_of_its_values():
    c = np.array([2.0, 3.0, 1.0, 4.0, 2.5, 0.5])
    mu = {n: jnp.asarray(x) for n, x in values(*c).items()}
    padded = np.concatenate([[c[0]] * 3, c, [c[-1]] * 3])
    spline = BSpline((np.arange(-5, 11)) / 5, padded, 3)
    x = np.linspace(-0.39, 1.39, 57)
    ours = [float(GUIDE(jnp.asarray(one), mu)) for one in x]
    np.testing.assert_allclose(ours, spline(x), rtol=1e-13)
    # It ends as it began and stays between its values.
    assert float(GUIDE(jnp.asarray(-5.0), mu)) == pytest.approx(2.0, rel=1e-15)
    assert float(GUIDE(jnp.asarray(9.0), mu)) == pytest.approx(0.5, rel=1e-15)


def test_carriage_stops_where_friction_has_spent_its_energy():
    # Values on a line give a line between the second and the last but one: f = 1 + 2 x there.
    mu = values(*(1 + 2 * np.linspace(0, 1, 6)))
    t = np.linspace(0.0, 1.0, 2001)
    run = mbd.simulate(Carriage(), t, {"x": 0.2, "x_dot": 0.6}, parameters=mu)
    # m v^2 / 2 = (s^2 + s)_0.2^x
    energy = 0.5 * 1.5 * 0.6**2
    end = (-1 + np.sqrt(1 + 4 * (0.2**2 + 0.2 + energy))) / 2
    assert end < 0.8
    assert float(run["x"][-1]) == pytest.approx(end, abs=1e-7)
    assert float(run["x_dot"][-1]) == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"values": 2.0, "over": (0.0, 1.0)}, "two or more"),
        ({"values": [1.0, 2.0], "over": (0.0, 1.0), "count": 3}, "two or more"),
        ({"values": 2.0, "over": (1.0, 0.0), "count": 4}, "lower end first"),
    ],
)
def test_profile_that_cannot_be_is_refused(given, message):
    with pytest.raises(mbd.UserError, match=message):
        mbd.profile("dry", **given)


@pytest.fixture(scope="module")
def found():
    t = np.arange(801) * 0.01
    push = 7.0 * np.sin(2.1 * t) + 2.0 * np.sin(5.3 * t + 1.0)
    true = {"m": 1.8, **values(2.0, 2.2, 3.0, 3.4, 2.8, 2.4)}
    spring = {"k": 15.0}
    clean = mbd.simulate(Carriage(), t, {"x": 0.1}, inputs=push, parameters={**true, **spring})
    x = np.asarray(clean["x"])
    assert x.min() < 0.1
    assert x.max() > 0.9
    data = mbd.Dataset(clean, spring, recorded=["x"])
    return true, mbd.identify(
        Carriage(), data, unknown=["m", "dry"], interpolation="constant", pieces=4
    )


def test_name_of_a_profile_stands_for_its_values_which_are_a_random_walk():
    unknown = {"m": None, "dry": mbd.Unknown(variation=0.3)}
    unknowns = make_unknowns(Carriage(), unknown)
    assert unknowns.names == ("m", *GUIDE.names)
    # Five changes of equal variance: together the ends differ by 0.3 of the size, which is 2 N.
    rows = unknowns.smoothness()
    walk = np.linalg.inv(np.vstack([rows[:, 1:], [1, 0, 0, 0, 0, 0]]))
    ends = walk[-1, :5] - walk[0, :5]
    assert np.sqrt(np.sum(ends**2)) == pytest.approx(0.3 * 2.0, rel=1e-12)
    assert not np.any(rows[:, 0])
    assert make_unknowns(Carriage(), ["dry"]).open_profiles == ("dry",)


@pytest.mark.parametrize(
    ("unknown", "message"),
    [
        ({"m": mbd.Unknown(variation=0.3)}, "is one number"),
        (["dry", "dry_2"], "named as unknown twice"),
        (["wet"], "parameter"),
    ],
)
def test_unknown_profiles_are_checked(unknown, message):
    with pytest.raises(mbd.UserError, match=message):
        make_unknowns(Carriage(), unknown)


@pytest.mark.slow
def test_friction_over_position_is_found_and_its_variation_chosen_on_held_out_pieces(found):
    true, result = found
    assert result.variation is not None
    assert result.parameters["m"] == pytest.approx(1.8, rel=1e-3)
    mu = {n: jnp.asarray(v) for n, v in result.parameters.items()}
    sure = {n: jnp.asarray(v) for n, v in true.items()}
    for x in np.linspace(0.1, 0.9, 9):
        here = jnp.asarray(x)
        assert float(GUIDE(here, mu)) == pytest.approx(float(GUIDE(here, sure)), rel=0.02)
    assert len(result.held_out["x"]) == 4
