# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Load check of Machines 2024, 12(9), 595, sec. 5.2: torque coefficient of joint 3.

The forearm swings through the horizontal with a known load and without. At the horizontal
the torque of the load is its weight times its lever. The difference of the torque values
of the drive between both runs, times torque coefficient k_3 and gear ratio N_3, should
be the same torque: m g l = k_3 N_3 (loaded - unloaded). The section has Tables 6 and 7
and Figs. 9 and 10.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from ur_energy_model.experiment.limits import RepeatedMotion
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.papers.protocol import ProtocolRun
from ur_energy_model.papers.published import Paper, ResultRow
from ur_energy_model.papers.s4_measured_run import (
    MeasuredRun,
    simulate,
    zero_position,
)
from ur_energy_model.report.chart import Line, LineChart, Panel
from ur_energy_model.trajectory.motions import Sinusoids
from ur_energy_model.typing import Array

JOINT = 2  # index of joint 3, which lifts the forearm
_WRIST = 4  # index of joint 5, which bends the hand out of the line of the forearm
_WINDOW = 0.05  # torque values are averaged so long before and after the horizontal [s]
SWING = 0.5  # amplitude of the forearm about the horizontal [rad]
_PERIOD = 10.0  # period of the swing [s]
_CYCLES = 2.5  # periods of the swing, with half a period lost at the ends
_NOISE = 3.0  # standard deviation of one torque value [drive units], assumed
_COEFFICIENT_ERROR = 0.03
"""Largest relative error of k_3 in the software of the drive, assumed."""
_RANDOM_STREAM = 213  # separates the draws of the load check from others with the seed


@dataclass(frozen=True)
class PublishedDrive:
    """Joint 3 and the load as the paper lists them.

    Attributes:
        coefficient: torque coefficient k_3 (Table 6), motor side [N m per drive unit].
        load_mass: mass of the load [kg].
        load_lever: distance of the load from the axis of joint 3 [m].
        friction: Coulomb and viscous friction of all joints (Table 9) [2, n], joint side,
            N m and N m s/rad.
    """

    coefficient: float
    load_mass: float
    load_lever: float
    friction: Array

    @classmethod
    def of(cls, paper: Paper) -> PublishedDrive:
        """The values of the paper."""
        return cls(
            coefficient=paper["torque_coefficients"][JOINT],
            load_mass=paper["load_mass"],
            load_lever=paper["load_arm"],
            friction=np.array([paper["coulomb"], paper["viscous"]]),
        )


@dataclass(frozen=True)
class Swing:
    """Torque of joint 3 over two cycles of a simulated swing of the forearm.

    Attributes:
        run: motion and joint-side torque of all joints.
        values: torque values of the drive [samples], drive units.
        means: mean torque values about each of the four passages of the horizontal [4],
            drive units; upwards and downwards in turn.
    """

    run: MeasuredRun
    values: Array
    means: list[float]


def check_load(session: ProtocolRun, paper: Paper) -> list[ResultRow]:
    """The load check: rows of Tables 6 and 7 and sec. 5.2, and pictures of Figs. 9 and 10.

    The simulated drive has a torque coefficient that is a little off the published one,
    as drawn from the seed.

    Args:
        session: the run of the simulated robot of the paper.
        paper: published values.
    """
    random = np.random.default_rng([session.seed, _RANDOM_STREAM])
    drive = PublishedDrive.of(paper)
    robot = session.robot
    ratio = float(robot.gear_ratio[JOINT])
    error = random.uniform(-_COEFFICIENT_ERROR, _COEFFICIENT_ERROR)
    true_coefficient = drive.coefficient * (1 + error)
    units_per_torque = 1 / (true_coefficient * ratio)
    unloaded = _swing(session, drive, 0.0, units_per_torque, random)
    loaded = _swing(session, drive, drive.load_mass, units_per_torque, random)
    # Table 7: each of two loaded cycles against each of two unloaded cycles, on the way
    # up and on the way down: eight differences.
    differences = []
    for cycle, unloaded_cycle, direction in product(range(2), range(2), range(2)):
        with_load = loaded.means[2 * cycle + direction]
        without = unloaded.means[2 * unloaded_cycle + direction]
        differences.append(abs(with_load - without))
    mean = float(np.mean(differences))
    applied = float(drive.load_mass * robot.controller_gravity * drive.load_lever)
    estimated = mean * drive.coefficient * ratio
    calibrated = applied / (mean * ratio)
    _draw(session, unloaded, loaded, float(zero_position(paper)[JOINT]))
    return [
        paper.row("load_differences", differences),
        paper.row("mean_difference", mean),
        paper.row("load_torque", applied),
        paper.row("load_torque_estimated", estimated),
        paper.row("load_ratio", estimated / applied),
        paper.row("coefficients", paper["torque_coefficients"]),
        paper.row("calibrated", calibrated, true=f"{true_coefficient:.5f}"),
    ]


def _swing(
    session: ProtocolRun,
    drive: PublishedDrive,
    mass: float,
    units_per_torque: float,
    random: np.random.Generator,
) -> Swing:
    """Four passages of the horizontal by the forearm, with a mass at the paper's distance.

    Args:
        session: the run of the simulated robot of the paper.
        drive: published values of joint 3 and the load.
        mass: mass of the load [kg].
        units_per_torque: drive units per joint-side torque of joint 3 [1/(N m)].
        random: generator of the noise of the torque values.
    """
    robot = session.robot
    empty = ArmDynamics(robot)
    level = horizontal(empty)
    amplitude = np.zeros(robot.dof)
    amplitude[JOINT] = SWING
    frequency = np.full(robot.dof, 1 / _PERIOD)
    sinusoids = Sinusoids(level, amplitude, frequency, _CYCLES * _PERIOD, fade_time=1.0)
    motion = RepeatedMotion(robot.name, sinusoids)
    gravity = np.array([0.0, 0.0, -robot.controller_gravity])
    flange_distance = np.linalg.norm(_forearm(empty, level))
    # The flange is nearer to the axis of joint 3 than the load; z leaves the flange.
    centre = np.array([0.0, 0.0, drive.load_lever - flange_distance])
    loaded = ArmDynamics(robot, Setup(gravity=gravity, payload=Payload(mass, centre)))
    run = simulate(loaded, motion, friction=drive.friction)
    noise = _NOISE * random.standard_normal(len(run.time))
    values = run.torque[:, JOINT] * units_per_torque + noise
    angle = run.q[:, JOINT] - level[JOINT]
    # The motion starts and ends at the horizontal: a quarter of a period at either end
    # is no passage.
    edge = round(0.25 * _PERIOD / run.period)
    inside = slice(edge, len(angle) - edge)
    passages = np.flatnonzero(np.diff(angle[inside] > 0)) + edge
    half = round(_WINDOW / run.period)
    means = [float(values[k - half : k + half + 1].mean()) for k in passages]
    return Swing(run, values, means)


def horizontal(dynamics: ArmDynamics) -> Array:
    """Joint positions [n], rad, with a horizontal forearm and a wrist in line with it.

    Height of the flange above joint 3 and alignment of the wrist both have the form
    a cos q + b sin q of one joint angle q, so their values at zero and at a quarter turn
    are a and b. The alignment has no constant term because d_6 of this robot is zero.
    """
    q = np.zeros(dynamics.dof)
    quarter = np.pi / 2

    def height(angle: float) -> float:
        q[JOINT] = angle
        return float(_forearm(dynamics, q)[2])

    # Of the roots of the height, half a turn apart, the one nearest to the middle of the
    # range, which is zero: the forearm forwards. The other is beyond the limits of Table 4.
    root = float(np.arctan2(-height(0.0), height(quarter)))
    q[JOINT] = min((root, root - np.pi, root + np.pi), key=abs)

    def alignment(angle: float) -> float:
        q[_WRIST] = angle
        flange_axis = dynamics.frames(q[None])[0][0, -1, :3, 2]
        return float(flange_axis @ _forearm(dynamics, q))

    # The maximum of the alignment.
    q[_WRIST] = np.arctan2(alignment(quarter), alignment(0.0))
    return q


def _forearm(dynamics: ArmDynamics, q: Array) -> Array:
    """Vector from the axis of joint 3 to the flange [3], m, base frame.

    Args:
        dynamics: the arm, n joints.
        q: joint positions [n], rad.
    """
    links, joints = dynamics.frames(q[None])
    return np.asarray(links[0, -1, :3, 3] - joints[0, JOINT, :3, 3])


def _draw(session: ProtocolRun, unloaded: Swing, loaded: Swing, zero: float) -> None:
    """Draw Figs. 9 and 10 of the paper.

    Fig. 9: angle [rad] and speed [rad/s] of joint 3 over time [s], without load.
    Fig. 10: torque values of joint 3 [drive units] over time [s], with and without load.

    Args:
        session: the run, with the folder of pictures.
        unloaded: the swing without load.
        loaded: the swing with the load.
        zero: the zero of the paper's angle of joint 3 in angles of the robot file [rad].
    """
    time = unloaded.run.time
    angle = Line("angle", time, unloaded.run.q[:, JOINT] - zero, joint=JOINT)
    speed = Line("speed", time, unloaded.run.qd[:, JOINT], joint=JOINT)
    motion = LineChart(
        key="s4_swing",
        title="Angle and speed of joint 3 in the load check",
        x_label="time [s]",
        panels=(
            Panel("", (angle,), y_label="angle [rad]"),
            Panel("", (speed,), y_label="speed [rad/s]"),
        ),
        columns=1,
    )
    session.picture(motion, "Fig. 9")
    without = Line("no load", time, unloaded.values, joint=0)
    with_load = Line("load", time, loaded.values, joint=1)
    torque = LineChart(
        key="s4_load",
        title="Torque values of joint 3",
        x_label="time [s]",
        panels=(Panel("", (without, with_load), y_label="torque [drive units]"),),
        columns=1,
    )
    session.picture(torque, "Fig. 10")
