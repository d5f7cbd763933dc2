"""What the energy can be summed up by, as SQL."""

from __future__ import annotations

from collections.abc import Sequence

from ur_energy_model.errors import InputError

CALENDAR: tuple[str, ...] = ("hour", "shift", "day", "week", "month")
KEYS: tuple[str, ...] = ("arm", *CALENDAR, "program", "joint")
"""Calendar keys are the begins of hours, shifts, days, weeks (Mondays) and months."""


def key_columns(keys: Sequence[str], time: str, shifts: Sequence[int] = ()) -> str:
    """Select list of keys, "" or ending in a comma.

    Args:
        keys: of KEYS, without "program" and "joint", whose columns have these names.
        time: column with the begin of a row.
        shifts: begins of the shifts of a day, minutes since midnight, ascending.

    Raises:
        InputError: shifts are asked for, but none are given.
    """
    columns = {key: f"CAST(date_trunc('{key}', {time}) AS DATE)" for key in ("week", "month")}
    columns["arm"] = "arm"
    columns["day"] = f"CAST({time} AS DATE)"
    columns["hour"] = f"date_trunc('hour', {time})"
    if "shift" in keys:
        columns["shift"] = _shift(time, shifts)
    return "".join(f"{columns.get(key, key)} AS {key}, " for key in keys)


def check_keys(keys: Sequence[str], shifts: Sequence[int] = ()) -> None:
    """Refuse keys that do not go together.

    Raises:
        InputError: energy by program and joint, or by shift without shifts.
    """
    if {"program", "joint"} <= set(keys):
        raise InputError("--by", "program and joint do not go together", "choose one of them")
    if "shift" in keys and not shifts:
        raise InputError(
            "--by shift", "needs the begins of shifts", "add --shifts 06:00,14:00,22:00"
        )


def _shift(time: str, starts: Sequence[int]) -> str:
    """Local begin of the shift that a time is in, as text; one may begin on the day before."""
    local = f"CAST({time} AS TIMESTAMP)"  # in the session's time zone
    midnight = f"date_trunc('day', {local})"
    minute = f"(60 * extract('hour' FROM {local}) + extract('minute' FROM {local}))"
    cases = " ".join(
        f"WHEN {minute} >= {start} THEN {midnight} + INTERVAL {start} MINUTE"
        for start in reversed(starts)
    )
    last = f"{midnight} - INTERVAL {1440 - starts[-1]} MINUTE"
    return f"strftime(CASE {cases} ELSE {last} END, '%Y-%m-%d %H:%M')"
