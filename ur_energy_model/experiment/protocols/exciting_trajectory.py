"""Protocol s1, Raviola et al., RAAD 2021: exciting trajectory, base parameters, validation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ur_energy_model.experiment.design.design import Design
from ur_energy_model.experiment.design.problem import DesignRequest
from ur_energy_model.experiment.periodic_motion import sample_period
from ur_energy_model.experiment.protocols.base_parameter_rows import (
    count_rows,
    predicted_torque,
    rank_chart,
)
from ur_energy_model.experiment.protocols.friction_campaign import campaign_rows
from ur_energy_model.experiment.protocols.outcome import Outcome, Row
from ur_energy_model.experiment.protocols.protocol_run import ProtocolRun
from ur_energy_model.identification.dynamics.base_parameter_bags import (
    BagBaseParameters,
    identify_base_parameters,
)
from ur_energy_model.identification.pipeline import IdentificationOptions, identify
from ur_energy_model.model.file.model_file import save_model
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.report.charts.experiment import comparison_chart, joints_chart

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
