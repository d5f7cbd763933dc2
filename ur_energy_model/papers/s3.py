# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Protocol s3, Battistini et al.: pick and place of a UR5 under PD with gravity compensation.

The slides model a joint as motor, harmonic drive and link. Their transfer function,
stiffness and friction stand beside the simulated arm's; then the arm runs the pick and
place with and without static friction, under the slides' control.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ur_energy_model.experiment.limits import RepeatedMotion
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.papers.protocol import Outcome, Paper, ProtocolRun, ResultRow
from ur_energy_model.report.chart import Line, LineChart, Panel
from ur_energy_model.report.model_charts import bode_chart, joints_chart
from ur_energy_model.simulation.arm_options import (
    ArmOptions,
    DriveSet,
    actual_parameters,
    draw_session,
)
from ur_energy_model.simulation.joint_controller import (
    LinearDrive,
    linear_drives,
    tuned_pd,
)
from ur_energy_model.simulation.parameters import ArmParameters
from ur_energy_model.simulation.plant import gear_twist
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.samples import concatenate
from ur_energy_model.trajectory.named_motions import Planner, pick_and_place
from ur_energy_model.typing import Array, Mask

DRIVE_SET: DriveSet = "s3"  # drives of the slides, see `drive_sets`
WRISTS = 0.4
REST = 2.0
"""Angle by which the wrists turn between the points, so that every joint moves [rad]; pause [s]."""


def run(session: ProtocolRun, paper: Paper) -> Outcome:
    """Drive model beside the published one, then pick and place with and without friction.

    Args:
        session: the arm, the output folder, and how motions are run.
        paper: published values of the protocol.

    Returns:
        The rows of the paper with what was found, written to the folder, too.

    Raises:
        UrEnergyError: a motion or an identification is not possible.
    """
    robot = session.robot
    rows = [
        paper.row("d", robot.d),
        paper.row("a", robot.a),
        paper.row("alpha", np.degrees(robot.alpha)),
        *drive_rows(session, paper),
        gravity_row(paper, robot),
    ]
    draw_drives(session, paper)
    motion = RepeatedMotion(robot.name, pick_and_place(Planner(robot), WRISTS, REST))
    if session.another is None:
        session.warnings.append(
            "the robot's own controller followed the motion, not PD with gravity compensation"
        )
        runs = {"own controller": Tracking.of(session.record("pick_and_place", motion))}
    else:
        runs = {}
        options = replace(session.another.options, controller="pd", drive_set=DRIVE_SET)
        for name, viscous in (
            ("with friction", False),
            ("without static friction", True),
        ):
            arm = session.another.make(replace(options, viscous_only=viscous))
            bag = replace(session, run=arm).record(name.replace(" ", "_"), motion)
            runs[name] = Tracking.of(bag)
    for name, tracking in runs.items():
        largest, left = (
            1e3 * np.abs(tracking.error[k]).max(axis=0) for k in (..., tracking.resting)
        )
        note = f"up to {left.max():.1f} mrad are left; stiction holds the joints there"
        within = (0.0, _DECAYED * largest)
        rows += [
            paper.row("largest_error", largest, name=name),
            paper.row("rest_error", left, name=name, within=within, note=note),
        ]
    _draw(session, runs)
    return session.finish(paper, rows)


# The drive model: transfer function, Bode diagram, gear stiffness.


def arm_parameters(session: ProtocolRun) -> ArmParameters:
    """True constants of the simulated arm with the drives of the slides."""
    options = ArmOptions() if session.another is None else session.another.options
    still = draw_session(session.seed, 0, session.robot.dof)
    return actual_parameters(
        session.robot, session.seed, still, replace(options, drive_set=DRIVE_SET)
    )


def published_drive(paper: Paper) -> LinearDrive:
    """Drive of the first joint of the slides, joint side.

    The slides do not give the flex-spline inertia J_f; the coefficient of s^2,
    k1/J_f + B_w B_f/(J_w J_f) + k1/(N^2 J_w), determines it.
    """
    gear = paper["hfus_20"]
    squared = float(paper["gear_ratio"]) ** 2
    rotor = gear["rotor_inertia"] * squared
    damping = gear["rotor_damping"] * squared
    stiffness = gear["stiffness"][0]
    flex = gear["flex_damping"]
    rest = paper["denominator"][2] - stiffness / rotor
    link = (stiffness + damping * flex / rotor) / rest
    return LinearDrive(rotor, damping, link, flex, stiffness)


def drive_rows(session: ProtocolRun, paper: Paper) -> list[ResultRow]:
    """The drive model beside the published one.

    The transfer function that the published constants give; the constants of both gears
    as the simulated arm has them; link inertia behind the published function, that of the
    arm, and gains of the PD control.
    """
    published = published_drive(paper)
    arm = arm_parameters(session)
    numerator, denominator = published.published_form(paper["gear_ratio"])
    theirs = paper["denominator"]
    rows = [
        paper.row("numerator", numerator),
        *(
            paper.row(
                "coefficient", denominator[k], published=theirs[k], power=str(4 - k)
            )
            for k in (1, 3)
        ),
        paper.row("coefficient_2", denominator[2]),
        paper.row("coefficient_0", denominator[4]),
    ]
    for name, key, joint in (("HFUS-20", "hfus_20", 0), ("HFUS-14", "hfus_14", 3)):
        ratio = arm.gear_ratio[joint]
        here = {
            "stiffness": ("K1 K2 K3 [N m/rad]", arm.stiffness[joint]),
            "knees": ("T1 T2 [N m]", arm.knees[joint]),
            "rotor_inertia": ("J_w [kg m2]", arm.rotor_inertia[joint] / ratio**2),
            "rotor_damping": (
                "B_mw [N m s/rad]",
                arm.friction.viscous[0, joint] / ratio**2,
            ),
            "rotor_coulomb": (
                "B_mw+ B_mw- [N m]",
                arm.friction.coulomb[:, joint] / ratio,
            ),
            "flex_damping": ("B_f [N m s/rad]", arm.flex_spline_viscous[joint]),
            "flex_coulomb": ("B_f+ B_f- [N m]", [arm.flex_spline_coulomb[joint]] * 2),
        }
        rows += [
            paper.row("gear", value, published=paper[key][what], name=name, label=label)
            for what, (label, value) in here.items()
        ]
    inertia = [drive.link_inertia for drive in linear_drives(session.robot, arm)]
    gains = tuned_pd(session.robot, arm)
    links = (0.5 * inertia[0], 2.0 * inertia[0])
    note = f"the links have {inertia[0]:.2g} kg m2 there; the published one seems to omit them"
    return [
        *rows,
        paper.row("link_inertia", published.link_inertia, within=links, note=note),
        paper.row("arm_inertia", inertia),
        paper.row("kp", gains.stiffness),
        paper.row("kd", gains.damping),
    ]


def gravity_row(paper: Paper, robot: RobotDescription) -> ResultRow:
    """Gravity torques by the recursion of the controller beside those by the slides' sum."""
    dynamics = ArmDynamics(robot)
    q = np.random.default_rng(0).uniform(-np.pi, np.pi, (50, robot.dof))
    summed = dynamics.gravity_regressor(q) @ dynamics.model.gravity.linear
    worst = float(np.abs(dynamics.gravity_torque(q) - summed).max())
    return paper.row("gravity", round(worst, 6))  # zero but for rounding


def draw_drives(session: ProtocolRun, paper: Paper) -> None:
    """Draw the Bode diagram of the first joint, and the stiffness of both gears."""
    ratio = float(paper["gear_ratio"])
    theirs = published_drive(paper)
    ours = linear_drives(session.robot, arm_parameters(session))[0]
    frequency = np.geomspace(0.1, 1e5, 800)
    responses = {
        "slides' constants": theirs.response(frequency, theirs.to_link) * ratio,
        "simulated UR5": ours.response(frequency, ours.to_link)
        * session.robot.gear_ratio[0],
    }
    caption = "From motor torque to joint angle, joint 1"
    session.picture(
        bode_chart("s3_bode", caption, frequency, responses), "PD tuning, Bode diagram"
    )
    session.picture(_stiffness_chart(paper), "Harmonic drive, stiffness")


def _stiffness_chart(paper: Paper) -> LineChart:
    lines = []
    for index, (key, name) in enumerate((("hfus_20", "HFUS-20"), ("hfus_14", "HFUS-14"))):
        gear = paper[key]
        torque = np.linspace(-40.0, 40.0, 401)
        stiffness = np.tile(gear["stiffness"], (len(torque), 1))
        knees = np.tile(gear["knees"], (len(torque), 1))
        lines.append(
            Line(name, 1e3 * gear_twist(torque, stiffness, knees), torque, joint=index)
        )
    caption = "Torque over torsion angle with K1, K2, K3 between T1 and T2"
    return LineChart(
        key="s3_stiffness",
        title=caption,
        x_label="torsion angle [mrad]",
        y_label="torque [N m]",
        panels=(Panel("Output side", tuple(lines)),),
        columns=1,
    )


# Pick and place.


_FIELDS = ("target_q", "target_qd", "actual_q")
_DECAYED = 0.01  # error at rest over the largest one in motion up to which none is left


class Tracking(NamedTuple):
    """How an arm followed the motion.

    Attributes:
        time: [samples], s.
        actual: position [samples, n], rad.
        error: target minus actual position [samples, n], rad.
        resting: instants at which a pause ends [samples].
    """

    time: Array
    actual: Array
    error: Array
    resting: Mask

    @classmethod
    def of(cls, bag: Path) -> Tracking:
        """The motion of a recording.

        Args:
            bag: with targets and measured positions.
        """
        samples = concatenate(list(iterate_bag(bag, _FIELDS)))
        still = np.abs(samples["target_qd"]).max(axis=1) < 1e-9
        ends = still & ~np.append(still[1:], False)
        actual = samples["actual_q"]
        return cls(
            samples.time - samples.time[0], actual, samples["target_q"] - actual, ends
        )


def _draw(session: ProtocolRun, runs: Mapping[str, Tracking]) -> None:
    names = session.robot.joint_names
    first = next(iter(runs.values()))
    session.picture(
        joints_chart(
            "s3_positions",
            "Joint positions of the pick and place: three points, cycloids between them",
            first.time,
            {"position [rad]": first.actual},
            names,
        ),
        "Joint positions",
    )
    errors = {f"{name} [mrad]": 1e3 * tracking.error for name, tracking in runs.items()}
    caption = "Position error of each joint under PD with gravity compensation"
    time = first.time[: min(len(each.time) for each in runs.values())]
    errors = {name: values[: len(time)] for name, values in errors.items()}
    session.picture(joints_chart("s3_error", caption, time, errors, names), "Error")
