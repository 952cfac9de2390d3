"""mbdnode: learn, simulate and control constrained multibody systems.

Names are loaded when first used, so that `import mbdnode` and the command line start at once.
"""

import os
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING

from mbdnode.lazy_imports import lazy_names

if TYPE_CHECKING:
    from mbdnode import integrators, mechanisms, plot, reproduction, testing, workflow
    from mbdnode.control import (
        MPC,
        EpisodeTask,
        Limits,
        QuadraticCost,
        closed_loop,
        discretize,
        gym,
        jacobian_error,
        linearize,
    )
    from mbdnode.data import StepStream, sample_accelerations, write
    from mbdnode.data.logs import LogStream, read
    from mbdnode.errors import UserError
    from mbdnode.evaluation import energy, evaluate, reactions
    from mbdnode.exports import export
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
        Profile,
        angle,
        consistent_state,
        length,
        nonnegative,
        positive,
        profile,
    )
    from mbdnode.recipes import RECIPES, IdentificationConfig, Recipe, TrainingConfig
    from mbdnode.simulation import Domain, simulate, training_domain
    from mbdnode.status import Status
    from mbdnode.training import Fit, fit, fit_ensemble
    from mbdnode.trajectory import Dataset, State, Trajectory
    from mbdnode.waiting_notice import progress

__version__ = "0.1.0"

# Arrays that a user makes between `import mbdnode` and the first use must be float64 already, and
# JAX makes its thread pool, whose size matters (mbdnode.numerics), at its first computation.
_THREADS = os.environ.get("PJRT_NPROC")
# JAX counts the cores that this process may use, of which a queue gives few of a large machine.
_CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
if _THREADS is None and _CORES < 16:
    os.environ["PJRT_NPROC"] = "16"
# Options of XLA (mbdnode.numerics says why), unless the user has them, or names a file of options:
# XLA takes what does not begin with a dash for one. It ends the process for what it does not know.
_OPTIONS = {"xla_backend_extra_options": "xla_cpu_small_while_loop_byte_threshold=262144"}
if version("jaxlib").startswith("0.10."):
    _OPTIONS["xla_cpu_experimental_ynn_fusion_type"] = ""
_FLAGS = os.environ.get("XLA_FLAGS", "").strip()
if _FLAGS[:1] in ("", "-"):
    _MORE = [f"--{name}={value}" for name, value in _OPTIONS.items() if name not in _FLAGS]
    os.environ["XLA_FLAGS"] = " ".join([_FLAGS, *_MORE]).strip()
if "jax" in sys.modules:
    from mbdnode.numerics import warn_of_few_threads

    warn_of_few_threads(_THREADS, _CORES)
else:
    os.environ.setdefault("JAX_ENABLE_X64", "true")

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
    "EpisodeTask",
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
    "Profile",
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
    "export",
    "fit",
    "fit_ensemble",
    "gym",
    "identify",
    "integrators",
    "jacobian_error",
    "length",
    "linearize",
    "load",
    "mechanisms",
    "nonnegative",
    "plot",
    "positive",
    "profile",
    "progress",
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


__getattr__ = lazy_names(
    __name__,
    {
        "AbstractMechanism": "multibody",
        "AccelerationFunction": "multibody",
        "angle": "multibody",
        "closed_loop": "control",
        "consistent_state": "multibody",
        "Coordinate": "multibody",
        "Dataset": "trajectory",
        "discretize": "control",
        "Domain": "simulation",
        "energy": "evaluation",
        "Ensemble": "models",
        "EpisodeTask": "control",
        "estimate_state": "identification",
        "evaluate": "evaluation",
        "export": "exports",
        "FCNN": "models",
        "Fit": "training",
        "fit": "training",
        "fit_ensemble": "training",
        "gym": "control",
        "HNN": "models",
        "IdentificationConfig": "recipes",
        "Identified": "identification",
        "IdentifiedParameters": "identification",
        "identify": "identification",
        "Input": "multibody",
        "jacobian_error": "control",
        "LearnedMechanism": "models",
        "length": "multibody",
        "Library": "models",
        "Limits": "control",
        "linearize": "control",
        "LNN": "models",
        "load": "models",
        "LogStream": "data.logs",
        "LSTM": "models",
        "MBDNODE": "models",
        "MPC": "control",
        "nonnegative": "multibody",
        "Parameter": "multibody",
        "positive": "multibody",
        "Profile": "multibody",
        "profile": "multibody",
        "progress": "waiting_notice",
        "QuadraticCost": "control",
        "reactions": "evaluation",
        "read": "data.logs",
        "read_mechanism": "mechanisms.planar",
        "Recipe": "recipes",
        "RECIPES": "recipes",
        "sample_accelerations": "data",
        "save": "models",
        "simulate": "simulation",
        "State": "trajectory",
        "Status": "status",
        "StepStream": "data",
        "training_domain": "simulation",
        "TrainingConfig": "recipes",
        "Trajectory": "trajectory",
        "Unknown": "identification",
        "UserError": "errors",
        "write": "data",
        "integrators": "integrators",
        "mechanisms": "mechanisms",
        "plot": "plot",
        "reproduction": "reproduction",
        "testing": "testing",
        "workflow": "workflow",
    },
)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
