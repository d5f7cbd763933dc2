"""Pictures of protocol s4 on the paper's own robot."""

from __future__ import annotations

import numpy as np

from ur_energy_model.experiment.periodic_motion import PeriodicMotion, sample_period
from ur_energy_model.experiment.protocols.measured_run import MeasuredRun
from ur_energy_model.experiment.protocols.protocol_run import ProtocolRun
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.report.charts.chart import Line, LineChart, Panel
from ur_energy_model.report.charts.experiment import comparison_chart, joints_chart

_RATE = 100.0
"""Of the pictures of trajectories [Hz]."""
_PATHS = {"Fig. 4": ("Fig. 11", "Tool path of the exciting trajectory"),
          "Fig. 16": ("Fig. 6", "Tool path of the general trajectory")}  # fmt: skip
"""Figures with the tool paths of the trajectories of other figures."""
_ALSO = {"Fig. 16": "Fig. 5"}
"""The simulation's second trajectory is the general one here."""


def draw_motion(
    session: ProtocolRun, motion: PeriodicMotion, key: str, place: str, title: str
) -> None:
    """Joints over one period, and the path of the flange."""
    time, q, qd, qdd = sample_period(motion, _RATE)
    values = {"position [rad]": q, "speed [rad/s]": qd, "acceleration [rad/s²]": qdd}
    names = session.robot.joint_names
    session.picture(joints_chart(key, title, time, values, names), place)
    if place in _ALSO:
        angles = {"position [rad]": q}
        chart = joints_chart(f"{key}_angles", f"{title}: joint angles", time, angles, names)
        session.picture(chart, _ALSO[place])
    path = ArmDynamics(session.robot).flange_pose(q)[:, :3, 3]
    figure, caption = _PATHS[place]
    views = (("From above", 0, 1), ("From the front", 0, 2), ("From the side", 1, 2))
    chart = LineChart(
        key=f"{key}_path",
        title=caption,
        caption="",
        x_label="[m]",
        y_label="[m]",
        panels=tuple(
            Panel(f"{view}: {'xyz'[i]}, {'xyz'[k]}", (Line("path", path[:, i], path[:, k]),))
            for view, i, k in views
        ),
        equal=True,
    )
    session.picture(chart, figure)


def draw_processing(session: ProtocolRun, raw: MeasuredRun, clean: MeasuredRun) -> None:
    """Accelerations by central differences, and torque before and after filtering."""
    names = session.robot.joint_names
    title = "Joint accelerations by central differences of the smoothed speed"
    values = {"acceleration [rad/s²]": clean.qdd}
    session.picture(joints_chart("s4_acceleration", title, clean.time, values, names), "Fig. 13")
    first = raw.torque[: len(clean.time)]
    chart = comparison_chart(
        "s4_filtering",
        "Torque of one period as measured, and averaged and smoothed",
        clean.time,
        (("measured", "measured", first), ("processed", "model", clean.torque)),
        names,
        "torque [N m]",
    )
    session.picture(chart, "Fig. 14")


def draw_verification(
    session: ProtocolRun, measured: MeasuredRun, predicted: np.ndarray, key: str, place: str
) -> None:
    """Measured and predicted torque of every joint."""
    chart = comparison_chart(
        key,
        "Torque, measured and predicted by the identified base parameters",
        measured.time,
        (("measured", "measured", measured.torque), ("predicted", "model", predicted)),
        session.robot.joint_names,
        "torque [N m]",
    )
    session.picture(chart, place)
