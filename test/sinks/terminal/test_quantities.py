"""Quantities as text."""

from __future__ import annotations

import math

import pytest

from ur_energy_model.errors import span
from ur_energy_model.sinks.terminal import degrees, joules, percent, watts


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.4, "0 J"),
        (-12.0, "-12 J"),
        (9999.4, "9,999 J"),
        (12_345.0, "12.35 kJ"),
        (123_456.0, "123.5 kJ"),
        (9_999_999.0, "10.00 MJ"),
        (4.2e9, "4.20 GJ"),
        (-4.2e6, "-4.20 MJ"),
        (math.nan, "-"),
    ],
)
def test_energies(value: float, text: str) -> None:
    assert joules(value) == text
    assert len(text) <= 10


def test_other_quantities() -> None:
    assert watts(-3.14159) == "-3.1 W"
    assert watts(math.inf) == "-"
    assert percent(0.714) == "71 %"
    assert percent(math.nan) == "-"
    assert degrees(35.4) == "35 °C"
    assert degrees(None) == "-"
    assert [span(each) for each in (3.0, 300.0, 9000.0)] == ["3.0 s", "5.0 min", "2.5 h"]
