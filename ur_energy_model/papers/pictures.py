# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Pictures of a run, with R2 where a picture shows measured beside modelled values.

R2 = 1 - sum of squared errors / sum of squared deviations of the measurement from its mean,
of the very curves that are drawn. The number is in the panel, in the caption and in
verdict.json, so that a picture of a wrong model cannot pass for one of a right model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from ur_energy_model.identification.error_statistics import (
    ErrorStatistics,
    finite_or_none,
)
from ur_energy_model.report.chart import Chart, Line, LineChart, Panel
from ur_energy_model.report.figures import save_chart

R2ByPanel = Mapping[str, float | None]
"""R2 by the title of the panel; None where the measurement is constant."""
_MODELLED = ("model", "second", "truth")  # roles beside a measured curve
_DPI = 90  # resolution of the pictures [dots per inch]


@dataclass(frozen=True)
class Picture:
    """A picture in the output folder.

    Attributes:
        file: path in the output folder.
        caption: the figure of the paper and the title, such as "Fig. 3: Torque".
        r2: R2 by the label of a modelled curve, and by panel; empty where nothing is
            modelled.
    """

    file: str
    caption: str
    r2: Mapping[str, R2ByPanel] = field(default_factory=dict)


def draw_picture(chart: Chart, folder: Path, place: str) -> Picture:
    """Draw a chart as a picture of a run.

    Args:
        chart: chart to draw.
        folder: folder of the pictures, in the output folder.
        place: the figure of the paper, such as "Fig. 3".
    """
    (path,) = save_chart(with_r2(chart), folder, dpi=_DPI)
    file = f"{folder.name}/{path.name}"
    return Picture(file, f"{place}: {chart.title}", r2_of_chart(chart))


def r2_of_chart(chart: Chart) -> dict[str, dict[str, float | None]]:
    """R2 of every modelled curve beside a measured one, by label of the curve and panel.

    Modelled curves have the role "model", "second" or "truth"; of a panel the first curve with the
    role "measured" counts.

    Args:
        chart: any chart; only charts of curves have such panels.
    """
    found: dict[str, dict[str, float | None]] = {}
    if isinstance(chart, LineChart):
        for panel in chart.panels:
            for label, r2 in _r2_of_panel(panel).items():
                found.setdefault(label, {})[panel.title] = r2
    return found


def with_r2(chart: Chart) -> Chart:
    """The chart with R2 in the note of every panel that shows a measured and a modelled curve.

    R2 of several modelled curves are in the order of the legend: a panel has no room for
    their labels, which the caption has.
    """
    if not isinstance(chart, LineChart):
        return chart
    panels = []
    for panel in chart.panels:
        r2 = _r2_of_panel(panel)
        texts = [panel.note] if panel.note else []
        if r2:
            texts.append(f"R² {' / '.join(map(_shown, r2.values()))}")
        panels.append(replace(panel, note=", ".join(texts)))
    return replace(chart, panels=tuple(panels))


def r2_text(r2: Mapping[str, R2ByPanel]) -> str:
    """R2 as words of a caption, panels between strokes, such as "R² 0.9898/0.9976".

    Args:
        r2: R2 by label of the curve and by panel.

    Returns:
        The words; empty without any R2.
    """
    texts = []
    for label, by_panel in r2.items():
        curve = "" if len(r2) == 1 else f" {label}"
        texts.append(f"R²{curve} {'/'.join(map(_shown, by_panel.values()))}")
    return ", ".join(texts)


def _shown(r2: float | None) -> str:
    """R2 with four digits; a dash where there is none."""
    return "-" if r2 is None else f"{r2:.4g}"


def _r2_of_panel(panel: Panel) -> dict[str, float | None]:
    """R2 of the modelled curves of a panel by their labels; empty without a measured curve."""
    measured = [line for line in panel.lines if line.role == "measured"]
    if not measured:
        return {}
    return {
        line.label: _r2(measured[0], line)
        for line in panel.lines
        if line.role in _MODELLED
    }


def _r2(measured: Line, modelled: Line) -> float | None:
    """R2 of a modelled curve; samples where either curve has a gap do not count.

    Args:
        measured: the measured curve.
        modelled: a curve over the same places.
    """
    if not np.array_equal(measured.x, modelled.x):
        raise ValueError(
            f"{modelled.label!r} is not over the places of {measured.label!r}"
        )
    counted = np.isfinite(measured.y) & np.isfinite(modelled.y)
    errors = ErrorStatistics(1)
    errors.accumulate(measured.y[counted, None], modelled.y[counted, None])
    return finite_or_none(float(errors.r2[0]))
