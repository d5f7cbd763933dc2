"""Painters: the sheet that a figure is drawn on, and how curves look in matplotlib."""

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

from ur_energy_model.report.charts import Chart, Line, LineChart, Panel
from ur_energy_model.report.decimate import decimate
from ur_energy_model.report.palette import Theme

WIDTH = 10.0
"""Width of a figure [inch]."""
BESIDE_TITLE = 3
"""Longest legend that stands beside the title; longer ones go below the caption."""
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


def sheet(
    chart: Chart,
    rows: int,
    columns: int,
    height: float,
    *,
    handles: Sequence[Any] = (),
    **options: Any,
) -> tuple[Figure, list[Axes]]:
    """Figure with a title, a caption, a legend and its axes, row by row."""
    caption = "\n".join(wrap(chart.caption, 130))
    below = len(handles) > BESIDE_TITLE
    head = 0.67 + 0.17 * caption.count("\n") + 0.22 * below
    full = head + rows * height + 0.2
    layout = ConstrainedLayoutEngine(rect=(0.005, 0.0, 0.99, 1 - head / full), hspace=0.06)
    figure = Figure(figsize=(WIDTH, full), layout=layout)
    FigureCanvasAgg(figure)
    figure.text(0.012, 1 - 0.10 / full, chart.title, va="top", fontsize=13, fontweight="bold")
    figure.text(
        0.012,
        1 - 0.38 / full,
        caption,
        va="top",
        color=rcParams["axes.labelcolor"],
        linespacing=1.35,
    )
    if handles:
        place: dict[str, Any] = {"loc": "upper right", "bbox_to_anchor": (0.995, 1.0)}
        if below:
            place = {"loc": "upper left", "bbox_to_anchor": (0.004, 1 - (head - 0.32) / full)}
        legend = figure.legend(
            handles=list(handles),
            ncols=len(handles),
            frameon=False,
            handlelength=1.4,
            columnspacing=1.2,
            **place,
        )
        legend.set_in_layout(False)
    return figure, list(figure.subplots(rows, columns, squeeze=False, **options).flat)


def line_figure(chart: LineChart, theme: Theme) -> Figure:
    """Small multiples of curves."""
    columns = min(chart.columns, len(chart.panels))
    rows = -(-len(chart.panels) // columns)
    height = {1: 2.1, 2: 2.2}.get(columns, 1.85)
    if chart.equal:
        height = 3.2
    figure, places = sheet(
        chart, rows, columns, height, handles=_handles(chart.panels, theme), sharex=not chart.equal
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
            axes.plot(
                line.x,
                line.y,
                ".",
                markersize=2.2,
                color=colour,
                alpha=0.45 if line.role == "measured" else 0.9,
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
    """Legend of all panels together: names in the order of appearance."""
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
        look = {"marker": ".", "linestyle": ""} if line.points else options
        handles.append(Line2D([], [], label=name, color=shown, **look))
    return handles
