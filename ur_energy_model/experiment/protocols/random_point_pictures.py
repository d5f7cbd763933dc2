"""Pictures of protocol s0: test motions A and B, their torques, currents, powers and energies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ur_energy_model.experiment.protocols.protocol_run import ProtocolRun
from ur_energy_model.report.analysis import Analysis
from ur_energy_model.report.charts.chart import Chart
from ur_energy_model.report.charts.motion import motion_chart, path_chart
from ur_energy_model.report.charts.power import energy_chart, power_chart
from ur_energy_model.report.charts.torque_and_current import (
    current_chart,
    current_error_chart,
    torque_chart,
    torque_error_chart,
)


def draw_test_motions(session: ProtocolRun, analyses: Sequence[Analysis]) -> None:
    """Draw the figures of both test motions, A and B.

    Args:
        session: run of the protocol.
        analyses: of A and B.
    """
    figures: list[tuple[str, str, Chart | None]] = [
        ("Fig. 10", "a_b", torque_error_chart(analyses)),
        ("Fig. 13", "a_b", current_error_chart(analyses)),
    ]
    for test, analysis, numbers in zip(
        "ab", analyses, ((2, 8, 11, 14), (3, 9, 12, 15)), strict=True
    ):
        motion, torque, current, power = (f"Fig. {number}" for number in numbers)
        figures += [
            (motion, test, motion_chart(analysis)),
            ("Fig. 4", test, path_chart(analysis)),
            (torque, test, torque_chart(analysis)),
            (current, test, current_chart(analysis)),
            (power, test, power_chart(analysis)),
            (power, test, energy_chart(analysis)),
        ]
    for place, test, chart in figures:
        if chart is not None:
            title = f"{chart.title}, {' and '.join(test.upper().split('_'))}"
            named = replace(chart, key=f"s0_{chart.key}_{test}", title=title, caption="")
            session.picture(named, place)
