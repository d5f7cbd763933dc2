"""Charts as plain descriptions: what is drawn, not how.

The gallery makes them from an analysis; `figures` draws them with matplotlib, and the page sends
them to the browser. So a static figure and its interactive twin cannot disagree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ur_energy_model.typing import Array

Role = Literal["measured", "model", "truth", "aside"]
"""What a mark stands for: recorded, from the model (in the joint's colour), a simulation's truth,
or context in a muted colour."""


@dataclass(frozen=True)
class Line:
    """A curve, or a cloud of points.

    Attributes:
        label: what it is, in a word or two.
        x, y: [n]; NaN in y breaks the curve.
        role: decides its colour and stroke.
        joint: number of the joint whose colour it takes where its role is "model".
        half_width: of a 95 % band about the curve [n], or None.
        points: draw a cloud instead of a curve.
        base: fill the area between the curve and this one [n], or None.
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
        lines: what it shows, backmost first.
        joint: number of the joint it belongs to; the page's joint selection shows and hides by it.
        note: a short finding, printed inside ("R² 0.998").
        y_label: overrides the chart's.
    """

    title: str
    lines: tuple[Line, ...]
    joint: int | None = None
    note: str = ""
    y_label: str = ""


@dataclass(frozen=True)
class LineChart:
    """Panels of curves that share their x axis.

    Attributes:
        key: file name of its figure, and its anchor in the page.
        title: a plain statement of what is seen.
        caption: how to read it, its source where a paper drew it first.
        x_label, y_label: with units.
        panels: in reading order.
        columns: panels side by side on a wide page.
        equal: one scale for x and y (paths in space).
        log_y: logarithmic y axis.
        group: charts of one group zoom together; "" for one that does not zoom.
        focus: part of the x axis that the page shows first, and in detail; None for all of it.
    """

    key: str
    title: str
    caption: str
    x_label: str
    y_label: str
    panels: tuple[Panel, ...]
    columns: int = 3
    equal: bool = False
    log_y: bool = False
    group: str = ""
    focus: tuple[float, float] | None = None


@dataclass(frozen=True)
class Box:
    """Quartiles of one set of values; whiskers reach the 1st and the 99th percentile."""

    low: float
    first: float
    median: float
    third: float
    high: float
    minimum: float
    maximum: float

    @classmethod
    def from_values(cls, values: Array) -> Box:
        """Summary of the finite ones of values [samples] (all NaN where there is none)."""
        finite = values[np.isfinite(values)]
        if finite.size == 0:
            return cls(*[float("nan")] * 7)
        low, first, median, third, high = np.percentile(finite, [1, 25, 50, 75, 99])
        return cls(low, first, median, third, high, float(finite.min()), float(finite.max()))


@dataclass(frozen=True)
class BoxChart:
    """Box plots by joint, one set of boxes a recording.

    Attributes:
        boxes: [recordings][joints].
        series: names of the recordings.
        categories: names of the joints.
    """

    key: str
    title: str
    caption: str
    y_label: str
    categories: tuple[str, ...]
    series: tuple[str, ...]
    boxes: tuple[tuple[Box, ...], ...]


@dataclass(frozen=True)
class Bars:
    """One bar a category.

    Attributes:
        label: what the bars are.
        values: [categories]; NaN leaves one out.
        half_width: of the 95 % intervals [categories], or None.
        role: decides colour and stroke.
    """

    label: str
    values: Array
    half_width: Array | None = None
    role: Role = "model"


@dataclass(frozen=True)
class BarChart:
    """Bars by category; `joints` numbers the categories that are joints (None where not).

    Attributes:
        stacked: add the bars of a category up instead of setting them side by side.
    """

    key: str
    title: str
    caption: str
    y_label: str
    categories: tuple[str, ...]
    bars: tuple[Bars, ...]
    joints: tuple[int | None, ...] = ()
    stacked: bool = False


@dataclass(frozen=True)
class Interval:
    """One identified parameter: value, 95 % half width, and what was assumed before (or NaN)."""

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


@dataclass(frozen=True)
class IntervalChart:
    """Parameters with their 95 % intervals, one panel a kind, one row a joint."""

    key: str
    title: str
    caption: str
    categories: tuple[str, ...]
    panels: tuple[IntervalPanel, ...]


Chart = LineChart | BoxChart | BarChart | IntervalChart
