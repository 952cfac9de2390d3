"""Inputs that act later than they were recorded: `u(t - delay)` with an unknown delay.

Inputs are polynomials on each step (see `segments`), and so are delayed ones: a held input is its
mean over the step, which gives the same impulse wherever it changes within the step; lines go
between the ends of the step, and smooth inputs through four places in it. Before the first sample
the first value acts. What a delay changes is found by differences of these polynomials, which are
smooth in it where the inputs themselves jump.
"""

import jax.numpy as jnp
import numpy as np

from mbdnode.identification.parameters.segments import Lanes

# The step of the differences, as a part of the data's own.
_DIFFERENCE = 1e-3


def delay_inputs(lanes: Lanes, places: tuple[int, ...], delays: np.ndarray) -> Lanes:
    """The same data with some inputs delayed.

    `Lanes` with the delayed inputs, and with what each of them changes with its delay as `late`.
    """
    t, dt, inputs = (np.asarray(x) for x in (lanes.t, lanes.dt, lanes.inputs))
    delayed = inputs.copy()
    late = np.zeros((*inputs.shape[:2], len(places), *inputs.shape[2:]))
    for run, (times, steps) in enumerate(zip(t + dt, dt, strict=True)):
        count = int(np.max(np.flatnonzero(steps), initial=0)) + 1
        for number, (place, delay) in enumerate(zip(places, delays, strict=True)):
            given = inputs[run, 1:count, :, place], times[:count]
            small = _DIFFERENCE * float(np.median(np.diff(times[:count])))
            delayed[run, 1:count, :, place] = _delayed(*given, delay)
            change = _delayed(*given, delay + small) - _delayed(*given, delay - small)
            late[run, 1:count, number, :, place] = change / (2 * small)
            # A segment begins by a step of no length under the input of the next one.
            delayed[run, 0, :, place] = delayed[run, 1, :, place]
    return lanes.with_inputs(jnp.asarray(delayed), jnp.asarray(late))


def _delayed(polynomials: np.ndarray, t: np.ndarray, delay: float) -> np.ndarray:
    """Of one input, polynomials on the same steps of its delayed course."""
    begin, length = t[:-1], np.diff(t)

    def places(time):
        return np.clip(np.searchsorted(begin, time, "right") - 1, 0, len(begin) - 1)

    found = np.zeros_like(polynomials)
    if not np.any(polynomials[:, 1:]):
        held = polynomials[:, 0]
        before = np.concatenate([[0.0], np.cumsum(held[:-1] * length[:-1])])
        at = places(t - delay)
        integral = before[at] + held[at] * (t - delay - begin[at])
        found[:, 0] = np.diff(integral) / length
        return found
    terms = 1 + int(np.max(np.flatnonzero(np.any(polynomials, axis=0))))
    parts = np.linspace(0.0, 1.0, terms)
    time = np.maximum(begin[:, None] + parts * length[:, None] - delay, t[0])
    at = places(time)
    since = (time - begin[at])[..., None] ** np.arange(polynomials.shape[1])
    values = np.sum(polynomials[at] * since, axis=2)
    matrix = parts[:, None] ** np.arange(terms)
    found[:, :terms] = np.linalg.solve(matrix, values.T).T / length[:, None] ** np.arange(terms)
    return found
