# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Numbers as people type them: with units, percent, decimal commas, as hours and minutes.

Options take plain numbers in one unit each. What people type instead is refused with the
number to write: `2m` of a duration is 120, `500g` of a payload 0.5, `28ct` of a price
0.28.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import TypeVar

N = TypeVar("N", int, float)
_SPELLINGS: Mapping[str, Mapping[str, float]] = {
    "s": {
        "s sec secs second seconds": 1.0,
        "ms msec millisecond milliseconds": 1e-3,
        "us \xb5s \u03bcs": 1e-6,
        "m min mins minute minutes": 60.0,
        "h hr hrs hour hours": 3600.0,
        "d day days": 86_400.0,
    },
    "min": {
        "min mins m minute minutes": 1.0,
        "s sec seconds": 1.0 / 60.0,
        "h hour hours": 60.0,
    },
    "days": {"d day days": 1.0, "h hour hours": 1.0 / 24.0, "w week weeks": 7.0},
    "Hz": {"hz 1/s /s fps sps": 1.0, "khz": 1e3},
    "kg": {"kg kgs": 1.0, "g gr gram grams": 1e-3, "lb lbs": 0.453_592_37, "t": 1e3},
    "m": {
        "m meter meters metre metres": 1.0,
        "mm": 1e-3,
        "cm": 1e-2,
        "in inch inches": 0.0254,
        "ft": 0.3048,
    },
    "m/s": {"m/s": 1.0, "mm/s": 1e-3, "cm/s": 1e-2},
    "rad/s^3": {
        "rad/s^3 rad/s3 rad/s\xb3": 1.0,
        "deg/s^3 deg/s3 \xb0/s\xb3": math.pi / 180.0,
    },
    "deg": {"deg degree degrees \xb0": 1.0, "rad": 180.0 / math.pi},
    "degC": {"c \xb0c degc celsius": 1.0},
    "W": {"w watt watts": 1.0, "kw": 1e3},
    "MB": {"mb": 1.0, "kb": 1e-3, "gb": 1e3, "mib": 1.048_576, "gib": 1_073.741_824},
    "GB": {
        "gb": 1.0,
        "mb": 1e-3,
        "tb": 1e3,
        "gib": 1.073_741_824,
        "tib": 1_099.511_627_776,
    },
    "share": {"%": 1e-2, "percent": 1e-2},
    "price": {
        "ct c cent cents p rp \xa2": 1e-2,
        "\u20ac eur euro $ usd \xa3 gbp chf": 1.0,
    },
}
"""Lower-case spellings of units that people type, and their factors, by unit of an option."""


def _factors_by_spelling() -> dict[str, dict[str, float]]:
    """Factors by the unit of an option, and by each spelling of a unit that people type."""
    factors: dict[str, dict[str, float]] = {}
    for unit, spellings in _SPELLINGS.items():
        factors[unit] = {}
        for names, factor in spellings.items():
            factors[unit] |= dict.fromkeys(names.split(), factor)
    return factors


_OF_UNIT = _factors_by_spelling()
_NUMBER = r"[-+]?(?:\d{1,20}(?:[.,]\d{0,20})?|[.,]\d{1,20})(?:e[-+]?\d{1,3})?"
_WITH_UNIT = re.compile(rf"\s*({_NUMBER})\s*([^\d\s.,][^.,]{{0,19}})?\s*", re.IGNORECASE)
_UNIT_FIRST = re.compile(rf"\s*([^\d\s.,+-]{{1,5}})\s*({_NUMBER})\s*", re.IGNORECASE)
_PART = re.compile(rf"\s*({_NUMBER})\s*([a-z]{{1,7}})\s*", re.IGNORECASE)
_CLOCK = re.compile(r"\s*(?:(\d{1,4}):)?(\d{1,4}):(\d{2}(?:\.\d{1,9})?)\s*")
_THOUSANDS = re.compile(r"\s*([-+]?\d{1,3}(?:[,'\u2019 _]\d{3})+(?:\.\d+)?)\s*")
_PER = re.compile(r"\s*(?:/|per)\s*kwh$", re.IGNORECASE)
_DURATIONS = ("s", "min")
_SMALLER = {"kg": "g", "m": "mm", "m/s": "mm/s", "s": "ms", "share": "%", "price": "ct"}
"""Units in which a number is often meant that is too large in the unit of the option."""


def number(
    kind: type[N], least: float, most: float, unit: str = ""
) -> Callable[[str], N]:
    """A reader of finite numbers within a range, for the values of an option.

    Args:
        kind: int or float.
        least: smallest number that is allowed.
        most: largest number that is allowed.
        unit: unit of the option; a text with another unit is refused with the number to
            write.

    Returns:
        A function from a text to its number; it raises ValueError for a text that is no
        number, or one out of range.
    """

    def read(text: str) -> N:
        """The number that a text states."""
        try:
            value = kind(text)
        except ValueError:
            word = "a whole number" if kind is int else "a number"
            hint = number_hint(text, unit)
            raise ValueError(f"{text[:40]!r} is not {word}{hint}") from None
        if not least <= value <= most:
            meant = likely_form(value, unit, least, most)
            hint = "" if meant is None else f"; write {meant}"
            raise ValueError(f"{text[:40]!r} must be {least:g} to {most:g}{hint}")
        return value

    return read


def number_hint(text: str, unit: str) -> str:
    """The end of a message about a text that is no number: ", write 120" for "2m".

    Args:
        text: text as the user types it.
        unit: unit of the option.

    Returns:
        What to write instead; "" if the text has no known meaning.
    """
    right = right_form(text, unit)
    return "" if right is None else f", write {right}"


def right_form(text: str, unit: str = "") -> str | None:
    """The number to write in place of a text that is none as it stands.

    Args:
        text: text as the user types it.
        unit: unit of the option, a key of the table above, or any other text.

    Returns:
        The number in the unit of the option; None if the text has no known meaning.
    """
    text = _PER.sub("", text)
    if unit in _DURATIONS:
        seconds = _duration(text)
        if seconds is not None:
            return _written(seconds / _OF_UNIT["s"][unit])
    if grouped := _THOUSANDS.fullmatch(text):
        plain = _written(float(re.sub(r"[,'\u2019 _]", "", grouped[1])))
        as_decimals = text.strip().replace(",", ".")  # 1,234 may be meant as 1.234
        return f"{plain}, or {as_decimals}" if as_decimals.count(".") == 1 else plain
    if behind := _WITH_UNIT.fullmatch(text):
        digits = behind[1]
        word = (behind[2] or "").strip()
    elif in_front := _UNIT_FIRST.fullmatch(text):
        digits = in_front[2]
        word = in_front[1]
    else:
        return None
    value = float(digits.replace(",", "."))
    if word.lower() in ("", unit.lower()):
        return _written(value)
    factor = _OF_UNIT.get(unit, {}).get(word.lower())
    return None if factor is None else _written(value * factor)


def likely_form(value: float, unit: str, least: float, most: float) -> str | None:
    """The number to write for one that is too large, and probably in a smaller unit.

    Args:
        value: number as the user types it.
        unit: unit of the option.
        least: smallest number that is allowed, in the unit of the option.
        most: largest number that is allowed.

    Returns:
        Such as "0.5 for 500 g"; None if it would not be in range either.
    """
    smaller = _SMALLER.get(unit)
    if smaller is None or not value > most:
        return None
    meant = value * _OF_UNIT[unit][smaller]
    if not least <= meant <= most:
        return None
    return f"{_written(meant)} for {value:.12g} {smaller}"


def _duration(text: str) -> float | None:
    """Seconds of texts such as 1h30m, 2m 30s, 1:30 and 1:00:00; None for any other."""
    if clock := _CLOCK.fullmatch(text):
        hours, minutes, seconds = clock.groups()
        return 3600.0 * int(hours or 0) + 60.0 * int(minutes) + float(seconds)
    total = 0.0
    place = 0
    parts = 0
    while part := _PART.match(text, place):
        factor = _OF_UNIT["s"].get(part[2].lower())
        if factor is None:
            return None
        total += factor * float(part[1].replace(",", "."))
        place = part.end()
        parts += 1
    return total if parts > 1 and place == len(text) else None


def _written(value: float) -> str:
    """A number as users write it, without the rounding errors of its last digits."""
    return f"{value:.12g}"
