# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Charts as plain descriptions of what is shown; pages and static figures draw the same ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.typing import Array

Role = Literal["measured", "model", "truth", "aside"]
"""Meaning of a curve or bar: recorded, from the model (in the joint's colour), true value of a
simulation, or context in a muted colour."""


@dataclass(frozen=True)
class Line:
    """A curve, or a cloud of `points`; x and y are [n], NaN in y breaks the curve.

    The role determines colour and stroke, `joint` the colour of that index if it is
    "model". `half_width` is that of a 95 % band [n], `base` the lower edge of an area up
    to the curve [n].
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
    """One pair of axes, with curves from back to front.

    `joint` is the index of the joint that it shows, `note` a short result shown inside
    ("R² 0.998"), and `y_label` replaces that of the chart.
    """

    title: str
    lines: Sequence[Line]
    joint: int | None = None
    note: str = ""
    y_label: str = ""


@dataclass(frozen=True, kw_only=True)
class Chart:
    """What all charts have; the key is file name of the figure, and anchor in the page."""

    key: str
    title: str
    caption: str = ""


@dataclass(frozen=True, kw_only=True)
class LineChart(Chart):
    """Panels of curves in reading order, with a common x axis; labels have units."""

    x_label: str
    y_label: str = ""
    panels: Sequence[Panel]
    columns: int = 3  # at most this many panels side by side on a wide page
    equal: bool = False  # one scale for x and y (paths in space)
    log_y: bool = False  # logarithmic y axis
    common_y: bool = False  # one y range for all panels
    # charts of one group zoom together; "" for a chart that does not zoom
    group: str = ""
    from_zero: bool = False  # y axes begin at 0 at the latest
    dates: bool = False  # x is in days since 1970, and shown as dates
    # part of the x axis that the page shows first, and in detail; None for all of it
    focus: tuple[float, float] | None = None


@dataclass(frozen=True)
class Bars:
    """One bar per category: values (NaN for no bar) and half widths of 95 % intervals [categories].

    `joint` gives all of them that joint's colour, None each its own.
    """

    label: str
    values: Array
    half_width: Array | None = None
    role: Role = "model"
    joint: int | None = None


@dataclass(frozen=True, kw_only=True)
class BarChart(Chart):
    """Bars side by side, or stacked, by category; `joints` are their indices, None for others."""

    y_label: str
    categories: Sequence[str]
    bars: Sequence[Bars]
    joints: Sequence[int | None] = ()
    stacked: bool = False


BOX = (0, 1, 25, 50, 75, 99, 100)
"""Percentiles of a box plot: extremes, whiskers, quartiles and median."""


@dataclass(frozen=True, kw_only=True)
class BoxChart(Chart):
    """Box plots by joint (the categories), one set of boxes per recording (the series).

    `boxes` holds the percentiles `BOX` [recordings, joints, 7]; NaN for no values.
    """

    y_label: str
    categories: Sequence[str]
    series: Sequence[str]
    boxes: Array


@dataclass(frozen=True, kw_only=True)
class IntervalChart(Chart):
    """Parameters of joints (the categories) with their 95 % intervals.

    `panels` are title, unit, and rows of joint, value, half width and prior value (or
    NaN).
    """

    categories: Sequence[str]
    panels: Sequence[tuple[str, str, Array]]


@dataclass(frozen=True)
class HeatPanel:
    """A grid of coloured cells.

    `cells` are their names and `values` their values (NaN for no cell) [rows][columns],
    `ticks` columns below which a text stands.
    """

    title: str
    rows: Sequence[str]
    cells: Sequence[Sequence[str]]
    values: Array
    ticks: Sequence[tuple[int, str]]


@dataclass(frozen=True, kw_only=True)
class HeatMap(Chart):
    """Grids of cells, one below the other; the stronger the colour, the larger the value."""

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
    """Times of samples as the x axis of curves."""

    time: Array  # since the first sample of the recording [n], s
    breaks: NDArray[np.int_]  # indices of samples after a gap

    def curve(
        self, label: str, values: Array, role: Role = "model", joint: int | None = None,
        half_width: Array | None = None, base: Array | None = None
    ) -> Line:  # fmt: skip
        """A curve of values [n] that is not drawn across gaps; arguments as in `Line`."""

        def broken(of: Array | None) -> Array | None:
            return None if of is None else np.insert(of, self.breaks, np.nan)

        x = np.insert(self.time, self.breaks, self.time[self.breaks])
        band = None if half_width is None or not np.any(half_width > 0) else half_width
        y = np.insert(values, self.breaks, np.nan)
        return Line(label, x, y, role, joint, half_width=broken(band), base=broken(base))

    def curves(self, joints: Sequence[str], values: Array) -> tuple[Line, ...]:
        """A curve for each joint, labelled with its name; values [n, joints]."""
        return tuple(
            self.curve(joint, values[:, j], joint=j) for j, joint in enumerate(joints)
        )

    def stack(
        self, standby: Array, driver: Array, electrical: Array, joints: Sequence[str]
    ) -> list[Line]:
        """Areas of standby, drivers [n] and joints [n, joints], without what joints feed back."""
        layers: list[tuple[str, Array, Role, int | None]] = [
            ("standby", standby, "aside", None),
            ("drivers", driver, "model", None),
            *(
                (n, np.maximum(electrical[:, j], 0.0), "model", j)
                for j, n in enumerate(joints)
            ),
        ]
        lines = []
        base = np.zeros(len(self.time))
        for label, values, role, joint in layers:
            lines.append(self.curve(label, base + values, role, joint, base=base))
            base = base + values
        return lines


def decimate(
    x: Array, y: Array, buckets: int, focus: tuple[float, float] | None = None
) -> tuple[Array, Array]:
    """The smallest and the largest sample of each bucket, and its first hole (NaN), in order.

    Ascending x [n] and y [n] become at most 3 * buckets samples, the first and the last
    among them; up to 2 * buckets samples stay as they are. Two thirds of the buckets are
    for the focus, a part of the x axis, if any.
    """
    n = len(x)
    if n <= 2 * buckets or n == 0:
        return x, y
    if focus is not None:
        start, stop = np.searchsorted(x, focus)
        pieces = []
        for k, part in enumerate(
            (slice(0, start), slice(start, stop), slice(stop, None))
        ):
            share = 2 / 3 if k == 1 else len(x[part]) / max(1, n - (stop - start)) / 3
            pieces.append(decimate(x[part], y[part], max(1, round(buckets * share))))
        return np.concatenate([p[0] for p in pieces]), np.concatenate(
            [p[1] for p in pieces]
        )
    edges = np.linspace(0, n, buckets + 1).astype(int)
    hole = np.isnan(y)
    keep: list[Iterable[int]] = [[0, n - 1]]
    extremes = (
        np.minimum.reduceat(np.where(hole, np.inf, y), edges[:-1]),
        np.maximum.reduceat(np.where(hole, -np.inf, y), edges[:-1]),
    )
    for found in (*(y == np.repeat(each, np.diff(edges)) for each in extremes), hole):
        places = np.flatnonzero(found)
        _, first = np.unique(
            np.searchsorted(edges, places, side="right"), return_index=True
        )
        keep.append(places[first])
    kept = np.unique(np.concatenate([np.asarray(each) for each in keep]))
    return x[kept], y[kept]
