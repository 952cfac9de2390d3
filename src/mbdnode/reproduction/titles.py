"""Names of models, integrators and columns as people read them."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from mbdnode.models import LAW
from mbdnode.reproduction.cases import NUMERICAL
from mbdnode.reproduction.verdicts import ACCURATE

# Each as the paper writes it, and in a line, in the order of the page.
MODELS = {
    "mbd-node": (
        "MBD-NODE",
        "a network for the accelerations of the minimal coordinates, the paper's method",
    ),
    "sonode": ("SONODE", "the same without inputs"),
    "node": ("NODE", "a network for all rates, velocities included, without inputs"),
    "hnn": ("HNN", "a network for the Hamiltonian"),
    "lnn": ("LNN", "a network for the Lagrangian"),
    "lstm": ("LSTM", "a recurrent network for the next state"),
    "fcnn": ("FCNN", "a network for the state as a function of time"),
    LAW: (
        "law",
        "equations of motion found by regression, without a network; compared with MBD-NODE",
    ),
    NUMERICAL: (
        "Numerical",
        "the equations of motion themselves, by an integrator; nothing is learned",
    ),
}


def model_title(name: str) -> str:
    """A model's name as the paper writes it; that of a user's own as it is."""
    return MODELS[name][0] if name in MODELS else name


def integrator_title(name: str) -> str:
    """An integrator's name as the paper writes it."""
    return name.upper() if re.fullmatch(r"[a-z]{2}\d", name) else name


def with_integrator(title: str, integrator: str) -> str:
    """A model's title with its integrator, if it has one: "MBD-NODE RK4"."""
    return title if integrator == "-" else f"{title} {integrator_title(integrator)}"


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
