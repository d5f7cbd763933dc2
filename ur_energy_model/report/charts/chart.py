"""Charts as plain descriptions of what is shown.

`figures` draws them with matplotlib and `page` sends them to the browser, so that a static figure
and its interactive counterpart show the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ur_energy_model.typing import Array

Role = Literal["measured", "model", "truth", "aside"]
"""Meaning of a curve or bar: recorded, from the model (in the joint's colour), true value of a
simulation, or context in a muted colour."""


@dataclass(frozen=True)
class Line:
    """A curve, or a cloud of points.

    Attributes:
        label: in a word or two.
        x, y: [n]; NaN in y breaks the curve.
        role: determines colour and stroke.
        joint: index of the joint whose colour it has if its role is "model".
        half_width: of a 95 % band about the curve [n], or None.
        points: a cloud instead of a curve.
        base: lower edge of an area that is filled up to the curve [n], or None.
    """

    label: str
    x: Array
    y: Array
    role: Role = "model"
    joint: int | None = None
    half_width: Array | None = None
    points: bool = False
    base: Array | None = None


@dataclass(frozen=True)
class Panel:
    """One pair of axes.

    Attributes:
        title: usually the joint's name.
        lines: from back to front.
        joint: index of the joint that it shows, for the page's joint selection.
        note: a short result, shown inside ("R² 0.998").
        y_label: replaces that of the chart.
    """

    title: str
    lines: tuple[Line, ...]
    joint: int | None = None
    note: str = ""
    y_label: str = ""


@dataclass(frozen=True, kw_only=True)
class Chart:
    """What all charts have.

    Attributes:
        key: file name of the figure, and anchor in the page.
        title: what is shown.
        caption: how to read it, and the paper's figure that it corresponds to.
    """

    key: str
    title: str
    caption: str


@dataclass(frozen=True, kw_only=True)
class LineChart(Chart):
    """Panels of curves with a common x axis.

    Attributes:
        x_label, y_label: with units.
        panels: in reading order.
        columns: panels side by side on a wide page.
        equal: one scale for x and y (paths in space).
        log_y: logarithmic y axis.
        common_y: one y range for all panels.
        group: charts of one group zoom together; "" for a chart that does not zoom.
        from_zero: y axes begin at 0 at the latest.
        dates: x is in days since 1970, and shown as dates.
        focus: part of the x axis that the page shows first, and in detail; None for all of it.
    """

    x_label: str
    y_label: str
    panels: tuple[Panel, ...]
    columns: int = 3
    equal: bool = False
    log_y: bool = False
    common_y: bool = False
    group: str = ""
    from_zero: bool = False
    dates: bool = False
    focus: tuple[float, float] | None = None


@dataclass(frozen=True)
class Box:
    """Quartiles of a set of values; whiskers from the 1st to the 99th percentile."""

    low: float
    first: float
    median: float
    third: float
    high: float
    minimum: float
    maximum: float

    @classmethod
    def from_values(cls, values: Array) -> Box:
        """Summary of the finite values [samples]; all NaN if there are none."""
        finite = values[np.isfinite(values)]
        if finite.size == 0:
            return cls(*[float("nan")] * 7)
        low, first, median, third, high = np.percentile(finite, [1, 25, 50, 75, 99])
        return cls(low, first, median, third, high, float(finite.min()), float(finite.max()))


@dataclass(frozen=True, kw_only=True)
class BoxChart(Chart):
    """Box plots by joint, one set of boxes per recording.

    Attributes:
        y_label: with unit.
        categories: names of the joints.
        series: names of the recordings.
        boxes: [recordings][joints].
    """

    y_label: str
    categories: tuple[str, ...]
    series: tuple[str, ...]
    boxes: tuple[tuple[Box, ...], ...]


@dataclass(frozen=True)
class Bars:
    """One bar per category.

    Attributes:
        label: in a word or two.
        values: [categories]; NaN for no bar.
        half_width: of the 95 % intervals [categories], or None.
        role: determines colour and stroke.
        joint: index of the joint whose colour it has in all categories; None for that of each.
    """

    label: str
    values: Array
    half_width: Array | None = None
    role: Role = "model"
    joint: int | None = None


@dataclass(frozen=True, kw_only=True)
class BarChart(Chart):
    """Bars by category.

    Attributes:
        y_label: with unit.
        categories: their names.
        bars: one series each.
        joints: index of the joint of each category; None for other categories.
        stacked: stack the bars of a category instead of showing them side by side.
    """

    y_label: str
    categories: tuple[str, ...]
    bars: tuple[Bars, ...]
    joints: tuple[int | None, ...] = ()
    stacked: bool = False


@dataclass(frozen=True)
class HeatPanel:
    """A grid of coloured cells.

    Attributes:
        title: "" for none.
        rows: their names.
        cells: names of the cells [rows][columns], shown when pointed at.
        values: [rows, columns]; NaN for no cell.
        ticks: columns below which a text stands, and these texts.
    """

    title: str
    rows: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    values: Array
    ticks: tuple[tuple[int, str], ...]


@dataclass(frozen=True, kw_only=True)
class HeatMap(Chart):
    """Grids of cells whose colour is the stronger, the larger their value is.

    Attributes:
        value_label: what the values are, with unit.
        panels: with a common scale from 0, one below the other.
    """

    value_label: str
    panels: tuple[HeatPanel, ...]

    @property
    def largest(self) -> float:
        """The value with the strongest colour; 0 if there are no values."""
        values = [panel.values[np.isfinite(panel.values)] for panel in self.panels]
        return max((float(each.max()) for each in values if each.size), default=0.0)


@dataclass(frozen=True)
class Interval:
    """An identified parameter of a joint: value, 95 % half width, and prior value (or NaN)."""

    joint: int
    value: float
    half_width: float
    prior: float = float("nan")


@dataclass(frozen=True)
class IntervalPanel:
    """One kind of parameter for all joints."""

    title: str
    unit: str
    intervals: tuple[Interval, ...]


@dataclass(frozen=True, kw_only=True)
class IntervalChart(Chart):
    """Parameters with their 95 % intervals, one panel per kind, one row per joint."""

    categories: tuple[str, ...]
    panels: tuple[IntervalPanel, ...]
