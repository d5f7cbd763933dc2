# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Inertias of Clochiatti et al., Robotica 2024: links as cylinders, motors and reducers.

Table III has the inertia tensors of the links, computed from cylinders. Table IV has the
inertia of motor and reducer of each joint, which eq. 9 identifies from target_moment and
those tensors. Both together are the dynamic model that the paper prints, which Tables V to
VIII build on; `printed_model` is an arm with it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ur_energy_model.identification.reflected_inertia import split_inertia
from ur_energy_model.model.arm_shape import shape_of
from ur_energy_model.model.capsules import Capsule
from ur_energy_model.model.energy_model import EnergyModel, LinkTensors
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.papers.published import Paper, ResultRow
from ur_energy_model.papers.s0_models import plain_inertia
from ur_energy_model.typing import Array


class JointSize(NamedTuple):
    """Joints of one size of a UR5e, which have the same motor.

    Attributes:
        name: part of the keys of rows.
        joints: indices of the joints.
    """

    name: str
    joints: slice


SIZES = (
    JointSize("large_joints", slice(0, 3)),
    JointSize("wrists", slice(3, 6)),
)
_FIRST_AND_LAST = [0, -1]  # a large joint and a wrist


def cylinder_tensors(robot: RobotDescription) -> Array:
    """Inertia tensors of links that are unions of cylinders (Table III).

    The cylinders are the capsules that enclose the links, without their round ends. All
    cylinders of a link have one density.

    Args:
        robot: type of the arm, with n links that move.

    Returns:
        Tensors about the centres of mass of the links, in the axes of their DH frames
        [n, 3, 3], kg m^2.
    """
    tensors = np.zeros((robot.dof, 3, 3))
    capsules = shape_of(robot).capsules
    for link, mass in enumerate(robot.mass[~robot.fixed]):
        own = [capsule for capsule in capsules if capsule.link == link + 1]
        tensors[link] = _tensor_of_cylinders(own, float(mass))
    return tensors


def _tensor_of_cylinders(capsules: list[Capsule], mass: float) -> Array:
    """Inertia tensor [3, 3], kg m^2, of cylinders about their common centre of mass.

    A cylinder of mass m, radius r and length l has m r^2 / 2 about its axis and
    m (3 r^2 + l^2) / 12 across; the parallel axis theorem moves both to the common centre.

    Args:
        capsules: c capsules in which the cylinders lie.
        mass: mass of all cylinders together [kg].
    """
    ends = np.array([[capsule.start, capsule.end] for capsule in capsules])
    radius = np.array([capsule.radius for capsule in capsules])
    axis = ends[:, 1] - ends[:, 0]
    middle = ends.mean(axis=1)
    length = np.linalg.norm(axis, axis=1)
    # A sphere has no axis: it becomes a cylinder as long as wide, along z.
    is_sphere = length == 0.0
    axis[is_sphere] = [0.0, 0.0, 1.0]
    length[is_sphere] = 2 * radius[is_sphere]
    axis /= np.linalg.norm(axis, axis=1)[:, None]
    masses = radius**2 * length
    masses *= mass / masses.sum()
    offset = middle - masses @ middle / mass
    across = masses * (3 * radius**2 + length**2) / 12
    along_minus_across = masses * radius**2 / 2 - across
    squared_offset = np.einsum("ci,ci->c", offset, offset)
    tensor = (across + masses * squared_offset).sum() * np.eye(3)
    tensor += np.einsum("c,ci,cj->ij", along_minus_across, axis, axis)
    tensor -= np.einsum("c,ci,cj->ij", masses, offset, offset)
    return np.asarray(tensor)


def printed_model(model: EnergyModel, bag: Path) -> EnergyModel:
    """The arm of a model with the dynamics that the paper prints.

    Link tensors are those of cylinders (Table III), inertias of motors and reducers those
    of eq. 9 with these tensors (Table IV).

    Args:
        model: identified model of the arm.
        bag: recording of motion A.

    Raises:
        UrEnergyError: the recording cannot be read.
    """
    values = cylinder_tensors(model.description())
    tensors = LinkTensors(values, np.zeros_like(values), "cylinders")
    return with_plain_inertia(replace(model, link_tensors=tensors), bag)


def with_plain_inertia(model: EnergyModel, bag: Path) -> EnergyModel:
    """A model with the inertias of motors and reducers by eq. 9 and its own link tensors.

    A joint whose targets do not accelerate, and every joint of a recording without
    targets, keeps the inertia of the given model.

    Args:
        model: model of the arm.
        bag: recording that eq. 9 is solved for.

    Raises:
        UrEnergyError: the recording cannot be read.
    """
    robot = model.description()
    found = robot.gear_ratio**2 * plain_inertia(model, bag, robot)
    joints = []
    for joint, inertia in zip(model.joints, found, strict=True):
        if np.isfinite(inertia):
            joints.append(replace(joint, reflected_inertia=float(inertia)))
        else:
            joints.append(joint)
    return replace(model, joints=tuple(joints))


_ENTRIES = {
    "Ixx": (0, 0),
    "Iyy": (1, 1),
    "Izz": (2, 2),
    "Ixy": (0, 1),
    "Ixz": (0, 2),
    "Iyz": (1, 2),
}
"""Row and column of the entries of an inertia tensor."""


def tensor_rows(paper: Paper, robot: RobotDescription) -> list[ResultRow]:
    """Table III: each entry of the link tensors of cylinders, link by link.

    Args:
        paper: published values.
        robot: type of the arm.
    """
    tensors = cylinder_tensors(robot)
    rows = []
    for entry, (row, column) in _ENTRIES.items():
        rows.append(paper.row("link_tensor", tensors[:, row, column], entry=entry))
    return rows


def inertia_rows(
    paper: Paper, model: EnergyModel, robot: RobotDescription, bag: Path, simulated: bool
) -> list[ResultRow]:
    """Table IV and the gear ratio: inertias by eq. 9 as printed, and by us.

    Eq. 9 as printed takes the link tensors of cylinders (Table III); a second version
    takes the link tensors of the controller. A simulated controller computes
    target_moment with the inertias that eq. 9 then finds, which is no evidence for their
    size.

    Args:
        paper: published values.
        model: model of the arm.
        robot: type of the arm.
        bag: recording of motion A.
        simulated: whether the arm is simulated.

    Raises:
        UrEnergyError: the recording cannot be read.
    """
    with_cylinders = robot.inertia.copy()
    with_cylinders[~robot.fixed] = cylinder_tensors(robot)
    reflected = np.array([joint.reflected_inertia for joint in model.joints])
    printed = plain_inertia(model, bag, replace(robot, inertia=with_cylinders))
    by_controller = plain_inertia(model, bag, robot)
    ours, _ = split_inertia(reflected, robot)
    rows = _robot_rows(paper, robot)
    for kind, inertia in (
        ("eq. 9 as printed", printed),
        ("eq. 9, link tensors of the controller", by_controller),
        ("ours", ours),
    ):
        rows.append(paper.row("motor_and_reducer", inertia, kind=kind))
        rows += _motor_rows(paper, robot, inertia, kind, simulated)
    # NaN for CB3 arms, whose reducers are unpublished.
    motor = printed - robot.reducer_inertia
    motor_means = [float(motor[size.joints].mean()) for size in SIZES]
    rated_torque = [float(robot.max_torque[size.joints].mean()) for size in SIZES]
    motor_torque = [torque / paper["gear_ratio"] for torque in rated_torque]
    return [
        *rows,
        paper.row("catalogue_inertia", motor_means, evidence=not simulated),
        paper.row("catalogue_torque", motor_torque),
    ]


def _robot_rows(paper: Paper, robot: RobotDescription) -> list[ResultRow]:
    """Gear ratio, reducer inertia and rated torque of the robot file."""
    ratio = robot.gear_ratio
    all_alike = (ratio == ratio[0]).all()
    return [
        paper.row("gear_ratio", float(ratio[0]) if all_alike else ratio),
        paper.row("reducer_inertia", robot.reducer_inertia),
        paper.row("rated_torque", robot.max_torque[_FIRST_AND_LAST]),
    ]


def _motor_rows(
    paper: Paper, robot: RobotDescription, inertia: Array, kind: str, simulated: bool
) -> list[ResultRow]:
    """Mean inertia of the motors of each size (Table IV), motor side.

    Args:
        paper: published values.
        robot: type of the arm.
        inertia: inertia of motor and reducer, motor side [n], kg m^2.
        kind: how the inertia was found.
        simulated: whether the arm is simulated.
    """
    motor = inertia - robot.reducer_inertia
    rows = []
    for size in SIZES:
        known = motor[size.joints]
        known = known[np.isfinite(known)]  # the reducers of CB3 arms are unpublished
        mean = float(known.mean()) if len(known) else None
        key = f"motor_inertia_{size.name}"
        rows.append(paper.row(key, mean, kind=kind, evidence=not simulated))
    return rows
