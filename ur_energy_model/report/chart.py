"""Charts as plain descriptions of what is shown: curves over time, broken at gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.report.analysis import Analysis, Breaks
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


# Curves over time, broken at gaps, and charts of them.

S0 = "Clochiatti et al. 2024"


@dataclass(frozen=True)
class Timeline:
    """Times of samples, as the x axis of curves.

    Attributes:
        time: [n].
        breaks: indices of samples after a gap.
    """

    time: Array
    breaks: Breaks

    def curve(
        self,
        label: str,
        values: Array,
        *,
        role: Role = "model",
        joint: int | None = None,
        half_width: Array | None = None,
        base: Array | None = None,
    ) -> Line:
        """A curve of values [n]; arguments as in `Line`."""
        x, y = break_at(self.time, values, self.breaks)
        band = None
        if half_width is not None and np.any(half_width > 0):
            _, band = break_at(self.time, half_width, self.breaks)
        low = None if base is None else break_at(self.time, base, self.breaks)[1]
        return Line(label, x, y, role, joint, half_width=band, base=low)

    def joint_curves(self, joints: Sequence[str], values: Array) -> tuple[Line, ...]:
        """A curve for each joint, labelled with its name; values [n, joints]."""
        return tuple(self.curve(joint, values[:, j], joint=j) for j, joint in enumerate(joints))


def chart_over_time(
    analysis: Analysis,
    panels: Sequence[Panel],
    *,
    key: str,
    title: str,
    caption: str,
    y_label: str,
    columns: int = 3,
) -> LineChart:
    """A chart over the time of a recording; it zooms together with the recording's other charts."""
    return LineChart(
        key=key,
        title=title,
        caption=caption,
        x_label="time [s]",
        y_label=y_label,
        panels=tuple(panels),
        columns=columns,
        group=analysis.label,
        focus=analysis.focus,
    )


def break_at(time: Array, values: Array, breaks: NDArray[np.int_]) -> tuple[Array, Array]:
    """Time and values [samples] with NaN inserted before each index in `breaks` [gaps].

    Curves are thus not drawn across gaps.
    """
    if len(breaks) == 0:
        return time, values
    return np.insert(time, breaks, time[breaks]), np.insert(values, breaks, np.nan)


# Decimation of curves that keeps the extremes of every bucket of samples.


def decimate(x: Array, y: Array, buckets: int) -> tuple[Array, Array]:
    """The smallest and the largest sample of each bucket, in order of time.

    Args:
        x: ascending abscissae [n].
        y: values [n]; NaN marks a hole. The first hole of each bucket is kept.
        buckets: their number; all have equal numbers of samples.

    Returns:
        x and y of at most 3 * buckets samples, the first and the last among them; the input itself
        if it has no more than 2 * buckets samples.
    """
    n = len(x)
    if n <= 2 * buckets or n == 0:
        return x, y
    edges = np.linspace(0, n, buckets + 1).astype(int)
    hole = np.isnan(y)
    low = _extreme(np.where(hole, np.inf, y), edges, np.minimum)
    high = _extreme(np.where(hole, -np.inf, y), edges, np.maximum)
    first_hole = np.full(buckets, n)
    holes = np.flatnonzero(hole)
    bucket_of_hole = np.searchsorted(edges, holes, side="right") - 1
    first_hole[bucket_of_hole[::-1]] = holes[::-1]
    keep = np.unique(np.concatenate([low, high, first_hole[first_hole < n], [0, n - 1]]))
    return x[keep], y[keep]


def decimate_with_focus(
    x: Array, y: Array, buckets: int, focus: tuple[float, float] | None
) -> tuple[Array, Array]:
    """Like `decimate`, with two thirds of the buckets for a part of the x axis.

    Args:
        x: ascending abscissae [n].
        y: values [n].
        buckets: approximate number of all buckets.
        focus: part of the x axis to show in detail, or None.
    """
    if focus is None or len(x) <= 2 * buckets:
        return decimate(x, y, buckets)
    start, stop = np.searchsorted(x, focus)
    outside = max(1, len(x) - (stop - start))
    pieces = []
    for part, detail in ((slice(0, start), 0), (slice(start, stop), 1), (slice(stop, None), 0)):
        share = 2 / 3 if detail else len(x[part]) / outside / 3
        pieces.append(decimate(x[part], y[part], max(1, round(buckets * share))))
    return np.concatenate([p[0] for p in pieces]), np.concatenate([p[1] for p in pieces])


def _extreme(y: Array, edges: NDArray[np.int_], ufunc: np.ufunc) -> NDArray[np.int_]:
    """Indices of the first sample of each bucket that equals the bucket's extreme."""
    extremes = ufunc.reduceat(y, edges[:-1])
    matches = np.flatnonzero(y == np.repeat(extremes, np.diff(edges)))
    buckets = np.searchsorted(edges, matches, side="right") - 1
    _, first = np.unique(buckets, return_index=True)
    return np.asarray(matches[first])
