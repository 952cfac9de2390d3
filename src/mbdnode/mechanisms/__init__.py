"""The catalog: the paper's seven mechanisms, their Cartesian twins, and six more.

Names are loaded when first used: who looks for a name need not wait for JAX.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mbdnode.errors import UserError
from mbdnode.lazy_imports import lazy_names
from mbdnode.naming import unknown_name

if TYPE_CHECKING:
    from mbdnode.mechanisms.cart_pole import CartPole, CartPoleCartesian
    from mbdnode.mechanisms.double_pendulum import DoublePendulum, DoublePendulumCartesian
    from mbdnode.mechanisms.four_bar import FourBar
    from mbdnode.mechanisms.knife_edge_sleigh import KnifeEdgeSleigh
    from mbdnode.mechanisms.rolling_disk import RollingDisk
    from mbdnode.mechanisms.single_mass_spring import SingleMassSpring
    from mbdnode.mechanisms.single_mass_spring_damper import SingleMassSpringDamper
    from mbdnode.mechanisms.single_pendulum import SinglePendulum, SinglePendulumCartesian
    from mbdnode.mechanisms.slider_crank import DrivenCrank, SliderCrank
    from mbdnode.mechanisms.slider_crank_friction import SliderCrankFriction
    from mbdnode.mechanisms.triple_mass_spring_damper import TripleMassSpringDamper
    from mbdnode.mechanisms.vehicle import Vehicle
    from mbdnode.multibody import AbstractMechanism


class _Catalog(Mapping[str, Any]):
    """Classes by name, each loaded when it is asked for."""

    def __init__(self, classes: dict[str, str]):
        self._classes = classes

    def __getitem__(self, name: str) -> Any:
        return __getattr__(self._classes[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __len__(self) -> int:
        return len(self._classes)


MECHANISMS: "Mapping[str, type[AbstractMechanism]]" = _Catalog(
    {
        "single-mass-spring": "SingleMassSpring",
        "single-mass-spring-damper": "SingleMassSpringDamper",
        "triple-mass-spring-damper": "TripleMassSpringDamper",
        "single-pendulum": "SinglePendulum",
        "double-pendulum": "DoublePendulum",
        "cart-pole": "CartPole",
        "slider-crank": "SliderCrank",
        "single-pendulum-cartesian": "SinglePendulumCartesian",
        "double-pendulum-cartesian": "DoublePendulumCartesian",
        "cart-pole-cartesian": "CartPoleCartesian",
        "four-bar": "FourBar",
        "knife-edge-sleigh": "KnifeEdgeSleigh",
        "rolling-disk": "RollingDisk",
        "driven-crank": "DrivenCrank",
        "slider-crank-friction": "SliderCrankFriction",
        "vehicle": "Vehicle",
    }
)


def get_mechanism(name: str) -> "AbstractMechanism":
    """A mechanism by name.

    **Arguments:**

    - `name`: a key of `MECHANISMS`.

    **Returns:**

    The mechanism. Raises `UserError` for an unknown name.
    """
    if name not in MECHANISMS:
        raise unknown_name("mechanism", name, MECHANISMS)
    return MECHANISMS[name]()


def check_system_name(name: str) -> None:
    """Raise `UserError` for what cannot name a mechanism; nothing is loaded.

    **Arguments:**

    - `name`: a name of the catalog, or `module:name` of a mechanism in Python; a file is another
        matter.
    """
    module, colon, attribute = name.partition(":")
    if name not in MECHANISMS and not (module and colon and attribute):
        raise UserError(
            f"--mechanism is {name!r}; give a file such as crank.toml, module:name for one in "
            f"Python, or a name of the catalog: {', '.join(MECHANISMS)}."
        )


__all__ = [
    "MECHANISMS",
    "CartPole",
    "CartPoleCartesian",
    "DoublePendulum",
    "DoublePendulumCartesian",
    "DrivenCrank",
    "FourBar",
    "KnifeEdgeSleigh",
    "RollingDisk",
    "SingleMassSpring",
    "SingleMassSpringDamper",
    "SinglePendulum",
    "SinglePendulumCartesian",
    "SliderCrank",
    "SliderCrankFriction",
    "TripleMassSpringDamper",
    "Vehicle",
    "check_system_name",
    "get_mechanism",
]


__getattr__ = lazy_names(
    __name__,
    {
        "CartPole": "cart_pole",
        "CartPoleCartesian": "cart_pole",
        "DoublePendulum": "double_pendulum",
        "DoublePendulumCartesian": "double_pendulum",
        "DrivenCrank": "slider_crank",
        "FourBar": "four_bar",
        "KnifeEdgeSleigh": "knife_edge_sleigh",
        "RollingDisk": "rolling_disk",
        "SingleMassSpring": "single_mass_spring",
        "SingleMassSpringDamper": "single_mass_spring_damper",
        "SinglePendulum": "single_pendulum",
        "SinglePendulumCartesian": "single_pendulum",
        "SliderCrank": "slider_crank",
        "SliderCrankFriction": "slider_crank_friction",
        "TripleMassSpringDamper": "triple_mass_spring_damper",
        "Vehicle": "vehicle",
    },
)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
