"""Rates by the Fourier transform inside of a run, by finite differences at its ends.

A run is not periodic. Without the line through its first and last value, and continued by its
mirror image with the other sign, it is, and its slope is continuous:

    r(t) = v(t) - line(t),    r(-t) = -r(t),    v' = IFFT(i w FFT(r)) + slope of the line.

The second derivative still jumps at the ends. This spectral leakage alternates from row to row and
falls with the squared distance from the end, so rates near the ends are finite differences.
"""

import numpy as np

from mbdnode.data.signal.polynomials import differentiate, is_even, mean_step

# The part of the rows at each end, half of the taper of FNODE's window (Tukey, 0.2).
_END = 0.1
# Fewer rows than these leave none between the ends.
FEWEST_SPECTRAL_ROWS = 20


def spectral_rate(t: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The derivative of every column, `(n, columns)`, of an even run of at least 20 rows."""
    count, step = len(t), mean_step(t)
    end = int(np.ceil(_END * count))
    found = differentiate(t, values)
    found[end:-end] = _fourier_rate(step, values)[end:-end]
    return found


def is_spectral(t: np.ndarray) -> bool:
    """Whether a run is even and long enough."""
    return len(t) >= FEWEST_SPECTRAL_ROWS and is_even(t)


def _fourier_rate(step: float, values: np.ndarray) -> np.ndarray:
    """By the Fourier transform alone, up to the ends."""
    count = len(values)
    line = np.linspace(values[0], values[-1], count)
    inner = values - line
    odd = np.concatenate([inner, -inner[-2:0:-1]])
    spectrum = np.fft.rfft(odd, axis=0)
    frequency = 2j * np.pi * np.fft.rfftfreq(len(odd), step)
    frequency[-1] = 0.0  # The shortest wave, whose slope is zero at every row.
    slopes = np.fft.irfft(spectrum * frequency[:, None], len(odd), axis=0)[:count]
    return slopes + (values[-1] - values[0]) / (step * (count - 1))
