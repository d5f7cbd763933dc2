"""Painter of line charts in matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from ur_energy_model.report.charts.chart import Line, LineChart, Panel
from ur_energy_model.report.charts.decimation import decimate
from ur_energy_model.report.figures.sheet import sheet
from ur_energy_model.report.palette import Theme

FEW = 3
"""Clouds of at most this many points are drawn as marks."""
BUCKETS = 1200
"""Buckets of samples per curve: more than a figure has pixels."""


def line_figure(chart: LineChart, theme: Theme) -> Figure:
    """Small multiples of curves."""
    columns = min(chart.columns, len(chart.panels))
    rows = -(-len(chart.panels) // columns)
    height = {1: 2.1, 2: 2.2}.get(columns, 1.85)
    if chart.equal:
        height = 3.2
    figure, places = sheet(
        chart,
        rows,
        columns,
        height,
        handles=_handles(chart.panels, theme),
        sharex=not chart.equal,
        sharey=chart.common_y,
    )
    for panel, axes in zip(chart.panels, places, strict=False):
        _panel(axes, panel, chart, theme)
    for axes in places[len(chart.panels) :]:
        axes.set_axis_off()
    for axes in places[max(0, len(chart.panels) - columns) : len(chart.panels)]:
        if not chart.equal:
            axes.set_xlabel(chart.x_label)
            axes.tick_params(labelbottom=True)
    for index, axes in enumerate(places[: len(chart.panels)]):
        label = chart.panels[index].y_label or (chart.y_label if index % columns == 0 else "")
        axes.set_ylabel(label)
    return figure


def _panel(axes: Axes, panel: Panel, chart: LineChart, theme: Theme) -> None:
    for line in panel.lines:
        colour, options = _stroke(line, theme)
        if line.points:
            few = len(line.x) <= FEW
            axes.plot(
                line.x,
                line.y,
                ".",
                markersize=14.0 if few else 2.2,
                color=colour,
                alpha=0.45 if line.role == "measured" and not few else 0.9,
                markeredgewidth=0,
                rasterized=True,
            )
            continue
        x, y = (line.x, line.y) if chart.equal else decimate(line.x, line.y, BUCKETS)
        if line.base is not None:
            base = np.interp(x, line.x, np.nan_to_num(line.base))
            axes.fill_between(x, base, y, color=colour, linewidth=0, alpha=_fill_alpha(line))
            continue
        axes.plot(x, y, color=colour, **options)
        if line.half_width is not None:
            _, half = decimate(line.x, line.half_width, BUCKETS)
            if len(half) == len(y):
                axes.fill_between(x, y - half, y + half, color=colour, alpha=0.18, linewidth=0)
    if panel.title:
        axes.set_title(panel.title, color=theme.ink)
    if panel.note:
        axes.set_title(panel.note, loc="right", fontsize=8, fontweight="normal", color=theme.muted)
    if chart.log_y:
        axes.set_yscale("log")
    else:
        axes.yaxis.set_major_locator(MaxNLocator(5))
        if chart.dates:
            locator = AutoDateLocator(maxticks=7)  # type: ignore[no-untyped-call]
            axes.xaxis.set_major_locator(locator)
            axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
        if chart.from_zero:
            axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
        low, high = axes.get_ylim()
        if low < 0 < high:
            axes.axhline(0, color=theme.muted, linewidth=0.7, zorder=1)
    if chart.equal:
        axes.set_aspect("equal", adjustable="datalim")


def _fill_alpha(line: Line) -> float:
    return 0.3 if line.role == "aside" else 0.85


def _stroke(line: Line, theme: Theme) -> tuple[str, dict[str, Any]]:
    if line.role == "measured":
        return theme.data, {"linewidth": 1.7, "alpha": 0.55}
    if line.role == "truth":
        return theme.ink, {"linewidth": 0.7}
    if line.role == "aside":
        return theme.muted, {"linewidth": 0.9, "linestyle": (0, (1, 1.5))}
    return theme.joint(line.joint), {}


def _handles(panels: Sequence[Panel], theme: Theme) -> list[Any]:
    """Legend of all panels: labels in order of appearance."""
    names: dict[str, tuple[str, dict[str, Any], Line]] = {}
    colours: dict[str, set[str]] = {}
    for panel in panels:
        for line in panel.lines if len(panel.lines) > 1 else ():
            colour, options = _stroke(line, theme)
            names.setdefault(line.label, (colour, options, line))
            colours.setdefault(line.label, set()).add(colour)
    if len(names) < 2:
        return []
    handles: list[Any] = []
    for name, (colour, options, line) in names.items():
        shown = colour if len(colours[name]) == 1 else theme.ink
        if line.base is not None:
            handles.append(Patch(facecolor=shown, alpha=_fill_alpha(line), label=name))
            continue
        look = options
        if line.points:
            look = {"marker": ".", "linestyle": "", "markersize": 12 if len(line.x) <= FEW else 6}
        handles.append(Line2D([], [], label=name, color=shown, **look))
    return handles
