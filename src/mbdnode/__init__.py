"""mbdnode: learn, simulate and control constrained multibody systems.

Names are loaded when first used, so that `import mbdnode` and the command line start at once.
"""

import importlib
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mbdnode import integrators, mechanisms, reproduction, testing, workflow
    from mbdnode.control import (
        MPC,
        Limits,
        QuadraticCost,
        closed_loop,
        discretize,
        jacobian_error,
        linearize,
    )
    from mbdnode.data import StepStream, sample_accelerations, write
    from mbdnode.data.logs import LogStream, read
    from mbdnode.errors import UserError
    from mbdnode.evaluation import energy, evaluate, reactions
    from mbdnode.identification import (
        Identified,
        IdentifiedParameters,
        Unknown,
        estimate_state,
        identify,
    )
    from mbdnode.mechanisms.planar import read_mechanism
    from mbdnode.models import (
        FCNN,
        HNN,
        LNN,
        LSTM,
        MBDNODE,
        Ensemble,
        LearnedMechanism,
        Library,
        load,
        save,
    )
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
    from mbdnode.recipes import RECIPES, IdentificationConfig, Recipe, TrainingConfig
    from mbdnode.simulation import Domain, simulate, training_domain
    from mbdnode.status import Status
    from mbdnode.training import Fit, fit, fit_ensemble
    from mbdnode.trajectory import Dataset, State, Trajectory

__version__ = "0.1.0"

# Arrays that a user makes between `import mbdnode` and the first use must be float64 already, and
# JAX makes its thread pool, whose size matters (mbdnode.numerics), at its first computation.
_THREADS = os.environ.get("PJRT_NPROC")
if _THREADS is None and (os.cpu_count() or 1) < 16:
    os.environ["PJRT_NPROC"] = "16"
if "jax" in sys.modules:
    from mbdnode.numerics import warn_of_few_threads

    warn_of_few_threads(_THREADS)
else:
    os.environ.setdefault("JAX_ENABLE_X64", "true")

_HOMES = {
    "AbstractMechanism": "mbdnode.multibody",
    "AccelerationFunction": "mbdnode.multibody",
    "angle": "mbdnode.multibody",
    "closed_loop": "mbdnode.control",
    "consistent_state": "mbdnode.multibody",
    "Coordinate": "mbdnode.multibody",
    "Dataset": "mbdnode.trajectory",
    "discretize": "mbdnode.control",
    "Domain": "mbdnode.simulation",
    "energy": "mbdnode.evaluation",
    "Ensemble": "mbdnode.models",
    "estimate_state": "mbdnode.identification",
    "evaluate": "mbdnode.evaluation",
    "FCNN": "mbdnode.models",
    "Fit": "mbdnode.training",
    "fit": "mbdnode.training",
    "fit_ensemble": "mbdnode.training",
    "HNN": "mbdnode.models",
    "IdentificationConfig": "mbdnode.recipes",
    "Identified": "mbdnode.identification",
    "IdentifiedParameters": "mbdnode.identification",
    "identify": "mbdnode.identification",
    "Input": "mbdnode.multibody",
    "jacobian_error": "mbdnode.control",
    "LearnedMechanism": "mbdnode.models",
    "length": "mbdnode.multibody",
    "Library": "mbdnode.models",
    "Limits": "mbdnode.control",
    "linearize": "mbdnode.control",
    "LNN": "mbdnode.models",
    "load": "mbdnode.models",
    "LogStream": "mbdnode.data.logs",
    "LSTM": "mbdnode.models",
    "MBDNODE": "mbdnode.models",
    "MPC": "mbdnode.control",
    "nonnegative": "mbdnode.multibody",
    "Parameter": "mbdnode.multibody",
    "positive": "mbdnode.multibody",
    "QuadraticCost": "mbdnode.control",
    "reactions": "mbdnode.evaluation",
    "read": "mbdnode.data.logs",
    "read_mechanism": "mbdnode.mechanisms.planar",
    "Recipe": "mbdnode.recipes",
    "RECIPES": "mbdnode.recipes",
    "sample_accelerations": "mbdnode.data",
    "save": "mbdnode.models",
    "simulate": "mbdnode.simulation",
    "State": "mbdnode.trajectory",
    "Status": "mbdnode.status",
    "StepStream": "mbdnode.data",
    "training_domain": "mbdnode.simulation",
    "TrainingConfig": "mbdnode.recipes",
    "Trajectory": "mbdnode.trajectory",
    "Unknown": "mbdnode.identification",
    "UserError": "mbdnode.errors",
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
    "RECIPES",
    "AbstractMechanism",
    "AccelerationFunction",
    "Coordinate",
    "Dataset",
    "Domain",
    "Ensemble",
    "Fit",
    "IdentificationConfig",
    "Identified",
    "IdentifiedParameters",
    "Input",
    "LearnedMechanism",
    "Library",
    "Limits",
    "LogStream",
    "Parameter",
    "QuadraticCost",
    "Recipe",
    "State",
    "Status",
    "StepStream",
    "TrainingConfig",
    "Trajectory",
    "Unknown",
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
    "identify",
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
