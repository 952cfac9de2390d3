"""What each kind of model can do, and the sentence with which it refuses the rest.

The paper's comparison table is made from this: a mark that is missing is a refusal, or a property
that the model's own rollouts lack.
"""

import enum

from mbdnode.errors import UserError
from mbdnode.multibody import (
    AbstractMechanism,
    AbstractNamed,
    AbstractSystem,
    constraint_counts,
    resolve_parameters,
)


class Capability(enum.Enum):
    """The rows of the comparison."""

    ENERGY = "keeps the energy of a conservative system"
    COORDINATES = "works in any coordinates, without known masses"
    DISSIPATION = "works on dissipative systems"
    CONSTRAINTS = "keeps constraints"
    NO_ACCELERATIONS = "needs no accelerations to learn from"
    LONG = "training does not grow with the time predicted"
    CONTINUOUS = "gives states at any time, not at a fixed step"
    INPUTS = "takes forces that change with time"
    STARTS = "starts from any state"


_REFUSALS = {
    Capability.CONSTRAINTS: (
        "{model} has no means to keep constraints, and {system} has {constraints}. Use mbd-node, "
        "or a form of the system in minimal coordinates."
    ),
    Capability.DISSIPATION: (
        "{model} learns one energy that never changes, but {system} is not declared conservative. "
        "Use mbd-node; or, if it loses no energy, say so: `conservative = True` on the class."
    ),
    Capability.INPUTS: (
        "{model} has no place for forces that change with time, so it cannot learn {system} under "
        "such inputs. Use mbd-node."
    ),
    Capability.COORDINATES: (
        "{model} works on momenta p = M(q) v, so it needs a system with a mass matrix; {system} "
        "has none. Use lnn or mbd-node."
    ),
}


def check_capable(
    model: str, can: frozenset[Capability], system: AbstractNamed, *, driven: bool = False
) -> None:
    """Raise `UserError` if the system asks for what the model cannot do.

    **Arguments:**

    - `model`: its name, for the sentence.
    - `can`: its capabilities.
    - `system`: what is to be learned.
    - `driven`: whether its inputs change with time.
    """
    constraints = 0
    if isinstance(system, AbstractSystem):
        constraints = sum(constraint_counts(system, resolve_parameters(system)))
    mechanical = isinstance(system, AbstractMechanism)
    needed = {
        Capability.CONSTRAINTS: constraints > 0,
        Capability.DISSIPATION: not (mechanical and system.conservative),
        Capability.INPUTS: driven,
        Capability.COORDINATES: not mechanical,
    }
    for capability, asked in needed.items():
        if asked and capability not in can:
            raise UserError(
                _REFUSALS[capability].format(
                    model=model, system=type(system).__name__, constraints=constraints
                )
            )
