"""What a constrained multibody system is, and how all of it follows from a part.

Names are loaded when first used: who checks a parameter need not wait for JAX.
"""

from typing import TYPE_CHECKING

from mbdnode.lazy_imports import lazy_names

if TYPE_CHECKING:
    from mbdnode.multibody.assembly import check_state, consistent_state, real_state
    from mbdnode.multibody.definition_checks import check_definition, check_mass, plain_sentences
    from mbdnode.multibody.dependent_coordinates import (
        complete,
        complete_position,
        complete_velocity,
        tangent_at,
    )
    from mbdnode.multibody.equations_of_motion import AbstractMechanism, accelerations, kkt
    from mbdnode.multibody.friction_law import Contacts, held_forces
    from mbdnode.multibody.kinematics import (
        constraint_counts,
        gamma,
        largest_residuals,
        position_jacobian,
        position_residual,
        position_time_derivative,
        residuals_along,
        velocity_constraints,
        velocity_residual,
    )
    from mbdnode.multibody.partition import (
        Partition,
        choose_matrices,
        choose_partition,
        exchange,
        exchange_factor,
        exchange_gain,
    )
    from mbdnode.multibody.profiles import Profile, profile
    from mbdnode.multibody.quantities import (
        Coordinate,
        Input,
        Parameter,
        angle,
        length,
        nonnegative,
        positive,
    )
    from mbdnode.multibody.singular_configurations import (
        SPACING,
        MotionPath,
        complete_across,
        find_crossing,
    )
    from mbdnode.multibody.small_systems import small_solve
    from mbdnode.multibody.system import (
        AbstractForecaster,
        AbstractNamed,
        AbstractSystem,
        AccelerationFunction,
        Coords,
        Inputs,
        Params,
        RecordedSystem,
        Time,
        is_traced,
        real_array,
        recorded_from,
        require_system,
        resolve_parameters,
    )
    from mbdnode.multibody.tangent import Split, Tangent, tangent_from

__all__ = [
    "SPACING",
    "AbstractForecaster",
    "AbstractMechanism",
    "AbstractNamed",
    "AbstractSystem",
    "AccelerationFunction",
    "Contacts",
    "Coordinate",
    "Coords",
    "Input",
    "Inputs",
    "MotionPath",
    "Parameter",
    "Params",
    "Partition",
    "Profile",
    "RecordedSystem",
    "Split",
    "Tangent",
    "Time",
    "accelerations",
    "angle",
    "check_definition",
    "check_mass",
    "check_state",
    "choose_matrices",
    "choose_partition",
    "complete",
    "complete_across",
    "complete_position",
    "complete_velocity",
    "consistent_state",
    "constraint_counts",
    "exchange",
    "exchange_factor",
    "exchange_gain",
    "find_crossing",
    "gamma",
    "held_forces",
    "is_traced",
    "kkt",
    "largest_residuals",
    "length",
    "nonnegative",
    "plain_sentences",
    "position_jacobian",
    "position_residual",
    "position_time_derivative",
    "positive",
    "profile",
    "real_array",
    "real_state",
    "recorded_from",
    "require_system",
    "residuals_along",
    "resolve_parameters",
    "small_solve",
    "tangent_at",
    "tangent_from",
    "velocity_constraints",
    "velocity_residual",
]


__getattr__ = lazy_names(
    __name__,
    {
        "AbstractForecaster": "system",
        "AbstractMechanism": "equations_of_motion",
        "AbstractNamed": "system",
        "AbstractSystem": "system",
        "AccelerationFunction": "system",
        "accelerations": "equations_of_motion",
        "angle": "quantities",
        "check_definition": "definition_checks",
        "check_mass": "definition_checks",
        "plain_sentences": "definition_checks",
        "check_state": "assembly",
        "choose_matrices": "partition",
        "choose_partition": "partition",
        "complete": "dependent_coordinates",
        "complete_across": "singular_configurations",
        "complete_position": "dependent_coordinates",
        "complete_velocity": "dependent_coordinates",
        "consistent_state": "assembly",
        "constraint_counts": "kinematics",
        "Contacts": "friction_law",
        "Coordinate": "quantities",
        "Coords": "system",
        "exchange": "partition",
        "exchange_factor": "partition",
        "exchange_gain": "partition",
        "find_crossing": "singular_configurations",
        "gamma": "kinematics",
        "held_forces": "friction_law",
        "Input": "quantities",
        "Inputs": "system",
        "is_traced": "system",
        "kkt": "equations_of_motion",
        "largest_residuals": "kinematics",
        "length": "quantities",
        "MotionPath": "singular_configurations",
        "nonnegative": "quantities",
        "Parameter": "quantities",
        "Params": "system",
        "Partition": "partition",
        "position_jacobian": "kinematics",
        "position_residual": "kinematics",
        "position_time_derivative": "kinematics",
        "positive": "quantities",
        "Profile": "profiles",
        "profile": "profiles",
        "real_array": "system",
        "require_system": "system",
        "real_state": "assembly",
        "recorded_from": "system",
        "RecordedSystem": "system",
        "residuals_along": "kinematics",
        "resolve_parameters": "system",
        "small_solve": "small_systems",
        "SPACING": "singular_configurations",
        "Split": "tangent",
        "Tangent": "tangent",
        "tangent_at": "dependent_coordinates",
        "tangent_from": "tangent",
        "Time": "system",
        "velocity_constraints": "kinematics",
        "velocity_residual": "kinematics",
    },
)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
