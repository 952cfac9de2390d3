"""The catalog: the paper's seven mechanisms, their Cartesian twins, and three more."""

from mbdnode.mechanisms.cart_pole import CartPole, CartPoleCartesian
from mbdnode.mechanisms.double_pendulum import DoublePendulum, DoublePendulumCartesian
from mbdnode.mechanisms.four_bar import FourBar
from mbdnode.mechanisms.knife_edge_sleigh import KnifeEdgeSleigh
from mbdnode.mechanisms.single_mass_spring import SingleMassSpring
from mbdnode.mechanisms.single_mass_spring_damper import SingleMassSpringDamper
from mbdnode.mechanisms.single_pendulum import SinglePendulum, SinglePendulumCartesian
from mbdnode.mechanisms.slider_crank import DrivenCrank, SliderCrank
from mbdnode.mechanisms.triple_mass_spring_damper import TripleMassSpringDamper
from mbdnode.multibody import AbstractMechanism
from mbdnode.naming import unknown_name

MECHANISMS: dict[str, type[AbstractMechanism]] = {
    "single-mass-spring": SingleMassSpring,
    "single-mass-spring-damper": SingleMassSpringDamper,
    "triple-mass-spring-damper": TripleMassSpringDamper,
    "single-pendulum": SinglePendulum,
    "double-pendulum": DoublePendulum,
    "cart-pole": CartPole,
    "slider-crank": SliderCrank,
    "single-pendulum-cartesian": SinglePendulumCartesian,
    "double-pendulum-cartesian": DoublePendulumCartesian,
    "cart-pole-cartesian": CartPoleCartesian,
    "four-bar": FourBar,
    "knife-edge-sleigh": KnifeEdgeSleigh,
    "driven-crank": DrivenCrank,
}


def get_mechanism(name: str) -> AbstractMechanism:
    """A mechanism by name.

    **Arguments:**

    - `name`: a key of `MECHANISMS`.

    **Returns:**

    The mechanism. Raises `UserError` for an unknown name.
    """
    if name not in MECHANISMS:
        raise unknown_name("mechanism", name, MECHANISMS)
    return MECHANISMS[name]()


__all__ = [
    "MECHANISMS",
    "CartPole",
    "CartPoleCartesian",
    "DoublePendulum",
    "DoublePendulumCartesian",
    "DrivenCrank",
    "FourBar",
    "KnifeEdgeSleigh",
    "SingleMassSpring",
    "SingleMassSpringDamper",
    "SinglePendulum",
    "SinglePendulumCartesian",
    "SliderCrank",
    "TripleMassSpringDamper",
    "get_mechanism",
]
