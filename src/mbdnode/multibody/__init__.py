"""What a constrained multibody system is, and how all of it follows from a part."""

from mbdnode.multibody.assembly import check_state, consistent_state
from mbdnode.multibody.definition_checks import check_definition
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
    position_jacobian,
    position_residual,
    position_time_derivative,
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
    recorded_from,
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
    "length",
    "nonnegative",
    "position_jacobian",
    "position_residual",
    "position_time_derivative",
    "positive",
    "profile",
    "recorded_from",
    "resolve_parameters",
    "small_solve",
    "tangent_at",
    "tangent_from",
    "velocity_constraints",
    "velocity_residual",
]
