"""Painter of heat maps in matplotlib."""

from __future__ import annotations

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from ur_energy_model.report.charts.chart import HeatMap
from ur_energy_model.report.figures.sheet import sheet
from ur_energy_model.report.palette import Theme


def heat_figure(chart: HeatMap, theme: Theme) -> Figure:
    """Grids of coloured cells, one below the other, with a common colour bar."""
    rows = max((len(panel.rows) for panel in chart.panels), default=1)
    figure, places = sheet(chart, len(chart.panels), 1, 0.9 + 0.16 * rows)
    colours = LinearSegmentedColormap.from_list("heat", [theme.raised, theme.accent])
    for panel, axes in zip(chart.panels, places, strict=True):
        mesh = axes.pcolormesh(
            np.ma.masked_invalid(panel.values), cmap=colours, vmin=0.0, vmax=chart.largest or 1.0
        )
        axes.set_title(panel.title)
        axes.set_yticks(np.arange(len(panel.rows)) + 0.5, panel.rows)
        axes.set_xticks([column for column, _ in panel.ticks], [text for _, text in panel.ticks])
        axes.invert_yaxis()
        axes.grid(visible=False)
        figure.colorbar(mesh, ax=axes, label=chart.value_label)
    return figure
