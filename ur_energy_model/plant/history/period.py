"""Period: the days of the history that a question is about, in a time zone, and its shifts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo

from ur_energy_model.errors import InputError

UTC = ZoneInfo("UTC")
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")


@dataclass(frozen=True)
class Period:
    """A period of time.

    Attributes:
        start: first instant; None for the begin of the history.
        end: first instant after it; None for the end of the history.
        zone: in which days, hours and shifts begin.
    """

    start: datetime | None = None
    end: datetime | None = None
    zone: ZoneInfo = field(default=UTC)

    @classmethod
    def from_text(
        cls, first: str | None = None, last: str | None = None, zone: str = "UTC"
    ) -> Period:
        """The period that a user gives.

        Args:
            first: ISO 8601 date or time at which it starts.
            last: ISO 8601 date that is its last day, or time at which it ends.
            zone: IANA name; that of dates, and of times without offset.

        Raises:
            InputError: no date, no known zone, or an end that is not after the start.
        """
        where = time_zone(zone)
        start = None if first is None else instant(first, "--from", where)
        end = None if last is None else instant(last, "--to", where, end=True)
        if start is not None and end is not None and start >= end:
            raise InputError("--to", f"{last} is before --from {first}", "exchange them")
        return cls(start, end, where)

    @property
    def days(self) -> tuple[str | None, str | None]:
        """First and last UTC day that it touches, YYYY-MM-DD; None where it is open."""
        first = None if self.start is None else f"{self.start.astimezone(timezone.utc):%Y-%m-%d}"
        if self.end is None:
            return first, None
        last = self.end.astimezone(timezone.utc) - timedelta(microseconds=1)
        return first, f"{last:%Y-%m-%d}"


def time_zone(name: str) -> ZoneInfo:
    """A time zone by its IANA name.

    Raises:
        InputError: there is no such zone.
    """
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise InputError(
            "--time-zone", f"{name!r} is not known", "give a name such as Europe/Berlin or UTC"
        ) from None


def shift_starts(text: str) -> tuple[int, ...]:
    """Begins of the shifts of a day, "06:00,14:00,22:00", in minutes since midnight, ascending.

    Raises:
        InputError: no such list.
    """
    found = [_CLOCK.fullmatch(part.strip()) for part in text.split(",")]
    minutes = sorted({60 * int(match[1]) + int(match[2]) for match in found if match})
    if len(minutes) != len(found):
        raise InputError("--shifts", f"{text!r} is no list of times", "give 06:00,14:00,22:00")
    return tuple(minutes)


def instant(text: str, option: str, zone: ZoneInfo = UTC, *, end: bool = False) -> datetime:
    """The time that a date or time names; of a date as an end, the midnight after it.

    Raises:
        InputError: no date; the message names the option.
    """
    try:
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
            day = date.fromisoformat(text) + timedelta(days=1 if end else 0)
            found = datetime.combine(day, time(), zone)
        else:
            found = datetime.fromisoformat(text.replace("Z", "+00:00"))
            found = found if found.tzinfo is not None else found.replace(tzinfo=zone)
        found.astimezone(timezone.utc)
        return found
    except (ValueError, OverflowError):
        raise InputError(
            option, f"{text!r} is no date before 9999", "give YYYY-MM-DD or YYYY-MM-DDTHH:MM"
        ) from None
