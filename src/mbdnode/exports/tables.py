"""What the entries of an exported model's arrays are: names, units, start values, identifiers."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Quantity:
    """One entry of an array of an exported model.

    **Arguments:**

    - `name`: the model's own.
    - `identifier`: in C and JavaScript, unique among the quantities of the model.
    - `unit`: as the model says.
    - `start`: a coordinate's and a velocity's value where the model is assembled, zero for an
        input, the default of a parameter; NaN for an output.
    - `low`, `high`: the bounds of a parameter.
    - `is_angle`: whether it is an angle, or the rate of one.
    - `renamed`: whether the identifier is another word than the name.
    """

    name: str
    identifier: str
    unit: str = ""
    start: float = float("nan")
    low: float = float("-inf")
    high: float = float("inf")
    is_angle: bool = False
    renamed: bool = False


@dataclass(frozen=True)
class QuantityTables:
    """All quantities of an exported model.

    **Arguments:**

    - `coordinates`, `rates`: the entries of `q` and `v`.
    - `inputs`, `parameters`, `outputs`: those of `u`, `p` and `y`.
    - `independent`: the coordinates that are independent where the model is assembled, by index.
    - `independent_rates`: the same for velocities.
    """

    coordinates: tuple[Quantity, ...]
    rates: tuple[Quantity, ...]
    inputs: tuple[Quantity, ...]
    parameters: tuple[Quantity, ...]
    outputs: tuple[Quantity, ...]
    independent: tuple[int, ...]
    independent_rates: tuple[int, ...]

    def groups(self) -> tuple[tuple[str, str, tuple[Quantity, ...]], ...]:
        """Each kind with the letter of its array."""
        return (
            ("coordinate", "q", self.coordinates),
            ("rate", "v", self.rates),
            ("input", "u", self.inputs),
            ("parameter", "p", self.parameters),
            ("output", "y", self.outputs),
        )

    def sizes(self) -> dict[str, int]:
        """How many of each there are, and the size of the minimal state."""
        found = {f"N{letter.upper()}": len(group) for _, letter, group in self.groups()}
        del found["NV"]
        return found | {"NZ": len(self.independent) + len(self.independent_rates)}

    def known(self) -> list[int]:
        """1 for a coordinate or a velocity that is independent, 0 for another."""
        splits = self.independent, self.independent_rates
        return [int(i in split) for split in splits for i in range(len(self.coordinates))]

    def renamed(self) -> tuple[Quantity, ...]:
        """The quantities whose names are no identifiers of their own."""
        return tuple(x for _, _, group in self.groups() for x in group if x.renamed)
