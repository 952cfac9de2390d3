"""Friction in a joint of a file: dry, viscous, different by direction, along the joint, at rest.

With the joint's angle or displacement `s` and its rate `s'`, the force against the motion is

    limit(s) (1 + (static - 1) exp(-(s'/speed)^2)) + viscous(s) |s'|,

each with its own value for backward motion where the file gives one. The first part is dry: it
holds what does not slip (see `mbdnode.multibody.friction_law`). Lists of values are profiles along
the joint (see `mbdnode.multibody.profiles`). Here it is data; `joint_friction_forces` has the law.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mbdnode.multibody import Parameter, nonnegative, positive

if TYPE_CHECKING:
    from mbdnode.multibody import Profile

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

    def profile(self, key: str, *, turning: bool = False) -> "Profile | None":
        """The values along the joint under a key; None where there is one number or nothing."""
        values = getattr(self, key)
        if not isinstance(values, tuple) or self.over is None:
            return None
        # Loads JAX, which files without such values are checked without.
        from mbdnode.multibody import profile

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

    def profiles(self, *, turning: bool) -> "list[Profile]":
        """All values along the joint."""
        every = (self.profile(key, turning=turning) for key in _ALONG)
        return [one for one in every if one is not None]
