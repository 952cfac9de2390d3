"""Inputs between their samples: held, on lines, on a cubic spline, or band-limited.

On every interval the input is a polynomial of the time since it began, of degree zero, one, three
or seven. Band-limited is what a generator with a smoothing filter puts out, and what a spectrum
below half the sampling rate means: the sum of `sinc` functions of all samples,

    u(t) = sum_k u_k sinc((t - t_k) / dt) w((t - t_k) / dt),

with a Kaiser window `w` of 16 samples to either side, which is exact to 1e-4 below 0.8 of half the
sampling rate. Within one interval such a signal is close to its polynomial of degree seven.
"""

import functools
from collections.abc import Iterable
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.errors import UserError
from mbdnode.multibody import is_traced

Interpolation = Literal["constant", "linear", "cubic", "band-limited"]
INTERPOLATIONS: tuple[Interpolation, ...] = ("constant", "linear", "cubic", "band-limited")
# Samples to either side that count, the Kaiser window's shape, and the polynomial's degree.
_REACH, _KAISER, _DEGREE = 16, 8.0, 7
# That a polynomial of any of them has.
MOST_TERMS = _DEGREE + 1
# Of the step: by so much times may be uneven, as printed digits make them.
_UNEVEN = 1e-3


def _constant(t, values):
    return values[:-1, None, :]


def _linear(t, values):
    slope = jnp.diff(values, axis=0) / jnp.diff(t)[:, None]
    return jnp.stack([values[:-1], slope], axis=1)


def _cubic(t, values):
    """The spline with two continuous derivatives, and a third at the second and last-but-one."""
    if t.shape[0] < 4:
        raise UserError(
            f"Cubic interpolation needs at least 4 samples, but there are {t.shape[0]}. Use "
            "interpolation='linear'."
        )
    h = jnp.diff(t)
    slope = jnp.diff(values, axis=0) / h[:, None]
    # Second derivatives m_1 ... m_(n-2) solve a tridiagonal system; the not-a-knot ends
    # m_0 = (1 + h_0/h_1) m_1 - (h_0/h_1) m_2, and their mirror, are substituted into it.
    first, last = h[0] / h[1], h[-1] / h[-2]
    main = (2 * (h[:-1] + h[1:])).at[0].add(h[0] * (1 + first)).at[-1].add(h[-1] * (1 + last))
    upper = h[1:].at[0].add(-h[0] * first).at[-1].set(0.0)
    lower = h[:-1].at[-1].add(-h[-1] * last).at[0].set(0.0)
    inner = jax.lax.linalg.tridiagonal_solve(lower, main, upper, 6 * jnp.diff(slope, axis=0))
    start = (1 + first) * inner[0] - first * inner[1]
    end = (1 + last) * inner[-1] - last * inner[-2]
    second = jnp.concatenate([start[None], inner, end[None]])
    width = h[:, None]
    return jnp.stack(
        [
            values[:-1],
            slope - width * (2 * second[:-1] + second[1:]) / 6,
            second[:-1] / 2,
            jnp.diff(second, axis=0) / (6 * width),
        ],
        axis=1,
    )


@functools.cache
def _taps() -> np.ndarray:
    """From 32 samples around an interval to the coefficients of its polynomial, in steps."""
    nodes = (1 - np.cos(np.pi * np.arange(_DEGREE + 1) / _DEGREE)) / 2
    away = nodes[:, None] - np.arange(1 - _REACH, _REACH + 1)[None, :]
    window = np.i0(_KAISER * np.sqrt(np.maximum(1 - (away / _REACH) ** 2, 0.0)))
    weights = np.sinc(away) * window
    weights /= weights.sum(axis=1, keepdims=True)  # So that a constant stays one.
    return np.linalg.solve(np.vander(nodes, increasing=True), weights)


def possible(times: Iterable[np.ndarray]) -> tuple[Interpolation, ...]:
    """What some runs allow: a spline needs four samples, a spectrum even ones."""
    runs = [np.asarray(t) for t in times]
    found = list(INTERPOLATIONS)
    if any(len(t) < 4 for t in runs):
        found.remove("cubic")
    if not all(_even(t) for t in runs):
        found.remove("band-limited")
    return tuple(found)


def _even(t: np.ndarray) -> bool:
    step = np.diff(t)
    return bool(np.ptp(step) <= _UNEVEN * np.mean(step))


def _check_even(t: np.ndarray) -> None:
    if not _even(t):
        raise UserError(
            "Band-limited interpolation needs samples at even times, but steps are from "
            f"{np.min(np.diff(t)):g} to {np.max(np.diff(t)):g} s. Use interpolation='cubic'."
        )


def _band_limited(t, values):
    """Before the first sample and after the last, the samples mirrored in that point."""
    if not is_traced(t):
        _check_even(np.asarray(t))
    steps = t.shape[0] - 1
    dt = (t[-1] - t[0]) / steps
    around = ((_REACH - 1, _REACH), (0, 0))
    padded = jnp.pad(values, around, mode="reflect", reflect_type="odd")
    taps = _taps()
    found = sum(
        taps[:, tap][None, :, None] * padded[tap : tap + steps, None, :]
        for tap in range(taps.shape[1])
    )
    powers = dt ** jnp.arange(_DEGREE + 1.0)
    return found / powers[None, :, None]


POLYNOMIALS = {
    "constant": _constant,
    "linear": _linear,
    "cubic": _cubic,
    "band-limited": _band_limited,
}


def input_polynomials(t: np.ndarray, values: np.ndarray, interpolation: str) -> np.ndarray:
    """The inputs on every interval, as polynomials of the time since it began.

    **Arguments:**

    - `interpolation`: between the samples; too few of them for a cubic spline are joined by lines.

    **Returns:**

    `(n - 1, powers, inputs)`, the lowest power first; of every run.
    """
    if interpolation == "constant" or not values.shape[-1]:
        return np.asarray(values)[..., :-1, None, :]
    kind = "linear" if interpolation == "cubic" and t.shape[-1] < 4 else interpolation
    if t.ndim == 1:
        found = np.asarray(POLYNOMIALS[kind](jnp.asarray(t), jnp.asarray(values)))
    else:
        if kind == "band-limited":
            for own in t:
                _check_even(own)
        found = np.asarray(_of_a_batch(kind, jnp.asarray(t), jnp.asarray(values)))
    powers = {"linear": 2, "cubic": 4, "band-limited": MOST_TERMS}[interpolation]
    around = [(0, 0)] * found.ndim
    around[-2] = (0, powers - found.shape[-2])
    return np.pad(found, around)


@eqx.filter_jit
def _of_a_batch(kind: str, t, values):
    return jax.vmap(POLYNOMIALS[kind])(t, values)
