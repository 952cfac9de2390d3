"""Unknown parameters of known mechanisms: found from what was recorded, with honest errors."""

from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import mbdnode as mbd
from mbdnode.identification.parameters.inverse_dynamics import regress_parameters
from mbdnode.identification.parameters.output_error import OutputError
from mbdnode.identification.parameters.segments import choose_splits, initial_guess, lay_out
from mbdnode.identification.parameters.unknowns import make_unknowns
from mbdnode.mechanisms.four_bar import FourBar
from mbdnode.mechanisms.single_pendulum import SinglePendulum, SinglePendulumCartesian

PENDULUM = SinglePendulum()
TRUE = {"m": 1.3, "L": 0.8, "c": 0.25, "g": 9.81}
TIMES = np.linspace(0.0, 4.0, 201)


def force(t):
    return 3.0 * np.sin(2.0 * t) + 1.5 * np.cos(5.3 * t)


def recorded(t=TIMES, start=(0.7, 0.0), push=force):
    """A driven pendulum by SciPy: theta'' = -g/L sin(theta) - c/(m L) theta' + F/(m L)."""
    m, length, c, g = (TRUE[name] for name in ("m", "L", "c", "g"))

    def right(time, y):
        load = (push(time) - c * y[1]) / (m * length)
        return [y[1], load - g / length * np.sin(y[0])]

    y = solve_ivp(right, (t[0], t[-1]), start, "DOP853", t, rtol=1e-11, atol=1e-12).y
    return as_run(t, y[:1].T, y[1:].T, push(t)[:, None])


def as_run(t, q, v, u):
    """Recorded columns as a trajectory."""
    names = PENDULUM.coordinate_names, PENDULUM.rate_names, PENDULUM.input_names
    frame = {"t": t, names[0][0]: q[:, 0], names[1][0]: v[:, 0], names[2][0]: u[:, 0]}
    pandas = pytest.importorskip("pandas")
    return mbd.Trajectory.from_frame(
        pandas.DataFrame(frame), coordinates=names[0], rates=names[1], inputs=names[2]
    )


@pytest.fixture(scope="module")
def clean():
    return recorded()


def with_noise(run, seed, size=0.01):
    shake = np.random.default_rng(seed).normal(0.0, size, run.q.shape)
    return eqx.tree_at(lambda r: r.q, run, run.q + shake)


def test_parameters_of_a_driven_pendulum_are_found_from_its_angle(clean):
    # From values that are far off, and from angles alone.
    found = mbd.identify(
        PENDULUM,
        mbd.Dataset(clean, recorded=["theta"]),
        unknown={"m": mbd.Unknown(start=4.0), "L": mbd.Unknown(start=0.4), "c": None},
    )
    # Inputs between samples are interpolated, by cubics, to about h^4.
    assert found.interpolation == "cubic"
    for name in ("m", "L", "c"):
        assert found.parameters[name] == pytest.approx(TRUE[name], rel=1e-5)
    (start,) = found.initial_states
    np.testing.assert_allclose([start.q[0], start.v[0]], [0.7, 0.0], atol=1e-5)
    again = mbd.simulate(
        PENDULUM,
        TIMES,
        start,
        inputs=clean.u,
        interpolation="cubic",
        parameters=found.parameters,
    )
    np.testing.assert_allclose(again.q, clean.q, atol=1e-5)


def test_inputs_with_a_spectrum_up_to_half_the_sampling_rate_are_taken_as_band_limited():
    random, half = np.random.default_rng(5), 0.5 / (TIMES[1] - TIMES[0])
    frequency, phase = random.uniform(0, 0.8 * half, 12), random.uniform(0, 2 * np.pi, 12)

    def push(s):
        return np.sum(4 * np.sin(2 * np.pi * frequency * np.asarray(s)[..., None] + phase), -1)

    data = mbd.Dataset(recorded(push=push), recorded=["theta"])
    found = mbd.identify(PENDULUM, data, unknown=["m", "L", "c"])
    assert found.interpolation == "band-limited"
    # The input is known to 1e-4 of itself.
    for name in ("m", "L", "c"):
        assert found.parameters[name] == pytest.approx(TRUE[name], rel=1e-4)


# Many experiments are fitted.
@pytest.mark.slow
def test_standard_errors_are_those_of_repeated_experiments(clean):
    errors, stated = [], []
    for seed in range(30):
        noisy = mbd.Dataset(with_noise(clean, seed), recorded=["theta"])
        found = mbd.identify(PENDULUM, noisy, unknown=["m", "L", "c"], interpolation="cubic")
        errors.append([found.parameters[name] - TRUE[name] for name in ("m", "L", "c")])
        stated.append([found.standard_errors[name] for name in ("m", "L", "c")])
    # The spread of 30 repetitions is known to 13 % of itself; three times that.
    np.testing.assert_allclose(np.std(errors, axis=0), np.mean(stated, axis=0), rtol=0.4)
    # Of a normal variable, 95.4 % lie within two standard errors; of 90, no fewer than 78 do.
    assert np.sum(np.abs(errors) < 2 * np.array(stated)) >= 78


def test_what_motion_cannot_tell_apart_is_named_as_a_combination():
    # Nothing pushes: mass and damping enter as their ratio c/m alone.
    run = recorded(push=lambda t: 0.0 * t)
    found = mbd.identify(PENDULUM, mbd.Dataset(run, recorded=["theta"]), unknown=["m", "c", "L"])
    assert found.undetermined == ("m", "c")
    assert set(found.standard_errors) == {"L"}
    (one,) = found.combinations
    assert set(one.terms) == {"m", "c"}
    # The combination holds for the true values too, whatever their size.
    ratio = TRUE["c"] / TRUE["m"]
    assert found.parameters["c"] / found.parameters["m"] == pytest.approx(ratio, rel=1e-5)
    assert abs(one.value) < 1e-6
    assert "not determined alone: m, c" in found.status
    assert "±" in str(found)


def test_sensor_gain_offset_and_feedthrough_are_found(clean):
    read = 1.1 * clean.q - 0.2 + 0.03 * clean.u
    known = {"m": TRUE["m"]}
    data = mbd.Dataset(eqx.tree_at(lambda r: r.q, clean, read), known, recorded=["theta"])
    found = mbd.identify(
        PENDULUM, data, unknown=["L", "c"], sensors={"theta": ("gain", "offset", "F")},
        interpolation="cubic",
    )  # fmt: skip
    expected = {"theta gain": 1.1, "theta offset": -0.2, "theta per F": 0.03}
    assert found.sensors == pytest.approx(expected, rel=1e-4)
    assert found.parameters == pytest.approx({"L": TRUE["L"], "c": TRUE["c"]}, rel=1e-4)


def test_prior_and_bounds_are_kept(clean):
    data = mbd.Dataset(with_noise(clean, 0), recorded=["theta"])
    told = mbd.identify(
        PENDULUM, data, unknown={"m": (0.5, 1.0), "L": None, "c": None}, interpolation="cubic"
    )
    assert told.parameters["m"] == 1.0
    assert told.at_bounds == ("m",)
    assert "at a bound: m" in told.status
    sure = mbd.identify(
        PENDULUM,
        data,
        unknown={"m": mbd.Unknown(mean=2.0, std=1e-6), "L": None, "c": None},
        interpolation="cubic",
    )
    assert sure.parameters["m"] == pytest.approx(2.0, abs=1e-4)


def test_regression_needs_no_guess(clean):
    unknowns = make_unknowns(PENDULUM, {"m": mbd.Unknown(start=50.0), "c": mbd.Unknown(start=9.0)})
    values = regress_parameters(PENDULUM, [(clean, {"L": 0.8})], unknowns)
    # Times m L^2: linear in m and c. Sums for integrals are good to a thousandth.
    np.testing.assert_allclose(values, [TRUE["m"], TRUE["c"]], rtol=1e-2)


def test_jacobians_through_a_constrained_rollout_are_exact():
    system = SinglePendulumCartesian()
    t = np.linspace(0.0, 1.0, 41)
    run = mbd.simulate(system, t, {"x": 0.6, "x_dot": 0.5}, parameters=TRUE | {"L": 1.0})
    runs, edges = [(run, {})], [np.array([0, 15, 40])]
    splits = [choose_splits(system, run, {}, edges[0][:-1])]
    lanes = lay_out(system, runs, ("x", "y_dot"), edges, splits, "constant", 2)
    problem = OutputError(system, ("m", "c", "g"), (), ("x", "y_dot"), jnp.ones(2))
    values, initial = np.array([1.0, 0.3, 9.0]), initial_guess(lanes)
    residual = lambda p, x: np.asarray(  # noqa: E731
        problem(jnp.asarray(p), jnp.asarray(x), lanes, jnp.asarray(2))[0]
    )
    slopes = np.asarray(
        problem(jnp.asarray(values), jnp.asarray(initial), lanes, jnp.asarray(2))[1]
    )
    h = 1e-6
    for i in range(3):
        step = h * np.eye(3)[i]
        central = (residual(values + step, initial) - residual(values - step, initial)) / (2 * h)
        np.testing.assert_allclose(slopes[..., i], central, atol=1e-7)
    for segment, rows in ((0, slice(0, 15)), (1, slice(15, 41))):
        for i in range(2):
            step = np.zeros_like(initial)
            step[0, segment, i] = h
            central = (residual(values, initial + step) - residual(values, initial - step)) / (
                2 * h
            )
            np.testing.assert_allclose(slopes[0, rows, :, 3 + i], central[0, rows], atol=1e-7)
            others = np.delete(central[0], np.r_[rows], axis=0)
            assert not np.any(others)


@pytest.mark.slow
def test_masses_of_a_four_bar_from_its_crank_angle_under_noise():
    system = FourBar()
    true = {"m_crank": 0.55, "m_coupler": 0.7, "m_rocker": 1.1, "I_coupler": 0.09}
    random = np.random.default_rng(0)
    t = np.linspace(0.0, 3.0, 301)
    torque = np.repeat(random.normal(0.0, 1.5, 31), 10)[:301]
    run = mbd.simulate(system, t, {"crank": 1.0, "crank_dot": 0.5}, inputs=torque, parameters=true)
    noise = 0.01 * float(np.std(run.q[:, 0]))
    noisy = run.q.at[:, 0].add(noise * random.normal(size=301))
    data = mbd.Dataset(eqx.tree_at(lambda r: r.q, run, noisy), recorded=["crank"])
    found = mbd.identify(system, data, unknown=list(true), interpolation="constant")
    for one in found.combinations:
        value = sum(factor * true[name] for name, factor in one.terms.items())
        assert abs(one.value - value) < 3.5 * one.standard_error
    for name, error in found.standard_errors.items():
        assert abs(found.parameters[name] - true[name]) < 3.5 * error
    # Residuals are the noise.
    assert found.rmse["crank"] == pytest.approx(noise, rel=0.15)
    again = mbd.simulate(
        system, t, {"crank": 0.2, "crank_dot": 1.0}, inputs=torque, parameters=found.parameters
    )
    truth = mbd.simulate(
        system, t, {"crank": 0.2, "crank_dot": 1.0}, inputs=torque, parameters=true
    )
    assert np.std(again["crank"] - truth["crank"]) < 0.02 * np.std(truth["crank"])


@pytest.mark.parametrize(
    ("unknown", "message"),
    [
        ([], "No unknown parameter is named; name some of m, L, c, g"),
        (["mass"], "mass"),
        ({"m": (2.0, 1.0)}, "bounds 2 and 1; the lower one must be below"),
        ({"m": 3.0}, r"'m' is given as 3.0; give bounds \(low, high\)"),
        ({"m": mbd.Unknown(start=-1.0)}, "'m' starts at -1; it must lie between"),
    ],
)
def test_bad_requests_say_what_is_wrong(clean, unknown, message):
    with pytest.raises(mbd.UserError, match=message):
        mbd.identify(PENDULUM, clean, unknown=unknown)


def test_recipes_and_priors_are_checked(clean):
    with pytest.raises(mbd.UserError, match="a recipe is for a law"):
        mbd.identify(PENDULUM, clean, "fast", unknown=["m"])
    with pytest.raises(mbd.UserError, match="sensors are for unknown"):
        mbd.identify(PENDULUM, clean, sensors={"theta": ("gain",)})
    with pytest.raises(mbd.UserError, match="give both, or neither"):
        mbd.Unknown(mean=1.0)
    with pytest.raises(mbd.UserError, match="unknown of a sensor"):
        mbd.identify(PENDULUM, clean, unknown=["m"], sensors={"theta": ("drift",)})


def test_mechanism_file_is_written_back(tmp_path, clean):
    text = """
    [bodies.rod]
    mass = 2.0
    inertia = 0.3
    center = [0.0, -0.5]
    [joints.pin]
    type = "revolute"
    bodies = ["ground", "rod"]
    points = [[0.0, 0.0], [0.0, 0.5]]
    """
    path = tmp_path / "rod.toml"
    path.write_text(text)
    found = mbd.identify(PENDULUM, clean, unknown=["m"], interpolation="cubic")
    with pytest.raises(mbd.UserError, match="is a Python class and has no mechanism file"):
        found.write(tmp_path / "no.toml")
    rod = mbd.read_mechanism(path)
    replace(found, system=rod, parameters={"rod_mass": 2.5}).write(tmp_path / "new.toml")
    masses = {p.name: p.default for p in mbd.read_mechanism(tmp_path / "new.toml").parameters}
    assert masses["rod_mass"] == 2.5
    assert masses["rod_inertia"] == 0.3
