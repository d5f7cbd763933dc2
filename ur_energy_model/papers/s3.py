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

from ur_energy_model.errors import MotionRefusedError
from ur_energy_model.experiment.limits import RepeatedMotion
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.papers.protocol import Outcome, ProtocolRun
from ur_energy_model.papers.published import Paper, ResultRow
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
"""Angle by which the wrists turn between the points, so that every joint moves [rad]."""
REST = 2.0  # pause at every point [s]


class HarmonicDrive(NamedTuple):
    """Constants of a gear in the slides, "Harmonic drive, parameters".

    Attributes:
        stiffness: K1, K2 and K3 of the output side [3], N m/rad.
        knees: T1 and T2, torques between which K2 holds [2], N m.
        rotor_inertia: J_w of motor and wave generator, motor side [kg m^2].
        rotor_damping: B_mw of the rotor, motor side [N m s/rad].
        rotor_coulomb: B_mw+ and B_mw-, Coulomb friction of the rotor forwards and
            backwards, motor side [2], N m.
        flex_damping: B_f of the flex spline [N m s/rad].
        flex_coulomb: B_f+ and B_f-, Coulomb friction of the flex spline forwards and
            backwards [2], N m.
    """

    stiffness: list[float]
    knees: list[float]
    rotor_inertia: float
    rotor_damping: float
    rotor_coulomb: list[float]
    flex_damping: float
    flex_coulomb: list[float]


class Gear(NamedTuple):
    """A gear of the arm of the slides.

    Attributes:
        name: name of the gear in the slides.
        key: name of its constants in the contents of the paper.
        joint: index of a joint that has the gear.
    """

    name: str
    key: str
    joint: int

    def published(self, paper: Paper) -> HarmonicDrive:
        """Constants of the gear in the slides."""
        return HarmonicDrive(**paper[self.key])


LARGE_GEAR = Gear("HFUS-20", "hfus_20", joint=0)
SMALL_GEAR = Gear("HFUS-14", "hfus_14", joint=3)
GEARS = (LARGE_GEAR, SMALL_GEAR)


def run(session: ProtocolRun, paper: Paper) -> Outcome:
    """Drive model beside the published one, then pick and place with and without friction.

    Args:
        session: the arm, the output folder, and how motions are run.
        paper: published values of the protocol.

    Returns:
        The rows of the paper with the values found here, written to the folder, too.

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
    _draw_bode(session, paper)
    _draw_stiffness(session, paper)
    runs = _pick_and_place(session)
    for name, tracking in runs.items():
        rows += _error_rows(paper, name, tracking)
    if runs:
        _draw_tracking(session, runs)
    return session.finish(paper, rows)


# Drive model: transfer function, Bode diagram, gear stiffness.


def arm_parameters(session: ProtocolRun) -> ArmParameters:
    """True constants of the simulated arm with the drives of the slides."""
    options = ArmOptions() if session.another is None else session.another.options
    still = draw_session(session.seed, 0, session.robot.dof)
    return actual_parameters(
        session.robot, session.seed, still, replace(options, drive_set=DRIVE_SET)
    )


def published_drive(paper: Paper) -> LinearDrive:
    """Drive of the first joint of the slides, joint side ("PD tuning, transfer function").

    The slides do not give the flex-spline inertia J_f; the coefficient of s^2,
    k1/J_f + B_w B_f/(J_w J_f) + k1/(N^2 J_w), determines it.
    """
    gear = LARGE_GEAR.published(paper)
    squared_ratio = float(paper["gear_ratio"]) ** 2
    rotor_inertia = gear.rotor_inertia * squared_ratio
    rotor_damping = gear.rotor_damping * squared_ratio
    stiffness = gear.stiffness[0]
    _, _, quadratic, _, _ = paper["denominator"]  # coefficients of s^4 to s^0
    over_flex_inertia = quadratic - stiffness / rotor_inertia
    flex_inertia = (
        stiffness + rotor_damping * gear.flex_damping / rotor_inertia
    ) / over_flex_inertia
    return LinearDrive(
        rotor_inertia=rotor_inertia,
        rotor_damping=rotor_damping,
        link_inertia=flex_inertia,
        link_damping=gear.flex_damping,
        stiffness=stiffness,
    )


def drive_rows(session: ProtocolRun, paper: Paper) -> list[ResultRow]:
    """The drive model beside the published one.

    Rows are the transfer function that the published constants give, the constants of both
    gears in the simulated arm, the link inertia behind the published function and of the
    arm, and gains of the PD control.

    Args:
        session: the run, for the simulated arm.
        paper: published values.
    """
    published = published_drive(paper)
    arm = arm_parameters(session)
    rows = _transfer_function_rows(paper, published)
    for gear in GEARS:
        rows += _gear_rows(paper, gear, arm)
    inertia = [drive.link_inertia for drive in linear_drives(session.robot, arm)]
    gains = tuned_pd(session.robot, arm)
    half_to_twice = (0.5 * inertia[0], 2.0 * inertia[0])
    note = f"the links have {inertia[0]:.2g} kg m2 there; the published one seems to omit them"
    return [
        *rows,
        paper.row(
            "link_inertia", published.link_inertia, within=half_to_twice, note=note
        ),
        paper.row("arm_inertia", inertia),
        paper.row("kp", gains.stiffness),
        paper.row("kd", gains.damping),
    ]


def _transfer_function_rows(paper: Paper, published: LinearDrive) -> list[ResultRow]:
    """Transfer function from motor torque to joint angle of the first joint.

    The coefficient of s^2 is an input, see `published_drive`.

    Args:
        paper: published values.
        published: drive of the first joint of the slides.
    """
    numerator, denominator = published.published_form(paper["gear_ratio"])
    _, cubic, quadratic, linear, constant = denominator
    _, their_cubic, _, their_linear, _ = paper["denominator"]
    return [
        paper.row("numerator", numerator),
        paper.row("coefficient", cubic, published=their_cubic, power="3"),
        paper.row("coefficient", linear, published=their_linear, power="1"),
        paper.row("coefficient_2", quadratic),
        paper.row("coefficient_0", constant),
    ]


def _gear_rows(paper: Paper, gear: Gear, arm: ArmParameters) -> list[ResultRow]:
    """Constants of a gear of the simulated arm beside the slides, rotor motor side.

    Args:
        paper: published values.
        gear: one of both gears.
        arm: constants of the simulated arm; its rotor is joint side.
    """
    theirs = gear.published(paper)
    joint = gear.joint
    ratio = arm.gear_ratio[joint]
    rotor_inertia = arm.rotor_inertia[joint] / ratio**2
    rotor_damping = arm.friction.viscous[0, joint] / ratio**2
    rotor_coulomb = arm.friction.coulomb[:, joint] / ratio
    flex_damping = arm.flex_spline_viscous[joint]
    flex_coulomb = [arm.flex_spline_coulomb[joint], arm.flex_spline_coulomb[joint]]
    rows = []
    for label, published, here in (
        ("K1 K2 K3 [N m/rad]", theirs.stiffness, arm.stiffness[joint]),
        ("T1 T2 [N m]", theirs.knees, arm.knees[joint]),
        ("J_w [kg m2]", theirs.rotor_inertia, rotor_inertia),
        ("B_mw [N m s/rad]", theirs.rotor_damping, rotor_damping),
        ("B_mw+ B_mw- [N m]", theirs.rotor_coulomb, rotor_coulomb),
        ("B_f [N m s/rad]", theirs.flex_damping, flex_damping),
        ("B_f+ B_f- [N m]", theirs.flex_coulomb, flex_coulomb),
    ):
        rows.append(
            paper.row("gear", here, published=published, name=gear.name, label=label)
        )
    return rows


def _draw_bode(session: ProtocolRun, paper: Paper) -> None:
    """Draw "PD tuning, Bode diagram": from motor torque to joint angle, joint 1.

    Magnitude [dB of rad per N m] and phase [degrees] over the logarithm of the angular
    frequency, by the constants of the slides and of the simulated arm.

    Args:
        session: the run, with the robot and the folder of pictures.
        paper: published values.
    """
    theirs = published_drive(paper)
    ours = linear_drives(session.robot, arm_parameters(session))[0]
    frequency = np.geomspace(0.1, 1e5, 800)  # [rad/s]
    their_response = theirs.response(frequency, theirs.to_link)
    our_response = ours.response(frequency, ours.to_link)
    responses = {
        "slides' constants": their_response * float(paper["gear_ratio"]),
        "simulated UR5": our_response * session.robot.gear_ratio[0],
    }
    caption = "From motor torque to joint angle, joint 1"
    chart = bode_chart("s3_bode", caption, frequency, responses)
    session.picture(chart, "PD tuning, Bode diagram")


def _draw_stiffness(session: ProtocolRun, paper: Paper) -> None:
    """Draw "Harmonic drive, stiffness": torque [N m] over torsion angle [mrad], both gears.

    Args:
        session: the run, with the folder of pictures.
        paper: published values.
    """
    torque = np.linspace(-40.0, 40.0, 401)  # torque of the output side [N m]
    lines = []
    for index, gear in enumerate(GEARS):
        published = gear.published(paper)
        stiffness = np.tile(published.stiffness, (len(torque), 1))
        knees = np.tile(published.knees, (len(torque), 1))
        twist = 1e3 * gear_twist(torque, stiffness, knees)
        lines.append(Line(gear.name, twist, torque, joint=index))
    chart = LineChart(
        key="s3_stiffness",
        title="Torque over torsion angle with K1, K2, K3 between T1 and T2",
        x_label="torsion angle [mrad]",
        y_label="torque [N m]",
        panels=(Panel("Output side", tuple(lines)),),
        columns=1,
    )
    session.picture(chart, "Harmonic drive, stiffness")


def gravity_row(paper: Paper, robot: RobotDescription) -> ResultRow:
    """Gravity torques by the recursion of the controller beside the sum in the slides.

    The slides have g_i = -sum m g'(U r) ("Gravity compensation").

    Args:
        paper: published values.
        robot: type of the arm.
    """
    dynamics = ArmDynamics(robot)
    q = np.random.default_rng(0).uniform(-np.pi, np.pi, (50, robot.dof))
    summed = dynamics.gravity_regressor(q) @ dynamics.model.gravity.linear
    largest = float(np.abs(dynamics.gravity_torque(q) - summed).max())
    return paper.row("gravity", round(largest, 6))  # zero but for rounding


# Pick and place.


_FIELDS = ("target_q", "target_qd", "actual_q")
_STILL = 1e-9  # target speed of all joints below which the motion pauses [rad/s]
_DECAYED = 0.01
"""Error at rest over the largest error in motion, up to which no error is left."""


class Tracking(NamedTuple):
    """Motion of an arm with n joints beside its targets.

    Attributes:
        time: time since the start [samples], s.
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
            bag: recording with targets and measured positions.
        """
        samples = concatenate(list(iterate_bag(bag, _FIELDS)))
        still = np.abs(samples["target_qd"]).max(axis=1) < _STILL
        next_still = np.append(still[1:], False)
        actual = samples["actual_q"]
        return cls(
            time=samples.time - samples.time[0],
            actual=actual,
            error=samples["target_q"] - actual,
            resting=still & ~next_still,
        )


def _pick_and_place(session: ProtocolRun) -> dict[str, Tracking]:
    """Runs of the pick and place by a name that the rows show.

    Simulated arms run it under PD with gravity compensation, with and without static
    friction. A robot runs it under its own controller, which a warning states.

    Args:
        session: the run.

    Returns:
        The runs; an arm that the controller of the slides cannot move lacks some, with a
        warning.

    Raises:
        UrEnergyError: the motion cannot be run.
    """
    robot = session.robot
    motion = RepeatedMotion(robot.name, pick_and_place(Planner(robot), WRISTS, REST))
    if session.another is None:
        session.warnings.append(
            "the robot's own controller followed the motion, not PD with gravity compensation"
        )
        return {"own controller": Tracking.of(session.record("pick_and_place", motion))}
    options = replace(session.another.options, controller="pd", drive_set=DRIVE_SET)
    runs = {}
    for name, viscous_only in (
        ("with friction", False),
        ("without static friction", True),
    ):
        arm = session.another.make(replace(options, viscous_only=viscous_only))
        try:
            bag = replace(session, run=arm).record(name.replace(" ", "_"), motion)
        except MotionRefusedError as error:
            session.warnings.append(
                f"pick and place {name} left out, the gains of the slides are for a UR5: "
                f"{error}"
            )
            continue
        runs[name] = Tracking.of(bag)
    return runs


def _error_rows(paper: Paper, name: str, tracking: Tracking) -> list[ResultRow]:
    """Largest position error, and error at rest, of each joint ("Error") [mrad].

    Args:
        paper: published values.
        name: name of the run.
        tracking: motion of the run.
    """
    error = 1e3 * np.abs(tracking.error)
    largest = error.max(axis=0)
    left = error[tracking.resting].max(axis=0)
    note = f"up to {left.max():.1f} mrad are left; stiction holds the joints there"
    within = (0.0, _DECAYED * largest)
    return [
        paper.row("largest_error", largest, name=name),
        paper.row("rest_error", left, name=name, within=within, note=note),
    ]


def _draw_tracking(session: ProtocolRun, runs: Mapping[str, Tracking]) -> None:
    """Draw "Joint positions" and "Error" of the pick and place, over time [s].

    "Joint positions" has the positions of the first run [rad], "Error" the position errors
    of every run [mrad].

    Args:
        session: the run, with the robot and the folder of pictures.
        runs: motions of the arm by name.
    """
    names = session.robot.joint_names
    first = next(iter(runs.values()))
    positions = joints_chart(
        "s3_positions",
        "Joint positions of the pick and place: three points, cycloids; wrists 1 and 2 coincide",
        first.time,
        {"position [rad]": first.actual},
        names,
    )
    session.picture(positions, "Joint positions")
    shortest = min(len(tracking.time) for tracking in runs.values())
    errors = {
        f"{name} [mrad]": 1e3 * tracking.error[:shortest]
        for name, tracking in runs.items()
    }
    caption = "Position error of each joint under PD with gravity compensation"
    chart = joints_chart("s3_error", caption, first.time[:shortest], errors, names)
    session.picture(chart, "Error")
