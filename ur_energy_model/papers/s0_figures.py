# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Figures of both test motions of Clochiatti et al., Robotica 2024.

For test A and test B: motion (Figs. 2 and 3), tool path (Fig. 4), torque (Figs. 8 and 9),
current (Figs. 11 and 12), power and energy (Figs. 14 and 15). For both tests together:
box plots of the errors of torque (Fig. 10) and current (Fig. 13).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ur_energy_model.papers.protocol import ProtocolRun
from ur_energy_model.papers.s0_inertia import SIZES, JointSize
from ur_energy_model.papers.s0_models import PublishedSeries
from ur_energy_model.papers.s0_tables import TESTS
from ur_energy_model.report.analysis import Analysis
from ur_energy_model.report.chart import BoxChart, Chart, Role
from ur_energy_model.report.model_charts import comparison_chart, joints_chart
from ur_energy_model.report.recording_charts import motion_chart, path_chart, torque_chart
from ur_energy_model.typing import Array


class MotionFigures(NamedTuple):
    """Figures of the paper that show one test motion.

    Attributes:
        motion: joint positions, speeds and accelerations.
        torque: torque, recorded and modelled.
        current: current, measured and modelled.
        power: power and energy of each motor.
    """

    motion: str
    torque: str
    current: str
    power: str


_FIGURES = {
    "A": MotionFigures("Fig. 2", "Fig. 8", "Fig. 11", "Fig. 14"),
    "B": MotionFigures("Fig. 3", "Fig. 9", "Fig. 12", "Fig. 15"),
}
_TOOL_PATH = "Fig. 4"
_TORQUE_TITLE = "Torque: recorded, and modelled with links of cylinders"
_TORQUE_BOXES = "Fig. 10"
_CURRENT_BOXES = "Fig. 13"
_PREFIXES = {"": 1.0, "m": 1e-3, "\N{MICRO SIGN}": 1e-6}
_SEEN = 0.02  # least part of its unit that an axis shows well
_WHISKER = 1.5  # reach of whiskers beyond the box, in quartile ranges


def draw_test_motions(
    session: ProtocolRun,
    analyses: Sequence[Analysis],
    series: Mapping[str, PublishedSeries],
) -> None:
    """Draw the figures of both test motions.

    Args:
        session: the run, with the robot and the folder of pictures.
        analyses: motion and torque of test A and of test B.
        series: currents and powers by the model of the paper, by test.
    """
    _draw_error_boxes(session, analyses, series)
    for test, analysis in zip(TESTS, analyses, strict=True):
        _draw_test(session, test, analysis, series[test])


def _draw_test(
    session: ProtocolRun, test: str, analysis: Analysis, series: PublishedSeries
) -> None:
    """Draw the figures of one test motion; the x axes of all but the path are time [s].

    Args:
        session: the run, with the robot and the folder of pictures.
        test: "A" or "B".
        analysis: motion and torque of the test.
        series: currents and powers by the model of the paper.
    """
    figures = _FIGURES[test]
    session.picture(_named(motion_chart(analysis), test), figures.motion)
    session.picture(_named(path_chart(analysis), test), _TOOL_PATH)
    torque = torque_chart(analysis)
    if torque is not None:
        # RMS errors are in Table V; a panel has room for its name and R2.
        panels = [replace(panel, note="") for panel in torque.panels]
        torque = replace(torque, title=_TORQUE_TITLE, panels=panels)
        session.picture(_named(torque, test), figures.torque)
    _draw_currents(session, test, series, figures.current)
    if series.electrical is not None:
        _draw_powers(session, test, series, series.electrical, figures.power)


def _draw_currents(
    session: ProtocolRun, test: str, series: PublishedSeries, figure: str
) -> None:
    """Draw Fig. 11 or 12: current of each joint [A] over time [s].

    Curves are measured, modelled by eq. 17, and modelled by our friction law.

    Args:
        session: the run, with the robot and the folder of pictures.
        test: "A" or "B".
        series: currents of the test.
        figure: figure of the paper.
    """
    curves: list[tuple[str, Role, Array]] = [
        ("measured", "measured", series.measured),
        ("eq. 17", "model", series.modelled),
        ("our law", "second", series.own),
    ]
    chart = comparison_chart(
        f"s0_current_{test}",
        f"Current, measured, by eq. 17 and by our law, every sample, test {test}",
        series.time - series.time[0],
        curves,
        session.robot.joint_names,
        "current [A]",
    )
    session.picture(chart, figure)


def _draw_powers(
    session: ProtocolRun,
    test: str,
    series: PublishedSeries,
    electrical: Array,
    figure: str,
) -> None:
    """Draw Fig. 14 or 15: power [W] and energy [J] of each motor over time [s].

    Args:
        session: the run, with the robot and the folder of pictures.
        test: "A" or "B".
        series: powers of the test.
        electrical: electrical power by eq. 23 [samples, n], W.
        figure: figure of the paper.
    """
    time = series.time - series.time[0]
    steps = np.diff(time, prepend=time[0])[:, None]
    values = {
        "electrical power [W]": electrical,
        "mechanical power [W]": series.mechanical,
        "electrical energy [J]": np.cumsum(steps * electrical, axis=0),
    }
    chart = joints_chart(
        f"s0_power_{test}",
        f"Power of each motor by eq. 23, and its energy, test {test}",
        time,
        values,
        session.robot.joint_names,
    )
    session.picture(chart, figure)


def _named(chart: Chart, test: str) -> Chart:
    """A chart of the report under the name of its test."""
    title = f"{chart.title}, test {test}"
    return replace(chart, key=f"s0_{chart.key}_{test}", title=title, caption="")


def _draw_error_boxes(
    session: ProtocolRun,
    analyses: Sequence[Analysis],
    series: Mapping[str, PublishedSeries],
) -> None:
    """Draw Fig. 10, errors of torque, and Fig. 13, errors of current, as box plots.

    Args:
        session: the run, with the robot and the folder of pictures.
        analyses: motion and torque of test A and of test B.
        series: currents by the model of the paper, by test.
    """
    torques = [
        analysis.torque.modelled - analysis.torque.recorded
        for analysis in analyses
        if analysis.torque is not None
    ]
    currents = [each.modelled - each.measured for each in series.values()]
    names = session.robot.joint_names
    if torques:
        for size in SIZES:
            chart = _box_chart("torque", "N m", names, torques, size)
            session.picture(chart, _TORQUE_BOXES)
    for size in SIZES:
        chart = _box_chart("current", "A", names, currents, size)
        session.picture(chart, _CURRENT_BOXES)


def _box_chart(
    quantity: str,
    unit: str,
    names: Sequence[str],
    errors: Sequence[Array],
    size: JointSize,
) -> BoxChart:
    """Boxes of the errors of both tests: joints of one size along x, errors along y.

    Args:
        quantity: "torque" or "current".
        unit: unit of the errors.
        names: names of the n joints.
        errors: errors of test A and of test B [samples, n].
        size: the joints that are shown.
    """
    boxes = np.array([_boxes(error[:, size.joints]) for error in errors])
    largest = np.abs(boxes).max()
    prefix = ""
    for candidate, factor in _PREFIXES.items():
        if largest > _SEEN * factor:
            prefix = candidate
            break
    title = f"{quantity.capitalize()} errors of the paper's model, tests A and B, without outliers"
    return BoxChart(
        key=f"s0_{quantity}_error_{size.name}",
        title=title,
        y_label=f"error [{prefix}{unit}]",
        categories=names[size.joints],
        series=TESTS,
        boxes=boxes / _PREFIXES[prefix],
    )


def _boxes(errors: Array) -> Array:
    """Boxes [joints, 7] of the errors of several joints [samples, joints]."""
    return np.array([_box(error) for error in errors.T])


def _box(error: Array) -> list[float]:
    """Box of one joint [7]: two low whiskers, three quartiles, two high whiskers.

    A whisker ends at the last error within 1.5 quartile ranges of the box; inner and outer
    whisker are the same.

    Args:
        error: errors of a joint [samples].
    """
    first, middle, third = np.percentile(error, (25, 50, 75))
    reach = _WHISKER * (third - first)
    inside = error[(error >= first - reach) & (error <= third + reach)]
    low = float(inside.min())
    high = float(inside.max())
    return [low, low, first, middle, third, high, high]
