# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The chart of what learning did."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ur_energy_model.learning.history import Attempt
from ur_energy_model.report.chart import Line, LineChart, Panel
from ur_energy_model.report.model_charts import joint_lines


def learning_chart(attempts: Sequence[Attempt], joint_names: Sequence[str]) -> LineChart:
    """Held-out error, intervals and version of the model over the time of one or more attempts."""
    learned = np.cumsum(
        [0.0, *(max(0.0, b.time - a.time) for a, b in pairwise(attempts))]
    )
    minutes = np.asarray(learned) / 60.0
    errors = [attempt.supply_energy_error_percent for attempt in attempts]
    error = np.array([np.nan if value is None else value for value in errors])
    intervals = np.array([attempt.joint_energy_interval_percent for attempt in attempts])
    version = np.array([attempt.version for attempt in attempts], dtype=float)
    accepted = np.array([attempt.accepted for attempt in attempts])
    versions = (
        Line(
            "version", np.repeat(minutes, 2)[1:], np.repeat(version, 2)[:-1], "measured"
        ),
        Line("taken over", minutes[accepted], version[accepted], "truth", points=True),
    )
    errors_shown = (Line("error", minutes, error, "measured"),)
    widths = joint_lines(minutes, intervals, joint_names)
    title = "95 % intervals of the joints'"
    panels = (
        Panel(
            "Energy at the supply: model minus measured",
            errors_shown,
            y_label="error [%]",
        ),
        Panel(f"{title} electrical energies", widths, y_label="± [%]"),
        Panel("Version of the model in use", versions, y_label="version"),
    )
    return LineChart(
        key="learning",
        title="Learning while the arm works",
        caption="Over time that the model in use was not fitted to: error of the energy at the "
        "supply, and half widths of the intervals of each joint's energy.",
        x_label="time since the first model was tried [min]",
        panels=panels,
        columns=1,
    )
