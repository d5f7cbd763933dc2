"""Protocol s3, Battistini et al.: pick and place of a UR5 under PD with gravity compensation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.experiment.periodic_motion import RepeatedMotion
from ur_energy_model.experiment.protocols.linear_drive_check import (
    DRIVE_SET,
    draw_drives,
    gain_rows,
    gear_rows,
    gravity_row,
    inertia_rows,
    kinematics_rows,
    transfer_function_rows,
)
from ur_energy_model.experiment.protocols.outcome import Outcome, Row
from ur_energy_model.experiment.protocols.protocol_run import ProtocolRun
from ur_energy_model.report.charts.experiment import joints_chart
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.samples import concatenate
from ur_energy_model.trajectory.named_motions import named_motion
from ur_energy_model.typing import Array, Mask

_FIELDS = ("target_q", "target_qd", "actual_q")
_RESOLVED = 0.1e-3
"""Error at rest up to which it counts as zero: four encoder counts [rad]."""


@dataclass(frozen=True)
class Tracking:
    """How well an arm followed the motion, n joints.

    Attributes:
        time: [samples], s.
        target, actual: [samples, n], rad.
        resting: instants at which a pause ends [samples].
    """

    time: Array
    target: Array
    actual: Array
    resting: Mask

    @classmethod
    def of_bag(cls, bag: Path) -> Tracking:
        """Of a recording."""
        samples = concatenate(list(iterate_bag(bag, _FIELDS)))
        still = np.abs(samples["target_qd"]).max(axis=1) < 1e-9
        ends = still & ~np.append(still[1:], False)
        return cls(samples.time - samples.time[0], samples["target_q"], samples["actual_q"], ends)

    @property
    def error(self) -> Array:
        """Target minus actual position [samples, n], rad."""
        return self.target - self.actual

    @property
    def largest(self) -> Array:
        """Largest error [n], rad."""
        return np.asarray(np.abs(self.error).max(axis=0))

    @property
    def at_rest(self) -> Array:
        """Largest error at the end of a pause [n], rad."""
        return np.asarray(np.abs(self.error[self.resting]).max(axis=0))


def run(session: ProtocolRun, published: Mapping[str, Any]) -> Outcome:
    """Drive model beside the published one, then pick and place with and without friction."""
    robot = session.robot
    rows = kinematics_rows(robot, published) + transfer_function_rows(published)
    rows += gear_rows(session, published)
    rows += inertia_rows(session, published) + gain_rows(session) + [gravity_row(robot)]
    draw_drives(session, published)
    motion = RepeatedMotion(robot.name, named_motion("pick_and_place", robot))
    if session.another is None:
        session.warnings.append(
            "the robot's own controller followed the motion, not PD with gravity compensation"
        )
        runs = {"own controller": Tracking.of_bag(session.record("pick_and_place", motion))}
    else:
        runs = {}
        options = replace(session.another.options, controller="pd", drive_set=DRIVE_SET)
        for name, frictionless in (("with friction", False), ("without friction", True)):
            arm = session.another.make(replace(options, frictionless=frictionless))
            bag = replace(session, run=arm).record(name.replace(" ", "_"), motion)
            runs[name] = Tracking.of_bag(bag)
    for name, tracking in runs.items():
        rows += _tracking_rows(name, tracking)
    _draw(session, runs)
    return session.finish("s3", published, rows)


def _tracking_rows(name: str, tracking: Tracking) -> list[Row]:
    place, left = "Error", tracking.at_rest
    if left.max() <= _RESOLVED:
        judged = "agrees: none is left"
    else:
        judged = (
            f"differs: up to {1e3 * left.max():.1f} mrad are left; stiction holds the joints there"
        )
    return [
        Row(
            f"largest error by joint, {name} [mrad]",
            None,
            1e3 * tracking.largest,
            place,
            "target minus actual position over the motion; the slides show curves only",
            ("data",),
        ),
        Row(
            f"error at rest by joint, {name} [mrad]",
            "0 (K_P e = 0)",
            1e3 * left,
            place,
            "largest at the end of a pause of 0.5 s",
            judged=judged,
        ),
    ]


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
