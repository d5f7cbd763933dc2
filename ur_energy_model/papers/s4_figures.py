# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Figures of Machines 2024, 12(9), 595, for the simulated robot of the paper.

Figs. 4 to 6, 11 and 16 are trajectories, Figs. 13 and 14 the processing of a run, Figs. 15
and 17 its verification. Figs. 9 and 10 belong to the load check.
"""

from __future__ import annotations

from ur_energy_model.experiment.limits import PeriodicMotion, sample_period
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.papers.protocol import ProtocolRun
from ur_energy_model.papers.s4_measured_run import MeasuredRun
from ur_energy_model.report.chart import Line, LineChart, Panel, Role
from ur_energy_model.report.model_charts import comparison_chart, joints_chart
from ur_energy_model.typing import Array

_RATE = 100.0  # samples of a drawn trajectory per second [Hz]
_AXES = ("x", "y", "z")
_VIEWS = (("From above", 0, 1), ("From the front", 0, 2), ("From the side", 1, 2))
"""Views of a tool path, with the indices of the horizontal and the vertical axis."""


def draw_exciting_trajectory(
    session: ProtocolRun, motion: PeriodicMotion, zero: Array
) -> None:
    """Draw Fig. 4, joints over one period, and Fig. 11, the tool path.

    Args:
        session: the run, with the robot and the folder of pictures.
        motion: exciting trajectory.
        zero: the zero of the paper's joint angles in angles of the robot [n], rad.
    """
    _draw_joints(session, motion, zero, "s4_excitation", "Exciting trajectory", "Fig. 4")
    title = "Tool path of the exciting trajectory"
    _draw_tool_path(session, motion, "s4_excitation_path", title, "Fig. 11")


def draw_simulated_trajectory(
    session: ProtocolRun, motion: PeriodicMotion, zero: Array
) -> None:
    """Draw Fig. 5, joint angles over one period, and Fig. 6, the tool path.

    Args:
        session: the run, with the robot and the folder of pictures.
        motion: trajectory of the rigid multibody simulation.
        zero: the zero of the paper's joint angles in angles of the robot [n], rad.
    """
    time, q, _, _ = sample_period(motion, _RATE)
    angles = joints_chart(
        "s4_simulation_angles",
        "Trajectory of the simulation: joint angles",
        time,
        {"position [rad]": q - zero},
        session.robot.joint_names,
    )
    session.picture(angles, "Fig. 5")
    title = "Tool path of the simulation"
    _draw_tool_path(session, motion, "s4_simulation_path", title, "Fig. 6")


def draw_general_trajectory(
    session: ProtocolRun, motion: PeriodicMotion, zero: Array
) -> None:
    """Draw Fig. 16, joints over one period.

    Args:
        session: the run, with the robot and the folder of pictures.
        motion: general trajectory.
        zero: the zero of the paper's joint angles in angles of the robot [n], rad.
    """
    _draw_joints(session, motion, zero, "s4_general", "General trajectory", "Fig. 16")


def _draw_joints(
    session: ProtocolRun,
    motion: PeriodicMotion,
    zero: Array,
    key: str,
    title: str,
    figure: str,
) -> None:
    """Draw position, speed and acceleration of all joints over one period.

    The x axes are time [s]; the y axes are rad, rad/s and rad/s^2. Positions count from
    the zero of the paper.

    Args:
        session: the run, with the robot and the folder of pictures.
        motion: trajectory.
        zero: the zero of the paper's joint angles in angles of the robot [n], rad.
        key: key of the chart.
        title: title of the chart.
        figure: figure of the paper.
    """
    time, q, qd, qdd = sample_period(motion, _RATE)
    values = {
        "position [rad]": q - zero,
        "speed [rad/s]": qd,
        "acceleration [rad/s²]": qdd,
    }
    chart = joints_chart(key, title, time, values, session.robot.joint_names)
    session.picture(chart, figure)


def _draw_tool_path(
    session: ProtocolRun, motion: PeriodicMotion, key: str, title: str, figure: str
) -> None:
    """Draw the path of the flange from above, from the front and from the side.

    Both axes of every view are coordinates of the base frame [m].

    Args:
        session: the run, with the robot and the folder of pictures.
        motion: trajectory.
        key: key of the chart.
        title: title of the chart.
        figure: figure of the paper.
    """
    _, q, _, _ = sample_period(motion, _RATE)
    path = ArmDynamics(session.robot).flange_pose(q)[:, :3, 3]
    panels = []
    for view, across, up in _VIEWS:
        line = Line("path", path[:, across], path[:, up])
        names = f"{_AXES[across]}, {_AXES[up]}"
        panels.append(Panel(f"{view}: {names}", (line,), y_label=f"{_AXES[up]} [m]"))
    chart = LineChart(
        key=key,
        title=title,
        x_label="[m]",
        y_label="[m]",
        panels=tuple(panels),
        equal=True,
    )
    session.picture(chart, figure)


def draw_processing(session: ProtocolRun, raw: MeasuredRun, clean: MeasuredRun) -> None:
    """Draw Figs. 13 and 14: joint accelerations, and torque before and after filtering.

    Fig. 13: accelerations of all joints by central differences [rad/s^2] over time [s].
    Fig. 14: a panel for each joint, torque of one period as measured and as processed
    [N m] over time [s].

    Args:
        session: the run, with the robot and the folder of pictures.
        raw: all periods as measured.
        clean: one period, processed.
    """
    names = session.robot.joint_names
    accelerations = joints_chart(
        "s4_acceleration",
        "Joint accelerations by central differences of the smoothed speed",
        clean.time,
        {"acceleration [rad/s²]": clean.qdd},
        names,
    )
    session.picture(accelerations, "Fig. 13")
    first_period = raw.torque[: len(clean.time)]
    torques = comparison_chart(
        "s4_filtering",
        "Torque of one period as measured, and averaged and smoothed",
        clean.time,
        (("measured", "aside", first_period), ("processed", "model", clean.torque)),
        names,
        "torque [N m]",
    )
    session.picture(torques, "Fig. 14")


def draw_verification(
    session: ProtocolRun, measured: MeasuredRun, predicted: Array, key: str, figure: str
) -> None:
    """Draw Fig. 15 (self verification) or Fig. 17 (general verification).

    A panel for each joint: measured torque, predicted torque and their difference [N m]
    over time [s].

    Args:
        session: the run, with the robot and the folder of pictures.
        measured: processed run.
        predicted: torque by the base parameters, joint side [samples, n], N m.
        key: key of the chart.
        figure: figure of the paper, "Fig. 15" or "Fig. 17".
    """
    curves: list[tuple[str, Role, Array]] = [
        ("measured", "measured", measured.torque),
        ("predicted", "model", predicted),
        ("difference", "aside", predicted - measured.torque),
    ]
    chart = comparison_chart(
        key,
        "Torque, measured and predicted",
        measured.time,
        curves,
        session.robot.joint_names,
        "torque [N m]",
    )
    session.picture(chart, figure)
