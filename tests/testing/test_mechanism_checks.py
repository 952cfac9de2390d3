"""`check_mechanism` passes what is right and refuses what is broken, saying which rule it was.

Each broken mechanism differs from a sound one in a single line.
"""

import jax
import jax.numpy as jnp
import pytest

from mbdnode.mechanisms import MECHANISMS, FourBar
from mbdnode.multibody import AbstractMechanism, Input, Parameter, angle, consistent_state, length
from mbdnode.testing.mechanism import check_mechanism


class Sound(AbstractMechanism):
    """Two masses on springs: separable, conservative, with a solution."""

    coordinates = (length("x"), length("y"))
    separable = True
    conservative = True

    def mass_matrix(self, q, mu):
        return [[2.0, 0.0], [0.0, 2.0]]

    def force(self, t, q, v, u, mu):
        return -8.0 * q

    def potential_energy(self, q, mu):
        return 4.0 * jnp.sum(q**2)

    def solution(self, elapsed, q, v, mu):
        c, s = jnp.cos(2 * elapsed), jnp.sin(2 * elapsed)
        return q * c + v / 2 * s, v * c - 2 * q * s


class Rod(AbstractMechanism):
    """A point mass on a rod."""

    coordinates = (length("x"), length("y"))
    reference = {"y": -1.0}
    conservative = True

    def mass_matrix(self, q, mu):
        return [1.0, 1.0]

    def force(self, t, q, v, u, mu):
        return [0.0, -9.81]

    def potential_energy(self, q, mu):
        return 9.81 * q[1]

    def constraint(self, t, q, mu):
        return [q[0] ** 2 + q[1] ** 2 - 1.0]


# One of each kind is looked at every time: free, with a loop, on a blade.
_FIRST = ("single-pendulum", "slider-crank", "knife-edge-sleigh")


@pytest.mark.parametrize(
    "name",
    [name if name in _FIRST else pytest.param(name, marks=pytest.mark.slow) for name in MECHANISMS],
)
def test_every_mechanism_of_the_catalog_keeps_the_contract(name):
    check_mechanism(MECHANISMS[name]())


@pytest.mark.parametrize("mechanism", [Sound(), Rod()])
def test_the_mechanisms_that_are_broken_below_are_sound_before(mechanism):
    check_mechanism(mechanism)


def test_the_contract_can_be_checked_away_from_the_reference():
    crossed = consistent_state(FourBar(), {"crank": 1.0}, guess={"coupler": -1.3, "rocker": -2.4})
    assert crossed.q[2] < 0
    check_mechanism(FourBar(), state=crossed, seed=1)


class AsymmetricMass(Sound):
    def mass_matrix(self, q, mu):
        return [[2.0, 1e-6], [0.0, 2.0]]


class NegativeMass(Sound):
    conservative = False

    def mass_matrix(self, q, mu):
        return [2.0, -2.0]


class MasslessDirection(Rod):
    def mass_matrix(self, q, mu):
        return [0.0, 0.0]


class OneForceTooMany(Sound):
    def force(self, t, q, v, u, mu):
        return jnp.zeros(3)


class MassThatRaises(Sound):
    def mass_matrix(self, q, mu):
        return [mu["m"], mu["m"]]


class PotentialOfEachMass(Sound):
    def potential_energy(self, q, mu):
        return 4.0 * q**2


class OneColumnTooFew(Sound):
    def nonholonomic(self, t, q, mu):
        return [[1.0]], [0.0]


class LossyButCalledConservative(Sound):
    separable = False

    def force(self, t, q, v, u, mu):
        return -8.0 * q - 1e-6 * v


class ShakenButCalledConservative(Rod):
    def constraint(self, t, q, mu):
        return [(q[0] - jnp.sin(t)) ** 2 + q[1] ** 2 - 1.0]


class ConservativeWithoutPotential(Sound):
    def potential_energy(self, q, mu):
        return None


class WrongPotential(Sound):
    def potential_energy(self, q, mu):
        return 4.0 * q[0] ** 2 + 3.9 * q[1] ** 2


class DampedButCalledSeparable(Sound):
    conservative = False

    def force(self, t, q, v, u, mu):
        return -8.0 * q - 1e-6 * v


class TurningButCalledSeparable(Sound):
    conservative = False

    def mass_matrix(self, q, mu):
        return [2.0 + jnp.sin(q[0]), 2.0]


class ConstrainedButCalledSeparable(Rod):
    separable = True


class SolutionOfAnotherSpring(Sound):
    def solution(self, elapsed, q, v, mu):
        c, s = jnp.cos(2.001 * elapsed), jnp.sin(2.001 * elapsed)
        return q * c + v / 2.001 * s, v * c - 2.001 * q * s


class SolutionThatStartsElsewhere(Sound):
    def solution(self, elapsed, q, v, mu):
        return Sound.solution(self, elapsed + 0.1, q, v, mu)


class SolutionWithWrongVelocity(Sound):
    def solution(self, elapsed, q, v, mu):
        c, s = jnp.cos(2 * elapsed), jnp.sin(2 * elapsed)
        return q * c + v / 2 * s, v * c - q * s


class SolutionOffTheRod(Rod):
    def solution(self, elapsed, q, v, mu):
        return q + elapsed * v, v


class RodWithHalfADerivative(Rod):
    def constraint(self, t, q, mu):
        return [q[0] ** 2 + q[1] * jax.lax.stop_gradient(q[1]) - 1.0]


class Impossible(Rod):
    def constraint(self, t, q, mu):
        return [q[0] ** 2 + q[1] ** 2 + 1.0]


class SameNameTwice(Sound):
    coordinates = (length("x"), length("x"))


class TimeAsCoordinate(Sound):
    coordinates = (length("t"), length("y"))


class RateAsCoordinate(Sound):
    coordinates = (length("x"), angle("x_dot"))


class InputCalledAsCoordinate(Sound):
    inputs = (Input("y"),)


class SameParameterTwice(Sound):
    parameters = (Parameter("k", 1.0), Parameter("k", 2.0))


class DefaultAgainstItsRule(Sound):
    parameters = (Parameter("m", 0.0, above=0.0),)


class UnknownIndependent(Rod):
    independent = ("theta",)


class UnknownReference(Rod):
    reference = {"z": 1.0}


@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        (AsymmetricMass, "M is symmetric': off by 1e-06"),
        (NegativeMass, "no motion is without inertia': the smallest eigenvalue .* is -2"),
        (MasslessDirection, "no motion is without inertia"),
        (OneForceTooMany, r"one force for each coordinate': it is \(3,\), not \(2,\)"),
        (MassThatRaises, "M is square.*raised KeyError: 'm'"),
        (PotentialOfEachMass, "potential energy.* is one number"),
        (OneColumnTooFew, "a column for each coordinate"),
        (LossyButCalledConservative, "keeps its energy"),
        (ShakenButCalledConservative, "keeps its energy"),
        (ConservativeWithoutPotential, "has a potential energy"),
        (WrongPotential, "keeps its energy"),
        (DampedButCalledSeparable, "forces ignore velocities': off by 1e-06"),
        (TurningButCalledSeparable, "constant M"),
        (ConstrainedButCalledSeparable, "is free"),
        (SolutionOfAnotherSpring, "obeys the equations of motion"),
        (SolutionThatStartsElsewhere, "starts at its start"),
        (SolutionWithWrongVelocity, "velocities are the rates"),
        (SolutionOffTheRod, "solution keeps the constraints"),
        (RodWithHalfADerivative, "are the derivatives of Phi"),
        (Impossible, "can be assembled.*residual"),
        (SameNameTwice, "different names': 'x', 'x_dot' more than once"),
        (TimeAsCoordinate, "different names': 't' more"),
        (RateAsCoordinate, "different names': 'x_dot' more"),
        (InputCalledAsCoordinate, "different names': 'y' more"),
        (SameParameterTwice, "parameters have different names': 'k' more"),
        (DefaultAgainstItsRule, "obey their own rules': Parameter 'm' is 0; it must be above 0"),
        (UnknownIndependent, "`independent` names coordinates': there is no 'theta'"),
        (UnknownReference, "`reference` names coordinates': there is no 'z'"),
    ],
)
def test_a_broken_promise_is_named(broken, rule):
    with pytest.raises(AssertionError, match=f"{broken.__name__} breaks the rule '.*{rule}"):
        check_mechanism(broken())
