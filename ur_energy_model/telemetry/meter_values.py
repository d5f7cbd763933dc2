# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Values of power meters: from the text of an answer to a reading that an arm's supply can have.

Devices answer in JSON, or with a number. A path leads to the power in it, and may add up
several values, such as the powers of three phases.
"""

from __future__ import annotations

import fnmatch
import json
import math
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple
from urllib.parse import unquote

MOST_POWER = 1.0e5
"""Largest power of a reading that is believed, in either direction [W]: whole halls take less."""
MOST_ENERGY = 1.0e15
"""Largest value of a counter that is believed [J]: a century of that power."""
MOST_VALUES = 32  # values that a path adds up
MOST_SHOWN = 40  # bytes of an answer that a message quotes, and twice as many of a path
UNITS: dict[str, float] = {"W": 1.0, "kW": 1.0e3, "mW": 1.0e-3}
"""Units of power that a path can end with, in W."""
STATUS_POWERS = ("apower", "act_power", "total_act_power")
"""Active power [W] in the status of Switch, PM1 and others; of EM1; of EM."""
JOULES_PER_WH = 3600.0


class Reading(NamedTuple):
    """A reading of a power meter.

    Attributes:
        power: active power [W].
        energy: the meter's own counter [J]; NaN without one.
    """

    power: float
    energy: float = math.nan


class Silence(NamedTuple):
    """Why there is no reading.

    Attributes:
        words: the reason, as the end of a sentence about the meter.
        may_pass: whether the device answers, only without a power: as it does for some
            seconds after it was switched on.
    """

    words: str
    may_pass: bool = False


@dataclass(frozen=True)
class PowerPath:
    """Where the power is in an answer.

    Attributes:
        parts: keys, or indices of lists, that lead to each of the values that are added
            up; `*` in a key stands for any letters, and alone for all elements of a list.
        scale: unit of the numbers [W].
    """

    parts: tuple[tuple[str, ...], ...] = ((),)
    scale: float = 1.0

    @classmethod
    def parse(cls, text: str) -> PowerPath:
        """From the part of a URL behind `#`, such as `ENERGY.Power.*` or `p1+p2+p3@kW`.

        Raises:
            ValueError: an unknown unit, or too many values.
        """
        paths, at, unit = text.partition("@")
        if at and unit not in UNITS:
            raise ValueError(f"has the unit '{unit}', not {', '.join(UNITS)}")
        texts = paths.split("+")
        if len(texts) > MOST_VALUES:
            raise ValueError(f"adds up {len(texts)} values; the limit is {MOST_VALUES}")
        parts: list[tuple[str, ...]] = []
        for text_of_path in texts:
            keys = [key for key in text_of_path.split(".") if key]
            parts.append(tuple(unquote(key) for key in keys))
        return cls(tuple(parts), UNITS[unit] if at else 1.0)

    @property
    def words(self) -> str:
        """The path, for messages, as far as they have room for it; empty without one."""
        paths = [".".join(part) for part in self.parts]
        return "+".join(paths)[: 2 * MOST_SHOWN]

    def values(self, content: Any) -> list[Any]:
        """All values that the path leads to.

        Raises:
            LookupError, TypeError, ValueError: it leads nowhere, or to too many values.
        """
        found: list[Any] = []
        for part in self.parts:
            values = [content]
            for key in part:
                values = list(chain(*(_children(value, key) for value in values)))
                if not values or len(values) > MOST_VALUES:
                    raise LookupError(f"{len(values)} values")
            found += values
        return found


def _children(value: Any, key: str) -> list[Any]:
    """Elements of a list or values of an object that a key of a path names."""
    if isinstance(value, list):
        return value if key == "*" else [value[int(key)]]
    if isinstance(value, dict) and "*" in key:
        return [each for name, each in value.items() if fnmatch.fnmatchcase(name, key)]
    return [value[key]]


def json_reading(content: bytes, path: PowerPath, largest: int) -> Reading | Silence:
    """Reading in a text of JSON: numbers, or the status of components of a Shelly device.

    Args:
        content: the text.
        path: path in the JSON to the numbers or statuses.
        largest: size of the largest text that is read [bytes].
    """
    if len(content) > largest:
        return Silence(f"its message is longer than {largest} bytes")
    place = f" at {path.words}" if path.words else ""
    try:
        values = path.values(json.loads(content))
        if isinstance(values[0], list):
            count = len(values[0])
            end = ".*" if path.words else "#*"
            problem = f"its answer has a list of {count} values{place}"
            return Silence(f"{problem}: end the path with {end} to add them up")
        readings = [_one(value, path.scale) for value in values]
    except (ValueError, LookupError, TypeError, RecursionError, OverflowError):
        shown = content[:MOST_SHOWN]
        return Silence(f"its answer has no power{place}: {shown!r}", may_pass=True)
    power = sum(reading.power for reading in readings)
    energy = sum(reading.energy for reading in readings)
    return checked_reading(power, energy)


def _one(value: Any, scale: float) -> Reading:
    """The reading in one value of an answer.

    Args:
        value: a number, or the status of a component.
        scale: unit of the power [W].

    Raises:
        ValueError: it has no power.
    """
    energy = math.nan
    if isinstance(value, dict):
        counter = value.get("aenergy")  # Wh
        if isinstance(counter, dict) and isinstance(counter.get("total"), int | float):
            energy = JOULES_PER_WH * counter["total"]
        named = [name for name in STATUS_POWERS if name in value]
        value = value[named[0]] if named else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("is no number")
    return Reading(scale * float(value), energy)


def checked_reading(power: float, energy: float = math.nan) -> Reading | Silence:
    """A reading of a possible power.

    Args:
        power: power that the meter states [W].
        energy: the meter's counter [J]; an impossible value counts as none.
    """
    if not abs(power) <= MOST_POWER:
        return Silence(f"{power:g} W is no power of a robot; check the unit")
    if not 0.0 <= energy <= MOST_ENERGY:
        energy = math.nan
    return Reading(float(power), energy)
