"""Rows and pictures about base parameters: their number, the regressor's rank, predicted torque."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.experiment.protocols.outcome import Row
from ur_energy_model.identification.dynamics.base_parameter_bags import BagBaseParameters
from ur_energy_model.identification.dynamics.base_parameters import BaseParameterFit
from ur_energy_model.identification.dynamics.regrouping import Regrouping
from ur_energy_model.identification.recording_reader import read_recording
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.report.charts.chart import Line, LineChart, Panel
from ur_energy_model.typing import Array


def counts(regrouping: Regrouping) -> tuple[int, int, int]:
    """Full parameters that are identifiable alone, only in combinations, and not at all.

    Alone: a base parameter that contains nothing else. Not at all: in no base parameter. The
    three numbers add up to that of the full parameters (Raviola et al. 2021, sec. 2.1).
    """
    used = regrouping.combination != 0.0
    alone = int(np.count_nonzero(used.sum(axis=1) == 1))
    lost = int(np.count_nonzero(~used.any(axis=0)))
    return alone, used.shape[1] - alone - lost, lost


def count_rows(regrouping: Regrouping, published: Mapping[str, Any]) -> list[Row]:
    """Number of base, combined and lost parameters."""
    place = "Section 2.1"
    alone, combined, lost = counts(regrouping)
    kinds = (
        (
            "base parameters",
            "base_parameters",
            regrouping.rank,
            "rank of the regressor at 25 states",
        ),
        (
            "identifiable alone",
            "alone",
            alone,
            "base parameters that are one parameter each; ours in DH frames, theirs unknown",
        ),
        ("identifiable in combinations", "combined", combined, "the others in base parameters"),
        ("not identifiable", "lost", lost, "parameters in no base parameter"),
    )
    return [
        Row(f"parameters: {name}", published[key], value, place, how, (), 0.0)
        for name, key, value, how in kinds
    ]


def rank_chart(regrouping: Regrouping) -> LineChart:
    """Singular values of the stacked regressor and their cumulative share."""
    values = regrouping.singular_values
    number = np.arange(1, len(values) + 1, dtype=float)
    share = 100 * np.cumsum(values) / values.sum()
    title = f"Singular values of the stacked regressor; {regrouping.rank} are not zero"
    size = np.log10(np.maximum(values, 1e-17 * values[0]))
    return LineChart(
        key="s1_singular_values",
        title=title,
        caption="",
        x_label="number of the parameter",
        y_label="",
        panels=(
            Panel("", (Line("value", number, size, joint=0),), y_label="log10 of singular value"),
            Panel("", (Line("share", number, share, joint=0),), y_label="cumulative share [%]"),
        ),
        columns=2,
    )


def predicted_torque(
    bag: Path, robot: RobotDescription, base: BagBaseParameters
) -> tuple[Array, Array, Array]:
    """Time [samples], s, measured and predicted joint torque [samples, n], N m, of a recording.

    The measured one is current times torque constant of the robot file and gear ratio; motions
    that gaps separate follow one another.

    Args:
        bag: recording.
        robot: the arm.
        base: identified base parameters.
    """
    fit = BaseParameterFit(robot, base.gravity)
    parts = []
    with closing(read_recording(bag, robot)) as recording:
        for motion in recording.motions():
            columns = fit.regressor(motion.q, motion.qd, motion.qdd)
            predicted = columns[:, :, fit.regrouping.base] @ base.parameters.values
            measured = motion.current * robot.gear_ratio * robot.torque_constant
            parts.append((motion.time, measured, predicted))
    time, measured, predicted = (np.concatenate(each) for each in zip(*parts, strict=True))
    return time - time[0], measured, predicted
