"""The layout of a static figure: style, title, caption, legend and axes."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from ur_energy_model.report.charts.chart import Chart
from ur_energy_model.report.palette import Theme

WIDTH = 10.0
"""Width of a figure [inch]."""
BESIDE_TITLE = 3
"""Most legend entries beside the title; longer legends are placed below the caption."""
LINE = 140
"""Characters of a line of such a legend."""


def style(theme: Theme) -> Any:
    """Matplotlib settings of a theme; text is not parsed as mathematics."""
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
    below = 0  # lines of the legend
    if len(handles) > BESIDE_TITLE:
        below = -(-sum(len(handle.get_label()) + 6 for handle in handles) // LINE)
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
            place = {
                "loc": "upper left",
                "bbox_to_anchor": (0.004, 1 - (head - 0.1 - 0.22 * below) / full),
            }
        legend = figure.legend(
            handles=list(handles),
            ncols=-(-len(handles) // max(below, 1)),
            frameon=False,
            handlelength=1.4,
            columnspacing=1.2,
            **place,
        )
        legend.set_in_layout(False)
    return figure, list(figure.subplots(rows, columns, squeeze=False, **options).flat)
