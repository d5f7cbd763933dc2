"""Periods: dates, times, time zones and shifts as users give them."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from ur_energy_model.errors import InputError
from ur_energy_model.plant.database import Period, shift_starts


def test_last_day_is_included() -> None:
    period = Period.from_text("2026-05-01", "2026-05-03")
    assert period.start == datetime(2026, 5, 1, tzinfo=timezone.utc)
    assert period.end == datetime(2026, 5, 4, tzinfo=timezone.utc)
    assert period.days == ("2026-05-01", "2026-05-03")


def test_days_are_those_of_the_time_zone() -> None:
    period = Period.from_text("2026-05-01", "2026-05-01", "Europe/Berlin")
    assert period.start == datetime(2026, 4, 30, 22, tzinfo=timezone.utc)
    assert period.end == datetime(2026, 5, 1, 22, tzinfo=timezone.utc)
    assert period.days == ("2026-04-30", "2026-05-01")


def test_day_of_a_clock_change_has_25_hours() -> None:
    period = Period.from_text("2026-10-25", "2026-10-25", "Europe/Berlin")
    assert period.start is not None
    assert period.end is not None
    assert (period.end.timestamp() - period.start.timestamp()) / 3600 == 25


def test_times_end_where_they_say() -> None:
    period = Period.from_text("2026-05-01T06:00", "2026-05-01T14:00Z")
    assert period.end == datetime(2026, 5, 1, 14, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("1.5.2026", None), "--from"),
        ((None, "2026-02-30"), "--to"),
        (("2026-05-02", "2026-05-01"), "--to"),
        ((None, None, "Mars/Olympus"), "--time-zone"),
        ((None, None, "../../etc/passwd"), "--time-zone"),
        ((None, "9999-12-31"), "--to"),
    ],
)
def test_unusable_periods_are_refused(arguments: tuple[str | None, ...], option: str) -> None:
    with pytest.raises(InputError, match=option):
        Period.from_text(*arguments)  # type: ignore[arg-type]


def test_shifts_are_sorted() -> None:
    assert shift_starts("22:00, 6:00,14:30") == (360, 870, 1320)


@pytest.mark.parametrize("text", ["", "6", "25:00", "06:00,06:00", "06:00;14:00"])
def test_unusable_shifts_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="--shifts"):
        shift_starts(text)
