# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Shifts and time zones that a user gives."""

from __future__ import annotations

import pytest

from ur_energy_model.energy.calendar import shift_starts, time_zone
from ur_energy_model.errors import InputError


def test_shifts_begin_in_minutes_since_midnight() -> None:
    assert shift_starts("22:00, 6:00,14:30") == (-120, 360, 870, 1320)
    for text in ("", "25:00", "06:00,06:00"):
        with pytest.raises(InputError, match="--shifts"):
            shift_starts(text)


def test_time_zones_are_those_of_iana() -> None:
    assert time_zone("Europe/Berlin").key == "Europe/Berlin"
    for name in ("Europe/Nowhere", "../../etc/passwd"):
        with pytest.raises(InputError, match="--time-zone"):
            time_zone(name)
