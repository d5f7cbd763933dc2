# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Static figures (PNG, SVG, PDF) of lines, bars and boxes with matplotlib, from the page's charts.

They are for reports, slides and Markdown, where no script runs. Stacked bars, heat maps,
intervals, dates and logarithmic axes are on pages only. Figures are objects with an Agg
canvas; without pyplot no display is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
from matplotlib import rc_context, rcParams
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from ur_energy_model.report.chart import (
    BarChart,
    BoxChart,
    Chart,
    Line,
    LineChart,
    Panel,
    decimate,
)
from ur_energy_model.report.palette import THEMES
from ur_energy_model.typing import Array

THEME = THEMES["light"]
_DPI = 160  # resolution of PNG files
WIDTH = 10.0  # width of a figure [inch]
BESIDE_TITLE = 3
"""Most legend entries beside the title; longer legends are placed below the caption."""
LEGEND_LINE = 140  # characters of a line of such a legend
CATEGORY_LINE = 120  # characters of category names for which a figure has room
FEW = 3  # clouds of at most this many points are drawn as marks
BUCKETS = 1200  # buckets of samples per curve: more than a figure has pixels
_HEIGHTS = {1: 2.1, 2: 2.2}  # height of a row of panels by the number of columns [inch]


def save_chart(
    chart: Chart,
    folder: str | Path,
    *,
    formats: Iterable[str] = ("png",),
    name: str | None = None,
    dpi: int = _DPI,
) -> list[Path]:
    """Draw one chart into files.

    Args:
        chart: chart of lines, bars or boxes.
        folder: folder of the files; it is created if necessary.
        formats: any of "png", "svg" and "pdf".
        name: name of the files without suffix; None for the chart's key.
        dpi: resolution of PNG files.

    Returns:
        The paths of the files. Equal data give equal files.

    Raises:
        OSError: a file cannot be written.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    figure = draw_chart(chart)
    paths = [folder / f"{name or chart.key}.{kind}" for kind in formats]
    with rc_context(_STYLE):
        for path in paths:
            # Equal data give equal files.
            figure.savefig(path, dpi=dpi, metadata=_UNDATED.get(path.suffix, {}))
    return paths


def draw_chart(chart: Chart) -> Figure:
    """A matplotlib figure of a chart of lines, bars or boxes.

    Raises:
        TypeError: the chart is of another kind.
    """
    with rc_context(_STYLE):
        if isinstance(chart, LineChart):
            return line_figure(chart)
        if isinstance(chart, BoxChart):
            return box_figure(chart)
        if isinstance(chart, BarChart):
            return bar_figure(chart)
    raise TypeError(f"{type(chart).__name__} has no static figure")


# The layout of a figure: style, title, caption, legend and axes.


_STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    "text.parse_math": False,
    "text.color": THEME.ink,
    "figure.facecolor": THEME.ground,
    "axes.facecolor": THEME.ground,
    "axes.edgecolor": THEME.grid,
    "axes.labelcolor": THEME.muted,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.xmargin": 0.0,
    "grid.color": THEME.grid,
    "grid.linewidth": 0.6,
    "xtick.color": THEME.muted,
    "ytick.color": THEME.muted,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "lines.linewidth": 1.1,
    "lines.solid_capstyle": "round",
    "svg.fonttype": "none",
    "svg.hashsalt": "ur_energy_model",
    "pdf.fonttype": 42,  # text stays text, in fonts that publishers accept
}
"""Matplotlib settings; text is not parsed as mathematics."""
_UNDATED: dict[str, Any] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
"""Metadata of files that would have the date otherwise."""


def _sheet(
    chart: Chart,
    rows: int,
    columns: int,
    height: float,
    handles: Sequence[Any] = (),
    **shared: Any,
) -> tuple[Figure, list[Axes]]:
    """Figure with a title, a caption, a legend and its axes, row by row.

    Args:
        chart: chart whose texts are shown.
        rows: number of rows of axes.
        columns: number of columns of axes.
        height: height of a row [inch].
        handles: entries of the legend.
        shared: axes with common ranges, as for `Figure.subplots`.
    """
    caption = "\n".join(wrap(chart.caption, 130))
    below = 0  # lines of a legend below the caption
    if len(handles) > BESIDE_TITLE:
        characters = sum(len(handle.get_label()) + 6 for handle in handles)
        below = ceil(characters / LEGEND_LINE)
    head = 0.67 + 0.17 * caption.count("\n") + 0.22 * below
    full = head + rows * height + 0.2
    layout = ConstrainedLayoutEngine(
        rect=(0.005, 0.0, 0.99, 1 - head / full), hspace=0.06
    )
    figure = Figure(figsize=(WIDTH, full), layout=layout)
    FigureCanvasAgg(figure)
    figure.text(
        0.012, 1 - 0.10 / full, chart.title, va="top", fontsize=13, fontweight="bold"
    )
    muted = rcParams["axes.labelcolor"]
    figure.text(0.012, 1 - 0.38 / full, caption, va="top", color=muted, linespacing=1.35)
    if handles:
        place: dict[str, Any] = {"loc": "upper right", "bbox_to_anchor": (0.995, 1.0)}
        if below:
            anchor = (0.004, 1 - (head - 0.1 - 0.22 * below) / full)
            place = {"loc": "upper left", "bbox_to_anchor": anchor}
        legend = figure.legend(
            handles=list(handles),
            ncols=ceil(len(handles) / max(below, 1)),
            frameon=False,
            handlelength=1.4,
            columnspacing=1.2,
            **place,
        )
        legend.set_in_layout(False)
    return figure, list(figure.subplots(rows, columns, squeeze=False, **shared).flat)


def _categories(axes: Axes, names: Sequence[str], y_label: str) -> None:
    """Names below the categories, broken after an underscore where they would overlap."""
    longest = max(map(len, names), default=0)
    if longest * len(names) > CATEGORY_LINE:
        names = [name.replace("_", "_\n", 1) for name in names]
    axes.set_xticks(range(len(names)), names)
    axes.grid(visible=False, axis="x")
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.set_ylabel(y_label)


# One painter for each kind of chart.


def box_figure(chart: BoxChart) -> Figure:
    """Box plots by joint: the first recording in full colour, the others lighter."""
    count = len(chart.series)
    shades = [0.85, *[0.35] * (count - 1)]
    handles = []
    if count > 1:
        for shade, name in zip(shades, chart.series, strict=True):
            handles.append(Patch(facecolor=THEME.ink, alpha=shade, label=name))
    figure, (axes, *_) = _sheet(chart, 1, 1, 3.0, handles)
    width = 0.7 / count
    for s, boxes in enumerate(chart.boxes):
        for j, box in enumerate(boxes):
            minimum, low, first, median, third, high, maximum = box.tolist()
            x = j + _offset(s, count) * width
            colour = THEME.joint(j)
            axes.plot([x, x], [low, high], color=colour, linewidth=1.1)
            axes.bar(
                x,
                third - first,
                width * 0.8,
                bottom=first,
                color=colour,
                edgecolor=colour,
                alpha=shades[s],
            )
            middle = [x - width * 0.4, x + width * 0.4]
            axes.plot(middle, [median, median], color=THEME.ground, lw=1.6)
            axes.plot([x, x], [minimum, maximum], ".", color=colour, markersize=3)
    axes.axhline(0, color=THEME.muted, linewidth=0.7, zorder=1)
    _categories(axes, chart.categories, chart.y_label)
    return figure


def _offset(number: int, count: int) -> float:
    """Place of one of several bars of a category, in widths from the middle."""
    return number - (count - 1) / 2


def bar_figure(chart: BarChart) -> Figure:
    """Bars by category, side by side, with intervals; values are written at the first ones."""
    count = len(chart.bars)
    handles = []
    if count > 1:
        for bars in chart.bars:
            style = _bar_style(bars.role, THEME.ink)
            handles.append(Patch(label=bars.label, facecolor=style.pop("color"), **style))
    figure, (axes, *_) = _sheet(chart, 1, 1, 3.0, handles)
    width = 0.76 / count
    places = np.arange(len(chart.categories), dtype=float)
    joints = chart.joints or [None] * len(places)
    colours = [THEME.joint(joint) for joint in joints]
    for s, bars in enumerate(chart.bars):
        x = places + _offset(s, count) * width
        axes.bar(x, bars.values, width * 0.92, **_bar_style(bars.role, colours))
        if bars.half_width is not None:
            axes.errorbar(
                x,
                bars.values,
                yerr=bars.half_width,
                fmt="none",
                ecolor=THEME.ink,
                elinewidth=1.0,
                capsize=2.5,
            )
        if s == 0:
            _write_values(axes, x, bars.values)
    axes.axhline(0, color=THEME.muted, linewidth=0.7)
    axes.margins(y=0.12)
    _categories(axes, chart.categories, chart.y_label)
    return figure


def _bar_style(role: str, colours: Any) -> dict[str, Any]:
    """Options of bars of a role, with the colours of the categories."""
    styles: dict[str, dict[str, Any]] = {
        "aside": {"color": colours, "alpha": 0.4},
        "truth": {"color": "none", "edgecolor": THEME.ink, "linewidth": 1.1},
        "second": {"color": "none", "edgecolor": THEME.ink, "linestyle": (0, (3, 2))},
        "measured": {"color": THEME.muted},
        "model": {"color": colours},
    }
    return styles[role]


def _write_values(axes: Axes, x: Array, values: Array) -> None:
    """Write the finite values above their bars at places on the x axis."""
    for place, value in zip(x, values, strict=True):
        if np.isfinite(value):
            axes.annotate(
                f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}",
                (place, max(value, 0.0)),
                xytext=(0, 6),
                textcoords="offset points",
                ha="center",
                fontsize=8,
                color=THEME.ink,
            )


def line_figure(chart: LineChart) -> Figure:
    """Small multiples of curves, with a common legend."""
    count = len(chart.panels)
    columns = min(chart.columns, count)
    height = 3.2 if chart.equal else _HEIGHTS.get(columns, 1.85)
    figure, places = _sheet(
        chart,
        ceil(count / columns),
        columns,
        height,
        _handles(chart.panels),
        sharex=not chart.equal,
        sharey=chart.common_y,
    )
    for axes in places[count:]:
        axes.set_axis_off()
    for index, (panel, axes) in enumerate(zip(chart.panels, places, strict=False)):
        for line in panel.lines:
            _curve(axes, line, exact=chart.equal)
        if panel.title:
            axes.set_title(panel.title, color=THEME.ink)
        if panel.note:
            axes.set_title(
                panel.note,
                loc="right",
                fontsize=8,
                fontweight="normal",
                color=THEME.muted,
            )
        axes.yaxis.set_major_locator(MaxNLocator(5))
        low, high = axes.get_ylim()
        if low < 0 < high:
            axes.axhline(0, color=THEME.muted, linewidth=0.7, zorder=1)
        is_left = index % columns == 0
        axes.set_ylabel(panel.y_label or (chart.y_label if is_left else ""))
        if chart.equal:
            axes.set_aspect("equal", adjustable="datalim")
            axes.set_xlabel(chart.x_label)
        elif index >= count - columns:
            axes.set_xlabel(chart.x_label)
            axes.tick_params(labelbottom=True)
    return figure


def _curve(axes: Axes, line: Line, *, exact: bool) -> None:
    """Draw a line of a panel: points, an area, or a curve with its band.

    Args:
        axes: axes of the panel.
        line: line of the chart.
        exact: whether all samples of a curve are drawn; otherwise it is decimated.
    """
    colour, options = _stroke(line)
    if line.points:
        few = len(line.x) <= FEW
        axes.plot(
            line.x,
            line.y,
            ".",
            markersize=14.0 if few else 2.2,
            rasterized=True,
            color=colour,
            alpha=0.45 if line.role == "measured" and not few else 0.9,
            markeredgewidth=0,
        )
        return
    x, y = (line.x, line.y) if exact else decimate(line.x, line.y, BUCKETS)
    if line.base is not None:
        base = np.interp(x, line.x, np.nan_to_num(line.base))
        axes.fill_between(x, base, y, color=colour, linewidth=0, alpha=_fill_alpha(line))
        return
    axes.plot(x, y, color=colour, **options)
    if line.half_width is not None:
        _, half = decimate(line.x, line.half_width, BUCKETS)
        if len(half) == len(y):
            axes.fill_between(
                x, y - half, y + half, color=colour, alpha=0.18, linewidth=0
            )


def _fill_alpha(line: Line) -> float:
    """Opacity of an area."""
    return 0.3 if line.role == "aside" else 0.85


def _stroke(line: Line) -> tuple[str, dict[str, Any]]:
    """Colour, and the options of a curve."""
    strokes: dict[str, tuple[str, dict[str, Any]]] = {
        "measured": (THEME.data, {"linewidth": 1.7, "alpha": 0.55}),
        "truth": (THEME.ink, {"linewidth": 0.7}),
        "second": (THEME.ink, {"linewidth": 0.9, "linestyle": (0, (1.6, 1.6))}),
        "aside": (THEME.muted, {"linewidth": 0.9, "linestyle": (0, (1, 1.5))}),
        "model": (THEME.joint(line.joint), {}),
    }
    return strokes[line.role]


def _handles(panels: Sequence[Panel]) -> list[Any]:
    """Legend of all panels: labels in order of appearance, in ink where their colours differ."""
    lines: dict[str, list[Line]] = {}
    for panel in panels:
        if len(panel.lines) > 1:
            for line in panel.lines:
                lines.setdefault(line.label, []).append(line)
    handles: list[Any] = []
    for label, (line, *others) in lines.items():
        colour, look = _stroke(line)
        if any(_stroke(other)[0] != colour for other in others):
            colour = THEME.ink
        if line.base is not None:
            handles.append(Patch(facecolor=colour, alpha=_fill_alpha(line), label=label))
            continue
        if line.points:
            look = {
                "marker": ".",
                "linestyle": "",
                "markersize": 12 if len(line.x) <= FEW else 6,
            }
        handles.append(Line2D([], [], label=label, color=colour, **look))
    return handles if len(handles) > 1 else []
