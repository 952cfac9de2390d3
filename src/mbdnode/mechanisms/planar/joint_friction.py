"""Friction in a joint of a file: dry, viscous, different by direction, along the joint, at rest.

With the joint's angle or displacement `s` and its rate `s'`, the force against the motion is

    limit(s) (1 + (static - 1) exp(-(s'/speed)^2)) + viscous(s) |s'|,

each with its own value for backward motion where the file gives one. The first part is dry: it
holds what does not slip (see `mbdnode.multibody.friction_law`). Lists of values are profiles along
the joint (see `mbdnode.multibody.profiles`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbdnode.multibody import Parameter, Params, Profile, nonnegative, positive, profile

# One number, or values along the joint.
Along = float | tuple[float, ...]
# What may be a list of values along the joint, with the unit of a slider's and of a hinge's.
_ALONG = {
    "limit": ("N", "N m"),
    "backward": ("N", "N m"),
    "viscous": ("N s/m", "N m s/rad"),
    "viscous_backward": ("N s/m", "N m s/rad"),
}


@dataclass(frozen=True)
class Friction:
    """Friction in a joint, which holds up to a limit and slips against it.

    **Arguments:**

    - `limit`, `backward`: of dry friction; backward as forward if not given.
    - `static`, `speed`: how many times the limit holds at rest, and the speed at which most of the
        difference is gone (Stribeck).
    - `viscous`, `viscous_backward`: per speed.
    - `over`: where the first and the last of several values lie.
    """

    name: str
    joint: str
    limit: Along
    backward: Along | None = None
    static: float | None = None
    speed: float | None = None
    viscous: Along | None = None
    viscous_backward: Along | None = None
    over: tuple[float, float] | None = None

    def profile(self, key: str, *, turning: bool = False) -> Profile | None:
        """The values along the joint under a key; None where there is one number or nothing."""
        values = getattr(self, key)
        if not isinstance(values, tuple) or self.over is None:
            return None
        return profile(f"{self.name}_{key}", values, _ALONG[key][turning], over=self.over)

    def parameters(self, *, turning: bool) -> list[tuple[Parameter, tuple[str, ...]]]:
        """Every number, with its place in the file."""
        found: list[tuple[Parameter, tuple[str, ...]]] = []
        path = "friction", self.name
        for key, units in _ALONG.items():
            along = self.profile(key, turning=turning)
            if along is not None:
                places = ((*path, key, str(i)) for i in range(len(along.values)))
                found += zip(along.parameters, places, strict=True)
            elif isinstance(value := getattr(self, key), float):
                found.append(
                    (nonnegative(f"{self.name}_{key}", value, units[turning]), (*path, key))
                )
        if self.static is not None and self.speed is not None:
            static = Parameter(f"{self.name}_static", self.static, at_least=1.0)
            speed = positive(f"{self.name}_speed", self.speed, "rad/s" if turning else "m/s")
            found += [(static, (*path, "static")), (speed, (*path, "speed"))]
        return found

    def profiles(self, *, turning: bool) -> list[Profile]:
        """All values along the joint."""
        every = (self.profile(key, turning=turning) for key in _ALONG)
        return [one for one in every if one is not None]

    def _value(self, key: str, s: Any, mu: Params) -> Any:
        along = self.profile(key)
        return mu[f"{self.name}_{key}"] if along is None else along(s, mu)

    def _both(self, key: str, other: str, s: Any, mu: Params) -> tuple[Any, Any]:
        """The values of backward and of forward motion."""
        forward = self._value(key, s, mu)
        return (forward if getattr(self, other) is None else self._value(other, s, mu)), forward

    def limits(self, s: Any, rate: Any, mu: Params) -> Float[Array, "2"]:
        """Of dry friction, backward and forward."""
        both = jnp.stack(self._both("limit", "backward", s, mu))
        if self.static is None or self.speed is None:
            return both
        rest = jnp.exp(-((rate / mu[f"{self.name}_speed"]) ** 2))
        return both * (1 + (mu[f"{self.name}_static"] - 1) * rest)

    def viscous_force(self, s: Any, rate: Any, mu: Params) -> Any:
        """Along the motion, so below zero while it goes forward."""
        if self.viscous is None:
            return jnp.zeros_like(rate)
        backward, forward = self._both("viscous", "viscous_backward", s, mu)
        return -jnp.where(rate > 0, forward, backward) * rate


def viscous_forces(
    parts: Sequence[Friction], s: Float[Array, " n"], rates: Float[Array, " n"], mu: Params
) -> Float[Array, " n"]:
    """Of all frictions in joints, along their motions.

    **Arguments:**

    - `parts`: the frictions.
    - `s`, `rates`: angle or displacement of each one's joint, and its rate.
    - `mu`: parameters.

    **Returns:**

    One force or torque for each.
    """
    rows = zip(parts, s, rates, strict=True)
    return jnp.stack([part.viscous_force(place, rate, mu) for part, place, rate in rows])
