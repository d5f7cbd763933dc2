# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Rigid-body dynamics of an arm over whole arrays, with pinocchio.

Joint-side torques of the links and the payload only; other modules add motor and reducer
inertia, friction and drives. Each array function makes one C++ call per sample into
preallocated memory (about 2 us for six joints, 4 us for a regressor).

Inertial parameters of a body (Raviola et al. 2021, sec. 2): mass, first moments and the
tensor about the frame origin, in pinocchio's order (m, mcx, mcy, mcz, Ixx, Ixy, Iyy, Ixz,
Iyz, Izz).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pinocchio as pin

from ur_energy_model.model.robots import RobotDescription, link_transforms
from ur_energy_model.model.setup import Setup, entries_of, point_tensor, tensor_of
from ur_energy_model.typing import Array


class ArmDynamics:
    """Inverse dynamics, regressors and kinematics of one arm in one setup.

    Args:
        robot: the arm, n joints.
        setup: mounting and payload; upright and unloaded by default.

    Attributes:
        robot: the arm as given.
        setup: mounting and payload as given.
        model: pinocchio model with the payload.
        bare: pinocchio model without the payload.
        data: memory for computations with `model`.
    """

    def __init__(self, robot: RobotDescription, setup: Setup | None = None) -> None:
        self.robot = robot
        self.setup = Setup() if setup is None else setup
        self.model, self._link_frames = _build(robot)
        self.bare = self.model.copy()
        payload = self.setup.payload
        if payload.mass or payload.inertia.any():
            self.model.appendBodyToJoint(
                self.dof,
                pin.Inertia(payload.mass, payload.center_of_mass, payload.inertia),
                self._link_frames[-1],
            )
        self.model.gravity = pin.Motion(
            np.asarray(self.setup.gravity, float), np.zeros(3)
        )
        self.data = self.model.createData()

    @property
    def dof(self) -> int:
        """Number of moving joints n."""
        return self.robot.dof

    def inverse_dynamics(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Joint torques [samples, n], N m, of links and payload (recursive Newton-Euler).

        Args:
            q: joint positions [samples, n], rad.
            qd: joint velocities [samples, n], rad/s.
            qdd: joint accelerations [samples, n], rad/s^2.
        """
        out = np.empty((len(q), self.dof))
        data = self.model.createData()
        for i, motion in enumerate(zip(q, qd, qdd, strict=True)):
            out[i] = pin.rnea(self.model, data, *motion)
        return out

    def gravity_torque(self, q: Array) -> Array:
        """Joint torques at rest [samples, n], N m."""
        zero = np.zeros_like(q)
        return self.inverse_dynamics(q, zero, zero)

    def regressor(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Joint torque regressor Y [samples, n, 10 n]: torque = Y @ parameters.

        Columns are the inertial parameters of the n moving bodies, each about the origin
        and in the axes of its link frame (DH frame of the last link rigidly moved by
        the joint). The last body's parameters include the payload.
        """
        out = np.empty((len(q), self.dof, 10 * self.dof))
        model = self.model
        data = self.data
        for i, motion in enumerate(zip(q, qd, qdd, strict=True)):
            out[i] = pin.computeJointTorqueRegressor(model, data, *motion)
        blocks = out.reshape(len(q), self.dof, self.dof, 10)
        for body, transform in enumerate(self._to_joint_axes):
            blocks[:, :, body] = blocks[:, :, body] @ transform
        return out

    def parameters(self) -> Array:
        """Nominal inertial parameters [10 n] for `regressor` (payload included)."""
        parameters = []
        for body, transform in enumerate(self._to_joint_axes):
            in_joint_axes = self.model.inertias[body + 1].toDynamicParameters()
            parameters.append(np.linalg.solve(transform, in_joint_axes))
        return np.concatenate(parameters)

    def in_joint_frames(self, parameters: Array) -> Array:
        """Inertial parameters of the bodies in the frames of their joints [n, 10].

        Args:
            parameters: parameters in the link frames, as of `regressor` [10 n].
        """
        bodies = zip(self._to_joint_axes, parameters.reshape(self.dof, 10), strict=True)
        return np.array([transform @ body for transform, body in bodies])

    def payload_regressor(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Torque regressor of a body on the flange [samples, n, 10], flange axes and origin."""
        out = np.empty((len(q), self.dof, 10))
        for i, motion in enumerate(zip(q, qd, qdd, strict=True)):
            whole = pin.computeJointTorqueRegressor(self.model, self.data, *motion)
            out[i] = whole[:, -10:]
        return out @ self._to_joint_axes[-1]

    @cached_property
    def _to_joint_axes(self) -> tuple[Array, ...]:
        """Per moving body, the map of its parameters from link to joint axes [10, 10]."""
        return tuple(_parameter_transform(frame) for frame in self._link_frames)

    def gravity_regressor(self, q: Array) -> Array:
        """G [samples, n, 3] with G @ gravity = joint torques at rest, payload included."""
        return self._gravity_regressor(self.frames(q)[1])

    def _gravity_regressor(self, joints: Array) -> Array:
        """`gravity_regressor` at poses of the joints [samples, n, 4, 4]."""
        bodies = list(self.model.inertias)[1:]
        levers = np.array([[*body.lever, 1.0] for body in bodies])
        masses = np.array([body.mass for body in bodies])
        centers = (joints @ levers[:, :, None])[:, :, :3, 0]
        moments = masses[:, None] * centers
        # First moments and masses of all bodies from each joint outwards.
        moments_outwards = np.cumsum(moments[:, ::-1], axis=1)[:, ::-1]
        masses_outwards = np.cumsum(masses[::-1])[::-1, None]
        axes = joints[:, :, :3, 2]
        origins = joints[:, :, :3, 3]
        return -np.cross(axes, moments_outwards - masses_outwards * origins)

    def flange_weight_regressor(self, q: Array) -> Array:
        """Joint torques at rest [samples, n, 3, 4] of a body on the flange in unit gravity.

        Axes: direction of gravity along each base axis; mass and first moments of the
        body about the origin and in the axes of the flange.
        """
        return self._flange_weight_regressor(*self.frames(q))

    def weight_regressors(self, q: Array) -> tuple[Array, Array]:
        """`gravity_regressor` and `flange_weight_regressor`, whose poses are computed once.

        Args:
            q: joint positions [samples, n], rad.
        """
        links, joints = self.frames(q)
        of_arm = self._gravity_regressor(joints)
        return of_arm, self._flange_weight_regressor(links, joints)

    def _flange_weight_regressor(self, links: Array, joints: Array) -> Array:
        """`flange_weight_regressor` at poses of links and joints, see `frames`."""
        flange = links[:, -1]
        arms = np.empty((*joints.shape[:2], 4, 3))
        arms[:, :, 0] = flange[:, None, :3, 3] - joints[:, :, :3, 3]
        arms[:, :, 1:] = np.swapaxes(flange[:, None, :3, :3], -1, -2)
        return -np.swapaxes(np.cross(joints[:, :, None, :3, 2], arms), -1, -2)

    def frames(self, q: Array) -> tuple[Array, Array]:
        """Poses of links and joints in the base frame, translations in m, at q [samples, n], rad.

        Returns:
            Poses of the base and of the links' DH frames [samples, n + 1, 4, 4], and poses
            of the joints [samples, n, 4, 4]: joint k turns about the z axis of its frame.
        """
        links = np.empty((len(q), self.dof + 1, 4, 4))
        joints = np.empty((len(q), self.dof, 4, 4))
        links[:, 0] = np.eye(4)
        cos = np.cos(q)
        sin = np.sin(q)
        turn = np.zeros((len(q), self.dof, 4, 4))
        turn[:, :, 0, 0] = cos
        turn[:, :, 0, 1] = -sin
        turn[:, :, 1, 0] = sin
        turn[:, :, 1, 1] = cos
        turn[:, :, 2, 2] = 1.0
        turn[:, :, 3, 3] = 1.0
        before = pin.SE3.Identity()
        for k, frame in enumerate(self._link_frames):
            fixed = (before.inverse() * self.model.jointPlacements[k + 1]).homogeneous
            joints[:, k] = links[:, k] @ fixed @ turn[:, k]
            links[:, k + 1] = joints[:, k] @ frame.homogeneous
            before = frame
        return links, joints

    def flange_pose(self, q: Array) -> Array:
        """Pose of the flange in the base frame [samples, 4, 4] (translation in m)."""
        out = np.empty((len(q), 4, 4))
        for i in range(len(q)):
            pin.forwardKinematics(self.model, self.data, q[i])
            out[i] = (self.data.oMi[self.dof] * self._link_frames[-1]).homogeneous
        return out

    def joint_positions(self, q: Array) -> Array:
        """Origins of the joints' axes in the base frame [n, 3], m, at positions q [n], rad."""
        pin.forwardKinematics(self.model, self.data, q)
        return np.array(
            [self.data.oMi[joint + 1].translation for joint in range(self.dof)]
        )

    def flange_speed(self, q: Array, qd: Array) -> Array:
        """Linear velocity of the flange in base axes [samples, 3], m/s."""
        out = np.empty((len(q), 3))
        flange = self._link_frames[-1]
        for i in range(len(q)):
            pin.forwardKinematics(self.model, self.data, q[i], qd[i])
            pose = self.data.oMi[self.dof] * flange
            out[i] = pose.rotation @ flange.actInv(self.data.v[self.dof]).linear
        return out


def _parameter_transform(frame: pin.SE3) -> Array:
    """T [10, 10] with parameters in the parent axes = T @ parameters in the axes of `frame`.

    A change of frame maps rigid-body parameters linearly; column k is the map of unit
    parameter k.
    """
    rotation = frame.rotation
    offset = frame.translation
    columns = []
    for mass, *rest in np.eye(10):
        first = rotation @ rest[:3]
        # Parallel axes about the new origin, linear in (m, mc, I) with the old origin at
        # offset.
        cross = np.outer(offset, first) + np.outer(first, offset)
        tensor = rotation @ tensor_of(np.array(rest[3:])) @ rotation.T
        tensor += 2 * (offset @ first) * np.eye(3) - cross + point_tensor(mass, offset)
        columns.append([mass, *(first + mass * offset), *entries_of(tensor)])
    transform: Array = np.array(columns).T
    return transform


def _product(transforms: Sequence[Array]) -> pin.SE3:
    """Product of consecutive transforms [4, 4]."""
    product = pin.SE3.Identity()
    for transform in transforms:
        product = product * pin.SE3(transform)
    return product


def _build(robot: RobotDescription) -> tuple[pin.Model, list[pin.SE3]]:
    """Pinocchio model and, per moving body, the pose of its link frame in its joint frame."""
    model = pin.Model()
    model.name = robot.name
    parent = 0
    placement = pin.SE3.Identity()
    frames: list[pin.SE3] = []
    for link in range(len(robot.d)):
        in_front, behind = link_transforms(robot, link)
        after = _product(behind)
        placement = placement * _product(in_front)
        inertia = pin.Inertia(
            robot.mass[link], robot.center_of_mass[link], robot.inertia[link]
        )
        if robot.fixed[link]:
            placement = placement * after
            if parent:
                model.appendBodyToJoint(parent, inertia, placement)
                frames[-1] = placement
            continue
        name = robot.joint_names[len(frames)]
        parent = model.addJoint(parent, pin.JointModelRZ(), placement, name)
        model.appendBodyToJoint(parent, inertia, after)
        frames.append(after)
        placement = after
    return model, frames
