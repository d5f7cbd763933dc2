# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Protocol s1, Raviola et al., RAAD 2021: exciting trajectory, base parameters, validation.

The sections follow the paper: numbers of parameters (2.1), the exciting trajectory (2.2),
torque on a validation trajectory (3.1), and, in a campaign, the same identification on the
cold and on the warm arm (3.2).
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.experiment.design_problem import DesignProblem, DesignRequest
from ur_energy_model.experiment.limits import PeriodicMotion, sample_period
from ur_energy_model.identification.arm_fit import IdentificationOptions
from ur_energy_model.identification.base_parameter_fit import (
    BagBaseParameters,
    BaseParameterFit,
    identify_base_parameters,
)
from ur_energy_model.identification.base_parameters import (
    FullRegressor,
    Regrouping,
    raviola_base,
)
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.identification.recording import read_recording
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.model_file import save_model
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Setup
from ur_energy_model.papers.protocol import Outcome, Paper, ProtocolRun, ResultRow
from ur_energy_model.report.chart import BarChart, Bars, Line, LineChart, Panel
from ur_energy_model.report.model_charts import comparison_chart, joints_chart
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.samples import concatenate
from ur_energy_model.typing import Array, Indices

CENTRE = (0.0, -np.pi / 2, 0.0, 0.0, 0.0, 0.0)  # q0 of the paper [rad]
MAX_POSITION = (2 * np.pi, np.pi, np.pi, 2 * np.pi, 2 * np.pi, 2 * np.pi)
MAX_VELOCITY = np.pi
MAX_ACCELERATION = 5.5 * np.pi
"""Limits of the paper [rad, rad/s, rad/s^2]; it has none for the speed of the tool."""
POPULATION = 300  # individuals of the paper's genetic algorithm
_RATE = 125.0  # of the picture of the trajectory [Hz]


WARM_UP = 1800.0  # time of highly dynamic motion between the cold and the warm run [s]
_QUICK_WARM_UP = 300.0
_UNCHANGED = (("inertial", ""), ("motor inertia", "Ja"))
"""Groups of base parameters that temperature should not change, and their kinds."""


def run(session: ProtocolRun, paper: Paper) -> Outcome:
    """Identify base parameters from three periods; validate on another exciting trajectory.

    Args:
        session: the arm, the output folder, and how motions are run.
        paper: published values of the protocol.

    Returns:
        The rows of the paper with what was found, written to the folder, too.

    Raises:
        UrEnergyError: a motion or an identification is not possible.
    """
    robot = session.robot
    request = paper_request(robot) if session.paper_settings else None
    population = 60 if session.quick else POPULATION
    design = session.design("excitation", session.seed, request, population=population)
    other = session.design("validation", session.seed + 1, request, population=population)
    fitted = session.record("excitation", design.trajectory)
    held_out = session.record("validation_run", other.trajectory)
    base = identify_base_parameters(
        [fitted],
        robot,
        validate=[held_out],
        choose=raviola_base,
        progress=session.progress,
    )
    found = identify(
        [fitted],
        robot,
        validate=[held_out],
        options=IdentificationOptions(friction="coulomb_viscous"),
        progress=session.progress,
    )
    save_model(found.model, session.folder / "model.yaml")
    session.warnings += base.warnings
    regrouping = base.parameters.regrouping
    alone, combined, lost = counts(regrouping)
    search = "gradients from random starts, limits of the robot file"
    condition = DesignProblem(paper_request(robot)).condition_number(design.trajectory)
    if session.paper_settings:
        search = "genetic algorithm, limits and centre of the paper"
    differs = (
        ("data",) if session.paper_settings and not session.quick else ("data", "method")
    )
    rows = [
        paper.row("base_parameters", regrouping.rank),
        paper.row("alone", alone),
        paper.row("combined", combined),
        paper.row("lost", lost),
        paper.row("condition_number", condition, search=search, differs=differs),
        paper.row("limits", [MAX_VELOCITY, MAX_ACCELERATION]),
        paper.row("ranges", MAX_POSITION),
        paper.row("servoj", "not used"),
        paper.row("individuals", design.starts, search=search, differs=differs),
        paper.row("clearance", design.verdict.clearance),
        paper.row("condition_recorded", base.parameters.condition_number),
        paper.row("gear_ratio", robot.gear_ratio),
        paper.row(
            "torque_constants", [joint.torque_constant for joint in found.model.joints]
        ),
        _normalised_error(paper, base),
        paper.row("joint_sample_error", base.normalised_error),
    ]
    session.picture(rank_chart(regrouping), "Fig. 1")
    time, q, _, _ = sample_period(design.trajectory, _RATE)
    title = "One period of the exciting trajectory"
    chart = joints_chart(
        "s1_trajectory", title, time, {"position [rad]": q}, robot.joint_names
    )
    session.picture(chart, "Fig. 2")
    time, measured, predicted = predicted_torque(held_out, robot, base)
    elbow = slice(2, 3)
    session.picture(
        comparison_chart(
            "s1_elbow_torque",
            "Torque of the elbow on the validation trajectory",
            time,
            (
                ("measured", "measured", measured[:, elbow]),
                ("model", "model", predicted[:, elbow]),
            ),
            robot.joint_names[elbow],
            "torque [N m]",
        ),
        "Fig. 3",
    )
    if session.campaign:
        rows += campaign_rows(session, paper, design.trajectory, fitted, base)
    return session.finish(paper, rows)


def recorded_row(
    paper: Paper,
    robot: RobotDescription,
    model: EnergyModel,
    fitted: Path,
    held_out: Path,
) -> ResultRow:
    """e_N of sec. 3.1 from two recordings of an arm.

    Args:
        paper: published values.
        robot: type of the arm.
        model: whose torque constants turn currents into torques.
        fitted: recording from which the base parameters are identified.
        held_out: recording on which they are validated.
    """
    constant = np.array([joint.torque_constant for joint in model.joints])
    base = identify_base_parameters(
        [fitted],
        robot,
        validate=[held_out],
        torque_constant=constant,
        choose=raviola_base,
    )
    return _normalised_error(paper, base)


def _normalised_error(paper: Paper, base: BagBaseParameters) -> ResultRow:
    error = base.published_error
    if error is None:
        return paper.row("normalised_error", None, points="")
    points = f"; N = {error.points} at {error.rate:.0f} Hz"
    return paper.row("normalised_error", error.value, points=points)


# Sections 2.1 and 2.2: numbers of parameters, and the exciting trajectory.


def counts(regrouping: Regrouping) -> tuple[int, int, int]:
    """Full parameters that are identifiable alone, only in combinations, and not at all.

    Alone: a base parameter that contains nothing else. Not at all: in no base parameter
    (Raviola et al. 2021, sec. 2.1).

    Returns:
        The three numbers, which add up to that of the full parameters.
    """
    used = regrouping.combination != 0.0
    alone = int(np.count_nonzero(used.sum(axis=1) == 1))
    lost = int(np.count_nonzero(~used.any(axis=0)))
    return alone, used.shape[1] - alone - lost, lost


def rank_chart(regrouping: Regrouping) -> LineChart:
    """Singular values of the stacked regressor and their cumulative share (Fig. 1)."""
    values = regrouping.singular_values
    number = np.arange(1, len(values) + 1, dtype=float)
    share = 100 * np.cumsum(values) / values.sum()
    title = f"Singular values of the stacked regressor; {regrouping.rank} are not zero"
    size = np.log10(np.maximum(values, 1e-17 * values[0]))
    return LineChart(
        key="s1_singular_values",
        title=title,
        x_label="number of the parameter",
        panels=(
            Panel(
                "",
                (Line("value", number, size, joint=0),),
                y_label="log10 of singular value",
            ),
            Panel(
                "",
                (Line("share", number, share, joint=0),),
                y_label="cumulative share [%]",
            ),
        ),
        columns=2,
    )


def paper_request(robot: RobotDescription) -> DesignRequest:
    """The trajectory that the paper asks for: its limits and its centre of motion.

    Neither tool speed nor clearance from a table beyond the usual one is limited.
    """
    limited = replace(
        robot,
        max_position=np.array(MAX_POSITION),
        max_velocity=np.full(robot.dof, MAX_VELOCITY),
        max_acceleration=np.full(robot.dof, MAX_ACCELERATION),
    )
    base = raviola_base(
        FullRegressor(robot, ArmDynamics(robot, Setup()).model.gravity.linear)
    )
    return DesignRequest(limited, centre=CENTRE, tool_speed=float("inf"), base=base)


# Section 3.1: torque on the validation trajectory.


def predicted_torque(
    bag: Path, robot: RobotDescription, base: BagBaseParameters
) -> tuple[Array, Array, Array]:
    """Torque of a recording, measured and predicted by base parameters.

    The measured one is current times torque constant of the robot file and gear ratio;
    motions that gaps separate follow one another.

    Args:
        bag: the recording.
        robot: type of the arm.
        base: identified base parameters.

    Returns:
        Time since the start [samples], s, measured and predicted torque, joint side
        [samples, n], N m.
    """
    fit = BaseParameterFit(robot, base.gravity)
    parts = []
    with closing(read_recording(bag, robot)) as recording:
        for motion in recording.motions:
            columns = fit.regressor(motion.q, motion.qd, motion.qdd)
            predicted = columns[:, :, fit.regrouping.base] @ base.parameters.values
            measured = motion.current * robot.gear_ratio * robot.torque_constant
            parts.append((motion.time, measured, predicted))
    time, measured, predicted = (
        np.concatenate(each) for each in zip(*parts, strict=True)
    )
    return time - time[0], measured, predicted


# Section 3.2: the same identification on the cold and on the warm arm.


def campaign_rows(
    session: ProtocolRun,
    paper: Paper,
    motion: PeriodicMotion,
    cold_bag: Path,
    cold: BagBaseParameters,
) -> list[ResultRow]:
    """Warm the arm up with the motion, repeat the run, and compare the base parameters.

    Args:
        session: whose arm has run the motion cold.
        paper: published values.
        motion: of both runs.
        cold_bag: recording of the cold run.
        cold: base parameters of the cold run.
    """
    seconds = _QUICK_WARM_UP if session.quick else WARM_UP
    warm_bag = session.record("excitation_warm", motion, warm_up=seconds)
    warm = identify_base_parameters(
        [warm_bag], session.robot, choose=raviola_base, progress=session.progress
    )
    session.picture(_friction_chart(cold, warm), "Fig. 4")
    session.picture(_unchanged_chart(cold, warm), "Fig. 4")
    differs = ("arm", "data", "method") if session.quick else ("arm", "data")
    minutes = f"{seconds / 60:.0f}"
    cold_degrees = _temperatures(cold_bag)
    warm_degrees = _temperatures(warm_bag)
    return [
        paper.row("temperatures_cold", cold_degrees, differs=differs),
        paper.row("temperatures_warm", warm_degrees, differs=differs, minutes=minutes),
        *_friction_rows(paper, cold, warm, differs),
        *_unchanged_rows(paper, cold, warm, differs),
    ]


def _friction_rows(
    paper: Paper,
    cold: BagBaseParameters,
    warm: BagBaseParameters,
    differs: tuple[str, ...],
) -> list[ResultRow]:
    """Friction of both states, and its change."""
    rows = []
    for name, kind, unit in (("Coulomb", "fc", "N m"), ("viscous", "fv", "N m s/rad")):
        own = _group(cold, kind)
        states = {
            "cold": cold.parameters.values[own],
            "warm": warm.parameters.values[own],
        }
        for state, values in states.items():
            words: dict[str, Any] = {"name": name, "state": state, "unit": unit}
            rows.append(paper.row("friction", values, differs=differs, **words))
        change = 100 * (states["warm"] / states["cold"] - 1)
        rows.append(paper.row(f"{name.lower()}_change", change, differs=differs))
    return rows


def _unchanged_rows(
    paper: Paper,
    cold: BagBaseParameters,
    warm: BagBaseParameters,
    differs: tuple[str, ...],
) -> list[ResultRow]:
    """Parameters that temperature should not change."""
    rows = []
    for name, kind in _UNCHANGED:
        own = _group(cold, kind)
        first = cold.parameters
        second = warm.parameters
        change = second.values[own] - first.values[own]
        size = float(np.linalg.norm(change) / np.linalg.norm(first.values[own]))
        alike = float(
            np.mean(np.abs(change) <= 2 * np.hypot(first.std[own], second.std[own]))
        )
        words: dict[str, Any] = {
            "count": len(own),
            "name": name,
            "alike": f"{100 * alike:.0f}",
        }
        rows.append(paper.row("unchanged", size, differs=differs, **words))
    return rows


def _group(base: BagBaseParameters, kind: str) -> Indices:
    """Indices of the base parameters of a group; kind "" stands for the inertial ones."""
    regrouping = base.parameters.regrouping
    own = [regrouping.names[column].split("_")[0] for column in regrouping.base]
    drives = {"fc", "fv", "Ja"}
    return np.flatnonzero(
        [name == kind or (not kind and name not in drives) for name in own]
    )


def _temperatures(bag: Path) -> Array:
    """Mean joint temperatures of a recording [n], degC."""
    samples = concatenate(list(iterate_bag(bag, ("joint_temperatures",))))
    return np.asarray(samples["joint_temperatures"].mean(axis=0))


def _friction_chart(cold: BagBaseParameters, warm: BagBaseParameters) -> BarChart:
    """Friction of both states as bars."""
    own = np.concatenate([_group(cold, "fc"), _group(cold, "fv")])
    names = cold.parameters.regrouping.names
    columns = cold.parameters.regrouping.base[own]
    return BarChart(
        key="s1_cold_and_warm",
        title="Friction of the cold and the warm arm (fc in N m, fv in N m s/rad)",
        y_label="N m, N m s/rad",
        categories=tuple(names[column] for column in columns),
        bars=(
            Bars("cold", cold.parameters.values[own]),
            Bars("warm", warm.parameters.values[own], role="aside"),
        ),
    )


def _unchanged_chart(cold: BagBaseParameters, warm: BagBaseParameters) -> LineChart:
    """The other base parameters of both states."""
    panels = []
    for name, kind in _UNCHANGED:
        own = _group(cold, kind)
        number = np.arange(1, len(own) + 1, dtype=float)
        lines = (
            Line("cold", number, cold.parameters.values[own], role="measured"),
            Line("warm", number, warm.parameters.values[own], joint=1),
        )
        panels.append(Panel(f"{len(own)} {name} parameters", lines))
    title = "Inertial base parameters of the cold and the warm arm (kg m², kg m)"
    return LineChart(
        key="s1_inertial_cold_and_warm",
        title=title,
        x_label="number of the base parameter",
        panels=tuple(panels),
        columns=1,
    )
