"""All charts of one recording."""

from __future__ import annotations

from ur_energy_model.report.analysis import Analysis
from ur_energy_model.report.charts.chart import Chart
from ur_energy_model.report.charts.motion import motion_chart, path_chart, temperature_chart
from ur_energy_model.report.charts.power import (
    bus_chart,
    energy_chart,
    energy_split_chart,
    power_chart,
    stack_chart,
)
from ur_energy_model.report.charts.torque_and_current import (
    current_chart,
    current_error_chart,
    friction_chart,
    torque_chart,
    torque_error_chart,
)
from ur_energy_model.typing import Array


def recording_charts(analysis: Analysis, *, true_energy: Array | None = None) -> list[Chart]:
    """All charts that the data of a recording allow, in the order of the report.

    Args:
        analysis: of the recording.
        true_energy: true electrical energy of each joint in a simulation [joints], J.
    """
    charts = (
        stack_chart(analysis),
        energy_split_chart(analysis, true_energy),
        bus_chart(analysis),
        power_chart(analysis),
        energy_chart(analysis),
        torque_chart(analysis),
        torque_error_chart([analysis]),
        current_chart(analysis),
        current_error_chart([analysis]),
        friction_chart(analysis),
        motion_chart(analysis),
        path_chart(analysis),
        temperature_chart(analysis),
    )
    return [chart for chart in charts if chart is not None]
