"""Bars, sparklines and scales."""

from __future__ import annotations

import math

import pytest

from ur_energy_model.sinks.terminal import bar, end_of_scale, sparkline


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (0.0, "    "),
        (0.5, "██  "),
        (0.53125, "██▏ "),
        (1.0, "████"),
        (7.0, "████"),
        (-1.0, "    "),
        (math.nan, "    "),
    ],
)
def test_bars_are_filled_in_eighths(share: float, expected: str) -> None:
    assert bar(share, 4) == expected


def test_bars_of_plain_characters() -> None:
    assert bar(0.5, 4, ascii_only=True) == "##  "


def test_sparklines_end_with_the_newest_value() -> None:
    assert sparkline((0.0, 7.0), 4) == "  ▁█"
    assert sparkline((7.0, 0.0, 3.5, 7.0), 2) == "▅█"
    assert sparkline((1.0, math.nan), 2) == "█ "
    assert sparkline((), 3) == "   "
    assert sparkline((-5.0, 0.0), 2) == "▁▁"
    assert sparkline((1.0,), 0) == ""
    assert sparkline((0.0, 7.0), 2, ascii_only=True) == "_#"


@pytest.mark.parametrize(
    ("value", "end"),
    [(0.0, 1.0), (1.0, 1.0), (1.1, 2.0), (50.0, 50.0), (51.0, 100.0), (730.0, 1e3)],
)
def test_ends_of_scales(value: float, end: float) -> None:
    assert end_of_scale(value) == end
