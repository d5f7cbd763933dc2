"""ChartEncoder: charts as compact JSON for the page.

A curve is decimated to the extremes of its buckets and sent as 16-bit steps of its range in base64:
65535 steps are finer than any screen. Equal arrays (such as the times of several curves) are sent
once.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from ur_energy_model.report.charts.chart import (
    BarChart,
    BoxChart,
    Chart,
    HeatMap,
    IntervalChart,
    Line,
    LineChart,
    Panel,
)
from ur_energy_model.report.charts.decimation import decimate_with_focus
from ur_energy_model.typing import Array

BUDGET = 3_000_000
"""Most characters for all curves of a page."""
MOST_BUCKETS, FEWEST_BUCKETS = 2500, 150
STEPS = 65534
"""Largest code of a finite value; the next code is a hole."""
_TEXTS = {field.name for field in fields(Chart)}
"""Fields that are part of the page's HTML."""
_KINDS: dict[type[Chart], str] = {
    LineChart: "lines",
    BoxChart: "boxes",
    BarChart: "bars",
    IntervalChart: "intervals",
    HeatMap: "heat",
}
_CHARACTERS_PER_BUCKET = 2 * 2 * 2 * 4 / 3


class ChartEncoder:
    """Converts charts to JSON values with a common pool of arrays.

    Args:
        charts: all charts of the page; their number determines the resolution of curves.
    """

    def __init__(self, charts: Iterable[Chart]) -> None:
        curves = sum(
            1.0 + 0.5 * ((line.half_width is not None) + (line.base is not None))
            for chart in charts
            if isinstance(chart, LineChart)
            for panel in chart.panels
            for line in panel.lines
        )
        fair = BUDGET / _CHARACTERS_PER_BUCKET / max(curves, 1.0)
        self.buckets = int(np.clip(fair, FEWEST_BUCKETS, MOST_BUCKETS))
        self.pool: list[str] = []
        """Arrays as base64 of little-endian 16-bit codes."""
        self._index: dict[bytes, int] = {}

    def chart(self, chart: Chart) -> dict[str, Any]:
        """One chart without its texts; the page never interprets data as markup."""
        out = {name: value for name, value in vars(chart).items() if name not in _TEXTS}
        if isinstance(chart, LineChart):
            out["panels"] = [self._panel(panel, chart) for panel in chart.panels]
        if isinstance(chart, HeatMap):
            out["largest"] = chart.largest
        return {"kind": _KINDS[type(chart)], **finite(out)}

    def _panel(self, panel: Panel, chart: LineChart) -> dict[str, Any]:
        return {**vars(panel), "lines": [self._line(line, chart) for line in panel.lines]}

    def _line(self, line: Line, chart: LineChart) -> dict[str, Any]:
        x, y = line.x, line.y
        band, base = line.half_width, line.base
        if not (line.points or chart.equal):
            x, y = decimate_with_focus(line.x, y, self.buckets, chart.focus)
            if band is not None:
                band = np.interp(x, line.x, np.nan_to_num(band))
            if base is not None:
                base = np.interp(x, line.x, np.nan_to_num(base))
        return {
            "label": line.label,
            "role": line.role,
            "joint": line.joint,
            "points": line.points,
            "x": self._array(x),
            "y": self._array(y),
            "band": None if band is None else self._array(band),
            "base": None if base is None else self._array(base),
        }

    def _array(self, values: Array) -> list[float]:
        """Lowest and highest value, and the index of the codes in the pool."""
        known = np.isfinite(values)
        low, high = (values[known].min(), values[known].max()) if known.any() else (0.0, 0.0)
        span = high - low
        codes = np.full(len(values), STEPS + 1, dtype="<u2")
        codes[known] = np.round((values[known] - low) / span * STEPS) if span > 0 else 0
        raw = codes.tobytes()
        if raw not in self._index:
            self._index[raw] = len(self.pool)
            self.pool.append(base64.b64encode(raw).decode("ascii"))
        return [float(low), float(high), self._index[raw]]


def finite(value: Any) -> Any:
    """A JSON value: dataclasses become mappings, numbers that are not finite become null."""
    if is_dataclass(value):
        return finite(vars(value))
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [finite(item) for item in value]
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    return value
