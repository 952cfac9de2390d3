"""mbdnode: learn, simulate and control constrained multibody systems.

Names are loaded when first used, so that `import mbdnode` and the command line start at once.
"""

import importlib
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mbdnode.control import MPC, Limits, QuadraticCost, closed_loop, discretize, linearize
    from mbdnode.data import StepStream, sample_accelerations, write
    from mbdnode.data.logs import LogStream, read
    from mbdnode.errors import UserError
    from mbdnode.evaluation import energy, evaluate, jacobian_error, reactions
    from mbdnode.identification import estimate_state
    from mbdnode.mechanisms.planar import read_mechanism
    from mbdnode.models import FCNN, HNN, LNN, LSTM, MBDNODE, Ensemble, load, save
    from mbdnode.multibody import (
        AbstractMechanism,
        AccelerationFunction,
        Coordinate,
        Input,
        Parameter,
        angle,
        consistent_state,
        length,
        nonnegative,
        positive,
    )
    from mbdnode.simulation import simulate, training_domain
    from mbdnode.training import TrainingConfig, fit, fit_ensemble
    from mbdnode.trajectory import Dataset, State, Trajectory

__version__ = "0.1.0"

# Arrays that a user makes between `import mbdnode` and the first use must be float64 already.
if "jax" in sys.modules:
    sys.modules["jax"].config.update("jax_enable_x64", True)
else:
    os.environ.setdefault("JAX_ENABLE_X64", "true")

_HOMES = {
    "AbstractMechanism": "mbdnode.multibody",
    "AccelerationFunction": "mbdnode.multibody",
    "Coordinate": "mbdnode.multibody",
    "Dataset": "mbdnode.trajectory",
    "Ensemble": "mbdnode.models",
    "Input": "mbdnode.multibody",
    "FCNN": "mbdnode.models",
    "HNN": "mbdnode.models",
    "LNN": "mbdnode.models",
    "LSTM": "mbdnode.models",
    "Limits": "mbdnode.control",
    "LogStream": "mbdnode.data.logs",
    "MBDNODE": "mbdnode.models",
    "MPC": "mbdnode.control",
    "Parameter": "mbdnode.multibody",
    "QuadraticCost": "mbdnode.control",
    "State": "mbdnode.trajectory",
    "TrainingConfig": "mbdnode.training",
    "Trajectory": "mbdnode.trajectory",
    "UserError": "mbdnode.errors",
    "angle": "mbdnode.multibody",
    "closed_loop": "mbdnode.control",
    "consistent_state": "mbdnode.multibody",
    "discretize": "mbdnode.control",
    "energy": "mbdnode.evaluation",
    "estimate_state": "mbdnode.identification",
    "evaluate": "mbdnode.evaluation",
    "fit": "mbdnode.training",
    "fit_ensemble": "mbdnode.training",
    "jacobian_error": "mbdnode.evaluation",
    "length": "mbdnode.multibody",
    "linearize": "mbdnode.control",
    "load": "mbdnode.models",
    "nonnegative": "mbdnode.multibody",
    "positive": "mbdnode.multibody",
    "reactions": "mbdnode.evaluation",
    "read": "mbdnode.data.logs",
    "read_mechanism": "mbdnode.mechanisms.planar",
    "sample_accelerations": "mbdnode.data",
    "StepStream": "mbdnode.data",
    "save": "mbdnode.models",
    "simulate": "mbdnode.simulation",
    "training_domain": "mbdnode.simulation",
    "write": "mbdnode.data",
}
_ROOMS = ("integrators", "mechanisms", "reproduction", "testing", "workflow")

__all__ = [
    "FCNN",
    "HNN",
    "LNN",
    "LSTM",
    "MBDNODE",
    "MPC",
    "AbstractMechanism",
    "AccelerationFunction",
    "Coordinate",
    "Dataset",
    "Ensemble",
    "Input",
    "Limits",
    "LogStream",
    "Parameter",
    "QuadraticCost",
    "State",
    "StepStream",
    "TrainingConfig",
    "Trajectory",
    "UserError",
    "angle",
    "closed_loop",
    "consistent_state",
    "discretize",
    "energy",
    "estimate_state",
    "evaluate",
    "fit",
    "fit_ensemble",
    "integrators",
    "jacobian_error",
    "length",
    "linearize",
    "load",
    "mechanisms",
    "nonnegative",
    "positive",
    "reactions",
    "read",
    "read_mechanism",
    "reproduction",
    "sample_accelerations",
    "save",
    "simulate",
    "testing",
    "training_domain",
    "workflow",
    "write",
]


def __getattr__(name: str):
    if name in _ROOMS:
        return importlib.import_module(f"mbdnode.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'mbdnode' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
