"""A model as a program: its tables, its state, and the jaxpr of each of its functions."""

import contextlib
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr

from mbdnode.errors import UserError
from mbdnode.exports.core_primitives import traced
from mbdnode.exports.ensembles import ENSEMBLE_ENTRIES, EnsemblePlant
from mbdnode.exports.entries import ENTRIES, Plant
from mbdnode.exports.names import check_identifier, identifiers
from mbdnode.exports.tables import Quantity, QuantityTables
from mbdnode.integrators import get_integrator
from mbdnode.multibody import (
    AbstractForecaster,
    AbstractSystem,
    check_definition,
    choose_partition,
    consistent_state,
    resolve_parameters,
)
from mbdnode.naming import unknown_name
from mbdnode.simulation import AbstractEnsemble
from mbdnode.trajectory import State

PRECISIONS = ("float64", "float32")


@dataclass(frozen=True)
class Argument:
    """An argument of an entry: "in", "out", or a field of the "state"."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    role: str


@dataclass(frozen=True)
class Entry:
    """A function of the exported model, one of `ENTRIES`: in JAX, and traced."""

    name: str
    arguments: tuple[Argument, ...]  # fields of the state, then the others
    results: tuple[Argument, ...]  # fields of the state, or arrays
    function: Callable[..., Any]
    jaxpr: ClosedJaxpr


@dataclass(frozen=True)
class Program:
    """All that an export target needs.

    **Arguments:**

    - `name`: an identifier.
    - `model`: what the model is, in a word.
    - `integrator`: its name.
    - `dt_s`: the usual step.
    - `precision`: "float64" or "float32".
    - `tables`: of names and units.
    - `state`: the fields of the state, `q` and `v` first.
    - `entries`: by name.
    - `reference`: a consistent state.
    - `plant`: the system and its integrator, from which the entries are traced.
    """

    name: str
    model: str
    integrator: str
    dt_s: float
    precision: str
    tables: QuantityTables
    state: tuple[Argument, ...]
    entries: Mapping[str, Entry]
    reference: State
    plant: Plant
    _compiled: dict[str, Any] = field(default_factory=dict)

    def run(self, entry: str, *arguments: Any) -> list[np.ndarray]:
        """An entry, computed by JAX.

        **Arguments:**

        - `entry`: its name.
        - `arguments`: arrays in the order of its `arguments`.

        **Returns:**

        Arrays in the order of its `results`.
        """
        found = self.entries[entry]
        if entry not in self._compiled:
            self._compiled[entry] = jax.jit(found.function)
        with in_precision(self.precision):
            given = [
                jnp.asarray(a, x.dtype) for a, x in zip(arguments, found.arguments, strict=True)
            ]
            return [np.asarray(r) for r in self._compiled[entry](*given)]


@contextlib.contextmanager
def in_precision(precision: str) -> Iterator[None]:
    """JAX with numbers of 64 or of 32 bits."""
    with jax.enable_x64(precision == "float64"), warnings.catch_warnings():
        # A model of 64 bits is cut to 32 because that was asked for.
        warnings.filterwarnings("ignore", "Explicitly requested dtype float64")
        yield


def trace_program(
    model: Any,
    *,
    name: str = "plant",
    integrator: Any = "rk4",
    dt_s: float = 0.01,
    parameters: Any = None,
    precision: str = "float64",
    entries: Collection[str] = ENTRIES,
) -> Program:
    """Trace the functions of a model.

    **Arguments:**

    - `model`: a mechanism or a learned model.
    - `name`: an identifier with which all names in the printed code begin.
    - `integrator`: of the step, by name or as one.
    - `dt_s`: the usual length of a step in seconds, a constant of the printed code. The step itself
        takes its length as an argument.
    - `parameters`: defaults other than the model's.
    - `precision`: of all numbers.
    - `entries`: which functions; an ensemble has those of `ENSEMBLE_ENTRIES` among them.

    **Returns:**

    A `Program`. Raises `UserError` for what cannot be exported.
    """
    check_identifier(name)
    for entry in entries:
        if entry not in ENTRIES:
            raise unknown_name("entry", entry, ENTRIES)
    if precision not in PRECISIONS:
        raise unknown_name("precision", precision, PRECISIONS)
    if not 0 < dt_s < float("inf"):
        raise UserError(f"The step is {dt_s:g} s; it must be above zero and finite.")
    plant, reference = make_plant(model, integrator, parameters)
    is_ensemble = isinstance(plant, EnsemblePlant)
    if is_ensemble:
        entries = [entry for entry in entries if entry in ENSEMBLE_ENTRIES]
    tables = _tables(model[0] if is_ensemble else model, plant, reference, parameters)
    with in_precision(precision):
        state, found = _trace(plant, tables, precision, entries)
    method = integrator if isinstance(integrator, str) else type(integrator).__name__
    return Program(
        name,
        type(model).__name__,
        method,
        float(dt_s),
        precision,
        tables,
        state,
        found,
        reference,
        plant,
    )


def make_plant(model: Any, integrator: Any, parameters: Any) -> tuple[Plant, State]:
    """The model with its integrator, and a consistent state of it."""
    if isinstance(model, AbstractForecaster):
        raise UserError(
            f"{type(model).__name__} gives states over time and has no rates, so there is nothing "
            "to step. Export a model that learns accelerations, such as MBDNODE."
        )
    if isinstance(model, AbstractEnsemble):
        plant, reference = make_plant(model[0], integrator, parameters)
        parts = (plant.system, plant.integrator, plant.partition, plant.potential)
        return EnsemblePlant(*parts, model), reference
    if not isinstance(model, AbstractSystem):
        raise TypeError(
            f"A mechanism or a model is needed, but this is a {type(model).__name__}. Wrap a bare "
            "function as AccelerationFunction(f, coordinates, inputs=...)."
        )
    check_definition(model)
    method = get_integrator(integrator)
    if method.controls_error:
        raise UserError(
            f"{integrator!r} chooses its own steps, which an exported step of a fixed length does "
            "not. Use 'rk4', or 'implicit-midpoint' for a stiff system."
        )
    if method.needs_separable and not model.separable:
        raise UserError(
            f"{type(model).__name__} is not declared separable, which {integrator!r} needs. Use "
            "'rk4' or 'implicit-midpoint'."
        )
    mu = resolve_parameters(model, parameters)
    reference = consistent_state(model, {}, parameters=parameters)
    partition = choose_partition(model, jnp.zeros(()), reference.q, mu)
    potential = getattr(model, "potential_energy", None)
    has_energy = potential is not None and jax.eval_shape(potential, reference.q, mu) is not None
    return Plant(model.core, method, partition, model if has_energy else None), reference


def _tables(model: Any, plant: Plant, reference: State, parameters: Any) -> QuantityTables:
    mu = resolve_parameters(model, parameters)
    known = plant.system.residual_system is not None
    outputs = ["position_residual", "velocity_residual"] if known else []
    if plant.potential is not None:
        outputs.insert(0, "energy")
    if isinstance(plant, EnsemblePlant):
        outputs += [f"{name}_spread" for name in (*model.coordinate_names, *model.rate_names)]
    names = [
        *model.coordinate_names,
        *model.rate_names,
        *model.input_names,
        *model.parameter_names,
        *outputs,
    ]
    words = iter(zip(names, identifiers(names), strict=True))

    def quantity(**facts: Any) -> Quantity:
        name, word = next(words)
        return Quantity(name, word, renamed=name != word, **facts)

    q, v = np.asarray(reference.q), np.asarray(reference.v)
    units = {"energy": "J"}
    for c in model.coordinates:
        units |= {f"{c.name}_spread": c.unit, f"{c.rate}_spread": f"{c.unit}/s" if c.unit else ""}
    return QuantityTables(
        coordinates=tuple(
            quantity(unit=c.unit, start=float(q[i]), is_angle=c.is_angle)
            for i, c in enumerate(model.coordinates)
        ),
        rates=tuple(
            quantity(unit=f"{c.unit}/s" if c.unit else "", start=float(v[i]), is_angle=c.is_angle)
            for i, c in enumerate(model.coordinates)
        ),
        inputs=tuple(quantity(unit=u.unit, start=0.0) for u in model.inputs),
        parameters=tuple(
            quantity(
                unit=p.unit,
                start=float(mu[p.name]),
                low=float(max(p.at_least, p.above)),
                high=float(p.at_most),
            )
            for p in model.parameters
        ),
        outputs=tuple(quantity(unit=units.get(n, "")) for n in outputs),
        independent=tuple(int(i) for i in np.asarray(plant.partition.position.independent)),
        independent_rates=tuple(int(i) for i in np.asarray(plant.partition.velocity.independent)),
    )


def _trace(
    plant: Plant, tables: QuantityTables, precision: str, wanted: Collection[str]
) -> tuple[tuple[Argument, ...], dict[str, Entry]]:
    """The state's fields, and the entries."""
    count = {letter: len(group) for _, letter, group in tables.groups()}
    number = lambda *shape: jax.ShapeDtypeStruct(shape, precision)  # noqa: E731
    given = {
        "t": number(),
        "dt": number(),
        "q": number(count["q"]),
        "v": number(count["q"]),
        "known": jax.ShapeDtypeStruct((2 * count["q"],), bool),
        "u": number(count["u"]),
        "p": number(count["p"]),
        "q_seed": number(count["q"]),
        "v_seed": number(count["q"]),
        "u_seed": number(count["u"]),
    }
    order: list[str] = []

    def init(*arrays: Any) -> list[Any]:
        made = plant.init(*arrays)
        order[:] = made  # which fields there are is known once it was traced
        return [*made.values()]

    began = traced(init, *(given[k] for k in ENTRIES["init"].takes))
    state = tuple(
        Argument(name, x.shape, x.dtype.name, "state")
        for name, x in zip(order, began.out_avals, strict=True)
    )
    found = {}
    for name in wanted:
        takes, own, gives, _ = ENTRIES[name]
        arguments = [*state] if takes else []
        arguments += [Argument(k, given[k].shape, given[k].dtype.name, "in") for k in own]
        function = _flat(getattr(plant, name), order, takes, gives)
        avals = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arguments]
        closed = began if name == "init" else traced(function, *avals)
        if gives is None:
            results = [*state]
        else:
            results = [
                Argument(k, x.shape, x.dtype.name, "out")
                for k, x in zip(gives, closed.out_avals, strict=True)
            ]
        found[name] = Entry(name, tuple(arguments), tuple(results), function, closed)
    return state, found


def _flat(
    function: Callable, fields: list[str], takes: bool, gives: tuple[str, ...] | None
) -> Callable:
    """A function of arrays, that gives a list of arrays."""

    def flat(*arrays: Any) -> list[Any]:
        if takes:
            state = dict(zip(fields, arrays, strict=False))
            made = function(state, *arrays[len(fields) :])
        else:
            made = function(*arrays)
        if gives is None:
            return [made[name] for name in fields]
        return list(made) if isinstance(made, (tuple, list)) else [made]

    return flat
