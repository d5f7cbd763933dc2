"""All charts of one recording."""

from __future__ import annotations

from ur_energy_model.report.analysis import Analysis
from ur_energy_model.report.charts import motion, power, torque_and_current
from ur_energy_model.report.charts.chart import Chart
from ur_energy_model.typing import Array


def recording_charts(analysis: Analysis, *, true_energy: Array | None = None) -> list[Chart]:
    """All charts that the data of a recording allow, in the order of the report.

    Args:
        analysis: of the recording.
        true_energy: true electrical energy of each joint in a simulation [joints], J.
    """
    charts = (
        power.stack_chart(analysis),
        power.energy_split_chart(analysis, true_energy),
        power.bus_chart(analysis),
        power.power_chart(analysis),
        power.energy_chart(analysis),
        torque_and_current.torque_chart(analysis),
        torque_and_current.torque_error_chart([analysis]),
        torque_and_current.current_chart(analysis),
        torque_and_current.current_error_chart([analysis]),
        torque_and_current.friction_chart(analysis),
        motion.motion_chart(analysis),
        motion.path_chart(analysis),
        motion.temperature_chart(analysis),
    )
    return [chart for chart in charts if chart is not None]
