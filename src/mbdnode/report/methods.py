"""What the paper's table of methods says that each of them can do."""

from collections.abc import Mapping

_MODELS = ("mbd-node", "hnn", "lnn", "lstm", "fcnn")

# One mark for each model, in the order above, as printed.
_PRINTED = {
    "Works on energy-conserving system": "xxx..",
    "Works on general coordinates": "x.xxx",
    "Works on dissipative systems": "x..xx",
    "Works with constraints": "x....",
    "No need for second-order derivatives": "x.x..",
    "Scalability for long time simulation": "xxx..",
    "Learn continuous dynamics": "xxx.x",
}

PAPER_MARKS: Mapping[str, Mapping[str, bool]] = {
    model: {title: marks[place] == "x" for title, marks in _PRINTED.items()}
    for place, model in enumerate(_MODELS)
}
