"""What is known of the machine: a mechanism file, a class of one's own, or its log alone."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from mbdnode.data.logs.cleaning import sounds_like_angle
from mbdnode.errors import UserError
from mbdnode.mechanisms import (
    MECHANISMS,
    check_system_name,
    get_mechanism,
    is_mechanism_file,
    read_mechanism,
)
from mbdnode.models import AbstractModel, AbstractRateModel
from mbdnode.multibody import (
    AbstractMechanism,
    AbstractSystem,
    Coordinate,
    Input,
    Parameter,
    RecordedSystem,
    angle,
    check_definition,
    resolve_parameters,
)
from mbdnode.naming import import_object
from mbdnode.trajectory import Dataset


def find_system(name: str) -> AbstractSystem:
    """The system of a file, of `module:name` in Python, or of a name from the catalog.

    Raises `UserError` for what cannot be found or is no system.
    """
    if is_mechanism_file(name) or os.path.sep in name:
        return read_mechanism(Path(name))
    check_system_name(name)
    if name in MECHANISMS:
        return get_mechanism(name)
    module, _, attribute = name.partition(":")
    return _imported(module, attribute)


def _imported(module: str, attribute: str) -> AbstractSystem:
    found = import_object(f"{module}:{attribute}")
    system = found() if isinstance(found, type) else found
    if not isinstance(system, AbstractSystem):
        raise UserError(
            f"{module}:{attribute} is a {type(system).__name__}; it must be a mechanism."
        )
    check_definition(system)
    return system


def recorded_system(
    data: Dataset,
    angles: tuple[str, ...] | None = None,
    units: Sequence[tuple[str, str]] | None = None,
) -> RecordedSystem:
    """A system that is known by its log alone: without constraints, with what the log has.

    `angles` are the coordinates that are angles; those whose names sound like one if not given.
    `units` are those of the logs if not given.
    """
    first = data.trajectories[0]
    known = dict(getattr(data.summary, "units", ()) if units is None else units)
    coordinates = tuple(
        angle(name)
        if (name in angles if angles is not None else sounds_like_angle(name))
        else Coordinate(name, unit=known.get(name, ""))
        for name in first.coordinates
    )
    inputs = tuple(Input(name, unit=known.get(name, "")) for name in first.inputs)
    parameters = tuple(
        Parameter(name, float(value), known.get(name, ""))
        for name, value in data.parameters[0].items()
    )
    return RecordedSystem(coordinates=coordinates, inputs=inputs, parameters=parameters)


def first_member(model: Any) -> Any:
    """The model, or the first of an ensemble."""
    return model if isinstance(model, AbstractModel) else model[0]


def used_parameters(model: Any) -> tuple[str, ...]:
    """The parameters that a model's constraints, masses, forces or rates depend on."""
    if not isinstance(model, AbstractSystem):
        return ()
    q = jnp.zeros(len(model.coordinates))
    t, u, mu = jnp.zeros(()), jnp.zeros(len(model.inputs)), resolve_parameters(model)

    def motion(values):
        constraints = model.constraint(t, q, values), model.nonholonomic(t, q, values)
        if isinstance(model, AbstractRateModel):
            z = jnp.zeros(len(model.minimal))
            return constraints, model.minimal_rates(t, z, z, u, values)
        assert isinstance(model, AbstractMechanism)
        friction = model.dry_friction(t, q, q, u, values)
        return constraints, model.mass(q, values), friction, model.force(t, q, q, u, values)

    names = sorted(mu)
    traced = jax.make_jaxpr(lambda *values: motion(dict(zip(names, values, strict=True))))(
        *(mu[name] for name in names)
    ).jaxpr
    # What is reached from each parameter, equation by equation.
    return tuple(
        name for name, start in zip(names, traced.invars, strict=True) if _reaches(traced, start)
    )


def _reaches(traced: Any, start: Any) -> bool:
    reached = {id(start)}
    for equation in traced.eqns:
        if any(id(variable) in reached for variable in equation.invars):
            reached |= {id(variable) for variable in equation.outvars}
    return any(id(variable) in reached for variable in traced.outvars)
