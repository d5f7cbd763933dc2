"""Painters of box plots, bars and parameter intervals in matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from ur_energy_model.report.charts.chart import BarChart, BoxChart, IntervalChart
from ur_energy_model.report.figures.sheet import sheet
from ur_energy_model.report.palette import Theme
from ur_energy_model.typing import Array

LINE = 120
"""Characters of category names for which a figure has room."""


def box_figure(chart: BoxChart, theme: Theme) -> Figure:
    """Box plots by joint."""
    count = len(chart.series)
    handles = [
        Patch(facecolor=theme.ink, alpha=0.85 if s == 0 else 0.35, label=name)
        for s, name in enumerate(chart.series if count > 1 else ())
    ]
    figure, (axes, *_) = sheet(chart, 1, 1, 3.0, handles=handles)
    width = 0.7 / count
    for s, boxes in enumerate(chart.boxes):
        for j, box in enumerate(boxes):
            x = j + (s - (count - 1) / 2) * width
            colour = theme.joint(j)
            axes.plot([x, x], [box.low, box.high], color=colour, linewidth=1.1)
            axes.bar(
                x,
                box.third - box.first,
                width * 0.8,
                bottom=box.first,
                color=colour,
                alpha=0.85 if s == 0 else 0.35,
                edgecolor=colour,
            )
            axes.plot(
                [x - width * 0.4, x + width * 0.4], [box.median] * 2, color=theme.ground, lw=1.6
            )
            axes.plot([x, x], [box.minimum, box.maximum], ".", color=colour, markersize=3)
    axes.axhline(0, color=theme.muted, linewidth=0.7, zorder=1)
    _name_categories(axes, chart.categories)
    axes.set_xlim(-0.6, len(chart.categories) - 0.4)
    axes.grid(visible=False, axis="x")
    axes.set_ylabel(chart.y_label)
    return figure


def bar_figure(chart: BarChart, theme: Theme) -> Figure:
    """Bars by category."""
    handles = _bar_handles(chart, theme) if len(chart.bars) > 1 else []
    figure, (axes, *_) = sheet(chart, 1, 1, 3.0, handles=handles)
    count = 1 if chart.stacked else len(chart.bars)
    width = 0.76 / count
    places = np.arange(len(chart.categories), dtype=float)
    base = np.zeros(len(places))
    for s, bars in enumerate(chart.bars):
        x = places if chart.stacked else places + (s - (count - 1) / 2) * width
        colours = [
            theme.joint(
                bars.joint
                if bars.joint is not None
                else chart.joints[c]
                if c < len(chart.joints)
                else None
            )
            for c in range(len(places))
        ]
        options: dict[str, Any] = {"color": colours}
        if bars.role == "aside":
            options["alpha"] = 0.4
        elif bars.role == "truth":
            options = {"color": "none", "edgecolor": theme.ink, "linewidth": 1.1}
        elif bars.role == "measured":
            options = {"color": theme.muted}
        axes.bar(x, bars.values, width * 0.92, bottom=base if chart.stacked else 0, **options)
        if bars.half_width is not None:
            axes.errorbar(
                x,
                bars.values,
                yerr=bars.half_width,
                fmt="none",
                ecolor=theme.ink,
                elinewidth=1.0,
                capsize=2.5,
            )
        if chart.stacked:
            base = base + np.nan_to_num(bars.values)
        elif s == 0:
            _value_labels(axes, x, bars.values, theme)
    axes.axhline(0, color=theme.muted, linewidth=0.7)
    _name_categories(axes, chart.categories)
    axes.grid(visible=False, axis="x")
    axes.margins(y=0.12)
    axes.set_xlim(-0.6, len(places) - 0.4)
    axes.set_ylabel(chart.y_label)
    return figure


def _name_categories(axes: Axes, names: Sequence[str]) -> None:
    """Names below the categories, broken after an underscore where they would overlap."""
    if max(map(len, names), default=0) * len(names) > LINE:
        names = [name.replace("_", "_\n", 1) for name in names]
    axes.set_xticks(range(len(names)), names)


def _value_labels(axes: Axes, x: Array, values: Array, theme: Theme) -> None:
    for place, value in zip(x, values, strict=True):
        if np.isfinite(value):
            axes.annotate(
                f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}",
                (place, max(value, 0.0)),
                xytext=(0, 6),
                textcoords="offset points",
                ha="center",
                fontsize=8,
                color=theme.ink,
            )


def _bar_handles(chart: BarChart, theme: Theme) -> list[Patch]:
    looks: dict[str, dict[str, Any]] = {
        "aside": {"facecolor": theme.ink, "alpha": 0.35},
        "truth": {"facecolor": "none", "edgecolor": theme.ink},
        "measured": {"facecolor": theme.muted},
        "model": {"facecolor": theme.ink},
    }
    return [Patch(label=bars.label, **looks[bars.role]) for bars in chart.bars]


def interval_figure(chart: IntervalChart, theme: Theme) -> Figure:
    """Parameters with their intervals."""
    columns = min(3, len(chart.panels))
    rows = -(-len(chart.panels) // columns)
    figure, places = sheet(chart, rows, columns, 2.0)
    for panel, axes in zip(chart.panels, places, strict=False):
        for interval in panel.intervals:
            colour = theme.joint(interval.joint)
            axes.plot(interval.prior, interval.joint, "|", color=theme.muted, markersize=13)
            axes.errorbar(
                interval.value,
                interval.joint,
                xerr=interval.half_width,
                fmt="o",
                color=colour,
                markersize=4,
                capsize=3,
            )
        axes.set_title(panel.title)
        axes.set_xlabel(f"[{panel.unit}]")
        axes.margins(x=0.1)
        axes.set_ylim(len(chart.categories) - 0.5, -0.5)
        axes.set_yticks(range(len(chart.categories)), chart.categories)
        axes.xaxis.set_major_locator(MaxNLocator(4))
    for index, axes in enumerate(places):
        if index >= len(chart.panels):
            axes.set_axis_off()
        elif index % columns:
            axes.tick_params(labelleft=False)
    return figure
