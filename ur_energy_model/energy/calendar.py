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

    The first begin is negative, the begin of the last shift of the day before: this shift
    goes on until the first one of the day.

    Args:
        text: such as "06:00,14:00,22:00".

    Raises:
        InputError: the text is no list of times, or names one of them twice.
    """
    parts = text.split(",")
    minutes = set()
    for part in parts:
        match = _CLOCK.fullmatch(part.strip())
        if match is not None:
            minutes.add(60 * int(match[1]) + int(match[2]))
    if len(minutes) != len(parts):
        raise InputError(
            "--shifts", f"{text!r} is no list of times", "give 06:00,14:00,22:00"
        )
    starts = sorted(minutes)
    return starts[-1] - MINUTES_PER_DAY, *starts
