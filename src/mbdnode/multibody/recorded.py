"""A system of which only the names are known: what a log without a mechanism tells."""

from typing import Any

import equinox as eqx

from mbdnode.errors import UserError
from mbdnode.multibody.quantities import Coordinate, Input, Parameter
from mbdnode.multibody.system import AbstractSystem

# A file may state any number; no log has as many columns that move.
_MOST_NAMES = 1_000


class RecordedSystem(AbstractSystem):
    """Coordinates without constraints, and forces that nobody has written down.

    A model can be made for it and learn what drives it; it has no motion of its own.

    **Arguments:**

    - `coordinates`, `inputs`, `parameters`: its named quantities.
    """

    coordinates: tuple[Coordinate, ...] = eqx.field(static=True, kw_only=True)
    inputs: tuple[Input, ...] = eqx.field(static=True, default=(), kw_only=True)
    parameters: tuple[Parameter, ...] = eqx.field(static=True, default=(), kw_only=True)

    def independent_acceleration(self, t, q, v, u, mu, tangent):
        """Not known: a model is to be learned."""
        raise UserError(
            "Of this system only the names are known, so it has no motion of its own. Fit a model "
            "to its logs, and simulate that."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data, which `recorded_from` reads back."""
        return {
            "coordinates": [[c.name, c.unit, c.is_angle] for c in self.coordinates],
            "inputs": [[i.name, i.unit] for i in self.inputs],
            "parameters": [[p.name, p.default, p.unit] for p in self.parameters],
        }


def recorded_from(data: Any) -> RecordedSystem:
    """Make the system that `RecordedSystem.to_dict` wrote down.

    **Arguments:**

    - `data`: plain data.

    **Returns:**

    A `RecordedSystem`. Raises `UserError` for anything else.
    """
    try:
        coordinates = tuple(
            Coordinate(str(name), str(unit), bool(angle))
            for name, unit, angle in data["coordinates"]
        )
        inputs = tuple(Input(str(name), str(unit)) for name, unit in data["inputs"])
        parameters = tuple(
            Parameter(str(name), float(default), str(unit))
            for name, default, unit in data["parameters"]
        )
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{str(data)[:80]!r} does not describe a recorded system ({error})."
        ) from error
    count = len(coordinates) + len(inputs) + len(parameters)
    if count > _MOST_NAMES:
        raise UserError(
            f"A recorded system of {count:,} coordinates, inputs and parameters is not read; it "
            f"has at most {_MOST_NAMES:,}."
        )
    return RecordedSystem(coordinates=coordinates, inputs=inputs, parameters=parameters)
