"""Static figures (PNG, SVG) with matplotlib, from the same charts as the page.

Figures are objects with an Agg canvas; without pyplot no display is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.report.analysis import analyse
from ur_energy_model.report.charts.chart import (
    BarChart,
    BoxChart,
    Chart,
    HeatMap,
    IntervalChart,
    LineChart,
)
from ur_energy_model.report.charts.recording import recording_charts
from ur_energy_model.report.figures.category_painters import bar_figure, box_figure, interval_figure
from ur_energy_model.report.figures.heat_painter import heat_figure
from ur_energy_model.report.figures.line_painter import line_figure
from ur_energy_model.report.figures.sheet import style
from ur_energy_model.report.palette import THEMES, Theme, ThemeName
from ur_energy_model.typing import Array

_DPI = 160


def save_figures(
    model: EnergyModel,
    bag: str | Path,
    folder: str | Path,
    truth: Mapping[str, Any] | None = None,
    *,
    formats: Sequence[str] = ("png",),
    theme: ThemeName = "light",
) -> list[Path]:
    """Draw all figures that the data of a recording allow.

    Args:
        model: identified model.
        bag: a recording.
        folder: created if necessary.
        truth: content of a simulation's --truth file; adds the true energies.
        formats: "png", "svg" or both.
        theme: colours.

    Returns:
        The files, in the order of the report.

    Raises:
        UrEnergyError: invalid input, with source and remedy.
    """
    analysis = analyse(model, bag)
    charts = recording_charts(analysis, true_energy=true_energy(truth))
    return [
        path for chart in charts for path in save_chart(chart, folder, formats=formats, theme=theme)
    ]


def true_energy(truth: Mapping[str, Any] | None) -> Array | None:
    """Electrical energy of each joint in a simulation's truth [joints], J; None if unknown."""
    if truth is None or "joints" not in truth:
        return None
    return np.array([float(joint["electrical_energy"]) for joint in truth["joints"]])


def save_chart(
    chart: Chart,
    folder: str | Path,
    *,
    formats: Iterable[str] = ("png",),
    theme: ThemeName = "light",
    name: str | None = None,
    dpi: int = _DPI,
) -> list[Path]:
    """Draw one chart into a folder, in each format.

    Args:
        chart: the chart.
        folder: created if necessary.
        formats: "png", "svg" or both.
        theme: colours.
        name: of the files without suffix; None takes the chart's key.
        dpi: resolution of PNG files.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    figure = draw_chart(chart, theme=theme)
    paths = [folder / f"{name or chart.key}.{kind}" for kind in formats]
    with rc_context(style(THEMES[theme])):
        for path in paths:
            figure.savefig(path, dpi=dpi, metadata=_metadata(path))
    return paths


def draw_chart(chart: Chart, *, theme: ThemeName = "light") -> Figure:
    """A matplotlib figure of a chart."""
    colours = THEMES[theme]
    with rc_context(style(colours)):
        return _PAINTERS[type(chart)](chart, colours)


def _metadata(path: Path) -> dict[str, Any]:
    """Metadata without a date, so that equal data give equal files."""
    return {"Date": None} if path.suffix == ".svg" else {}


_PAINTERS: dict[type[Any], Callable[[Any, Theme], Figure]] = {
    LineChart: line_figure,
    BoxChart: box_figure,
    BarChart: bar_figure,
    IntervalChart: interval_figure,
    HeatMap: heat_figure,
}
