"""Painters: how each kind of chart looks in matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from ur_energy_model.report.charts import (
    BarChart,
    BoxChart,
    Chart,
    IntervalChart,
    Line,
    LineChart,
    Panel,
)
from ur_energy_model.report.decimate import decimate
from ur_energy_model.report.palette import Theme

Array = NDArray[np.float64]

WIDTH = 10.0
"""Width of a figure [inch]."""
BUCKETS = 1200
"""Buckets of samples kept per curve: more than there are pixels."""


def style(theme: Theme) -> Any:
    """Matplotlib settings of a theme; text is never read as mathematics."""
    return {
        "font.family": "DejaVu Sans",
        "font.size": 8.5,
        "text.parse_math": False,
        "text.color": theme.ink,
        "figure.facecolor": theme.ground,
        "axes.facecolor": theme.ground,
        "axes.edgecolor": theme.grid,
        "axes.labelcolor": theme.muted,
        "axes.titlesize": 9,
        "axes.titlelocation": "left",
        "axes.titleweight": "bold",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "axes.xmargin": 0.0,
        "grid.color": theme.grid,
        "grid.linewidth": 0.6,
        "xtick.color": theme.muted,
        "ytick.color": theme.muted,
        "xtick.major.size": 0,
        "ytick.major.size": 0,
        "lines.linewidth": 1.1,
        "lines.solid_capstyle": "round",
        "svg.fonttype": "none",
        "svg.hashsalt": "ur_energy_model",
    }


def _sheet(
    chart: Chart, rows: int, columns: int, height: float, **options: Any
) -> tuple[Figure, list[Axes]]:
    """Figure with a title, a caption and its axes, row by row."""
    caption = "\n".join(wrap(chart.caption, 120))
    head = 0.50 + 0.17 * caption.count("\n") + 0.17
    full = head + rows * height + 0.2
    layout = ConstrainedLayoutEngine(rect=(0.005, 0.0, 0.99, 1 - head / full), hspace=0.06)
    figure = Figure(figsize=(WIDTH, full), layout=layout)
    FigureCanvasAgg(figure)
    figure.text(0.012, 1 - 0.10 / full, chart.title, va="top", fontsize=13, fontweight="bold")
    figure.text(
        0.012, 1 - 0.38 / full, caption, va="top", color=rcParams["axes.labelcolor"],
        linespacing=1.35,
    )  # fmt: skip
    return figure, list(figure.subplots(rows, columns, squeeze=False, **options).flat)


def line_figure(chart: LineChart, theme: Theme) -> Figure:
    """Small multiples of curves."""
    columns = min(chart.columns, len(chart.panels))
    rows = -(-len(chart.panels) // columns)
    height = {1: 2.1, 2: 2.2}.get(columns, 1.85)
    if chart.equal:
        height = 3.2
    figure, places = _sheet(chart, rows, columns, height, sharex=not chart.equal)
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
    _legend(figure, chart.panels, theme)
    return figure


def _panel(axes: Axes, panel: Panel, chart: LineChart, theme: Theme) -> None:
    for line in panel.lines:
        colour, options = _stroke(line, theme)
        if line.points:
            axes.plot(
                line.x, line.y, ".", markersize=2.2, color=colour,
                alpha=0.45 if line.role == "measured" else 0.9, markeredgewidth=0, rasterized=True,
            )  # fmt: skip
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


def _legend(figure: Figure, panels: Sequence[Panel], theme: Theme) -> None:
    """One legend for the figure, top right: names in the order of appearance."""
    names: dict[str, tuple[str, dict[str, Any], Line]] = {}
    colours: dict[str, set[str]] = {}
    for panel in panels:
        for line in panel.lines if len(panel.lines) > 1 else ():
            colour, options = _stroke(line, theme)
            names.setdefault(line.label, (colour, options, line))
            colours.setdefault(line.label, set()).add(colour)
    if len(names) < 2:
        return
    handles: list[Any] = []
    for name, (colour, options, line) in names.items():
        shown = colour if len(colours[name]) == 1 else theme.ink
        if line.base is not None:
            handles.append(Patch(facecolor=shown, alpha=_fill_alpha(line), label=name))
            continue
        look = {"marker": ".", "linestyle": ""} if line.points else options
        handles.append(Line2D([], [], label=name, color=shown, **look))
    figure.legend(
        handles=handles, loc="upper right", ncols=len(handles), frameon=False,
        handlelength=1.4, columnspacing=1.2, bbox_to_anchor=(0.995, 1.0),
    )  # fmt: skip


def box_figure(chart: BoxChart, theme: Theme) -> Figure:
    """Box plots by joint."""
    figure, (axes, *_) = _sheet(chart, 1, 1, 3.0)
    count = len(chart.series)
    width = 0.7 / count
    for s, boxes in enumerate(chart.boxes):
        for j, box in enumerate(boxes):
            x = j + (s - (count - 1) / 2) * width
            colour = theme.joint(j)
            axes.plot([x, x], [box.low, box.high], color=colour, linewidth=1.1)
            axes.bar(
                x, box.third - box.first, width * 0.8, bottom=box.first,
                color=colour, alpha=0.85 if s == 0 else 0.35, edgecolor=colour,
            )  # fmt: skip
            axes.plot(
                [x - width * 0.4, x + width * 0.4], [box.median] * 2, color=theme.ground, lw=1.6
            )
            axes.plot([x, x], [box.minimum, box.maximum], ".", color=colour, markersize=3)
    axes.axhline(0, color=theme.muted, linewidth=0.7, zorder=1)
    axes.set_xticks(range(len(chart.categories)), chart.categories)
    axes.set_xlim(-0.6, len(chart.categories) - 0.4)
    axes.grid(visible=False, axis="x")
    axes.set_ylabel(chart.y_label)
    if count > 1:
        handles = [
            Patch(facecolor=theme.ink, alpha=0.85 if s == 0 else 0.35, label=name)
            for s, name in enumerate(chart.series)
        ]
        figure.legend(handles=handles, loc="upper right", ncols=count, frameon=False)
    return figure


def bar_figure(chart: BarChart, theme: Theme) -> Figure:
    """Bars by category."""
    figure, (axes, *_) = _sheet(chart, 1, 1, 3.0)
    count = 1 if chart.stacked else len(chart.bars)
    width = 0.76 / count
    places = np.arange(len(chart.categories), dtype=float)
    base = np.zeros(len(places))
    for s, bars in enumerate(chart.bars):
        x = places if chart.stacked else places + (s - (count - 1) / 2) * width
        colours = [
            theme.joint(chart.joints[c] if c < len(chart.joints) else None)
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
                x, bars.values, yerr=bars.half_width, fmt="none", ecolor=theme.ink,
                elinewidth=1.0, capsize=2.5,
            )  # fmt: skip
        if chart.stacked:
            base = base + np.nan_to_num(bars.values)
        elif s == 0:
            _value_labels(axes, x, bars.values, theme)
    axes.axhline(0, color=theme.muted, linewidth=0.7)
    axes.set_xticks(places, chart.categories)
    axes.grid(visible=False, axis="x")
    axes.margins(y=0.12)
    axes.set_xlim(-0.6, len(places) - 0.4)
    axes.set_ylabel(chart.y_label)
    if len(chart.bars) > 1:
        _bar_legend(figure, chart, theme)
    return figure


def _value_labels(axes: Axes, x: Array, values: Array, theme: Theme) -> None:
    for place, value in zip(x, values, strict=True):
        if np.isfinite(value):
            axes.annotate(
                f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}", (place, max(value, 0.0)),
                xytext=(0, 6), textcoords="offset points", ha="center", fontsize=8,
                color=theme.ink,
            )  # fmt: skip


def _bar_legend(figure: Figure, chart: BarChart, theme: Theme) -> None:
    looks: dict[str, dict[str, Any]] = {
        "aside": {"facecolor": theme.ink, "alpha": 0.35},
        "truth": {"facecolor": "none", "edgecolor": theme.ink},
        "measured": {"facecolor": theme.muted},
        "model": {"facecolor": theme.ink},
    }
    handles = [Patch(label=bars.label, **looks[bars.role]) for bars in chart.bars]
    figure.legend(
        handles=handles, loc="upper right", ncols=len(handles), frameon=False,
        bbox_to_anchor=(0.995, 1.0),
    )  # fmt: skip


def interval_figure(chart: IntervalChart, theme: Theme) -> Figure:
    """Parameters with their intervals."""
    columns = min(3, len(chart.panels))
    rows = -(-len(chart.panels) // columns)
    figure, places = _sheet(chart, rows, columns, 2.0)
    for panel, axes in zip(chart.panels, places, strict=False):
        for interval in panel.intervals:
            colour = theme.joint(interval.joint)
            axes.plot(interval.prior, interval.joint, "|", color=theme.muted, markersize=13)
            axes.errorbar(
                interval.value, interval.joint, xerr=interval.half_width, fmt="o",
                color=colour, markersize=4, capsize=3,
            )  # fmt: skip
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
