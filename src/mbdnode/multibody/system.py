"""What `simulate` can run: named coordinates, constraints, and an answer to one question.

The question is "what is the acceleration of the independent coordinates here?". A mechanism
answers it from mass and forces, a learned model from its network; everything else (completion,
integration, plotting, control) asks through this class and does not know which of the two it has.

`AbstractForecaster` answers another one, "where is it at these times?": a function of time and a
network that continues a sequence know one motion, at the times or at the step that they were
trained on, and no inputs. Of a `RecordedSystem` only the names are known, which is what a log
without a mechanism tells.
"""

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float

from mbdnode.errors import UserError
from mbdnode.multibody.profiles import Profile
from mbdnode.multibody.quantities import Coordinate, Input, Parameter
from mbdnode.multibody.tangent import Tangent
from mbdnode.naming import by_name, unknown_name
from mbdnode.numerics import check_precision

Time = Float[Array, ""]
Coords = Float[Array, " nq"]
Inputs = Float[Array, " nu"]
Params = dict[str, Float[Array, ""]]
# What a constraint may return: an array, or simply a list of scalars.
Rows = Float[Array, " nc"] | Sequence[Any]


class AbstractNamed(eqx.Module):
    """Named coordinates, inputs and parameters."""

    # A class attribute for a mechanism, a field for a system made at run time; the type checker
    # reads an AbstractVar as an argument of every constructor.
    if TYPE_CHECKING:
        coordinates: ClassVar[tuple[Coordinate, ...]]
    else:
        coordinates: eqx.AbstractVar[tuple[Coordinate, ...]]
    inputs: ClassVar[tuple[Input, ...]] = ()
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    # Parameters that are the values of smooth functions of a coordinate, in groups.
    profiles: ClassVar[tuple[Profile, ...]] = ()

    @property
    def residual_system(self) -> "AbstractSystem | None":
        """Whose constraints the residuals of its motions are of; None where nobody knows them."""
        return None

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """The coordinates' names."""
        return tuple(c.name for c in self.coordinates)

    @property
    def rate_names(self) -> tuple[str, ...]:
        """The velocities' names."""
        return tuple(c.rate for c in self.coordinates)

    @property
    def input_names(self) -> tuple[str, ...]:
        """The inputs' names."""
        return tuple(i.name for i in self.inputs)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The parameters' names."""
        return tuple(p.name for p in self.parameters)


class AbstractSystem(AbstractNamed):
    """Named coordinates, kinematic constraints, and accelerations.

    A subclass sets `coordinates`, and where it has them `inputs` and `parameters`, and answers
    `independent_acceleration`. Constraints are optional.
    """

    # Names of the coordinates to integrate; None lets a rank-revealing factorization choose.
    independent: ClassVar[tuple[str, ...] | None] = None
    # Near which configuration the mechanism is assembled, by name; zero where nothing is said.
    reference: ClassVar[Mapping[str, float]] = {}
    # Whether `q'` depends on the velocities alone and `v'` on the positions alone, which is what
    # a symplectic composition needs.
    separable: ClassVar[bool] = False
    # Whether `minimal_rates` gives the rates from the independent coordinates alone. Those then
    # never change, and a step completes the others once and not at every stage.
    closed_on_minimal: ClassVar[bool] = False
    # Whether constraints that repeat others are dropped; refused otherwise.
    allow_redundant: ClassVar[bool] = False
    # What sensors see: columns that are functions of the state, which `measure` gives.
    outputs: ClassVar[tuple[Coordinate, ...]] = ()
    # How sampled inputs go between samples, unless a simulation says otherwise.
    interpolation: ClassVar[str] = "constant"
    # Directions in which the values of parameters are uncertain, each one standard deviation long:
    # by name, the component in every direction. None of a system whose values are known.
    deviations: ClassVar[Mapping[str, tuple[float, ...]]] = {}

    # Whether it is learned from motions, by a training that may have made up for the errors of an
    # integrator at the step of the data.
    learned: ClassVar[bool] = False

    @property
    def residual_system(self) -> "AbstractSystem | None":
        """Its own constraints."""
        return self

    @property
    def core(self) -> "AbstractSystem":
        """What moves once the parameters are given: itself, or what it only gives values to."""
        return self

    @abc.abstractmethod
    def independent_acceleration(
        self, t: Time, q: Coords, v: Coords, u: Inputs, mu: Params, tangent: Tangent
    ) -> Float[Array, " ni"]:
        """Accelerations of the coordinates that `tangent` holds independent."""

    def minimal_rates(
        self, t: Time, z: Float[Array, " nz"], s: Float[Array, " ns"], u: Inputs, mu: Params
    ) -> tuple[Float[Array, " nz"], Float[Array, " ns"]]:
        """The rates of independent positions and velocities, where `closed_on_minimal` is set."""
        raise TypeError(f"{type(self).__name__} needs a whole state to give its accelerations.")

    def has_plain_masses(self, q: Coords, mu: Params) -> bool:
        """Whether its mass matrix, if it has one, is a diagonal of positive numbers."""
        return False

    def measure(
        self, t: Time, q: Coords, v: Coords, a: Coords, mu: Params
    ) -> Float[Array, " outputs"]:
        """The `outputs` at a state with known accelerations. None by default."""
        return jnp.zeros(0, q.dtype)

    def constraint(self, t: Time, q: Coords, mu: Params) -> Rows:
        """Holonomic residual `Phi(t, q)`, zero on the manifold. None by default."""
        return ()

    def nonholonomic(self, t: Time, q: Coords, mu: Params) -> tuple[Any, Any]:
        """`(A, b)` of the velocity constraint `A(t, q) v = b(t, q)`. None by default."""
        return (), ()


class AccelerationFunction(AbstractSystem):
    """A bare function `a(t, q, v, u, mu)` as an unconstrained system.

    **Arguments:**

    - `function`: returns the accelerations, one for each coordinate.
    - `coordinates`, `inputs`, `parameters`: its named quantities.
    - `separable`: whether `a` ignores `v`, so that a symplectic integrator may be used.
    """

    function: Callable = eqx.field(static=True)
    coordinates: tuple[Coordinate, ...] = eqx.field(static=True)
    inputs: tuple[Input, ...] = eqx.field(static=True, default=(), kw_only=True)
    parameters: tuple[Parameter, ...] = eqx.field(static=True, default=(), kw_only=True)
    separable: bool = eqx.field(static=True, default=False, kw_only=True)

    def independent_acceleration(self, t, q, v, u, mu, tangent):
        """The function's own value: every coordinate is independent."""
        a = jnp.asarray(self.function(t, q, v, u, mu))
        if a.shape != q.shape:
            raise UserError(
                f"The acceleration function returned shape {a.shape} for {q.shape[0]} "
                f"coordinates; return one acceleration for each, shape {q.shape}."
            )
        return a


def is_traced(*values: Any) -> bool:
    """Whether any leaf of `values` is a tracer, which cannot be looked at."""
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(values))


def require_system(system: Any) -> None:
    """Raise `TypeError` for a `system` that is neither a mechanism nor a model."""
    if not isinstance(system, AbstractNamed):
        way_out = f" Give an instance, {system.__name__}()." if isinstance(system, type) else ""
        raise TypeError(f"A mechanism or a model is needed, but this is {system!r}.{way_out}")


def real_array(values: Any) -> Float[Array, "..."]:
    """The `values` as an array; `TypeError` for complex ones, which would lose their other part."""
    if jnp.iscomplexobj(values if hasattr(values, "dtype") else jnp.asarray(values)):
        raise TypeError("complex numbers")
    return jnp.asarray(values, float)


def resolve_parameters(system: Any, given: Any = None) -> Params:
    """Every parameter of `system` as an array: the given values, defaults for the rest.

    **Arguments:**

    - `system`: whose parameters.
    - `given`: values by name; traced values are taken as they are, others are checked.

    **Returns:**

    A dictionary with one scalar for each of the system's parameters.
    """
    check_precision()
    require_system(system)
    given = {} if given is None else by_name(given)
    if not isinstance(given, Mapping):
        raise UserError(
            f"Parameters are {given!r}; give values by name, such as "
            f"{{{next(iter(system.parameter_names), 'm')!r}: 1.0}}."
        )
    for name in given:
        if name not in system.parameter_names:
            raise unknown_name("parameter", name, system.parameter_names)
    mu = {}
    for parameter in system.parameters:
        value = given.get(parameter.name, parameter.default)
        if not is_traced(value):
            if np.ndim(value) != 0:
                raise UserError(
                    f"Parameter {parameter.name!r} has shape {np.shape(value)}; it must be one "
                    "number. Use jax.vmap over simulate to run many values."
                )
            try:
                number = float(value)
            except (TypeError, ValueError) as error:
                raise UserError(
                    f"Parameter {parameter.name!r} is {value!r}; it must be a number."
                ) from error
            parameter.check(number)
            value = np.asarray(number)  # Of a plain number JAX would compile the conversion.
        mu[parameter.name] = jnp.asarray(value, float)
    return mu


class AbstractForecaster(AbstractNamed):
    """Named coordinates, and their values at given times."""

    @abc.abstractmethod
    def check_start(self, t: Any, past: Any) -> None:
        """Raise `UserError` unless it can go on from `past` to the times `t`.

        **Arguments:**

        - `t`: the times.
        - `past`: the first rows, `(k, 2 nq)`, positions before velocities.

        Of traced values only the shapes can be checked.
        """

    def knows(self, t: Float[Array, " n"], past: Float[Array, "k states"]) -> Bool[Array, ""]:
        """Whether these times and first rows, which may be traced, are among those it learned."""
        return jnp.array(True)

    @abc.abstractmethod
    def forecast(
        self, t: Float[Array, " n"], past: Float[Array, "k states"]
    ) -> Float[Array, "n states"]:
        """Positions and velocities at every time, from the first `k` of them."""


# A file may state any number; no log has as many columns that move.
_MOST_NAMES = 1_000


class RecordedSystem(AbstractSystem):
    """Coordinates without constraints, and forces that nobody has written down.

    A model can be made for it and learn what drives it; it has no motion of its own.

    **Arguments:**

    - `coordinates`, `inputs`, `parameters`: its named quantities.
    """

    coordinates: tuple[Coordinate, ...] = eqx.field(static=True, kw_only=True)
    inputs: tuple[Input, ...] = eqx.field(static=True, default=(), kw_only=True)
    parameters: tuple[Parameter, ...] = eqx.field(static=True, default=(), kw_only=True)

    @property
    def residual_system(self) -> None:
        """Not known: a log does not say how its coordinates hang together."""
        return None

    def independent_acceleration(self, t, q, v, u, mu, tangent):
        """Not known: a model is to be learned."""
        raise UserError(
            "Of this system only the names are known, so it has no motion of its own. Fit a model "
            "to its logs, and simulate that."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data, which `recorded_from` reads back."""
        return {
            "coordinates": [[c.name, c.unit, c.is_angle] for c in self.coordinates],
            "inputs": [[i.name, i.unit] for i in self.inputs],
            "parameters": [[p.name, p.default, p.unit] for p in self.parameters],
        }


def recorded_from(data: Any) -> RecordedSystem:
    """Make the system that `RecordedSystem.to_dict` wrote down.

    **Arguments:**

    - `data`: plain data.

    **Returns:**

    A `RecordedSystem`. Raises `UserError` for anything else.
    """
    try:
        coordinates = tuple(
            Coordinate(str(name), str(unit), bool(angle))
            for name, unit, angle in data["coordinates"]
        )
        inputs = tuple(Input(str(name), str(unit)) for name, unit in data["inputs"])
        parameters = tuple(
            Parameter(str(name), float(default), str(unit))
            for name, default, unit in data["parameters"]
        )
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{str(data)[:80]!r} does not describe a recorded system ({error})."
        ) from error
    count = len(coordinates) + len(inputs) + len(parameters)
    if count > _MOST_NAMES:
        raise UserError(
            f"A recorded system of {count:,} coordinates, inputs and parameters is not read; it "
            f"has at most {_MOST_NAMES:,}."
        )
    return RecordedSystem(coordinates=coordinates, inputs=inputs, parameters=parameters)
