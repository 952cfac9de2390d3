"""Numbers that change along a coordinate: the friction of a worn guide, of a ball screw.

A profile over `low <= x <= high` has values `c_1 ... c_n` at even distances and is the cubic
B-spline with these coefficients,

    f(x) = sum_k c_k B(s - k),        s = (x - low) / (high - low) (n - 1),

with two continuous derivatives. The weights `B` are not negative and sum to one, so the profile
stays between its values: with values that are not negative, friction never gives energy. Beyond
the ends the first and the last value go on.

The values are parameters of the system, named `<profile>_1` and so on; in identification the name
of the profile stands for all of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbdnode.errors import UserError
from mbdnode.multibody.quantities import Parameter, nonnegative


@dataclass(frozen=True)
class Profile:
    """A smooth function of a coordinate, by its values; call it with the coordinate and `mu`.

    **Arguments:**

    - `name`: of the profile.
    - `low`, `high`: where the first and the last value lie.
    - `values`: the defaults.
    - `unit`, `meaning`: as of a parameter.
    """

    name: str
    low: float
    high: float
    values: tuple[float, ...]
    unit: str = ""
    meaning: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Of its values among the parameters."""
        return tuple(f"{self.name}_{number + 1}" for number in range(len(self.values)))

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Its values, for the `parameters` of a system; none may be below zero."""
        pairs = zip(self.names, self.values, strict=True)
        return tuple(nonnegative(name, value, self.unit, self.meaning) for name, value in pairs)

    def __call__(self, x: Float[Array, ""], mu: Mapping[str, Any]) -> Float[Array, ""]:
        """Its value at a place."""
        values = jnp.stack([mu[name] for name in self.names])
        last = len(self.names) - 1
        s = jnp.clip((x - self.low) / (self.high - self.low) * last, -2.0, last + 2.0)
        padded = jnp.concatenate([values[:1], values[:1], values[:1], values, *[values[-1:]] * 3])
        return _spline(s, padded)


@jax.custom_jvp
def _spline(s: Float[Array, ""], values: Float[Array, " n"]) -> Float[Array, ""]:
    """The spline at `s`, of values at the integers from minus three on.

    The weights of all values are computed rather than the four that are not zero: nothing is looked
    up, and what is differentiated by many parameters shares the weights among them.
    """
    return _weights(s, values.shape[0])[0] @ values


@_spline.defjvp
def _spline_jvp(primals, tangents):
    (s, values), (along, change) = primals, tangents
    weights, slopes = _weights(s, values.shape[0])
    value, slope = jnp.stack([weights, slopes]) @ values
    return value, slope * along + change @ weights


def _weights(s, count: int):
    """Of each value, and their derivatives by `s`."""
    away = s - jnp.arange(-3.0, count - 3.0)
    far = jnp.abs(away)
    outer, inner = jnp.maximum(2.0 - far, 0.0), jnp.maximum(1.0 - far, 0.0)
    slopes = -jnp.sign(away) * (outer**2 - 4.0 * inner**2) / 2
    return (outer**3 - 4.0 * inner**3) / 6, slopes


def profile(
    name: str,
    values: float | Sequence[float],
    unit: str = "",
    *,
    over: tuple[float, float],
    count: int | None = None,
    meaning: str = "",
) -> Profile:
    """A number that changes smoothly along a coordinate.

    **Arguments:**

    - `name`: its values are the parameters `<name>_1`, `<name>_2` and so on.
    - `values`: the defaults; one number for a profile that is constant at first.
    - `unit`: of the values.
    - `over`: where the first and the last value lie.
    - `count`: how many values there are; as many as are given by default.
    - `meaning`: what it is, where the name does not say it.

    **Returns:**

    A `Profile`. Put its `parameters` among those of a mechanism, and itself among the `profiles`.
    """
    given = (values,) * (count or 1) if isinstance(values, int | float) else tuple(values)
    low, high = map(float, over)
    if len(given) < 2 or (count is not None and len(given) != count):
        raise UserError(
            f"The profile {name!r} has {len(given)} values (count {count}); it must have two or "
            "more. Give a list of them, or one number and count=..."
        )
    if not low < high:
        raise UserError(
            f"The profile {name!r} goes from {low:g} to {high:g}; give over=(low, high) with the "
            "lower end first."
        )
    return Profile(name, low, high, tuple(map(float, given)), unit, meaning)
