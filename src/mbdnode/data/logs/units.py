"""Units of a log's columns, and the factor that takes each to SI.

A heading may carry its unit in brackets (`theta [deg]`, `omega (rpm)`), after a stroke
(`theta / deg`) or as an ending (`x_mm`). Endings are read only where they cannot be mistaken: `_ms`
is milliseconds after `t` or `time`, and nothing elsewhere, since `v_ms` may well be in m/s.

A unit is a product of symbols and powers, `kN`, `deg/s`, `N mm`, `m s^-2`, and capitals count: `mW`
is not `MW`. What is written with the wrong ones (`NM`, which may be Nm or nm), or means two things
(`lb`, `1/min`), is refused with what to write instead. The table is our own, since a general one
reads too much in a log: there `Nm` is a unit of yarn, and `t`, `a` and `u` are units, too.
"""

import itertools
import math
import re
from dataclasses import dataclass

# Exponents of meter, kilogram, second, ampere and radian, which is kept apart from a bare number.
_Dimension = tuple[int, ...]
_NONE: _Dimension = (0, 0, 0, 0, 0)
_LENGTH, _MASS, _TIME, _CURRENT, _ANGLE = (tuple(int(i == k) for i in range(5)) for k in range(5))
_FORCE, _TORQUE, _POWER = (1, 1, -2, 0, 0), (2, 1, -2, 0, 0), (2, 1, -3, 0, 0)
_PRESSURE, _SPEED, _TURNING = (-1, 1, -2, 0, 0), (1, 0, -1, 0, 0), (0, 0, -1, 0, 1)
_SI = {
    **{_NONE: "1", _LENGTH: "m", _MASS: "kg", _TIME: "s", _CURRENT: "A", _ANGLE: "rad"},
    **{_FORCE: "N", _TORQUE: "N m", _POWER: "W", _PRESSURE: "Pa", _SPEED: "m/s"},
    **{_TURNING: "rad/s", (0, 0, -1, 0, 0): "1/s", (1, 0, -2, 0, 0): "m/s^2"},
    **{(0, 0, -2, 0, 1): "rad/s^2", (2, 1, -3, -1, 0): "V", (2, 1, -3, -2, 0): "Ohm"},
    (2, 1, -2, -2, 0): "H",
    **{(0, 1, -2, 0, 0): "N/m", (0, 1, -1, 0, 0): "N s/m", (2, 1, 0, 0, 0): "kg m^2"},
}
_PREFIXES = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "c": 1e-2, "d": 0.1, "h": 1e2, "k": 1e3, "M": 1e6}
_TURN, _GRAVITY = 2 * math.pi, 9.80665
_INCH, _FOOT, _MILE, _POUND = 0.0254, 0.3048, 1609.344, 0.45359237
_POUND_FORCE = _POUND * _GRAVITY

# Symbols that take prefixes, and which: "" stands for none.
_PREFIXED: dict[str, tuple[tuple[str, ...], float, _Dimension]] = {
    "m": (("", "n", "u", "m", "c", "d", "k"), 1.0, _LENGTH),
    "g": (("u", "m", "k"), 1e-3, _MASS),
    "s": (("", "n", "u", "m"), 1.0, _TIME),
    "sec": (("", "u", "m"), 1.0, _TIME),
    "A": (("", "n", "u", "m", "k"), 1.0, _CURRENT),
    "rad": (("", "u", "m"), 1.0, _ANGLE),
    "N": (("", "u", "m", "k", "M"), 1.0, _FORCE),
    "Nm": (("", "u", "m", "c", "k", "M"), 1.0, _TORQUE),
    "W": (("", "u", "m", "k", "M"), 1.0, _POWER),
    "V": (("", "u", "m", "k", "M"), 1.0, (2, 1, -3, -1, 0)),
    "Ohm": (("", "m", "k", "M"), 1.0, (2, 1, -3, -2, 0)),
    "H": (("", "n", "u", "m"), 1.0, (2, 1, -2, -2, 0)),
    "Pa": (("", "m", "h", "k", "M"), 1.0, _PRESSURE),
    "bar": (("", "m"), 1e5, _PRESSURE),
    "Hz": (("", "m", "k", "M"), 1.0, (0, 0, -1, 0, 0)),
}
# Words, which mean the same in capitals.
_WORDS: dict[str, tuple[float, _Dimension]] = {
    **dict.fromkeys(("second", "seconds"), (1.0, _TIME)),
    **dict.fromkeys(("minute", "minutes"), (60.0, _TIME)),
    **dict.fromkeys(("hour", "hours"), (3600.0, _TIME)),
    **dict.fromkeys(("meter", "meters", "metre", "metres"), (1.0, _LENGTH)),
    **dict.fromkeys(("radian", "radians"), (1.0, _ANGLE)),
    **dict.fromkeys(("deg", "degree", "degrees"), (_TURN / 360, _ANGLE)),
    **dict.fromkeys(("rev", "turn", "turns"), (_TURN, _ANGLE)),
    **dict.fromkeys(("volt", "volts"), (1.0, (2, 1, -3, -1, 0))),
    **dict.fromkeys(("amp", "amps", "ampere", "amperes"), (1.0, _CURRENT)),
    **dict.fromkeys(("newton", "newtons"), (1.0, _FORCE)),
    **{"inch": (_INCH, _LENGTH), "gram": (1e-3, _MASS), "grams": (1e-3, _MASS)},
    **{"rpm": (_TURN / 60, _TURNING), "rps": (_TURN, _TURNING), "radps": (1.0, _TURNING)},
    **dict.fromkeys(("dps", "degps"), (_TURN / 360, _TURNING)),
    **dict.fromkeys(("kmh", "kph"), (1 / 3.6, _SPEED)),
    **{"mph": (_MILE / 3600, _SPEED), "psi": (_POUND_FORCE / _INCH**2, _PRESSURE)},
}
_SYMBOLS: dict[str, tuple[float, _Dimension]] = {
    f"{prefix}{symbol}": (factor * _PREFIXES.get(prefix, 1.0), dimension)
    for symbol, (prefixes, factor, dimension) in _PREFIXED.items()
    for prefix in prefixes
}
_SYMBOLS |= _WORDS | {word.upper(): meant for word, meant in _WORDS.items()}
_SYMBOLS |= {word.capitalize(): meant for word, meant in _WORDS.items()}
_SYMBOLS |= {
    **{"RAD": (1.0, _ANGLE), "Rad": (1.0, _ANGLE), "SEC": (1.0, _TIME), "Sec": (1.0, _TIME)},
    **{"min": (60.0, _TIME), "h": (3600.0, _TIME), "Nmm": (1e-3, _TORQUE), "Ncm": (1e-2, _TORQUE)},
    **{"in": (_INCH, _LENGTH), "ft": (_FOOT, _LENGTH), "mi": (_MILE, _LENGTH)},
    **{"mps": (1.0, _SPEED), "g0": (_GRAVITY, (1, 0, -2, 0, 0)), "lbm": (_POUND, _MASS)},
    **{"lbf": (_POUND_FORCE, _FORCE), "kgf": (_GRAVITY, _FORCE), "ohm": (1.0, (2, 1, -3, -2, 0))},
    "1": (1.0, _NONE),
}
# Whole units that are not the product of their parts, blanks and signs of products left out.
_ALIASES = {
    **{"-": "1", "rad_s": "rad/s", "deg_s": "deg/s", "m_s": "m/s", "mm_s": "mm/s", "cm_s": "cm/s"},
    **{
        "U/min": "rpm",
        "r/min": "rpm",
        "min-1": "1/min",
        "lb*ft": "lbf*ft",
        "ft*lb": "lbf*ft",
        "lbft": "lbf*ft",
    },
    **{"ftlb": "lbf*ft", "lb*in": "lbf*in", "in*lb": "lbf*in", "lbin": "lbf*in", "inlb": "lbf*in"},
}
# What people write for two things, and what to write instead.
_UNCLEAR = {
    "g": "g0 for the acceleration of gravity, or gram",
    "lb": "lbm for a mass, or lbf for a force",
    "lbs": "lbm for a mass, or lbf for a force",
    "rads": "rad for an angle, or rad/s for its rate",
    "degs": "deg for an angle, or deg/s for its rate",
    "1/min": "rpm for a speed of rotation, or '1' to keep the numbers as they are",
}
_FACTOR = re.compile(r"(?P<symbol>g0|1|[A-Za-z]+?)\^?(?P<power>-?[1-4])?")
_SUPERSCRIPTS = str.maketrans("⁻¹²³⁴", "-1234")
_TIMES = ("s", "sec", "ms", "us", "ns", "min")
_ENDINGS = (
    *("deg", "rad", "mrad", "rev", "rpm", "dps", "degps", "radps", "rad_s", "deg_s", "rps"),
    *("mm", "cm", "um", "km", "mm_s", "cm_s", "m_s", "mps", "kmh", "kph", "mph"),
    *("mN", "kN", "Nm", "mNm", "kNm", "Nmm", "mA", "mV", "kg"),
)
_BRACKETS = re.compile(r"^(?P<name>.*?\S)\s*(?:\[(?P<square>[^\[\]]*)\]|\((?P<round>[^()]*)\))$")
_STROKE = re.compile(r"^(?P<name>[^\W\d]\w*)\s+/\s+(?P<unit>\S+)$")
_CLOCK = re.compile(r"(^|_)(t|time|clock|timestamp)$", re.IGNORECASE)
# A unit is short, and a heading may be anything.
_LONGEST = 40


@dataclass(frozen=True)
class Unit:
    """A unit that is known, as it is written: it is `factor` of the SI unit of its dimension."""

    symbol: str
    si: str
    factor: float
    dimension: tuple[int, ...] = _NONE

    @property
    def is_angle(self) -> bool:
        """Whether it measures an angle."""
        return self.si == "rad"


@dataclass(frozen=True)
class Heading:
    """What stands above a column: as it is in the file, without the unit, and the unit."""

    raw: str
    name: str
    unit: str = ""


def find_unit(text: str) -> Unit | None:
    """The unit that is written so, such as `mN`, `deg/s`, `kg m^2` or `ft-lb`; capitals count.

    None for what is not known, or may mean two things (`why_unclear` says so).
    """
    plain = _plain(text)
    if plain in _UNCLEAR:
        return None
    parts = [_factors(part) for part in plain.split("/")] if len(plain) <= _LONGEST else []
    # Of `a/b c` nobody can tell whether c is divided by.
    if not parts or not all(parts) or any(len(part) > 1 for part in parts[1:]):
        return None
    scale, total = 1.0, [0] * 5
    for sign, (symbol, power) in (
        (-1 if number else 1, pair) for number, part in enumerate(parts) for pair in part
    ):
        if symbol not in _SYMBOLS:
            return None
        factor, dimension = _SYMBOLS[symbol]
        scale *= factor ** (sign * power)
        total = [a + sign * power * b for a, b in zip(total, dimension, strict=True)]
    return Unit(text.strip(), _si(tuple(total)), scale, tuple(total))


def why_unclear(text: str) -> str:
    """What to write instead of what looks like a unit and is none, such as "Nm or nm" for `NM`.

    Empty for a unit that is known, and for what does not look like one.
    """
    plain = _plain(text)
    if find_unit(text) is not None or len(plain) > _LONGEST:
        return ""
    if plain in _UNCLEAR:
        return _UNCLEAR[plain]
    # Alike but for capitals, each symbol by itself.
    words = re.split(r"([^A-Za-z]+)", plain)
    alike = [
        [known for known in _SYMBOLS if known.lower() == word.lower()] or [word] for word in words
    ]
    spellings = (
        "".join(chosen).replace("*", " ") for chosen in itertools.product(*alike[: _LONGEST // 2])
    )
    known = [each for each in itertools.islice(spellings, 64) if find_unit(each) is not None]
    distinct = {(u.si, u.factor): each for each in known if (u := find_unit(each)) is not None}
    return " or ".join(distinct.values())


def _plain(text: str) -> str:
    """One way of writing: `*` for products, no blanks, no sign of powers but a minus."""
    plain = text.strip().replace("°", "deg").replace("Ω", "Ohm")
    plain = re.sub("[µμ]", "u", plain).translate(_SUPERSCRIPTS).replace("**", "^")
    plain = re.sub(r"\s*/\s*", "/", plain)
    # A hyphen or a point between letters is that of N-m and N.m.
    plain = re.sub(r"\s*[*·⋅]\s*|(?<=[A-Za-z\d])[.-](?=[A-Za-z])|\s+", "*", plain)
    plain = plain.replace("^", "")
    return _ALIASES.get(plain, plain)


def _factors(product: str) -> list[tuple[str, int]]:
    """Symbols and their powers; none if some part is no symbol."""
    found = [_FACTOR.fullmatch(part) for part in product.split("*")]
    if not all(found):
        return []
    return [(each["symbol"], int(each["power"] or 1)) for each in found if each]


def _si(dimension: tuple[int, ...]) -> str:
    """The SI unit of a dimension, by its own name where it has one."""
    if dimension in _SI:
        return _SI[dimension]
    names = ("kg", "m", "s", "A", "rad")
    powers = (dimension[1], dimension[0], *dimension[2:])
    return " ".join(
        name if power == 1 else f"{name}^{power}"
        for name, power in zip(names, powers, strict=True)
        if power
    )


def looks_like_unit(text: str) -> bool:
    """Whether something outside square brackets is meant as a unit.

    A single letter that is none as it stands, as in `theta (a)`, is taken for a label.
    """
    if find_unit(text) is not None or _plain(text) in _UNCLEAR:
        return True
    return len(text.strip()) > 1 and bool(why_unclear(text))


def read_heading(raw: str) -> Heading:
    """Name and unit of a heading such as `theta [deg]`.

    What stands in square brackets is a unit, known or not; elsewhere only one that is known, or
    would be if its capitals were right.
    """
    # What moves the cursor of a terminal has no place in a name.
    raw = "".join(mark for mark in raw if mark.isprintable() or mark == "\t").strip()
    found = _BRACKETS.match(raw)
    if found:
        square, inside = found["square"], found["square"] or found["round"] or ""
        if square is not None or looks_like_unit(inside):
            return Heading(raw, found["name"], inside.strip())
    found = _STROKE.match(raw)
    if found and looks_like_unit(found["unit"]):
        return Heading(raw, found["name"], found["unit"])
    for cut in (m.start() for m in re.finditer("_", raw)):
        name, ending = raw[:cut], raw[cut + 1 :]
        if name and (ending in _ENDINGS or (_CLOCK.search(name) and ending in _TIMES)):
            return Heading(raw, name, ending)
    return Heading(raw, raw)
