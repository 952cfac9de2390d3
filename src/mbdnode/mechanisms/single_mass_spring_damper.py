"""A mass on a spring beside a damper.

`m x'' = -k x - d x'`. With `a = d/(2m)` and `w^2 = k/m - a^2`,

    x = e^(-a t) (x0 (C + a S) + v0 S),      C = cos(w t),   S = sin(w t)/w,
    v = e^(-a t) (v0 (C - a S) - (k/m) x0 S).

A damper strong enough to make `w^2` negative turns `C` and `S` into their hyperbolic
counterparts; between the two lies the critical damper, with `C = 1` and `S = t`.
"""

import jax.numpy as jnp

from mbdnode.multibody import AbstractMechanism, length, nonnegative, positive


class SingleMassSpringDamper(AbstractMechanism):
    """One mass, one spring, one damper."""

    coordinates = (length("x"),)
    parameters = (
        positive("m", 10.0, "kg"),
        nonnegative("k", 50.0, "N/m"),
        nonnegative("d", 2.0, "N s/m"),
    )

    def mass_matrix(self, q, mu):
        """The mass."""
        return [mu["m"]]

    def force(self, t, q, v, u, mu):
        """The spring's and the damper's."""
        return -mu["k"] * q - mu["d"] * v

    def potential_energy(self, q, mu):
        """The spring's."""
        return 0.5 * mu["k"] * q[0] ** 2

    def solution(self, elapsed, q, v, mu):
        """Damped motion, whatever the strength of the damper."""
        stiffness, decay = mu["k"] / mu["m"], mu["d"] / (2 * mu["m"])
        c, s = _decaying_pair(elapsed, decay, stiffness)
        return q * (c + decay * s) + v * s, v * (c - decay * s) - stiffness * q * s


def _decaying_pair(t, decay, stiffness):
    """`e^(-a t) C` and `e^(-a t) S`, without overflow and with finite derivatives."""
    square = stiffness - decay**2
    z = square * t**2
    near = jnp.abs(z) < 1e-4  # where three terms of the series are exact to round-off
    w = jnp.sqrt(jnp.where(near, 1.0, jnp.abs(square)))
    fade = jnp.exp(-decay * t)
    series = fade * (1 - z / 2 + z**2 / 24), fade * t * (1 - z / 6 + z**2 / 120)
    swinging = fade * jnp.cos(w * t), fade * jnp.sin(w * t) / w
    # `w - a` by its conjugate, which does not cancel when the damper is strong. Where this branch
    # is not taken, the clamp keeps its exponential finite, and so its derivative.
    slow = jnp.exp(jnp.where(square < 0, -stiffness / (decay + w), 0.0) * t)
    fast = jnp.exp(-(decay + w) * t)
    creeping = (slow + fast) / 2, (slow - fast) / (2 * w)
    return tuple(
        jnp.where(near, a, jnp.where(square > 0, b, c))
        for a, b, c in zip(series, swinging, creeping, strict=True)
    )
