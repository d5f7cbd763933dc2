# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Charts of a page as compact JSON.

A curve is decimated to the extremes of its buckets and sent as 16-bit steps of its range in
base64: 65535 steps are finer than any screen. Equal arrays (such as the times of several
curves) are sent once.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import numpy as np

from ur_energy_model.codec import plain
from ur_energy_model.report.chart import (
    BarChart,
    BoxChart,
    Chart,
    HeatMap,
    IntervalChart,
    Line,
    LineChart,
    Panel,
    decimate,
)
from ur_energy_model.typing import Array

BUDGET = 3_000_000  # largest number of characters for all curves of a page
MOST_BUCKETS = 2500  # buckets of a curve of a page with few curves
FEWEST_BUCKETS = 150  # buckets of a curve of a page with many curves
STEPS = 65534  # largest code of a finite value; the next code is a hole
_TEXTS = {field.name for field in fields(Chart)}
"""Fields of a chart that are part of the page's HTML."""
_KINDS: dict[type[Chart], str] = {
    LineChart: "lines",
    BoxChart: "boxes",
    BarChart: "bars",
    IntervalChart: "intervals",
    HeatMap: "heat",
}
_CHARACTERS_PER_BUCKET = 2 * (2 + 2) * 4 / 3
"""A bucket has two samples with x and y of two bytes each, and base64 makes four characters of
three bytes."""


def _curves(panel: Panel) -> float:
    """Number of curves of a panel; a band or the base of an area counts as half a curve."""
    bands = sum(line.half_width is not None for line in panel.lines)
    bases = sum(line.base is not None for line in panel.lines)
    return len(panel.lines) + 0.5 * (bands + bases)


class ChartEncoder:
    """Converts all charts of a page to JSON values with a common pool of arrays.

    Args:
        charts: charts of the page; their number of curves determines the resolution, so
            that the page has a bounded size.

    Attributes:
        buckets: number of buckets to which each curve is decimated.
        pool: arrays as base64 of little-endian 16-bit codes.
    """

    def __init__(self, charts: Iterable[Chart]) -> None:
        curves = 0.0
        for chart in charts:
            if isinstance(chart, LineChart):
                curves += sum(map(_curves, chart.panels))
        fair = BUDGET / _CHARACTERS_PER_BUCKET / max(curves, 1.0)
        self.buckets = int(np.clip(fair, FEWEST_BUCKETS, MOST_BUCKETS))
        self.pool: list[str] = []
        self._index: dict[bytes, int] = {}

    def chart(self, chart: Chart) -> dict[str, Any]:
        """One chart as JSON values, without its texts, which are part of the page's HTML.

        Args:
            chart: chart of any kind.
        """
        out = {name: value for name, value in vars(chart).items() if name not in _TEXTS}
        if isinstance(chart, LineChart):
            out["panels"] = [self._panel(panel, chart) for panel in chart.panels]
        if isinstance(chart, HeatMap):
            out["largest"] = chart.largest
        return {"kind": _KINDS[type(chart)], **plain(out)}

    def _panel(self, panel: Panel, chart: LineChart) -> dict[str, Any]:
        """A panel of a chart as JSON values."""
        lines = [self._line(line, chart) for line in panel.lines]
        return {**vars(panel), "lines": lines}

    def _line(self, line: Line, chart: LineChart) -> dict[str, Any]:
        """A line of a chart as JSON values; curves over time are decimated."""
        is_exact = line.points or chart.equal
        x = line.x
        y = line.y
        if not is_exact:
            x, y = decimate(line.x, line.y, self.buckets, chart.focus)

        def edge(values: Array | None) -> list[float] | None:
            """An edge of a band or an area, at the samples that are kept of the curve."""
            if values is None:
                return None
            if not is_exact:
                values = np.interp(x, line.x, np.nan_to_num(values))
            return self._array(values)

        return {
            "label": line.label,
            "role": line.role,
            "joint": line.joint,
            "points": line.points,
            "x": self._array(x),
            "y": self._array(y),
            "band": edge(line.half_width),
            "base": edge(line.base),
        }

    def _array(self, values: Array) -> list[float]:
        """Lowest and highest value, and the index of the codes in the pool."""
        known = np.isfinite(values)
        low = 0.0
        high = 0.0
        if known.any():
            low = float(values[known].min())
            high = float(values[known].max())
        span = high - low
        codes = np.full(len(values), STEPS + 1, dtype="<u2")
        codes[known] = 0
        if span > 0:
            codes[known] = np.round((values[known] - low) / span * STEPS)
        raw = codes.tobytes()
        if raw not in self._index:
            self._index[raw] = len(self.pool)
            self.pool.append(base64.b64encode(raw).decode("ascii"))
        return [low, high, self._index[raw]]
