"""Symmetric compositions of drift and kick: LF2, YS4, FK6.

For a separable system, `x' = f(w)` and `w' = g(x)`, either half can be advanced exactly while the
other stands still. With kicks `w_1 ... w_s`, the step is

    drift w_1/2, kick w_1, drift (w_1 + w_2)/2, kick w_2, ..., kick w_s, drift w_s/2,

which is symplectic for any weights that sum to one and symmetric when they read the same
backwards. One weight is the leapfrog, three are Yoshida's fourth order, seven the sixth.
"""

import itertools

import equinox as eqx
import jax.numpy as jnp

from mbdnode.integrators.base import AbstractIntegrator

_CUBE_ROOT = 2.0 ** (1 / 3)
YOSHIDA4 = (1 / (2 - _CUBE_ROOT), -_CUBE_ROOT / (2 - _CUBE_ROOT), 1 / (2 - _CUBE_ROOT))

# Solution A of Yoshida, Phys. Lett. A 150 (1990) 262.
_W1, _W2, _W3 = -1.17767998417887, 0.235573213359357, 0.784513610477560
_W0 = 1 - 2 * (_W1 + _W2 + _W3)
YOSHIDA6 = (_W3, _W2, _W1, _W0, _W1, _W2, _W3)


class Composition(AbstractIntegrator):
    """A drift-kick composition of some `order`, with the weights of its `kicks`."""

    kicks: tuple[float, ...] = eqx.field(static=True)
    order: int = eqx.field(static=True)
    needs_separable = True
    symplectic = True

    def step(self, rate, t, dt, y):
        """One evaluation of the kick for each weight."""
        x, w = y
        ends = (0.0, *self.kicks, 0.0)
        clock = 0.0
        for index, (before, after) in enumerate(itertools.pairwise(ends)):
            drift = (before + after) / 2
            x = x + drift * dt * rate(t + clock * dt, (x, w))[0]
            clock += drift
            if index < len(self.kicks):
                w = w + after * dt * rate(t + clock * dt, (x, w))[1]
        return (x, w), jnp.array(True)
