# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The chart of what learning did."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ur_energy_model.learning.history import Attempt
from ur_energy_model.report.chart import Line, LineChart, Panel
from ur_energy_model.report.model_charts import joint_lines


def learning_chart(attempts: Sequence[Attempt], joint_names: Sequence[str]) -> LineChart:
    """Held-out error, intervals and version of the model over the time of the attempts.

    Args:
        attempts: attempts of the learner, at least one, in order of time. The
            controller's time may start anew between two attempts; this gap counts as no
            time.
        joint_names: names of the joints from base to tool.
    """
    times = np.array([attempt.time for attempt in attempts])
    passed = np.maximum(np.diff(times, prepend=times[:1]), 0.0)
    minutes = np.cumsum(passed) / 60.0
    # None, where bus power was not measured, becomes NaN.
    errors = [attempt.supply_energy_error_percent for attempt in attempts]
    error = np.array(errors, dtype=float)
    intervals = np.array([attempt.joint_energy_interval_percent for attempt in attempts])
    version = np.array([attempt.version for attempt in attempts], dtype=float)
    accepted = np.array([attempt.accepted for attempt in attempts])
    # A version holds until the next attempt: two points each make a staircase.
    step_times = np.repeat(minutes, 2)[1:]
    steps = np.repeat(version, 2)[:-1]
    versions = (
        Line("version", step_times, steps, "measured"),
        Line("taken over", minutes[accepted], version[accepted], "truth", points=True),
    )
    panels = (
        Panel(
            "Energy at the supply: model minus measured",
            (Line("error", minutes, error, "measured"),),
            y_label="error [%]",
        ),
        Panel(
            "95 % intervals of the joints' electrical energies",
            joint_lines(minutes, intervals, joint_names),
            y_label="± [%]",
        ),
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
