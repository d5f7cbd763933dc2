"""Units in headers of CSV recordings, and their factors to SI."""

from __future__ import annotations

import math
import re

from ur_energy_model.telemetry.fields import Field

_DEGREE = math.pi / 180
_TURN_PER_MINUTE = 2 * math.pi / 60
_TIME_SPELLINGS: tuple[tuple[float, str], ...] = (
    (1.0, "s sec secs second seconds"),
    (1e-3, "ms msec millisecond milliseconds"),
    (1e-6, "us \xb5s \u03bcs usec microseconds"),
    (1e-9, "ns nsec nanosecond nanoseconds"),
)
"""Seconds in a unit of time, and spellings of the unit."""
_SPELLINGS: tuple[tuple[str, float, str], ...] = (
    ("rad", 1.0, "rad radian radians"),
    ("rad", _DEGREE, "deg degree degrees \xb0"),
    ("rad/s", 1.0, "rad/s rads-1"),
    ("rad/s", _DEGREE, "deg/s \xb0/s"),
    ("rad/s", _TURN_PER_MINUTE, "rpm"),
    ("rad/s^2", 1.0, "rad/s^2 rad/s2 rad/s\xb2"),
    ("rad/s^2", _DEGREE, "deg/s^2 deg/s2 \xb0/s\xb2"),
    ("A", 1.0, "a amp amps ampere"),
    ("A", 1e-3, "ma"),
    ("V", 1.0, "v volt volts"),
    ("V", 1e-3, "mv"),
    ("N m", 1.0, "nm n.m"),
    ("N", 1.0, "n"),
    ("degC", 1.0, "degc \xb0c c celsius"),
    ("m", 1.0, "m"),
    ("m", 1e-3, "mm"),
    ("m/s", 1.0, "m/s"),
    ("m/s", 1e-3, "mm/s"),
    ("m/s^2", 1.0, "m/s^2 m/s2"),
    ("kg", 1.0, "kg"),
    ("kg", 1e-3, "g"),
    ("J", 1.0, "j"),
    ("J", 1e3, "kj"),
    ("W", 1.0, "w"),
)
"""SI unit, its factor, and spellings in lower case of the unit converted with it."""
_TIME = {name: factor for factor, names in _TIME_SPELLINGS for name in names.split()}
_UNITS = {name: (unit, factor) for unit, factor, names in _SPELLINGS for name in names.split()}


def split_unit(name: str) -> tuple[str, str | None]:
    """Split a column's name from the unit in brackets behind or in front of it.

    `actual_q_0 [rad]` is ("actual_q_0", "rad"); digits in brackets are an index and stay.
    """
    match = re.fullmatch(r"(.*?)\s*[\[({]\s*([^\[\](){}]*?)\s*[\])}]\s*", name)
    first = re.fullmatch(r"\s*[\[({]\s*([^\[\](){}]+?)\s*[\])}]\s*([^\[\](){}]+?)\s*", name)
    if first is not None:
        return first.group(2), first.group(1)
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
