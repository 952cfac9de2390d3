"""Units of a log's columns, and the factor that takes each to SI.

A heading may carry its unit in brackets (`theta [deg]`, `omega (rpm)`), after a stroke
(`theta / deg`) or as an ending (`x_mm`). Endings are read only where they cannot be mistaken: `_ms`
is milliseconds after `t` or `time`, and nothing elsewhere, since `v_ms` may well be in m/s.
"""

import math
import re
from dataclasses import dataclass

_TURN = 2 * math.pi
_INCH, _FOOT, _MILE, _POUND = 0.0254, 0.3048, 1609.344, 0.45359237
_POUND_FORCE = _POUND * 9.80665


@dataclass(frozen=True)
class Unit:
    """A unit that is known.

    **Arguments:**

    - `symbol`: as it is written.
    - `si`: the SI unit of the same quantity.
    - `factor`: how many of those it is.
    """

    symbol: str
    si: str
    factor: float

    @property
    def is_angle(self) -> bool:
        """Whether it measures an angle."""
        return self.si == "rad"


_TABLE: dict[str, dict[str, float]] = {
    "s": {"s": 1, "sec": 1, "second": 1, "seconds": 1, "ms": 1e-3, "msec": 1e-3, "us": 1e-6}
    | {"ns": 1e-9, "min": 60, "h": 3600},
    "rad": {"rad": 1, "radian": 1, "radians": 1, "mrad": 1e-3, "deg": _TURN / 360}
    | {"degree": _TURN / 360, "degrees": _TURN / 360, "rev": _TURN, "turn": _TURN, "turns": _TURN},
    "rad/s": {"rad/s": 1, "rads": 1, "radps": 1, "rad_s": 1, "mrad/s": 1e-3}
    | dict.fromkeys(("deg/s", "degs", "degps", "dps", "deg_s"), _TURN / 360)
    | dict.fromkeys(("rpm", "rev/min", "1/min", "r/min"), _TURN / 60)
    | dict.fromkeys(("rev/s", "rps", "turn/s"), _TURN),
    "rad/s2": {"rad/s2": 1, "deg/s2": _TURN / 360},
    "m": {"m": 1, "metre": 1, "meter": 1, "mm": 1e-3, "cm": 1e-2, "dm": 0.1, "km": 1e3}
    | {"um": 1e-6, "nm": 1e-9, "in": _INCH, "inch": _INCH, "ft": _FOOT, "mi": _MILE},
    "m/s": {"m/s": 1, "mps": 1, "m_s": 1, "mm/s": 1e-3, "mm_s": 1e-3, "cm/s": 1e-2, "cm_s": 1e-2}
    | dict.fromkeys(("km/h", "kmh", "kph"), 1 / 3.6)
    | {"mph": _MILE / 3600, "ft/s": _FOOT, "in/s": _INCH},
    "m/s2": {"m/s2": 1, "mm/s2": 1e-3, "cm/s2": 1e-2},
    "N": {"N": 1, "mN": 1e-3, "kN": 1e3, "MN": 1e6, "lbf": _POUND_FORCE},
    "N m": {"Nm": 1, "N-m": 1, "mNm": 1e-3, "kNm": 1e3, "Nmm": 1e-3, "Ncm": 1e-2}
    | {"lbft": _POUND_FORCE * _FOOT, "ft-lb": _POUND_FORCE * _FOOT, "lbin": _POUND_FORCE * _INCH},
    "kg": {"kg": 1, "mg": 1e-6, "lb": _POUND, "lbs": _POUND},
    "A": {"A": 1, "mA": 1e-3, "uA": 1e-6},
    "V": {"V": 1, "mV": 1e-3, "kV": 1e3},
    "W": {"W": 1, "mW": 1e-3, "kW": 1e3},
    "Pa": {"Pa": 1, "kPa": 1e3, "MPa": 1e6, "bar": 1e5, "mbar": 100.0, "psi": 6894.757293168},
    "Hz": {"Hz": 1, "kHz": 1e3},
    "1": {"1": 1, "-": 1},
}
UNITS = {
    symbol: Unit(symbol, si, float(factor))
    for si, symbols in _TABLE.items()
    for symbol, factor in symbols.items()
}
# Spellings that differ from a known unit by capitals alone and mean no other one.
_LOWER = {symbol.lower(): unit for symbol, unit in UNITS.items() if symbol.lower() not in UNITS}
_TIMES = ("s", "sec", "ms", "us", "ns", "min")
_ENDINGS = (
    *("deg", "rad", "mrad", "rev", "rpm", "dps", "degps", "radps", "rad_s", "deg_s", "rps"),
    *("mm", "cm", "um", "km", "mm_s", "cm_s", "m_s", "mps", "kmh", "kph", "mph"),
    *("mN", "kN", "Nm", "mNm", "kNm", "Nmm", "mA", "mV", "kg"),
)
_BRACKETS = re.compile(r"^(?P<name>.*?\S)\s*(?:\[(?P<square>[^\[\]]*)\]|\((?P<round>[^()]*)\))$")
_STROKE = re.compile(r"^(?P<name>[^\W\d]\w*)\s+/\s+(?P<unit>\S+)$")
_CLOCK = re.compile(r"(^|_)(t|time|clock|timestamp)$", re.IGNORECASE)


@dataclass(frozen=True)
class Heading:
    """What stands above a column.

    **Arguments:**

    - `raw`: as it is in the file.
    - `name`: without the unit.
    - `unit`: as it is written; empty if there is none.
    """

    raw: str
    name: str
    unit: str = ""


def find_unit(text: str) -> Unit | None:
    """The unit that is written so, or None."""
    plain = re.sub(r"[\s*·⋅.]", "", text).replace("°", "deg").replace("µ", "u").replace("μ", "u")
    plain = re.sub(r"(\^|\*\*)?(2|²)$", "2", plain).replace("degree/", "deg/")
    plain = re.sub(r"/(sec|second)$", "/s", plain)
    return UNITS.get(plain) or UNITS.get(plain.lower()) or _LOWER.get(plain.lower())


def read_heading(raw: str) -> Heading:
    """Take a heading apart.

    **Arguments:**

    - `raw`: such as `theta [deg]`.

    **Returns:**

    Name and unit. What stands in square brackets is a unit, known or not; elsewhere only a known
    one is.
    """
    raw = raw.strip()
    found = _BRACKETS.match(raw)
    if found:
        square, inside = found["square"], found["square"] or found["round"] or ""
        if square is not None or find_unit(inside):
            return Heading(raw, found["name"], inside.strip())
    found = _STROKE.match(raw)
    if found and find_unit(found["unit"]):
        return Heading(raw, found["name"], found["unit"])
    for cut in (m.start() for m in re.finditer("_", raw)):
        name, ending = raw[:cut], raw[cut + 1 :]
        if name and (ending in _ENDINGS or (_CLOCK.search(name) and ending in _TIMES)):
            return Heading(raw, name, ending)
    return Heading(raw, raw)
