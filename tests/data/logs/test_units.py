"""Units as SciPy's constants have them; capitals count, and what is not clear is refused."""

import numpy as np
import pytest
from scipy import constants

from mbdnode.data.logs import read
from mbdnode.data.logs.units import find_unit, read_heading, why_unclear

TURN = 2 * constants.pi
KNOWN = {
    "s": ("s", 1),
    "ms": ("s", constants.milli),
    "µs": ("s", constants.micro),
    "min": ("s", constants.minute),
    "h": ("s", constants.hour),
    "deg": ("rad", constants.degree),
    "°": ("rad", constants.degree),
    "DEG": ("rad", constants.degree),
    "mrad": ("rad", constants.milli),
    "rev": ("rad", TURN),
    "rpm": ("rad/s", TURN / constants.minute),
    "RPM": ("rad/s", TURN / constants.minute),
    "rev/min": ("rad/s", TURN / constants.minute),
    "deg/s": ("rad/s", constants.degree),
    "°/s": ("rad/s", constants.degree),
    "deg / sec": ("rad/s", constants.degree),
    "rad s^-1": ("rad/s", 1),
    "rad/s^2": ("rad/s^2", 1),
    "nm": ("m", constants.nano),
    "mm": ("m", constants.milli),
    "in": ("m", constants.inch),
    "ft": ("m", constants.foot),
    "mi": ("m", constants.mile),
    "km/h": ("m/s", constants.kmh),
    "mph": ("m/s", constants.mph),
    "m/s2": ("m/s^2", 1),
    "mm/s²": ("m/s^2", constants.milli),
    "m.s-2": ("m/s^2", 1),
    "m/s/s": ("m/s^2", 1),
    "g0": ("m/s^2", constants.g),
    "mN": ("N", constants.milli),
    "MN": ("N", constants.mega),
    "lbf": ("N", constants.lbf),
    "kgf": ("N", constants.kgf),
    "Nm": ("N m", 1),
    "N m": ("N m", 1),
    "N·m": ("N m", 1),
    "N-m": ("N m", 1),
    "mNm": ("N m", constants.milli),
    "Ncm": ("N m", constants.centi),
    "kN mm": ("N m", 1),
    "ft-lb": ("N m", constants.foot * constants.lbf),
    "kg": ("kg", 1),
    "mg": ("kg", constants.micro),
    "lbm": ("kg", constants.lb),
    "kg m^2": ("kg m^2", 1),
    "g0 kg": ("N", constants.g),
    "N/mm": ("N/m", constants.kilo),
    "mW": ("W", constants.milli),
    "MW": ("W", constants.mega),
    "mV": ("V", constants.milli),
    "MV": ("V", constants.mega),
    "V A": ("W", 1),
    "mPa": ("Pa", constants.milli),
    "MPa": ("Pa", constants.mega),
    "psi": ("Pa", constants.psi),
    "mbar": ("Pa", constants.bar / 1000),
    "H": ("H", 1),
    "1": ("1", 1),
    "-": ("1", 1),
}


@pytest.mark.parametrize("text", KNOWN)
def test_unit_has_the_factor_of_the_tables(text):
    si, factor = KNOWN[text]
    found = find_unit(text)
    assert found is not None
    assert found.si == si
    assert found.factor == pytest.approx(factor, rel=1e-14)
    assert why_unclear(text) == ""


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("NM", "nm or Nm"),
        ("MM", "mm"),
        ("MS", "ms"),
        ("S", "s"),
        ("mpa", "mPa or MPa"),
        ("mw", "mW or MW"),
        ("M/S", "m/s"),
        ("KN", "kN"),
        ("g", "gram"),
        ("lb", "lbm"),
        ("1/min", "rpm"),
        ("min^-1", "rpm"),
        ("rads", "rad/s"),
    ],
)
def test_unit_that_may_be_several_is_not_taken_for_any(text, instead):
    assert find_unit(text) is None
    assert instead in why_unclear(text)


@pytest.mark.parametrize("text", ["blarg", "degC", "%", "a/b c", "N/(m s)", "m^9", "x" * 500, ""])
def test_what_is_no_unit_is_not_known(text):
    assert find_unit(text) is None
    assert why_unclear(text) == ""


@pytest.mark.parametrize(
    ("heading", "name", "unit"),
    [
        ("torque (NM)", "torque", "NM"),
        ("theta (a)", "theta (a)", ""),
        ("v (max)", "v (max)", ""),
        ("x [blarg]", "x", "blarg"),
        ("omega / RPM", "omega", "RPM"),
        ("x_mm", "x", "mm"),
        ("x_MM", "x_MM", ""),
    ],
)
def test_heading_is_taken_apart(heading, name, unit):
    found = read_heading(heading)
    assert (found.name, found.unit) == (name, unit)


@pytest.mark.parametrize("heading", ["torque [NM]", "torque (NM)", "torque / NM"])
def test_log_with_an_unclear_unit_is_refused_until_it_is_said(heading, swing, write_csv):
    columns = {"t": swing["t"], "theta": swing["theta"], heading: 1e3 * swing["torque"]}
    path, roles = write_csv(columns), {"time": "t", "coordinates": ["theta"], "inputs": ["torque"]}
    with pytest.raises(ValueError, match=r"'NM', which is not clear.*Nm.*units={.torque"):
        read(path, **roles)
    with pytest.raises(ValueError, match="'NM' of 'torque' is not clear"):
        read(path, **roles, units={"torque": "NM"})
    run = read(path, **roles, units={"torque": "mNm"}).trajectories[0]
    np.testing.assert_allclose(run["torque"], swing["torque"], rtol=1e-14)


def test_time_in_a_unit_that_is_none_of_time_is_refused(swing, write_csv):
    path = write_csv({"t [H]": swing["t"], "theta": swing["theta"]})
    with pytest.raises(ValueError, match="'H' is none of time"):
        read(path, time="t", coordinates=["theta"])
    assert len(read(path, time="t", coordinates=["theta"], units={"t": "s"}).trajectories) == 1
