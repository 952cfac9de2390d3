"""What the paper's table of methods says that each of them can do."""

from collections.abc import Mapping

from mbdnode.models import Capability

_MODELS = ("mbd-node", "hnn", "lnn", "lstm", "fcnn")

# The row's title and one mark for each model, in the order above, as printed.
_PRINTED = {
    Capability.ENERGY: ("Works on energy-conserving system", "xxx.."),
    Capability.COORDINATES: ("Works on general coordinates", "x.xxx"),
    Capability.DISSIPATION: ("Works on dissipative systems", "x..xx"),
    Capability.CONSTRAINTS: ("Works with constraints", "x...."),
    Capability.NO_ACCELERATIONS: ("No need for second-order derivatives", "x.x.."),
    Capability.LONG: ("Scalability for long time simulation", "xxx.."),
    Capability.CONTINUOUS: ("Learn continuous dynamics", "xxx.x"),
}

PAPER_MARKS: Mapping[str, Mapping[str, bool]] = {
    model: {title: marks[place] == "x" for title, marks in _PRINTED.values()}
    for place, model in enumerate(_MODELS)
}


def row_title(capability: Capability) -> str:
    """The row's title in the paper's words; in our own where the paper has no such row."""
    if capability in _PRINTED:
        return _PRINTED[capability][0]
    return capability.value.capitalize()
