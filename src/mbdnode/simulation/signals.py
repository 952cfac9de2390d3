"""Inputs of a rollout: interpolated samples, functions of time, constants.

On the interval that starts at `t_k` a sampled input is a polynomial in `t - t_k`
(`mbdnode.simulation.interpolation`). Evaluating it by interval, and not by time, keeps a held input
at its own value up to the very end of its step.

Inputs by name may be samples in one column and a function in another. Polynomials and functions
are added, and each is zero where the other speaks.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.errors import UserError
from mbdnode.multibody import (
    AbstractNamed,
    check_indices,
    is_traced,
    plain_sentences,
    real_array,
)
from mbdnode.naming import by_name, unknown_name
from mbdnode.simulation.interpolation import INTERPOLATIONS, POLYNOMIALS


class Signal(eqx.Module):
    """The inputs over a rollout.

    **Arguments:**

    - `samples`: the values at the output times.
    - `coefficients`: of the polynomial on each interval, lowest degree first; None if there are no
        sampled inputs.
    - `function`: `u(t)`; None if all are sampled.
    """

    samples: Float[Array, "n nu"]
    coefficients: Float[Array, "intervals degree nu"] | None
    function: Callable | None = eqx.field(static=True, default=None)

    def at(
        self, t: Float[Array, ""], start: Float[Array, ""], coefficients: Array | None
    ) -> Float[Array, " nu"]:
        """The value at `t` in the interval that begins at `start` and has these coefficients."""
        parts = []
        if self.function is not None:
            parts.append(self.function(t))
        if coefficients is not None:
            value = coefficients[-1]
            for lower in coefficients[-2::-1]:
                value = value * (t - start) + lower
            parts.append(value)
        return sum(parts[1:], start=parts[0])


def make_signal(
    system: AbstractNamed, t: Float[Array, " n"], inputs: Any, interpolation: Any
) -> Signal:
    """Turn what the caller gave into a `Signal`.

    **Arguments:**

    - `inputs`: None for zero; a function of time; an array with one row for each time or, when held
        constant, for each step; a vector is read as a column if there is one input. By name, as in
        a frame, each is such a vector, a function of time, or a constant.
    """
    count, names = len(system.inputs), system.input_names
    if interpolation not in INTERPOLATIONS:
        raise unknown_name("interpolation", interpolation, INTERPOLATIONS)
    if inputs is None:
        none = np.zeros((t.shape[0], count)), np.zeros((t.shape[0] - 1, 1, count))
        return Signal(*jax.device_put(none))
    inputs = by_name(inputs)
    if isinstance(inputs, Mapping) and (count or not inputs):
        return _signal_by_name(t, inputs, names, interpolation)
    if count == 0:
        raise UserError(
            f"{type(system).__name__} has no inputs; leave `inputs` out, or name its inputs (a "
            'bare function does so as AccelerationFunction(f, coordinates, inputs=(Input("u"),))).'
        )
    if callable(inputs):
        function = _Function(names, inputs)
        return Signal(_values(function, t), None, function)
    try:
        values = real_array(inputs)
    except (TypeError, ValueError) as error:
        raise UserError(
            f"Inputs are a {type(inputs).__name__} that is no array of numbers; give an array with "
            f"a row for each time and the columns {', '.join(names)}, a function of time, or such "
            f"by name: {{{names[0]!r}: 0.0}}."
        ) from error
    if values.ndim == 1 and count == 1:
        values = values[:, None]
    per_step = interpolation == "constant" and values.shape[:1] == (t.shape[0] - 1,)
    if values.ndim != 2 or values.shape[1] != count or not (per_step or len(values) == len(t)):
        steps = f"{len(t)} rows (one for each time)"
        if interpolation == "constant":
            steps += f" or {len(t) - 1} (one for each step)"
        raise UserError(
            f"Inputs have shape {values.shape}; there must be {steps} and {count} column(s): "
            f"{', '.join(names)}."
        )
    _check_finite(values, names)
    # Of plain numbers by NumPy: JAX would compile it for every length.
    xp = jnp if is_traced(values) or interpolation != "constant" else np
    values = xp.asarray(values)
    samples = xp.concatenate([values, values[-1:]]) if per_step else values
    found = POLYNOMIALS[interpolation](t, samples)
    return Signal(jnp.asarray(samples, values.dtype), jnp.asarray(found, values.dtype))


def _signal_by_name(
    t: Float[Array, " n"], inputs: Mapping[str, Any], names: tuple[str, ...], interpolation: str
) -> Signal:
    """A signal from samples, functions of time and constants, each by its input's name."""
    for name in inputs:
        if name not in names:
            raise unknown_name("input", str(name), names)
    missing = [name for name in names if name not in inputs]
    if missing:
        raise UserError(
            f"Inputs are given by name, but not for {', '.join(missing)}. Name every one of "
            f"{', '.join(names)}; give 0.0 for one that does nothing."
        )
    if not names:
        return Signal(jnp.zeros((t.shape[0], 0)), jnp.zeros((t.shape[0] - 1, 1, 0)))
    functions = tuple(inputs[name] if callable(inputs[name]) else None for name in names)
    others = [
        jnp.zeros(())
        if callable(inputs[name])
        else _as_column(name, inputs[name], t.shape[0], interpolation)
        for name in names
    ]
    samples = jnp.stack([jnp.broadcast_to(x, t.shape) for x in others], axis=1)
    _check_finite(samples, names)
    # Constants need no spline, for which there may be too few times.
    kind = interpolation if any(x.ndim for x in others) else "constant"
    driven = sum(function is not None for function in functions)
    coefficients = POLYNOMIALS[kind](t, samples) if driven < len(names) else None
    if not driven:
        return Signal(samples, coefficients)
    function = _FunctionsByName(names, functions)
    return Signal(samples + _values(function, t), coefficients, function)


def _as_column(name: str, value: Any, count: int, interpolation: str) -> Array:
    """A constant, or one value for each time."""
    rows = f"{count} values (one for each time)"
    rows += f" or {count - 1} (one for each step)" if interpolation == "constant" else ""
    accepted = f"give a number, {rows}, or a function of time"
    try:
        column = real_array(value)
    except (TypeError, ValueError) as error:
        raise UserError(f"Input {name!r} is {value!r}; {accepted}.") from error
    if interpolation == "constant" and column.shape == (count - 1,):
        column = jnp.concatenate([column, column[-1:]])
    if column.shape not in ((), (count,)):
        raise UserError(f"Input {name!r} has shape {column.shape}; {accepted}.")
    if not column.ndim and not is_traced(column) and not np.isfinite(float(column)):
        raise UserError(f"Input {name!r} is {float(column)}; inputs must be finite.")
    return column


@dataclass(frozen=True)
class _FunctionsByName:
    """The functions of some inputs as one of all, zero for the others.

    Equal functions make it equal, so that a rollout with the same ones is not compiled again.
    """

    names: tuple[str, ...]
    functions: tuple[Callable | None, ...]

    def __call__(self, t: Float[Array, ""]) -> Float[Array, " nu"]:
        values = []
        for name, function in zip(self.names, self.functions, strict=True):
            value = jnp.zeros(())
            if function is not None:
                value = _called(f"The function of input {name!r}", function, t)
            if value.shape not in ((), (1,)):
                raise UserError(
                    f"The function of input {name!r} returned shape {value.shape}; it must return "
                    "one number."
                )
            values.append(value.reshape(()))
        return jnp.stack(values)


def _check_finite(values: Float[Array, "n nu"], names: tuple[str, ...]) -> None:
    if not is_traced(values) and not np.all(np.isfinite(np.asarray(values))):
        row, column = np.argwhere(~np.isfinite(np.asarray(values)))[0]
        raise UserError(
            f"Input {names[column]!r} is {float(values[row, column])} in row {row}; inputs must "
            "be finite. Fill or cut those rows."
        )


@dataclass(frozen=True)
class _Function:
    """A function of all inputs, checked; what it returns by name goes by name."""

    names: tuple[str, ...]
    function: Callable

    def __call__(self, t: Float[Array, ""]) -> Float[Array, " nu"]:
        value = jnp.atleast_1d(_called("The input function", self.function, t, self.names))
        if value.shape != (len(self.names),):
            raise UserError(
                f"The input function returned shape {value.shape}; it must return "
                f"{len(self.names)} value(s): {', '.join(self.names)}."
            )
        return value


def _values(function: Callable, t: Float[Array, " n"]) -> Float[Array, "n nu"]:
    """Of a function of time at all times; an index beyond an array is refused."""
    check_indices("The input function", jax.make_jaxpr(function)(t[0]))
    return jax.vmap(function)(t)


def _called(what: str, function: Callable, t: Float[Array, ""], names: tuple[str, ...] = ()):
    """What a user's function of time returns, as an array of real numbers."""
    with plain_sentences(what):
        value = by_name(function(t))
    if isinstance(value, Mapping):
        for name in [*value, *names]:
            if name not in names or name not in value:
                raise UserError(
                    f"{what} returned values for {', '.join(map(str, value))}; the inputs are "
                    f"{', '.join(names)}. Return a value for each of them."
                )
        value = [value[name] for name in names]
    try:
        return real_array(value)
    except (TypeError, ValueError) as error:
        raise UserError(
            f"{what} returned {value!r}; it must return real numbers, one for each input."
        ) from error
