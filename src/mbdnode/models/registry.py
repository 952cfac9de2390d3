"""Every kind of model, by the name that files use, and every model that can be asked for by name.

A new model is one file in this room and one entry of `KINDS`.
"""

from typing import Any

from mbdnode.errors import UserError
from mbdnode.models.base import AbstractModel
from mbdnode.models.baselines import FCNN, HNN, LNN, LSTM
from mbdnode.models.fitted_mechanism import FittedMechanism
from mbdnode.models.function_library import Library
from mbdnode.models.learned_mechanism import LearnedMechanism
from mbdnode.models.mbdnode import MBDNODE
from mbdnode.naming import import_object
from mbdnode.recipes import LAW

KINDS: dict[str, type[AbstractModel]] = {
    kind.kind: kind
    for kind in (MBDNODE, LearnedMechanism, Library, FittedMechanism, HNN, LNN, LSTM, FCNN)
}
# Settings that make another named network of a kind.
_VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "sonode": (MBDNODE.kind, {"forces": "none"}),
    "node": (MBDNODE.kind, {"order": "first", "forces": "none"}),
}
# The kind of each model that can be asked for, and what tells it from others of that kind. A law is
# a library until the data has shown its form.
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    MBDNODE.kind: (MBDNODE.kind, {}),
    LAW: (Library.kind, {}),
    **_VARIANTS,
    **{
        name: (name, {})
        for name, kind in KINDS.items()
        if name != MBDNODE.kind and not kind.is_law and kind is not FittedMechanism
    },
}


def register_model(name: str) -> None:
    """Make a class of models of a user's own known by its name, `module:name`.

    **Arguments:**

    - `name`: of the class, which is imported.
    """
    found = import_object(name)
    if not (isinstance(found, type) and issubclass(found, AbstractModel)):
        raise UserError(f"{name} is no class of models; it must be a subclass of AbstractModel.")
    if KINDS.setdefault(found.kind, found) is not found:
        raise UserError(
            f"{name} has the kind {found.kind!r}, which is that of {KINDS[found.kind].__name__}. "
            "Give it one of its own."
        )
    MODELS[name] = (found.kind, {})
