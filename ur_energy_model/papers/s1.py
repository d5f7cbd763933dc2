"""Protocol s1, Raviola et al., RAAD 2021: exciting trajectory, base parameters, validation."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.experiment.design import Design
from ur_energy_model.experiment.design_problem import DesignRequest
from ur_energy_model.experiment.limits import PeriodicMotion, sample_period
from ur_energy_model.identification.base_parameter_bags import (
    BagBaseParameters,
    identify_base_parameters,
)
from ur_energy_model.identification.base_parameters import BaseParameterFit, Regrouping
from ur_energy_model.identification.pipeline import IdentificationOptions, identify
from ur_energy_model.identification.recording_reader import read_recording
from ur_energy_model.model.model_file import save_model
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.papers.protocol import Outcome, ProtocolRun, Row
from ur_energy_model.report.chart import BarChart, Bars, Line, LineChart, Panel
from ur_energy_model.report.model_charts import comparison_chart, joints_chart
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.samples import concatenate
from ur_energy_model.typing import Array, Indices

# Rows and pictures about base parameters: their number, the regressor's rank, predicted torque.


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


# Campaign of protocol s1: the same identification on the cold and on the warm arm.

WARM_UP = 1800.0
"""Time of highly dynamic motion between the two runs [s]."""
_QUICK_WARM_UP = 300.0
_PLACE = "Section 3.2"
_UNCHANGED = (("inertial", ""), ("motor inertia", "Ja"))
"""Groups of base parameters that temperature should not change, and their kinds."""


def campaign_rows(
    session: ProtocolRun,
    published: Mapping[str, Any],
    motion: PeriodicMotion,
    cold_bag: Path,
    cold: BagBaseParameters,
) -> list[Row]:
    """Warm the arm up, repeat the run, and compare the base parameters of both states.

    Args:
        session: run of the protocol.
        published: figures of the paper.
        motion: the exciting trajectory, which also warms the arm up.
        cold_bag: recording just after power-up.
        cold: base parameters from it.
    """
    seconds = _QUICK_WARM_UP if session.quick else WARM_UP
    warm_bag = session.record("excitation_warm", motion, warm_up=seconds)
    warm = identify_base_parameters([warm_bag], session.robot, progress=session.progress)
    session.picture(_friction_chart(cold, warm), "Fig. 4")
    session.picture(_unchanged_chart(cold, warm), "Fig. 4")
    differs = ("arm", "data", "method") if session.quick else ("arm", "data")
    rows = [
        Row(
            f"joint temperatures, {state} [degC]",
            published[key],
            _temperatures(bag),
            _PLACE,
            f"mean over the run, {when}",
            differs,
            0.15,
        )
        for state, key, bag, when in (
            ("cold", "temperatures_cold", cold_bag, "just after power-up"),
            ("warm", "temperatures_warm", warm_bag, f"after {seconds / 60:.0f} min of motion"),
        )
    ]
    rows += _friction_rows(published, cold, warm, differs)
    return rows + _unchanged_rows(cold, warm, differs)


def _friction_rows(
    published: Mapping[str, Any],
    cold: BagBaseParameters,
    warm: BagBaseParameters,
    differs: tuple[str, ...],
) -> list[Row]:
    """Two-state friction table."""
    rows = []
    for name, kind, unit in (("Coulomb", "fc", "N m"), ("viscous", "fv", "N m s/rad")):
        own = _group(cold, kind)
        states = {"cold": cold.parameters, "warm": warm.parameters}
        rows += [
            Row(
                f"{name} friction by joint, {state} [{unit}]",
                None,
                each.values[own],
                "Fig. 4",
                "base parameters by weighted least squares; the paper shows bars only",
                differs,
            )
            for state, each in states.items()
        ]
        change = 100 * (warm.parameters.values[own] / cold.parameters.values[own] - 1)
        viscous = kind == "fv"
        largest = float(change.min())
        rows.append(
            Row(
                f"change of {name} friction by joint, warm over cold [%]",
                published["viscous_friction_change"] if viscous else None,
                change,
                _PLACE if viscous else "Fig. 4",
                "warm over cold minus one",
                differs,
                judged=f"see text: falls by up to {-largest:.0f} %; another {' and '.join(differs)}"
                if viscous and largest < 0
                else "",
            )
        )
    return rows


def _unchanged_rows(
    cold: BagBaseParameters, warm: BagBaseParameters, differs: tuple[str, ...]
) -> list[Row]:
    """Parameters that temperature should not change."""
    rows = []
    for name, kind in _UNCHANGED:
        own = _group(cold, kind)
        first, second = cold.parameters, warm.parameters
        change = second.values[own] - first.values[own]
        size = float(np.linalg.norm(change) / np.linalg.norm(first.values[own]))
        std = np.hypot(first.std[own], second.std[own])
        within = float(np.mean(np.abs(change) <= 2 * std))
        rows.append(
            Row(
                f"change of {len(own)} {name} base parameters, warm against cold",
                "nearly the same",
                size,
                "Fig. 4",
                "norm of the difference over that of the cold values",
                differs,
                judged=f"{'agrees' if size < 0.1 else 'differs'}: {100 * within:.0f} % of them are "
                "within two standard deviations",
            )
        )
    return rows


def _group(base: BagBaseParameters, kind: str) -> Indices:
    """Indices of the base parameters of a group; kind "" stands for the inertial ones."""
    regrouping = base.parameters.regrouping
    own = [regrouping.names[column].split("_")[0] for column in regrouping.base]
    drives = {"fc", "fv", "Ja"}
    return np.flatnonzero([name == kind or (not kind and name not in drives) for name in own])


def _temperatures(bag: Path) -> Array:
    """Mean joint temperatures of a recording [n], degC."""
    samples = concatenate(list(iterate_bag(bag, ("joint_temperatures",))))
    return np.asarray(samples["joint_temperatures"].mean(axis=0))


def _friction_chart(cold: BagBaseParameters, warm: BagBaseParameters) -> BarChart:
    """Friction of both states as bars."""
    own = np.concatenate([_group(cold, "fc"), _group(cold, "fv")])
    names = cold.parameters.regrouping.names
    columns = cold.parameters.regrouping.base[own]
    title = "Friction of the cold and the warm arm (fc in N m, fv in N m s/rad)"
    return BarChart(
        key="s1_cold_and_warm",
        title=title,
        caption="",
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
        caption="",
        x_label="number of the base parameter",
        y_label="",
        panels=tuple(panels),
        columns=1,
    )


CENTRE = (0.0, -np.pi / 2, 0.0, 0.0, 0.0, 0.0)
"""q0 of the paper [rad]."""
MAX_POSITION = (2 * np.pi, np.pi, np.pi, 2 * np.pi, 2 * np.pi, 2 * np.pi)
MAX_VELOCITY, MAX_ACCELERATION = np.pi, 5.5 * np.pi
"""Limits of the paper [rad, rad/s, rad/s^2]; it has none for the speed of the tool."""
POPULATION = 300
"""Individuals of the paper's genetic algorithm."""
_RATE = 125.0
"""Of the picture of the trajectory [Hz]."""


def run(session: ProtocolRun, published: Mapping[str, Any]) -> Outcome:
    """Identify base parameters from three periods; validate on another exciting trajectory."""
    request = paper_request(session.robot) if session.paper_settings else None
    population = 60 if session.quick else POPULATION
    design = session.design("excitation", session.seed, request, population=population)
    other = session.design("validation", session.seed + 1, request, population=population)
    fitted = session.record("excitation", design.trajectory)
    held_out = session.record("validation_run", other.trajectory)
    base = identify_base_parameters(
        [fitted], session.robot, validate=[held_out], progress=session.progress
    )
    found = identify(
        [fitted],
        session.robot,
        validate=[held_out],
        options=IdentificationOptions(friction="coulomb_viscous"),
        progress=session.progress,
    )
    save_model(found.model, session.folder / "model.yaml")
    session.warnings += base.warnings
    regrouping = base.parameters.regrouping
    rows = [
        *count_rows(regrouping, published),
        *_design_rows(session, published, design),
        Row(
            "condition number, as recorded",
            None,
            base.parameters.condition_number,
            "Section 2.2",
            "of the stacked base regressor of filtered, moving samples",
        ),
        Row(
            "gear ratio",
            published["gear_ratio"],
            session.robot.gear_ratio,
            "Section 3",
            "of the robot file",
        ),
        Row(
            "torque constants [N m/A]",
            published["torque_constants"],
            [joint.torque_constant for joint in found.model.joints],
            "Section 3",
            "the maker's in the paper; here identified from current and load",
            ("arm", "method"),
            0.15,
        ),
        *_error_rows(published, base),
    ]
    session.picture(rank_chart(regrouping), "Fig. 1")
    _draw_trajectory(session, design)
    time, measured, predicted = predicted_torque(held_out, session.robot, base)
    elbow = slice(2, 3)
    session.picture(
        comparison_chart(
            "s1_elbow_torque",
            "Torque of the elbow on the validation trajectory",
            time,
            (("measured", "measured", measured[:, elbow]), ("model", "model", predicted[:, elbow])),
            session.robot.joint_names[elbow],
            "torque [N m]",
        ),
        "Fig. 3",
    )
    if session.campaign:
        rows += campaign_rows(session, published, design.trajectory, fitted, base)
    return session.finish("s1", published, rows)


def _error_rows(published: Mapping[str, Any], base: BagBaseParameters) -> list[Row]:
    """Error of the predicted torques by the paper's definition, and by ours."""
    place, theirs = "Section 3.1", base.published_error
    return [
        Row(
            "normalised error e_N on the validation motion [N m]",
            published["normalised_error"],
            None if theirs is None else theirs.value,
            place,
            "(1/N) sqrt(e'e), N points as recorded with six rows each"
            + ("" if theirs is None else f"; N = {theirs.points} at {theirs.rate:.0f} Hz"),
            ("arm", "data"),
            0.5,
        ),
        Row(
            "error per joint sample, filtered and moving [N m]",
            None,
            base.normalised_error,
            place,
            "sqrt(e'e) over the number of joint samples used by the fit",
        ),
    ]


def paper_request(robot: RobotDescription) -> DesignRequest:
    """The trajectory that the paper asks for: its limits and its centre of motion."""
    limited = replace(
        robot,
        max_position=np.array(MAX_POSITION),
        max_velocity=np.full(robot.dof, MAX_VELOCITY),
        max_acceleration=np.full(robot.dof, MAX_ACCELERATION),
    )
    return DesignRequest(limited, centre=CENTRE, tool_speed=float("inf"))


def _draw_trajectory(session: ProtocolRun, design: Design) -> None:
    time, q, _, _ = sample_period(design.trajectory, _RATE)
    chart = joints_chart(
        "s1_trajectory",
        "One period of the exciting trajectory",
        time,
        {"position [rad]": q},
        session.robot.joint_names,
    )
    session.picture(chart, "Fig. 2")


def _design_rows(session: ProtocolRun, published: Mapping[str, Any], design: Design) -> list[Row]:
    place = "Section 2.2"
    search = "gradients from random starts, limits of the robot file"
    if session.paper_settings:
        search = "genetic algorithm, limits and centre of the paper"
    differs = ("data",) if session.paper_settings and not session.quick else ("data", "method")
    return [
        Row(
            "condition number, designed",
            published["condition_number"],
            design.condition_number,
            place,
            f"of the stacked base regressor over one period; {search}",
            differs,
            0.3,
        ),
        Row(
            "individuals tried",
            "300, then five generations",
            design.starts,
            place,
            search,
            differs,
        ),
        Row("clearance kept [m]", None, design.verdict.clearance, place, "to itself and the table"),
    ]
