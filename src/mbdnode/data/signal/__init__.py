"""Sampled signals: noise and outliers in a column, smoothed values, derivatives and errors."""

from mbdnode.data.signal.differentiation import (
    FEWEST_ROWS,
    Rate,
    choose_window,
    estimate_rate,
    rate_errors,
)
from mbdnode.data.signal.noise_estimation import noise_level, noise_levels, quantum
from mbdnode.data.signal.outliers import Outliers, find_outliers, outliers_of_columns
from mbdnode.data.signal.polynomials import Window, differentiate, is_even, local_values
from mbdnode.data.signal.spectral import is_spectral, spectral_rate
from mbdnode.data.signal.state_smoothing import smooth_states

__all__ = [
    "FEWEST_ROWS",
    "Outliers",
    "Rate",
    "Window",
    "choose_window",
    "differentiate",
    "estimate_rate",
    "find_outliers",
    "is_even",
    "is_spectral",
    "local_values",
    "noise_level",
    "noise_levels",
    "outliers_of_columns",
    "quantum",
    "rate_errors",
    "smooth_states",
    "spectral_rate",
]
