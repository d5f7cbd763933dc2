# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Machines 2024, 12(9), 595, on the robot of the paper, which exists in simulation only.

Base parameters from a rigid multibody simulation (Table 5), then with friction and noise
as in the experiment (Table 9), verified on the same and on another trajectory (Figs. 15
and 17), and the load check (Tables 6 and 7). As in the paper, the simulation has a
trajectory of its own (Fig. 5); whether that is the general trajectory of the verification
(Fig. 16), too, the paper does not state: here they are two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ur_energy_model.experiment.design import Design
from ur_energy_model.experiment.design_problem import DesignRequest
from ur_energy_model.experiment.limits import PeriodicMotion
from ur_energy_model.identification.error_statistics import ErrorStatistics
from ur_energy_model.identification.physical_consistency import nearest_possible
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.papers.protocol import Outcome, ProtocolRun
from ur_energy_model.papers.published import Paper, ResultRow
from ur_energy_model.papers.s4_figures import (
    draw_exciting_trajectory,
    draw_general_trajectory,
    draw_processing,
    draw_simulated_trajectory,
    draw_verification,
)
from ur_energy_model.papers.s4_load_check import check_load
from ur_energy_model.papers.s4_measured_run import (
    REPETITIONS,
    BaseModel,
    MeasuredRun,
    MeasurementNoise,
    processed,
    simulate,
    upright,
    zero_position,
)
from ur_energy_model.typing import Array

ROBOT = "qin2024"  # name of the paper's robot in config/robots
_QUICK_POPULATION = 40  # individuals of the genetic search of a quick run
_TORQUE_NOISE = 0.02  # noise of the drives' torque over its root mean square, assumed
_POSITION_NOISE = 1e-6  # noise of the encoders [rad], assumed
_SPEED_NOISE = 2e-3  # noise of the speeds by the encoders [rad/s], assumed
_DECIMALS = 4  # decimals of angles that are kept [deg]
_UNBOUNDED = 1e4  # spread of parameters that are free [kg, kg m, kg m^2]
_NOTEWORTHY = 0.05  # least difference that shows in the digits of Table 5


@dataclass(frozen=True)
class PublishedBaseParameters:
    """Inertial base parameters of the paper, [kg m^2] and [kg m], by name such as "mx_2".

    Attributes:
        theoretical: parameters of the simulated links (Table 5).
        simulated: recovered from the paper's simulation (Table 5).
        identified: parameters identified on the real robot (Table 9).
    """

    theoretical: dict[str, float]
    simulated: dict[str, float]
    identified: dict[str, float]

    @classmethod
    def of(cls, paper: Paper) -> PublishedBaseParameters:
        """The values of the paper."""

        def column(key: str) -> dict[str, float]:
            return dict(zip(paper["base_names"], paper[key], strict=True))

        return cls(column("theoretical"), column("simulated"), column("identified"))

    @property
    def names(self) -> list[str]:
        """Names in the order of the paper."""
        return list(self.theoretical)

    def of_link(self, link: int) -> list[str]:
        """Names of the parameters of a link, counted from 1."""
        return [name for name in self.names if name.endswith(f"_{link}")]


def run_on_own_robot(session: ProtocolRun, paper: Paper) -> Outcome:
    """The paper's simulation and experiment on a simulated arm.

    Args:
        session: the run, with the robot of the paper.
        paper: published values of the protocol.

    Returns:
        The rows of the paper with the values found here, written to the folder, too.

    Raises:
        MotionRefusedError: no trajectory passes the checks.
    """
    robot = session.robot
    table = PublishedBaseParameters.of(paper)
    designs = _design_trajectories(session, paper, table)
    rows = [
        *_robot_rows(paper, robot),
        *_trajectory_rows(session, paper, designs.excitation),
        *_simulation_rows(session, paper, table, designs.simulation.trajectory),
        *_experiment_rows(session, paper, table, designs),
        *check_load(session, paper),
    ]
    return session.finish(paper, rows)


class Designs(NamedTuple):
    """Trajectories of the paper.

    Attributes:
        excitation: of the experiment (Fig. 4).
        simulation: of the rigid multibody simulation (Fig. 5).
        general: of the general verification (Fig. 16).
    """

    excitation: Design
    simulation: Design
    general: Design


def _design_trajectories(
    session: ProtocolRun, paper: Paper, table: PublishedBaseParameters
) -> Designs:
    """Trajectories for the base columns of the paper (sec. 4) that begin and end at its zero.

    Eq. 21 asks for q(t0) = q(tf) = 0. The paper shifts the offset q_i0 of the series for
    it; here every individual of the search satisfies it.

    Args:
        session: the run.
        paper: published values.
        table: base parameters of the paper.

    Raises:
        MotionRefusedError: no trajectory passes the checks.
    """
    robot = session.robot
    joints = range(1, robot.dof + 1)
    coulomb = [f"fc_{j}" for j in joints]
    viscous = [f"fv_{j}" for j in joints]
    base = (*table.names, *coulomb, *viscous)
    request = DesignRequest(
        robot,
        upright(robot),
        tool_speed=float("inf"),
        base=base,
        start=tuple(zero_position(paper).tolist()),
    )
    population = _QUICK_POPULATION if session.quick else paper["population"]
    designs = []
    for k, name in enumerate(Designs._fields):
        seed = session.seed + k
        designs.append(
            session.design(name, seed, request, population=population, binary=True)
        )
    return Designs(*designs)


def _robot_rows(paper: Paper, robot: RobotDescription) -> list[ResultRow]:
    """Kinematics (Table 1), limits (Table 4) and gear ratios (Table 6) of the robot file."""
    middle = np.mean(paper["angles"], axis=1)  # zero of the robot file [deg]
    theta = np.abs(np.round(np.degrees(robot.theta) - middle, _DECIMALS))
    # A turn of the first joint turns the whole upright arm, which no torque shows.
    offset = "joint 1 counts from a quarter turn away, which changes no torque"
    half_range = np.degrees(robot.max_position)
    angles = np.column_stack([middle - half_range, middle + half_range])
    return [
        paper.row("theta", theta, note=offset),
        paper.row("a", robot.a),
        paper.row("d", robot.d),
        paper.row("angles", angles),
        paper.row("max_velocity", np.degrees(robot.max_velocity)),
        paper.row("max_acceleration", np.degrees(robot.max_acceleration)),
        paper.row("gear_ratios", robot.gear_ratio),
    ]


def _trajectory_rows(
    session: ProtocolRun, paper: Paper, design: Design
) -> list[ResultRow]:
    """Harmonics, base frequency, ends (eq. 21) and condition number (sec. 4).

    Args:
        session: the run.
        paper: published values.
        design: exciting trajectory.
    """
    trajectory = design.trajectory
    differs = ("method",) if session.quick else ()
    ends, end_speed, _ = trajectory.sample(np.array([0.0, trajectory.duration]))
    angles = np.degrees(ends - zero_position(paper))
    farthest = np.round(np.abs(angles).max(axis=0), _DECIMALS)
    fastest = np.round(np.degrees(np.abs(end_speed).max(axis=0)), _DECIMALS)
    return [
        paper.row("end_angles", farthest),
        paper.row("end_speeds", fastest),
        paper.row("harmonics", trajectory.harmonics),
        paper.row("base_frequency", 1 / trajectory.period),
        paper.row("condition_number", design.condition_number, differs=differs),
    ]


def _simulation_rows(
    session: ProtocolRun,
    paper: Paper,
    table: PublishedBaseParameters,
    trajectory: PeriodicMotion,
) -> list[ResultRow]:
    """Table 5: base parameters of the robot file, and recovered from an ideal run.

    Draws Figs. 5 and 6.

    Args:
        session: the run.
        paper: published values.
        table: base parameters of the paper.
        trajectory: trajectory of the simulation.
    """
    robot = session.robot
    motion = trajectory.repeated(REPETITIONS)
    run = simulate(ArmDynamics(robot, upright(robot)), motion)
    model = BaseModel.of(robot, table.names, friction=False)
    found = model.by_name(model.identified(processed(run, REPETITIONS)))
    true = model.true
    rows = []
    for link in range(1, robot.dof + 1):
        names = table.of_link(link)
        label = _label(link, names)
        theoretical = [table.theoretical[name] for name in names]
        simulated = [table.simulated[name] for name in names]
        actual = [true[name] for name in names]
        recovered = [found[name] for name in names]
        rows.append(
            paper.row(
                "link_true",
                actual,
                published=theoretical,
                link=label,
                within=_printed_alike(theoretical),
            )
        )
        rows.append(
            paper.row(
                "link_recovered",
                recovered,
                published=simulated,
                link=label,
                within=_printed_alike(actual),
            )
        )
    errors = _differences(found, true, table.names)
    their_errors = _differences(table.simulated, table.theoretical, table.names)
    largest = float(errors.max())
    their_largest = float(their_errors.max())
    count = int((errors >= _NOTEWORTHY).sum())
    their_count = int((their_errors >= _NOTEWORTHY).sum())
    rows += [
        paper.row(
            "largest_difference",
            largest,
            published=their_largest,
            within=(0.0, their_largest),
        ),
        paper.row("noteworthy", count, published=their_count, within=(0, their_count)),
    ]
    draw_simulated_trajectory(session, trajectory, zero_position(paper))
    return rows


def _experiment_rows(
    session: ProtocolRun,
    paper: Paper,
    table: PublishedBaseParameters,
    designs: Designs,
) -> list[ResultRow]:
    """Table 9 and both verifications, with friction and noise as of an experiment.

    The parameters are identified from the exciting trajectory and verified on it and on
    the general one. Draws Figs. 4, 11 and 13 to 17.

    Args:
        session: the run.
        paper: published values.
        table: base parameters of the paper.
        designs: trajectories.
    """
    robot = session.robot
    friction = np.array([paper["coulomb"], paper["viscous"]])
    excitation = designs.excitation.trajectory
    general = designs.general.trajectory
    raw = _measured(session, excitation, friction, session.seed)
    raw_general = _measured(session, general, friction, session.seed + 1)
    fitted = processed(raw, REPETITIONS)
    held_out = processed(raw_general, REPETITIONS)
    model = BaseModel.of(robot, table.names, friction=True)
    values = model.identified(fitted)
    found = model.by_name(values)
    deviation = _differences(found, model.true, table.names)
    joints = range(1, robot.dof + 1)
    rows = [
        paper.row("base_parameters", model.base.regrouping.rank),
        paper.row("inertial", model.base.regrouping.rank - 2 * robot.dof),
        paper.row("coulomb", [found[f"fc_{j}"] for j in joints]),
        paper.row("viscous", [found[f"fv_{j}"] for j in joints]),
        paper.row("inertial_deviation", float(deviation.max())),
        *_possible_rows(paper, robot, table),
    ]
    zero = zero_position(paper)
    draw_exciting_trajectory(session, excitation, zero)
    draw_processing(session, raw, fitted)
    draw_general_trajectory(session, general, zero)
    for kind, figure, measured in (
        ("self", "Fig. 15", fitted),
        ("general", "Fig. 17", held_out),
    ):
        predicted = model.predicted(measured, values)
        errors = ErrorStatistics(robot.dof)
        errors.accumulate(measured.torque, predicted)
        rows.append(paper.row(f"{kind}_rms", errors.rms))
        rows.append(paper.row(f"{kind}_r2", errors.r2))
        draw_verification(session, measured, predicted, f"s4_{kind}_torque", figure)
    return rows


def _possible_rows(
    paper: Paper, robot: RobotDescription, table: PublishedBaseParameters
) -> list[ResultRow]:
    """Table 9 beside the nearest base parameters that rigid links can have."""
    model = BaseModel.of(robot, table.names, friction=False)
    combination = model.base.regrouping.combination
    nominal = model.base.full.nominal()
    wanted = np.array([table.identified[name] for name in model.names])
    possible = nearest_possible(
        np.eye(len(wanted)),
        combination,
        wanted,
        nominal,
        np.full(len(nominal), _UNBOUNDED),
        robot.dof,
    )
    nearest = model.by_name(combination @ possible)
    rows = []
    for link in range(1, robot.dof + 1):
        names = table.of_link(link)
        published = [table.identified[name] for name in names]
        here = [nearest[name] for name in names]
        worst = _differences(table.identified, nearest, names).max()
        rows.append(
            paper.row(
                "possible",
                here,
                published=published,
                link=_label(link, names),
                within=_printed_alike(published),
                note=f"by up to {worst:.4g}",
            )
        )
    return rows


def _measured(
    session: ProtocolRun, trajectory: PeriodicMotion, friction: Array, seed: int
) -> MeasuredRun:
    """A run with friction and noise.

    Args:
        session: the run of the protocol.
        trajectory: one period of the trajectory.
        friction: Coulomb and viscous coefficients [2, n], joint side, N m and N m s/rad.
        seed: seed of the noise.
    """
    dynamics = ArmDynamics(session.robot, upright(session.robot))
    motion = trajectory.repeated(REPETITIONS)
    noiseless = simulate(dynamics, motion.repeated(1), friction=friction)
    torque_rms = np.sqrt(np.mean(noiseless.torque**2, axis=0))
    noise = MeasurementNoise(_POSITION_NOISE, _SPEED_NOISE, _TORQUE_NOISE * torque_rms)
    return simulate(dynamics, motion, friction=friction, noise=noise, seed=seed)


def _differences(
    values: dict[str, float], others: dict[str, float], names: list[str]
) -> Array:
    """Absolute differences of parameters by name [names]."""
    return np.array([abs(values[name] - others[name]) for name in names])


def _label(link: int, names: list[str]) -> str:
    """Text such as "link 1: Iyy" for the base parameters of a link."""
    return f"link {link}: {'/'.join(name.split('_')[0] for name in names)}"


def _printed_alike(values: list[float]) -> tuple[Array, Array]:
    """Lowest and highest numbers that Table 5 would print like the given ones."""
    return np.array(values) - _NOTEWORTHY, np.array(values) + _NOTEWORTHY
