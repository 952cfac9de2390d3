"""Every kind of model, by the name that files use, and every model that can be asked for by name.

A new model is one file in this room and one entry of `KINDS`.
"""

from collections.abc import Iterable
from typing import Any

from mbdnode.errors import UserError
from mbdnode.models.base import LAW, AbstractModel
from mbdnode.models.fitted_mechanism import FittedMechanism
from mbdnode.models.forecasters import FCNN, LSTM
from mbdnode.models.function_library import Library
from mbdnode.models.learned_energy import HNN, LNN
from mbdnode.models.learned_mechanism import LearnedMechanism
from mbdnode.models.mbdnode import MBDNODE
from mbdnode.naming import unknown_name
from mbdnode.recipes import PAPER, get_recipe, law_recipes

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


def trained_by(recipe: str, models: Iterable[str] = MODELS) -> tuple[str, ...]:
    """The models, by name, that come of a recipe; the usual one first.

    **Arguments:**

    - `recipe`: a key of `RECIPES`.
    - `models`: those that can be asked for.

    **Returns:**

    Names among `models`.
    """
    found = get_recipe(recipe)
    if found.finds_law:
        return (LAW,)
    return found.networks or tuple(name for name in models if name != LAW)


def check_trained_by(recipe: str, model: str, models: Iterable[str] = MODELS) -> None:
    """Raise `UserError` unless a recipe gives models of this name.

    **Arguments:**

    - `recipe`: a key of `RECIPES`.
    - `model`: what was asked for.
    - `models`: what can be.
    """
    if model not in models:
        raise unknown_name("model", model, models)
    possible = trained_by(recipe, models)
    if model in possible:
        return
    if get_recipe(recipe).finds_law:
        raise UserError(
            f"The recipe {recipe!r} finds a {LAW} by regression; it does not train {model!r}. "
            f"Leave --model out, or use --recipe {PAPER}."
        )
    if model == LAW:
        raise UserError(
            f"The recipe {recipe!r} trains a network; a {LAW} is found by {law_recipes()}. Use "
            "one of these, or leave --model out."
        )
    raise UserError(
        f"The recipe {recipe!r} trains {', '.join(possible)}, not {model!r}. Leave "
        f"--model out, or use --recipe {PAPER}."
    )
