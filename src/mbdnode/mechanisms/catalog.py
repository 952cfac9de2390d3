"""Mechanisms by name; a class is loaded when it is asked for, so that a name needs no JAX."""

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mbdnode.errors import UserError
from mbdnode.naming import unknown_name

if TYPE_CHECKING:
    from mbdnode.multibody import AbstractMechanism


class _Catalog(Mapping[str, Any]):
    """Classes by name, each loaded when it is asked for."""

    def __init__(self, classes: dict[str, str]):
        self._classes = classes

    def __getitem__(self, name: str) -> Any:
        return getattr(sys.modules["mbdnode.mechanisms"], self._classes[name])

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
