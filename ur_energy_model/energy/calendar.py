# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The user's calendar: time zones, and the shifts of a day."""

from __future__ import annotations

import re
from zoneinfo import ZoneInfo

from ur_energy_model.errors import InputError

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
    """Begins of shifts such as 06:00,14:00 in minutes since midnight, ascending.

    The first one is on the day before: the last shift of a day goes on until the first of
    the next.

    Raises:
        InputError: the text is no list of times.
    """
    found = [_CLOCK.fullmatch(part.strip()) for part in text.split(",")]
    minutes = sorted({60 * int(match[1]) + int(match[2]) for match in found if match})
    if len(minutes) != len(found):
        raise InputError(
            "--shifts", f"{text!r} is no list of times", "give 06:00,14:00,22:00"
        )
    return minutes[-1] - 24 * 60, *minutes
