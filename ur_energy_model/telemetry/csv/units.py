# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Units in the headers of CSV recordings, and their factors to SI units."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from ur_energy_model.telemetry.fields import FIELDS, Field

_DEGREE = math.pi / 180
_SPELLINGS: Mapping[str, Mapping[str, float]] = {
    "s": {
        "s sec secs second seconds": 1.0,
        "ms msec millisecond milliseconds millis": 1e-3,
        "us usec microsecond microseconds micros \xb5s \u03bcs": 1e-6,
        "ns nsec nanosecond nanoseconds nanos": 1e-9,
        "min minute minutes": 60.0,
        "h hour hours": 3600.0,
        "d day days": 86_400.0,
    },
    "rad": {"rad radian radians": 1.0, "deg degree degrees \xb0": _DEGREE},
    "rad/s": {"rad/s rads-1": 1.0, "deg/s \xb0/s": _DEGREE, "rpm": 2 * math.pi / 60},
    "rad/s^2": {"rad/s^2 rad/s2 rad/s\xb2": 1.0, "deg/s^2 deg/s2 \xb0/s\xb2": _DEGREE},
    "A": {"a amp amps ampere": 1.0, "ma": 1e-3},
    "V": {"v volt volts": 1.0, "mv": 1e-3},
    "N m": {"nm n.m": 1.0},
    "N": {"n": 1.0},
    "degC": {"degc \xb0c c celsius": 1.0},
    "m": {"m": 1.0, "mm": 1e-3},
    "m/s": {"m/s": 1.0, "mm/s": 1e-3},
    "m/s^2": {"m/s^2 m/s2": 1.0},
    "kg": {"kg": 1.0, "g": 1e-3},
    "J": {"j": 1.0, "kj": 1e3},
    "W": {"w": 1.0},
}
"""Lower-case spellings of the units that are converted to each SI unit, and their factors."""


def _units() -> dict[str, tuple[str, float]]:
    """SI unit and factor to it by each spelling of a unit."""
    found: dict[str, tuple[str, float]] = {}
    for unit, spellings in _SPELLINGS.items():
        for names, factor in spellings.items():
            found |= dict.fromkeys(names.split(), (unit, factor))
    return found


_UNITS = _units()
_BRACKETED = r"\s*[\[({]\s*([^\[\](){}]*?)\s*[\])}]\s*"  # a unit in brackets of any kind
_NO_UNITS = ("-", "1", "iso8601")
"""Marks of columns without a unit in a line of units."""


def split_unit(name: str) -> tuple[str, str | None]:
    """Name and unit of a column, whose unit is in brackets behind or in front of the name.

    `actual_q_0 [rad]` is ("actual_q_0", "rad"); digits in brackets are an index and stay
    with the name. The unit is None where there is none.
    """
    before = re.fullmatch(_BRACKETED + r"([^\[\](){}]+?)\s*", name)
    if before is not None and before[1]:
        return before[2], before[1]
    behind = re.fullmatch("(.*?)" + _BRACKETED, name)
    if behind is None or not behind[1] or behind[2].isdigit():
        return name.strip(), None
    return behind[1], behind[2] or None


def is_unit(text: str) -> bool:
    """Whether a text is a unit, or the mark of a column without one."""
    stated = text.strip()
    if _plain_unit(text) in _UNITS or stated in _NO_UNITS:
        return True
    return any(stated in _units_of(field) for field in FIELDS.values())


def _plain_unit(unit: str) -> str:
    """A unit in lower case, without blanks and marks of multiplication."""
    return re.sub(r"[\s*\u00b7]", "", unit.lower())


def _units_of(field: Field) -> list[str]:
    """The SI units of a field; poses and forces have two, such as "m, rad"."""
    return [unit.strip() for unit in field.unit.split(",")]


def time_factor(unit: str) -> float | None:
    """Seconds in a unit of time.

    Args:
        unit: unit in a header, such as "ms" or "Seconds".

    Returns:
        The seconds; None if the text is no unit of time.
    """
    kind, factor = _UNITS.get(unit.strip().lower(), ("", 0.0))
    return factor if kind == "s" else None


def unit_factor(field: Field, unit: str) -> float | None:
    """Factor from a stated unit to the SI unit of a field.

    Args:
        field: field of the table.
        unit: unit in a header.

    Returns:
        Factor by which values in this unit are multiplied; None if the unit cannot be
        converted.
    """
    accepted = _units_of(field)
    if unit.strip() in accepted or not field.unit:
        return 1.0
    if accepted == ["ms"]:
        seconds = time_factor(unit)
        return None if seconds is None else 1e3 * seconds
    plain = _plain_unit(unit)
    if plain not in _UNITS:
        plain = re.sub("/?s-2$", "/s^2", plain)
    kind, factor = _UNITS.get(plain, ("", 0.0))
    return factor if kind in accepted else None
