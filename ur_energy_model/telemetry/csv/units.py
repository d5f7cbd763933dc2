"""Units in headers of CSV recordings, and their factors to SI."""

from __future__ import annotations

import math
import re

from ur_energy_model.telemetry.fields import Field

_DEGREE = math.pi / 180
_TIME: dict[str, float] = {
    "s": 1.0,
    "sec": 1.0,
    "secs": 1.0,
    "second": 1.0,
    "seconds": 1.0,
    "ms": 1e-3,
    "msec": 1e-3,
    "millisecond": 1e-3,
    "milliseconds": 1e-3,
    "us": 1e-6,
    "\u00b5s": 1e-6,
    "\u03bcs": 1e-6,
    "usec": 1e-6,
    "microseconds": 1e-6,
    "ns": 1e-9,
    "nsec": 1e-9,
    "nanosecond": 1e-9,
    "nanoseconds": 1e-9,
}
_UNITS: dict[str, tuple[str, float]] = {
    "rad": ("rad", 1.0),
    "radian": ("rad", 1.0),
    "radians": ("rad", 1.0),
    "deg": ("rad", _DEGREE),
    "degree": ("rad", _DEGREE),
    "degrees": ("rad", _DEGREE),
    "\u00b0": ("rad", _DEGREE),
    "rad/s": ("rad/s", 1.0),
    "rads-1": ("rad/s", 1.0),
    "deg/s": ("rad/s", _DEGREE),
    "\u00b0/s": ("rad/s", _DEGREE),
    "rpm": ("rad/s", 2 * math.pi / 60),
    "rad/s^2": ("rad/s^2", 1.0),
    "rad/s2": ("rad/s^2", 1.0),
    "rad/s\u00b2": ("rad/s^2", 1.0),
    "deg/s^2": ("rad/s^2", _DEGREE),
    "deg/s2": ("rad/s^2", _DEGREE),
    "\u00b0/s\u00b2": ("rad/s^2", _DEGREE),
    "a": ("A", 1.0),
    "amp": ("A", 1.0),
    "amps": ("A", 1.0),
    "ampere": ("A", 1.0),
    "ma": ("A", 1e-3),
    "v": ("V", 1.0),
    "volt": ("V", 1.0),
    "volts": ("V", 1.0),
    "mv": ("V", 1e-3),
    "nm": ("N m", 1.0),
    "n.m": ("N m", 1.0),
    "n": ("N", 1.0),
    "degc": ("degC", 1.0),
    "\u00b0c": ("degC", 1.0),
    "c": ("degC", 1.0),
    "celsius": ("degC", 1.0),
    "m": ("m", 1.0),
    "mm": ("m", 1e-3),
    "m/s": ("m/s", 1.0),
    "mm/s": ("m/s", 1e-3),
    "m/s^2": ("m/s^2", 1.0),
    "m/s2": ("m/s^2", 1.0),
    "kg": ("kg", 1.0),
    "g": ("kg", 1e-3),
    "j": ("J", 1.0),
    "kj": ("J", 1e3),
    "w": ("W", 1.0),
}


def split_unit(name: str) -> tuple[str, str | None]:
    """Split a column's name from the unit in brackets at its end.

    `actual_q_0 [rad]` is ("actual_q_0", "rad"); digits in brackets are an index and stay.
    """
    match = re.fullmatch(r"(.*?)\s*[\[({]\s*([^\[\](){}]*?)\s*[\])}]\s*", name)
    if match is None or not match.group(1) or match.group(2).isdigit():
        return name.strip(), None
    return match.group(1), match.group(2) or None


def time_factor(unit: str) -> float | None:
    """Seconds in a unit of time; None if it is not one."""
    return _TIME.get(unit.strip().lower())


def unit_factor(field: Field, unit: str) -> float | None:
    """Factor from a unit to the field's SI unit; None if it cannot be converted."""
    accepted = [part.strip() for part in field.unit.split(",")]
    if unit.strip() in accepted or not field.unit:
        return 1.0
    if accepted == ["ms"]:
        seconds = time_factor(unit)
        return None if seconds is None else 1e3 * seconds
    plain = re.sub(r"[\s*\u00b7]", "", unit.lower())
    found = _UNITS.get(plain)
    if found is None and plain.endswith("s-2"):
        found = _UNITS.get(plain[:-3].rstrip("/") + "/s^2")
    if found is None or found[0] not in accepted:
        return None
    return found[1]
