# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Charts as plain descriptions of what is shown.

A chart is described once. Two renderers draw the description: the script of a page
(assets/charts.js), with tooltips, zoom and the reader's colours, for readers of a page;
and `report.figures`, as PNG, SVG or PDF without a browser, for reports, slides and Markdown,
which cannot run a script.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.typing import Array

Role = Literal["measured", "model", "second", "truth", "aside"]
"""Meaning of a curve or bar: recorded, from the model (in the joint's colour), from a second model
beside the first (a broken line), true value of a simulation, or context in a muted colour."""


@dataclass(frozen=True)
class Line:
    """A curve, or a cloud of points.

    Attributes:
        label: name in legend and tooltip.
        x: places on the x axis, in the unit of its label [n]; ascending for curves.
        y: values, in the unit of the axis [n]; NaN breaks the curve.
        role: meaning of the line, which determines colour and stroke.
        joint: index of the joint whose colour a line of role "model" has; None for the
            colour of the whole arm.
        half_width: half width of a 95 % band about the curve [n]; None for no band.
        points: whether single points are drawn in place of a curve.
        base: lower edge of an area up to the curve [n]; None for no area.
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
        title: heading above the axes; empty for none.
        lines: curves and clouds from back to front.
        joint: index of the joint that the panel shows; None for the whole arm.
        note: short result shown inside, such as "R² 0.998"; none if empty.
        y_label: replaces the chart's label unless it is empty.
    """

    title: str
    lines: Sequence[Line]
    joint: int | None = None
    note: str = ""
    y_label: str = ""


@dataclass(frozen=True, kw_only=True)
class Chart:
    """What all charts have.

    Attributes:
        key: name of the figure's file without suffix, and anchor in the page.
        title: heading, a statement where the chart shows one.
        caption: how to read it, in sentences.
    """

    key: str
    title: str
    caption: str = ""


@dataclass(frozen=True, kw_only=True)
class LineChart(Chart):
    """Panels of curves in reading order, with a common x axis; labels have units.

    Attributes:
        x_label: quantity and unit of the x axes.
        y_label: quantity and unit of the y axes, unless a panel has another label.
        panels: panels in reading order.
        columns: largest number of panels side by side on a wide page.
        equal: whether x and y have one scale (paths in space).
        log_y: logarithmic y axis.
        common_y: whether all panels have one y range.
        group: charts of one group zoom together; "" for a chart that does not zoom.
        from_zero: y axes begin at 0 at the latest.
        dates: x is in days since 1970, and shown as dates.
        focus: part of the x axis that the page shows first, and in detail; None for all
            of it.
    """

    x_label: str
    y_label: str = ""
    panels: Sequence[Panel]
    columns: int = 3
    equal: bool = False
    log_y: bool = False
    common_y: bool = False
    group: str = ""
    from_zero: bool = False
    dates: bool = False
    focus: tuple[float, float] | None = None


@dataclass(frozen=True)
class Bars:
    """One bar per category.

    Attributes:
        label: label in legend and tooltip.
        values: values in the unit of the chart's axis [categories]; NaN for no bar.
        half_width: half width of 95 % intervals [categories]; None for none.
        role: what the bars show, which determines colour and outline.
        joint: index of the joint whose colour all bars have; None if each bar has another.
    """

    label: str
    values: Array
    half_width: Array | None = None
    role: Role = "model"
    joint: int | None = None


@dataclass(frozen=True, kw_only=True)
class BarChart(Chart):
    """Bars side by side, or stacked, by category.

    Attributes:
        y_label: quantity and unit.
        categories: names below the bars.
        bars: one or more bars of each category.
        joints: index of the joint that each category is, None for another one; () if none is.
        stacked: whether the bars of a category stand on each other.
    """

    y_label: str
    categories: Sequence[str]
    bars: Sequence[Bars]
    joints: Sequence[int | None] = ()
    stacked: bool = False


BOX = (0, 1, 25, 50, 75, 99, 100)
"""Percentiles of a box plot: extremes, whiskers, quartiles and median."""


@dataclass(frozen=True, kw_only=True)
class BoxChart(Chart):
    """Box plots by joint, one set of boxes per recording.

    Attributes:
        y_label: quantity and unit.
        categories: names of the joints.
        series: names of the recordings.
        boxes: the percentiles `BOX` [recordings, joints, 7]; NaN for no values.
    """

    y_label: str
    categories: Sequence[str]
    series: Sequence[str]
    boxes: Array


@dataclass(frozen=True, kw_only=True)
class IntervalChart(Chart):
    """Parameters of joints with their 95 % intervals.

    Attributes:
        categories: names of the joints.
        panels: title, unit and rows of each parameter, with a row for each joint that has
            the parameter [rows, 4]: index of the joint, value, half width of the
            interval, prior value or NaN.
    """

    categories: Sequence[str]
    panels: Sequence[tuple[str, str, Array]]


@dataclass(frozen=True)
class HeatPanel:
    """A grid of coloured cells.

    Attributes:
        title: heading above the grid.
        rows: names of the rows.
        cells: names of the cells [rows][columns].
        values: what the colours show [rows, columns]; NaN for no cell.
        ticks: columns below which a text stands, and the texts.
    """

    title: str
    rows: Sequence[str]
    cells: Sequence[Sequence[str]]
    values: Array
    ticks: Sequence[tuple[int, str]]


@dataclass(frozen=True, kw_only=True)
class HeatMap(Chart):
    """Grids of cells, one below the other; the stronger the colour, the larger the value.

    Attributes:
        value_label: quantity and unit of the values.
        panels: panels from top to bottom.
    """

    value_label: str
    panels: Sequence[HeatPanel]

    @property
    def largest(self) -> float:
        """The value with the strongest colour; 0 if there are no values."""
        values = np.concatenate([[0.0], *(panel.values.ravel() for panel in self.panels)])
        return float(np.nanmax(values))


# Curves over time, broken at gaps.


@dataclass(frozen=True)
class Timeline:
    """Times of samples as the x axis of curves that are broken at gaps.

    Attributes:
        time: times since the first sample of the recording [n], s.
        breaks: indices of the samples after a gap [gaps].
    """

    time: Array
    breaks: NDArray[np.int_]

    def curve(
        self,
        label: str,
        values: Array,
        role: Role = "model",
        joint: int | None = None,
        half_width: Array | None = None,
        base: Array | None = None,
    ) -> Line:
        """A curve that is not drawn across gaps.

        Args:
            label: label in legend and tooltip.
            values: values in the unit of the axis [n].
            role: role as in `Line`.
            joint: joint as in `Line`.
            half_width: half width of a 95 % band [n]; none is drawn if it is 0
                everywhere.
            base: lower edge of an area [n]; None for no area.
        """
        if half_width is not None and not np.any(half_width > 0):
            half_width = None
        return Line(
            label,
            x=np.insert(self.time, self.breaks, self.time[self.breaks]),
            y=self._broken(values),
            role=role,
            joint=joint,
            half_width=None if half_width is None else self._broken(half_width),
            base=None if base is None else self._broken(base),
        )

    def _broken(self, values: Array) -> Array:
        """Values with NaN between the samples beside each gap [n + gaps]."""
        return np.insert(values, self.breaks, np.nan)

    def curves(self, joints: Sequence[str], values: Array) -> tuple[Line, ...]:
        """A curve for each joint, labelled with its name.

        Args:
            joints: names of the joints.
            values: values in the unit of the axis [n, joints].
        """
        return tuple(
            self.curve(joint, values[:, j], joint=j) for j, joint in enumerate(joints)
        )

    def stack(
        self, standby: Array, driver: Array, electrical: Array, joints: Sequence[str]
    ) -> list[Line]:
        """Areas of standby, drivers and joints on each other, without what joints feed back.

        Args:
            standby: power of the arm without motors and drivers [n], W.
            driver: power of the drivers [n], W.
            electrical: power of the motors [n, joints], W.
            joints: names of the joints.
        """
        layers: list[tuple[str, Array, Role, int | None]] = [
            ("standby", standby, "aside", None),
            ("drivers", driver, "model", None),
        ]
        for j, name in enumerate(joints):
            layers.append((name, np.maximum(electrical[:, j], 0.0), "model", j))
        lines = []
        base = np.zeros(len(self.time))
        for label, values, role, joint in layers:
            lines.append(self.curve(label, base + values, role, joint, base=base))
            base = base + values
        return lines


def decimate(
    x: Array, y: Array, buckets: int, focus: tuple[float, float] | None = None
) -> tuple[Array, Array]:
    """A curve with fewer samples that looks the same: no extreme and no hole is lost.

    Of each bucket the smallest and the largest sample and the first hole (NaN) are kept, in
    order, and the first and the last sample of the curve.

    Args:
        x: places on the x axis, ascending [n].
        y: values, NaN for holes [n].
        buckets: number of buckets; up to 2 * buckets samples stay as they are.
        focus: part of the x axis that gets two thirds of the buckets; None for none.

    Returns:
        x and y of at most about 3 * buckets samples.
    """
    n = len(x)
    if n <= 2 * buckets or n == 0:
        return x, y
    if focus is None:
        return _decimated(x, y, buckets)
    start, stop = np.searchsorted(x, focus)
    outside = max(1, n - (stop - start))
    before = start / outside / 3
    behind = (n - stop) / outside / 3
    kept_x = []
    kept_y = []
    for part, share in (
        (slice(0, start), before),
        (slice(start, stop), 2 / 3),
        (slice(stop, None), behind),
    ):
        own = max(1, round(buckets * share))
        part_x, part_y = decimate(x[part], y[part], own)
        kept_x.append(part_x)
        kept_y.append(part_y)
    return np.concatenate(kept_x), np.concatenate(kept_y)


def _decimated(x: Array, y: Array, buckets: int) -> tuple[Array, Array]:
    """A curve decimated evenly, see `decimate`; it has more samples than buckets."""
    n = len(x)
    edges = np.linspace(0, n, buckets + 1).astype(int)
    sizes = np.diff(edges)
    hole = np.isnan(y)
    smallest = np.minimum.reduceat(np.where(hole, np.inf, y), edges[:-1])
    largest = np.maximum.reduceat(np.where(hole, -np.inf, y), edges[:-1])
    keep = [np.array([0, n - 1])]
    for found in (y == np.repeat(smallest, sizes), y == np.repeat(largest, sizes), hole):
        places = np.flatnonzero(found)
        bucket = np.searchsorted(edges, places, side="right")
        _, first_of_bucket = np.unique(bucket, return_index=True)
        keep.append(places[first_of_bucket])
    kept = np.unique(np.concatenate(keep))
    return x[kept], y[kept]
