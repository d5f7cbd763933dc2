# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Protocol s1, Raviola et al., RAAD 2021: exciting trajectory, base parameters, validation.

The sections follow the paper: numbers of parameters (2.1), the exciting trajectory (2.2),
torque on a validation trajectory (3.1), and, in a campaign, the same identification on the
cold and on the warm arm (3.2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.experiment.design import Design
from ur_energy_model.experiment.design_problem import DesignProblem, DesignRequest
from ur_energy_model.experiment.limits import PeriodicMotion, sample_period
from ur_energy_model.identification.arm_fit import IdentificationOptions
from ur_energy_model.identification.base_parameter_fit import (
    BagBaseParameters,
    identify_base_parameters,
)
from ur_energy_model.identification.base_parameters import (
    DRIVE,
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
from ur_energy_model.papers.protocol import Outcome, ProtocolRun
from ur_energy_model.papers.published import Paper, ResultRow
from ur_energy_model.report.chart import BarChart, Bars, Line, LineChart, Panel, Role
from ur_energy_model.report.model_charts import comparison_chart, joints_chart
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.samples import concatenate
from ur_energy_model.trajectory.named_motions import is_articulated
from ur_energy_model.typing import Array, Indices

CENTRE = (0.0, -np.pi / 2, 0.0, 0.0, 0.0, 0.0)  # q0 of the paper [rad]
MAX_POSITION = (2 * np.pi, np.pi, np.pi, 2 * np.pi, 2 * np.pi, 2 * np.pi)
"""Limits of position of the paper (sec. 2.2) [rad]."""
MAX_VELOCITY = np.pi  # limit of the paper [rad/s]; it has none for the speed of the tool
MAX_ACCELERATION = 5.5 * np.pi  # limit of the paper [rad/s^2]
POPULATION = 300  # individuals of the paper's genetic algorithm
_QUICK_POPULATION = 60  # individuals in a quick run
WARM_UP = 1800.0  # time of highly dynamic motion between the cold and the warm run [s]
_QUICK_WARM_UP = 300.0  # the same in a quick run [s]
_RATE = 125.0  # samples of the drawn trajectory per second [Hz]
_ELBOW = slice(2, 3)  # joint 3, as one column
_UNCHANGED = (("inertial", ""), ("motor inertia", "Ja"))
"""Groups of base parameters that temperature should not change, and their kinds."""


def run(session: ProtocolRun, paper: Paper) -> Outcome:
    """Identify base parameters from three periods; validate on another exciting trajectory.

    Args:
        session: the arm, the output folder, and how motions are run.
        paper: published values of the protocol.

    Returns:
        The rows of the paper with the values found here, written to the folder, too.

    Raises:
        UrEnergyError: a motion or an identification is not possible.
    """
    robot = session.robot
    request = paper_request(robot) if session.paper_settings else None
    if request is not None and request.centre is None:
        session.warnings.append(
            f"limits and centre of the paper are for a UR5: those of {robot.name} are used"
        )
    population = _QUICK_POPULATION if session.quick else POPULATION
    design = session.design("excitation", session.seed, request, population=population)
    other = session.design("validation", session.seed + 1, request, population=population)
    fitted = session.record("excitation", design.trajectory)
    held_out = session.record("validation_run", other.trajectory)
    found = identify(
        [fitted],
        robot,
        validate=[held_out],
        options=IdentificationOptions(friction="coulomb_viscous"),
        progress=session.progress,
    )
    model = found.model
    save_model(model, session.folder / "model.yaml")
    robot = session.complete_torque_constants(model)
    base = identify_base_parameters(
        [fitted],
        robot,
        validate=[held_out],
        choose=raviola_base,
        progress=session.progress,
    )
    session.warnings += base.warnings
    regrouping = base.parameters.regrouping
    torque_constants = [joint.torque_constant for joint in model.joints]
    rows = [
        *_count_rows(paper, regrouping),
        *_trajectory_rows(session, paper, design),
        paper.row("condition_recorded", base.parameters.condition_number),
        paper.row("gear_ratio", robot.gear_ratio),
        paper.row("torque_constants", torque_constants),
        _normalised_error(paper, base),
        paper.row("joint_sample_error", base.normalised_error),
    ]
    session.picture(rank_chart(regrouping), "Fig. 1")
    _draw_trajectory(session, design.trajectory)
    _draw_elbow_torque(session, held_out, base)
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
    """Normalised error e_N (sec. 3.1) from two recordings of an arm.

    Args:
        paper: published values.
        robot: type of the arm.
        model: model whose torque constants turn currents into torques.
        fitted: recording from which the base parameters are identified.
        held_out: recording on which the base parameters are validated.

    Raises:
        UrEnergyError: the recordings cannot be used.
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
    """Normalised error e_N = (1/N) sqrt(e'e) of the validation [N m] (sec. 3.1).

    Args:
        paper: published values.
        base: base parameters with their validation; without one the row has no value.
    """
    error = base.published_error
    if error is None:
        return paper.row("normalised_error", None, points="")
    points = f"; N = {error.points} at {error.rate:.0f} Hz"
    return paper.row("normalised_error", error.value, points=points)


# Sections 2.1 and 2.2: numbers of parameters, and the exciting trajectory.


def _count_rows(paper: Paper, regrouping: Regrouping) -> list[ResultRow]:
    """Numbers of parameters (sec. 2.1)."""
    alone, combined, lost = counts(regrouping)
    return [
        paper.row("base_parameters", regrouping.rank),
        paper.row("alone", alone),
        paper.row("combined", combined),
        paper.row("lost", lost),
    ]


def counts(regrouping: Regrouping) -> tuple[int, int, int]:
    """Full parameters that are identifiable alone, only in combinations, and not at all.

    Alone: a base parameter that contains nothing else. Not at all: in no base parameter
    (Raviola et al. 2021, sec. 2.1).

    Args:
        regrouping: base parameters as combinations of full parameters.

    Returns:
        The three numbers; their sum is the number of full parameters.
    """
    used = regrouping.combination != 0.0
    parameters_in_each = used.sum(axis=1)
    alone = int(np.count_nonzero(parameters_in_each == 1))
    lost = int(np.count_nonzero(~used.any(axis=0)))
    combined = used.shape[1] - alone - lost
    return alone, combined, lost


def _trajectory_rows(
    session: ProtocolRun, paper: Paper, design: Design
) -> list[ResultRow]:
    """Limits, search and condition number of the exciting trajectory (sec. 2.2).

    Args:
        session: the run.
        paper: published values.
        design: exciting trajectory.
    """
    search = "gradients from random starts, limits of the robot file"
    if session.paper_settings:
        search = "genetic algorithm, limits and centre of the paper"
    differs: tuple[str, ...] = ("data", "method")
    if session.paper_settings and not session.quick:
        differs = ("data",)
    problem = DesignProblem(paper_request(session.robot))
    condition = problem.condition_number(design.trajectory)
    return [
        paper.row("condition_number", condition, search=search, differs=differs),
        paper.row("limits", [MAX_VELOCITY, MAX_ACCELERATION]),
        paper.row("ranges", MAX_POSITION),
        paper.row("servoj", "not used"),
        paper.row("individuals", design.starts, search=search, differs=differs),
        paper.row("clearance", design.verdict.clearance),
    ]


def rank_chart(regrouping: Regrouping) -> LineChart:
    """Chart of Fig. 1: singular values of the stacked regressor, and their cumulative share.

    The x axes are the number of the parameter; the y axes are the logarithm of the
    singular value, and the cumulative share [%].

    Args:
        regrouping: base parameters with the singular values.
    """
    values = regrouping.singular_values
    number = np.arange(1, len(values) + 1, dtype=float)
    share = 100 * np.cumsum(values) / values.sum()
    # Singular values that are zero lie at the lower edge of the chart.
    size = np.log10(np.maximum(values, 1e-17 * values[0]))
    value_panel = Panel(
        "",
        (Line("value", number, size, joint=0),),
        y_label="log10 of singular value",
    )
    share_panel = Panel(
        "", (Line("share", number, share, joint=0),), y_label="cumulative share [%]"
    )
    return LineChart(
        key="s1_singular_values",
        title=f"Singular values of the stacked regressor; {regrouping.rank} are not zero",
        x_label="number of the parameter",
        panels=(value_panel, share_panel),
        columns=2,
    )


def _draw_trajectory(session: ProtocolRun, motion: PeriodicMotion) -> None:
    """Draw Fig. 2: positions of all joints [rad] over one period [s].

    Args:
        session: the run, with the robot and the folder of pictures.
        motion: exciting trajectory.
    """
    time, q, _, _ = sample_period(motion, _RATE)
    chart = joints_chart(
        "s1_trajectory",
        "One period of the exciting trajectory",
        time,
        {"position [rad]": q},
        session.robot.joint_names,
    )
    session.picture(chart, "Fig. 2")


def paper_request(robot: RobotDescription) -> DesignRequest:
    """Requirements of the paper on the trajectory: limits and centre of motion (sec. 2.2).

    Neither tool speed nor clearance from a table beyond the usual one is limited.

    Args:
        robot: type of the arm; the limits of the paper replace its limits, unless its
            kinematics are not those of a UR: then its own limits count, and the centre is
            searched.
    """
    gravity = ArmDynamics(robot, Setup()).model.gravity.linear
    base = raviola_base(FullRegressor(robot, gravity))
    if not is_articulated(robot):
        return DesignRequest(robot, tool_speed=float("inf"), base=base)
    limited = replace(
        robot,
        max_position=np.array(MAX_POSITION),
        max_velocity=np.full(robot.dof, MAX_VELOCITY),
        max_acceleration=np.full(robot.dof, MAX_ACCELERATION),
    )
    return DesignRequest(limited, centre=CENTRE, tool_speed=float("inf"), base=base)


# Section 3.1: torque on the validation trajectory.


def predicted_torque(
    bag: Path, robot: RobotDescription, base: BagBaseParameters
) -> tuple[Array, Array, Array]:
    """Torque of a recording, measured and predicted by base parameters.

    The measured torque is what the parameters were fitted to: current times torque constant
    and gear ratio. Motions that gaps separate follow one another.

    Args:
        bag: the recording.
        robot: type of the arm.
        base: identified base parameters.

    Returns:
        Time since the start [samples], s, measured and predicted torque, joint side
        [samples, n], N m.

    Raises:
        UrEnergyError: the recording cannot be used.
    """
    parameters = base.parameters
    times = []
    measured = []
    predicted = []
    with read_recording(bag, robot) as recording:
        for motion in recording.motions:
            times.append(motion.time)
            measured.append(motion.current * parameters.torque_per_ampere)
            predicted.append(parameters.torque(motion.q, motion.qd, motion.qdd))
    time = np.concatenate(times)
    return time - time[0], np.concatenate(measured), np.concatenate(predicted)


def _draw_elbow_torque(session: ProtocolRun, bag: Path, base: BagBaseParameters) -> None:
    """Draw Fig. 3: torque of the elbow, measured and predicted [N m], over time [s].

    Args:
        session: the run, with the robot and the folder of pictures.
        bag: recording of the validation trajectory.
        base: identified base parameters.
    """
    time, measured, predicted = predicted_torque(bag, session.robot, base)
    curves: list[tuple[str, Role, Array]] = [
        ("measured", "measured", measured[:, _ELBOW]),
        ("model", "model", predicted[:, _ELBOW]),
    ]
    chart = comparison_chart(
        "s1_elbow_torque",
        "Torque of the elbow on the validation trajectory",
        time,
        curves,
        session.robot.joint_names[_ELBOW],
        "torque [N m]",
    )
    session.picture(chart, "Fig. 3")


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
        session: the run; its arm has run the motion cold.
        paper: published values.
        motion: motion of both runs.
        cold_bag: recording of the cold run.
        cold: base parameters of the cold run.

    Raises:
        UrEnergyError: the motion or the identification is not possible.
    """
    seconds = _QUICK_WARM_UP if session.quick else WARM_UP
    warm_bag = session.record("excitation_warm", motion, warm_up=seconds)
    warm = identify_base_parameters(
        [warm_bag], session.robot, choose=raviola_base, progress=session.progress
    )
    for chart in _drive_charts(cold, warm):
        session.picture(chart, "Fig. 4")
    session.picture(_inertial_chart(cold, warm), "Fig. 4")
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
    """Friction of both states (Fig. 4), and its change [%] (sec. 3.2).

    Args:
        paper: published values.
        cold: base parameters of the cold run.
        warm: base parameters of the warm run.
        differs: conditions that are not as in the paper.
    """
    rows = []
    for name, kind, unit in (("Coulomb", "fc", "N m"), ("viscous", "fv", "N m s/rad")):
        own = _group(cold, kind)
        cold_values = cold.parameters.values[own]
        warm_values = warm.parameters.values[own]
        words: dict[str, Any] = {"name": name, "unit": unit, "differs": differs}
        rows.append(paper.row("friction", cold_values, state="cold", **words))
        rows.append(paper.row("friction", warm_values, state="warm", **words))
        change = 100 * (warm_values / cold_values - 1)
        rows.append(paper.row(f"{name.lower()}_change", change, differs=differs))
    return rows


def _unchanged_rows(
    paper: Paper,
    cold: BagBaseParameters,
    warm: BagBaseParameters,
    differs: tuple[str, ...],
) -> list[ResultRow]:
    """Relative change of base parameters that temperature should not change (Fig. 4).

    Args:
        paper: published values.
        cold: base parameters of the cold run.
        warm: base parameters of the warm run.
        differs: conditions that are not as in the paper.
    """
    rows = []
    for name, kind in _UNCHANGED:
        own = _group(cold, kind)
        cold_values = cold.parameters.values[own]
        change = warm.parameters.values[own] - cold_values
        relative = float(np.linalg.norm(change) / np.linalg.norm(cold_values))
        deviation = np.hypot(cold.parameters.std[own], warm.parameters.std[own])
        share_alike = float(np.mean(np.abs(change) <= 2 * deviation))
        row = paper.row(
            "unchanged",
            relative,
            differs=differs,
            count=len(own),
            name=name,
            alike=f"{100 * share_alike:.0f}",
        )
        rows.append(row)
    return rows


def _group(base: BagBaseParameters, kind: str) -> Indices:
    """Indices of the base parameters of a group.

    Args:
        base: identified base parameters.
        kind: "fc", "fv" or "Ja"; "" for the inertial parameters.
    """
    regrouping = base.parameters.regrouping
    kinds = [regrouping.names[column].split("_")[0] for column in regrouping.base]
    if kind:
        return np.flatnonzero([each == kind for each in kinds])
    return np.flatnonzero([each not in DRIVE for each in kinds])


def _temperatures(bag: Path) -> Array:
    """Mean joint temperatures of a recording [n], degC."""
    samples = concatenate(list(iterate_bag(bag, ("joint_temperatures",))))
    return np.asarray(samples["joint_temperatures"].mean(axis=0))


def _drive_charts(cold: BagBaseParameters, warm: BagBaseParameters) -> Iterator[BarChart]:
    """Charts of Fig. 4: friction, and motor inertias, of both states as bars, by parameter.

    Args:
        cold: base parameters of the cold run.
        warm: base parameters of the warm run.
    """
    friction = np.concatenate([_group(cold, "fc"), _group(cold, "fv")])
    names = cold.parameters.regrouping.names
    for key, title, unit, own in (
        (
            "s1_cold_and_warm",
            "Friction of the cold and the warm arm (fc in N m, fv in N m s/rad)",
            "N m, N m s/rad",
            friction,
        ),
        (
            "s1_motor_inertia_cold_and_warm",
            "Motor inertias of the cold and the warm arm",
            "kg m²",
            _group(cold, "Ja"),
        ),
    ):
        columns = cold.parameters.regrouping.base[own]
        yield BarChart(
            key=key,
            title=title,
            y_label=unit,
            categories=tuple(names[column] for column in columns),
            bars=(
                Bars("cold", cold.parameters.values[own]),
                Bars("warm", warm.parameters.values[own], role="aside"),
            ),
        )


def _inertial_chart(cold: BagBaseParameters, warm: BagBaseParameters) -> LineChart:
    """Chart of Fig. 4: inertial base parameters [kg m^2, kg m] over their number.

    Args:
        cold: base parameters of the cold run.
        warm: base parameters of the warm run.
    """
    own = _group(cold, "")
    number = np.arange(1, len(own) + 1, dtype=float)
    lines = (
        Line("warm", number, warm.parameters.values[own], joint=1),
        Line("cold", number, cold.parameters.values[own], role="second"),
    )
    return LineChart(
        key="s1_inertial_cold_and_warm",
        title=f"{len(own)} inertial base parameters of the cold and the warm arm",
        x_label="number of the base parameter",
        y_label="kg m², kg m",
        panels=(Panel("", lines),),
        columns=1,
    )
