"""Names of models, integrators and columns as people read them."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from mbdnode.models import LAW
from mbdnode.reproduction.cases import NUMERICAL
from mbdnode.reproduction.verdicts import ACCURATE

_MODELS = {"mbd-node": "MBD-NODE", LAW: "law", NUMERICAL: "Numerical"}


def model_title(name: str) -> str:
    """A model's name as the paper writes it; a law is none of the paper's."""
    return _MODELS.get(name, name.upper() if re.fullmatch(r"[a-z]{3,6}", name) else name)


def integrator_title(name: str) -> str:
    """An integrator's name as the paper writes it."""
    return name.upper() if re.fullmatch(r"[a-z]{2}\d", name) else name


def structure_text(rows: Iterable[Mapping[str, Any]]) -> str:
    """What an MBD-NODE is: its structure, and whether its affine part says nearly all.

    Such as " (free, affine)"; nothing for other models. It is affine where the rollout of the
    affine part alone would be called accurate.
    """
    rows = list(rows)
    told = sorted({row["structure"] for row in rows if row.get("structure")})
    without = [e for row in rows if (e := row.get("nrmse_without_layers")) is not None]
    told += ["affine"] if any(error < ACCURATE for error in without) else []
    return f" ({', '.join(told)})" if told else ""
