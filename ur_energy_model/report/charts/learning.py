"""Chart of what a learner did: error and interval over time, and the versions of the model."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ur_energy_model.learning.history import Attempt
from ur_energy_model.report.charts.chart import Line, LineChart, Panel


def learning_chart(attempts: Sequence[Attempt], joint_names: Sequence[str]) -> LineChart:
    """Held-out error, intervals and version over the time of the attempts.

    Args:
        attempts: one or more, in order of time.
        joint_names: of the n joints.
    """
    learned = np.cumsum([0.0, *(max(0.0, b.time - a.time) for a, b in pairwise(attempts))])
    minutes = np.asarray(learned) / 60.0
    errors = [attempt.supply_energy_error_percent for attempt in attempts]
    error = np.array([np.nan if value is None else value for value in errors])
    intervals = np.array([attempt.joint_energy_interval_percent for attempt in attempts])
    version = np.array([attempt.version for attempt in attempts], dtype=float)
    steps, heights = np.repeat(minutes, 2)[1:], np.repeat(version, 2)[:-1]
    accepted = np.array([attempt.accepted for attempt in attempts])
    panels = [
        Panel(
            "Energy at the supply: model minus measured",
            (Line("error", minutes, error, role="measured"),),
            y_label="error [%]",
        ),
        Panel(
            "95 % intervals of the joints' electrical energies",
            tuple(
                Line(name, minutes, intervals[:, j], joint=j) for j, name in enumerate(joint_names)
            ),
            y_label="± [%]",
        ),
        Panel(
            "Version of the model in use",
            (
                Line("version", steps, heights, role="measured"),
                Line("taken over", minutes[accepted], version[accepted], role="truth", points=True),
            ),
            y_label="version",
        ),
    ]
    return LineChart(
        key="learning",
        title="Learning while the arm works",
        caption="Over time that the model in use was not fitted to: error of the energy at the "
        "supply, and half widths of the intervals of each joint's energy.",
        x_label="time since the first model was tried [min]",
        y_label="",
        panels=tuple(panels),
        columns=1,
    )
