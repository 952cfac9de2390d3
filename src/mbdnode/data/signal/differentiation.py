"""Rates (velocities) estimated from positions, with their errors; the noise chooses the window.

The expected squared error of a polynomial's value or slope, `w . x`, has two parts,

    sigma^2 |w|^2 + bias^2,

noise, which a wider window averages out, and bias, which it brings in. Bias is seen in the
difference to the sum `w' . x` of a finer window, two degrees higher or narrower,

    mean((w . x - w' . x)^2) = bias^2 + sigma^2 |w - w'|^2,

up to the bias of the finer one. The higher degree alone would not do: over many periods neither
polynomial sees any slope, and they agree. The degree and width with the smallest sum are taken for
all of a run, and none is too wide for the period of a line that it leaves in the spectrum.

A Rauch-Tung-Striebel smoother and SciPy's smoothing spline do worse (`docs/results/signals.md`).
"""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from mbdnode.data.signal.noise_estimation import noise_level, quantum
from mbdnode.data.signal.polynomials import (
    Window,
    even_weights,
    fit_locally,
    is_even,
    mean_step,
    uneven_weights,
)
from mbdnode.errors import UserError

# Rows of a run that is long enough for a slope.
FEWEST_ROWS = 5
_DEGREES = (2, 4, 6, 8)
_GROWTH, _WIDEST = 1.3, 400
# Windows of uneven times are compared where their noise is at most so many times the usual.
_USUAL = 10.0
# Rows at which windows are compared.
_JUDGED = 600
# A degree is done with once its squared error is this many times its smallest.
_TOO_WIDE = 5.0
# How far a difference to a narrower window must be above what noise makes: the part by which the
# noise itself may be misjudged, and standard deviations.
_DOUBT, _SIGNIFICANT = 0.1, 3.0
# Periods that a polynomial can follow in a window, by its degree.
_PERIODS = 0.25
# Above the logarithm of their number, the power of a line in the spectrum in units of the noise's:
# one in a thousand spectra of noise has such a line. And rows that are looked at.
_LINE, _SPECTRUM_ROWS = 7.0, 8_000


@dataclass(frozen=True)
class Rate:
    """An estimated rate.

    **Arguments:**

    - `values`: at every time.
    - `error`: the expected standard deviation from the true rate, at every time: noise and bias. A
        ripple of less than a third of the noise is not seen, and not in it.
    - `noise`: the level of the noise in the positions.
    - `degree`, `half_width`: of the polynomial and its window.
    """

    values: np.ndarray
    error: np.ndarray
    noise: float
    degree: int
    half_width: int

    @property
    def typical_error(self) -> float:
        """The median of the errors, which are larger near the ends."""
        return float(np.median(self.error))


def estimate_rate(t: np.ndarray, values: np.ndarray, noise: float | None = None) -> Rate:
    """The time derivative of a measured column.

    **Arguments:**

    - `t`: times, increasing, even or not; at least five.
    - `values`: at those times.
    - `noise`: its level, if it is known better than the column tells.

    **Returns:**

    A `Rate`.
    """
    if len(t) < FEWEST_ROWS:
        raise UserError(
            f"A rate needs at least {FEWEST_ROWS} rows to be estimated from, but there are "
            f"{len(t)}."
        )
    sigma = noise_level(t, values) if noise is None else noise
    floor = np.finfo(float).eps * float(np.max(np.abs(values), initial=0.0))
    sigma = max(sigma if np.isfinite(sigma) else 0.0, floor)
    trials = _Trials(t, values, sigma, 1)
    window = trials.choose()
    assert window is not None
    slopes, gain = fit_locally(t, values, window.degree, 2 * window.half_width + 1, 1)
    error = np.sqrt(trials.sigma**2 * gain + trials.local_bias(window, slopes, gain))
    return Rate(slopes, error, sigma, window.degree, window.half_width)


def rate_errors(t: np.ndarray, positions: np.ndarray, rates: np.ndarray) -> tuple[float, float]:
    """How far measured rates are from the derivatives of their positions: the mean square.

    Beside it that of the error which the derivatives may have. Noise that neighboring rows share,
    as that of rates which were filtered, or found from smoothed positions, looks like motion in the
    column alone. Beside its positions it does not.
    """
    found = estimate_rate(t, positions)
    return float(np.mean((rates - found.values) ** 2)), float(np.mean(found.error**2))


def choose_window(t: np.ndarray, values: np.ndarray, sigma: float) -> Window | None:
    """The window whose polynomials have the smallest expected error under noise of level `sigma`.

    None for fewer than five rows, and where none does better than the values.
    """
    window = _Trials(t, values, sigma, 0).choose()
    return window if window is not None and window.risk < sigma**2 else None


class _Trials:
    """Many windows, compared at some rows of one column."""

    def __init__(self, t: np.ndarray, values: np.ndarray, sigma: float, order: int):
        self.t, self.values, self.order, self.count = t, np.ascontiguousarray(values), order, len(t)
        self.white, self.step = sigma, quantum([values]) if len(t) > 1 else 0.0
        # While a rounded column stands on one step, all rows there have the same error.
        crossed = float(np.mean(np.abs(np.diff(values)))) / self.step if self.step else 1.0
        self.sigma = sigma * np.sqrt(np.clip(1 / crossed, 1.0, max(1.0, len(t) / 4)))
        self.even, self.step_s = is_even(t), mean_step(t) if len(t) > 1 else 1.0
        self.rows = np.linspace(0, len(t) - 1, min(len(t), _JUDGED)).astype(int)
        self.found: dict[tuple[int, int], tuple[np.ndarray, float]] = {}

    def choose(self, period: float = np.inf) -> Window | None:
        """With the smallest risk, and no wider than polynomials can follow such a period, in rows.

        Again with a shorter period, if it leaves a ripple that it is too wide for.
        """
        best = None
        for degree in _DEGREES:
            smallest, halves = np.inf, self._halves(degree, degree * _PERIODS * period / 2)
            for place, half in enumerate(halves):
                noise = self.sigma**2 * self._estimates(degree, half)[1]
                bias = self._bias(degree, half, halves[:place])
                risk = noise + bias
                if best is None or risk < best.risk:
                    best = Window(degree, half, risk)
                smallest = min(smallest, risk)
                if risk > _TOO_WIDE * smallest and bias > noise:
                    break
        shorter = None if best is None else self._ripple(best)
        return best if shorter is None else self.choose(shorter)

    def local_bias(self, window: Window, values: np.ndarray, gain: np.ndarray) -> np.ndarray:
        """The squared bias at every row, over about a window around it."""
        degree, half = window.degree, window.half_width
        stride = self.count / len(self.rows)
        worst = np.zeros(self.count)
        narrower = [(degree, m) for m in self._halves(degree, float(half)) if m < half]
        others = [_finer(degree, half), *narrower]
        for (_, other), squares, expected in zip(
            others, *self._differences((degree, half), others), strict=True
        ):
            good = np.flatnonzero(np.isfinite(squares))
            span = min(max(5, int((2 * half + 1) / stride)), len(good))
            excess = _moving_average(squares[good], span) - expected
            if other < half:
                far = _far(np.clip(span * stride / (other + 1), 1, span))
                mean = float(np.mean(squares[good])) - expected
                sure = mean > expected * self._chance(half, other, len(good))
                excess = np.where(excess > expected * far, excess, mean if sure else 0.0)
            at = np.interp(np.arange(self.count), self.rows[good], excess)
            worst = np.maximum(worst, at)
        return self._with_ends(worst, window, values, gain)

    def _with_ends(
        self, bias: np.ndarray, window: Window, values: np.ndarray, gain: np.ndarray
    ) -> np.ndarray:
        """One-sided windows have more of it, told from two more degrees at each row."""
        degree, half = _finer(window.degree, window.half_width)
        rows = min(self.count, 4 * half + 2)
        for part in (slice(0, rows), slice(self.count - rows, self.count)):
            finer, more = fit_locally(
                self.t[part], self.values[part], degree, 2 * half + 1, self.order
            )
            own = gain[part]
            # The sum of fewer degrees is a projection of that of more, over the same samples.
            spread = more - own if half == window.half_width else more + own
            excess = (values[part] - finer) ** 2 - self.sigma**2 * np.abs(spread)
            excess = _moving_average(excess, max(1, half // 2))
            outer = np.arange(half) if part.start == 0 else np.arange(rows - half, rows)
            bias[part][outer] = np.maximum(bias[part][outer], excess[outer])
        return bias

    def _halves(self, degree: int, widest: float) -> list[int]:
        """Half widths from the narrowest on which the polynomial can be fitted, by a third more."""
        most = min(max(widest, degree // 2), _WIDEST)
        return [half for half in _all_halves(degree, self.count) if half <= most]

    def _estimates(self, degree: int, half: int) -> tuple[np.ndarray, float]:
        """At the rows (not a number near the ends), and `|w|^2`."""
        if (degree, half) not in self.found:
            at = np.full(len(self.rows), np.nan)
            inside = self._inside(half)
            middles = self.rows[inside]
            around = np.lib.stride_tricks.sliding_window_view(self.values, 2 * half + 1)
            away = around[middles - half] - self.values[middles][:, None]
            if self.even:
                even = even_weights(degree, 2 * half + 1, self.order)
                weights = even / self.step_s**self.order
                at[inside], gain = away @ weights, float(np.sum(weights**2))
            else:
                rows = middles[:, None] + np.arange(-half, half + 1)[None, :]
                weights = uneven_weights(self.t, rows, middles, degree, self.order)
                gains = np.sum(weights**2, axis=1)
                # A window in which times nearly coincide says nothing of the others.
                usual = gains <= _USUAL * np.median(gains)
                at[inside] = np.where(usual, np.einsum("nk,nk->n", weights, away), np.nan)
                gain = float(np.mean(gains[usual]))
            self.found[degree, half] = at, gain
        return self.found[degree, half]

    def _differences(
        self, one: tuple[int, int], others: list[tuple[int, int]]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Of one window's estimates to those of others, squared; and what noise makes of them."""
        here, gain = self._estimates(*one)
        there, gains = zip(*(self._estimates(*other) for other in others), strict=True)
        alike = np.array([_alike(one, other, self.order) for other in others])
        expected = gain + np.array(gains) - 2 * alike * np.sqrt(gain * np.array(gains))
        return (here - np.array(there)) ** 2, self.sigma**2 * expected

    def _bias(self, degree: int, half: int, narrower: list[int]) -> float:
        """Its square: what finer windows see besides noise."""
        finer = _finer(degree, half)
        squares, expected = self._differences(
            (degree, half), [finer, *((degree, other) for other in narrower)]
        )
        known = np.isfinite(squares)
        counts = np.maximum(np.count_nonzero(known, axis=1), 1)
        excess = np.sum(np.where(known, squares, 0.0), axis=1) / counts - expected
        inside = int(np.count_nonzero(self._inside(half)))
        far = self._chance(half, np.array(narrower, float), inside)
        sure = np.append(True, excess[1:] > expected[1:] * far)
        return float(np.max(excess, where=sure, initial=0.0))

    def _inside(self, half: int) -> np.ndarray:
        """Which rows have so many on either side."""
        return (self.rows >= half) & (self.rows < self.count - half)

    def _chance(self, half: int, narrower: Any, count: int) -> Any:
        """As `_far`, of the mean difference to a narrower window over all of the column."""
        return _far(np.clip((self.count - 2 * half) / (narrower + 1), 1, count))

    def _ripple(self, window: Window) -> float | None:
        """The period, in rows, of the strongest line in the spectrum of what a window leaves.

        Of those that are too short for it; None if there is none. Rounding has lines of its own, of
        up to a third of a step.
        """
        width, count = 2 * window.half_width + 1, min(self.count, _SPECTRUM_ROWS)
        t, values = self.t[:count], self.values[:count]
        if width >= count or window.degree == width - 1:
            return None
        left = values - fit_locally(t, values, window.degree, width, 0)[0]
        taper = np.hanning(count + 2)[1:-1]
        power = np.abs(np.fft.rfft(left * taper)) ** 2 / np.sum(taper**2)
        # Where a window's weights make noise larger, lines of noise are no smaller for it.
        kept = np.fft.rfft(even_weights(window.degree, width, 0), count)
        phase = np.exp(-2j * np.pi * np.fft.rfftfreq(count) * window.half_width)
        power = power / np.maximum(1.0, np.abs(phase - kept)) ** 2
        frequency = np.fft.rfftfreq(count)
        power[frequency * (width - 1) <= window.degree * _PERIODS] = 0.0
        line = int(np.argmax(power))
        sure = max(self.white**2 * (np.log(count) + _LINE), count * self.step**2 / 16)
        return 1 / float(frequency[line]) if power[line] > sure else None


@functools.lru_cache(maxsize=1024)
def _all_halves(degree: int, count: int) -> tuple[int, ...]:
    """Those of any width, in so many rows."""
    half, found = degree // 2, []
    while half <= _WIDEST and 2 * _finer(degree, half)[1] + 1 <= count:
        found.append(half)
        half = max(half + 1, int(half * _GROWTH))
    return tuple(found)


@functools.lru_cache(maxsize=8192)
def _alike(one: tuple[int, int], other: tuple[int, int], order: int) -> float:
    """The correlation of the noise in two windows' estimates, for even times."""
    own, its = (even_weights(degree, 2 * half + 1, order) for degree, half in (one, other))
    narrow, wide = sorted((own / np.linalg.norm(own), its / np.linalg.norm(its)), key=len)
    margin = (len(wide) - len(narrow)) // 2
    return float(narrow @ wide[margin : margin + len(narrow)])


def _far(independent: Any) -> Any:
    """From so many squares, how far above its expectation a mean must be to be no accident."""
    return _DOUBT + _SIGNIFICANT * np.sqrt(2 / independent)


def _finer(degree: int, half: int) -> tuple[int, int]:
    """Two degrees more, over the same samples if they are enough."""
    return degree + 2, max(half, degree // 2 + 1)


def _moving_average(values: np.ndarray, span: int) -> np.ndarray:
    """Over so many values around each, one-sided near the ends."""
    span = min(span, len(values))
    sums = np.concatenate([[0.0], np.cumsum(values)])
    first = np.clip(np.arange(len(values)) - span // 2, 0, len(values) - span)
    return (sums[first + span] - sums[first]) / span
