"""Consistent states: what is completed, what is refused, and in which words."""

import jax.numpy as jnp
import numpy as np
import pytest
from toys import Elbow, GaugedPendulum, Pendulum, ShakenPendulum, TurningBlade

from mbdnode.mechanisms.slider_crank import SliderCrank
from mbdnode.multibody import (
    check_state,
    consistent_state,
    position_residual,
    resolve_parameters,
    velocity_residual,
)


def test_slider_crank_is_completed_from_its_crank():
    state = consistent_state(SliderCrank(), {"theta1": 1.0, "theta1_dot": 1.5})
    s, c = np.sin(1.0), np.cos(1.0)
    rod = np.arcsin(-s / 2)
    rod_rate = -c * 1.5 / (2 * np.cos(rod))
    slider = 2 * c + 4 * np.cos(rod)
    expected = [c, s, 1.0, 2 * c + 2 * np.cos(rod), s, rod, slider, 0, 0]
    # Round-off of lengths up to four.
    np.testing.assert_allclose(state.q, expected, atol=4e-15)
    np.testing.assert_allclose(state.v[5], rod_rate, rtol=1e-13)
    np.testing.assert_allclose(state.v[6], -2 * s * 1.5 - 4 * np.sin(rod) * rod_rate, rtol=1e-13)


def test_any_sufficient_set_of_values_gives_the_same_state():
    whole = consistent_state(Elbow(), {"shoulder": 0.2, "elbow": 0.8, "x_dot": 0.3, "y_dot": -0.4})
    shoulder_dot, elbow_dot = map(float, whole.v[:2])
    again = consistent_state(
        Elbow(),
        {
            "x": float(whole.q[2]),
            "y": float(whole.q[3]),
            "shoulder_dot": shoulder_dot,
            "elbow_dot": elbow_dot,
        },
    )
    np.testing.assert_allclose(again.q, whole.q, atol=1e-14)
    np.testing.assert_allclose(again.v, whole.v, atol=1e-14)


def test_what_nothing_drives_stands_still():
    state = consistent_state(Elbow(), {"shoulder": 0.2, "elbow": 0.8})
    np.testing.assert_array_equal(state.v, np.zeros(4))


def test_guess_decides_how_the_arm_bends():
    tip = {"x": 1.2, "y": 0.5}
    up = consistent_state(Elbow(), tip, guess={"elbow": 1.0})
    down = consistent_state(Elbow(), tip, guess={"shoulder": 1.0, "elbow": -1.0})
    # The law of cosines for two links of length one.
    bend = np.arccos((1.2**2 + 0.5**2) / 2 - 1)
    np.testing.assert_allclose(up.q[1], bend, rtol=1e-13)
    np.testing.assert_allclose(down.q[1], -bend, rtol=1e-13)


def test_parameters_change_the_configuration():
    state = consistent_state(Pendulum(), {"x": 3.0}, parameters={"L": 5.0})
    np.testing.assert_allclose(state.q, [3.0, -4.0], rtol=1e-15)


@pytest.mark.parametrize("unit", [1e-3, 1.0, 5e3, 1e6])
def test_unit_of_length_does_not_decide_what_is_possible(unit):
    # Phi is an area here, so its round-off grows with the square of the unit.
    state = consistent_state(Pendulum(), {"x": 0.3 * unit}, parameters={"L": 1.1 * unit})
    np.testing.assert_allclose(state.q[1] / unit, -np.sqrt(1.1**2 - 0.3**2), rtol=1e-14)
    mu = resolve_parameters(Pendulum(), {"L": 1.1 * unit})
    check_state(Pendulum(), jnp.zeros(()), state.q, state.v, mu)
    with pytest.raises(ValueError, match="cannot be met"):
        consistent_state(Pendulum(), {"x": 1.2 * unit}, parameters={"L": 1.1 * unit})


def test_moving_pivot_drags_the_mass_along():
    # The velocity of least norm with Phi_q v = -Phi_t lies along the rod.
    state = consistent_state(ShakenPendulum(), {"x": 1.0}, t=0.4)
    arm = np.asarray(state.q) - [0.3 * np.sin(0.8), 0.0]
    pull = arm / 1.5 * (arm[0] / 1.5 * 0.6 * np.cos(0.8))
    np.testing.assert_allclose(np.linalg.norm(arm), 1.5, rtol=1e-15)
    np.testing.assert_allclose(state.v, pull, rtol=1e-13)


def test_nonholonomic_start_has_the_prescribed_sideways_speed():
    state = consistent_state(TurningBlade(), {"x": 1.0, "theta": 0.3, "x_dot": 2.0}, t=0.5)
    phi = 0.7 * 0.5 + 0.3
    across = -np.sin(phi) * state.v[0] + np.cos(phi) * state.v[1]
    np.testing.assert_allclose(across, 0.2 * 0.5 + 0.1 * 1.0, rtol=1e-14)
    assert float(state.v[0]) == 2.0


def test_impossible_position_is_refused_with_residual_and_coordinate():
    # The rod is 1.5 m long: x = 2 leaves 2^2 - 1.5^2 even with y = 0.
    with pytest.raises(ValueError, match=r"x = 2 .*position constraint 0.*1\.75.*Give fewer"):
        consistent_state(Pendulum(), {"x": 2.0})


def test_contradicting_positions_are_refused_with_both_names():
    with pytest.raises(ValueError, match=r"(x = 1, y = -1|y = -1, x = 1).*-0\.25"):
        consistent_state(Pendulum(), {"x": 1.0, "y": -1.0})


def test_offending_coordinate_is_the_one_that_was_given():
    # The tip cannot be three meters away on two links of one meter.
    with pytest.raises(ValueError, match=r"x = 3 .*Elbow.*residual of -1"):
        consistent_state(Elbow(), {"x": 3.0, "y": 0.0})


def test_impossible_velocity_is_refused_with_residual_and_coordinate():
    # At the bottom the mass moves sideways only; 2 y y' = 2 (-1.5) 1 is left.
    with pytest.raises(ValueError, match=r"y_dot = 1 .*velocity constraint 0.*-3\.? ?"):
        consistent_state(Pendulum(), {"x": 0.0, "x_dot": 1.0, "y_dot": 1.0})


def test_start_without_a_direction_asks_for_a_guess():
    with pytest.raises(ValueError, match=r"-2\.25.*guess"):
        consistent_state(Pendulum(), {}, guess={"y": 0.0})


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused_by_name(value):
    with pytest.raises(ValueError, match=rf"'x_dot' is {value}"):
        consistent_state(Pendulum(), {"x": 0.1, "x_dot": value})
    with pytest.raises(ValueError, match=rf"'y' is {value}"):
        consistent_state(Pendulum(), {"x": 0.1}, guess={"y": value})


@pytest.mark.parametrize(("name", "near"), [("xdot", "x_dot"), ("X", "x"), ("y_dott", "y_dot")])
def test_unknown_names_are_refused_with_the_nearest(name, near):
    with pytest.raises(ValueError, match=rf"'{name}'.*Did you mean '{near}'.*Known: x, y, x_dot"):
        consistent_state(Pendulum(), {name: 0.1})
    with pytest.raises(ValueError, match=rf"'{name}'.*Did you mean '{near}'"):
        consistent_state(Pendulum(), {}, guess={name: 0.1})


def check(q, v):
    mu = resolve_parameters(Pendulum())
    check_state(Pendulum(), jnp.zeros(()), jnp.asarray(q, float), jnp.asarray(v, float), mu)


def test_state_of_the_wrong_size_is_refused_with_the_names():
    with pytest.raises(ValueError, match=r"q has shape \(3,\).*\(2,\): x, y"):
        check([1, 2, 3], [0, 0, 0])
    with pytest.raises(ValueError, match=r"v has shape \(1,\).*\(2,\): x_dot, y_dot"):
        check([0.9, -1.2], [0])


def test_state_with_a_hole_is_refused_by_name():
    with pytest.raises(ValueError, match=r"'y_dot' is nan"):
        check([0.9, -1.2], [0, np.nan])


def test_state_off_the_manifold_is_refused_with_residual_and_way_out():
    with pytest.raises(ValueError, match=r"position constraint 0.*-0\.25.*consistent_state"):
        check([1, -1], [0, 0])
    with pytest.raises(ValueError, match=r"velocity constraint 0.*1\.8.*consistent_state"):
        check([0.9, -1.2], [1, 0])


def test_slightly_bent_constraint_does_not_excuse_the_others():
    # The mass is a centimetre off its circle, however flat the curve of the gauge.
    system = GaugedPendulum()
    q = jnp.array([0.91, -1.2, 1e-7 * 0.91**2])
    with pytest.raises(ValueError, match=r"position constraint 0 .*0\.018"):
        check_state(system, jnp.zeros(()), q, jnp.zeros(3), resolve_parameters(system))


def test_state_rounded_to_nine_digits_is_accepted():
    theta = 0.7
    q = np.round([1.5 * np.sin(theta), -1.5 * np.cos(theta)], 9)
    v = np.round([1.1 * np.cos(theta), 1.1 * np.sin(theta)], 9)
    check(q, v)


def test_completed_states_have_residuals_at_round_off():
    for seed in range(5):
        random = np.random.default_rng(seed)
        known = dict(zip(("shoulder", "elbow"), random.uniform(-2, 2, 2), strict=True))
        known |= dict(zip(("x_dot", "y_dot"), random.uniform(-2, 2, 2), strict=True))
        state = consistent_state(Elbow(), known)
        mu = resolve_parameters(Elbow())
        position = position_residual(Elbow(), jnp.zeros(()), state.q, mu)
        velocity = velocity_residual(Elbow(), jnp.zeros(()), state.q, state.v, mu)
        assert float(jnp.max(jnp.abs(position))) < 1e-15
        # Velocities grow as the inverse of sin(elbow), which is above 0.05 here.
        assert float(jnp.max(jnp.abs(velocity))) < 1e-13
