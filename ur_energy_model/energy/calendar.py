# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The user's calendar: time zones, and the shifts of a day."""

from __future__ import annotations

import re
from zoneinfo import ZoneInfo

from ur_energy_model.errors import InputError

MINUTES_PER_DAY = 24 * 60
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")


def time_zone(name: str) -> ZoneInfo:
    """A time zone by its IANA name, such as Europe/Berlin.

    Raises:
        InputError: there is no such zone.
    """
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        remedy = "give a name such as Europe/Berlin or UTC"
        raise InputError("--time-zone", f"{name!r} is not known", remedy) from None


def shift_starts(text: str) -> tuple[int, ...]:
    """Starts of the shifts of a day in minutes since midnight, ascending.

    The first start is negative: the start of the last shift of the day before, which goes on
    until the first shift of the day starts.

    Args:
        text: times of the clock, such as "06:00,14:00,22:00", in any order.

    Raises:
        InputError: the text is no list of times, or names a time twice.
    """
    parts = text.split(",")
    minutes: set[int] = set()
    for part in parts:
        match = _CLOCK.fullmatch(part.strip())
        if match is not None:
            minutes.add(60 * int(match[1]) + int(match[2]))
    if len(minutes) != len(parts):  # a part that is no time, or a time that is repeated
        raise InputError(
            "--shifts", f"{text!r} is no list of times", "give 06:00,14:00,22:00"
        )
    starts = sorted(minutes)
    return starts[-1] - MINUTES_PER_DAY, *starts
