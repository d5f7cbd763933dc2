# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Rigid-body torques in a few lines of numpy, written from the papers, not from the package.

Clochiatti et al., Robotica 2024, eq. 1 to 6, are the recursive Newton-Euler algorithm; so
are EcBot, eq. 3 to 8, and Machines 2024, 12(9), 595, eq. 2 to 11.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Arm:
    """An arm as a paper lists it, n joints, standard Denavit-Hartenberg convention.

    Attributes:
        d: offsets along z [n], m.
        a: offsets along x [n], m.
        alpha: twists about x [n], rad.
        mass: masses of the links [n], kg.
        centre: centres of mass in the frames of the links [n, 3], m.
        tensors: inertia tensors about these centres, axes of the frames [n, 3, 3], kg m^2.
        theta: offsets of the joint angles [n], rad.
    """

    d: np.ndarray
    a: np.ndarray
    alpha: np.ndarray
    mass: np.ndarray
    centre: np.ndarray
    tensors: np.ndarray
    theta: np.ndarray = field(default_factory=lambda: np.zeros(1))

    def frames(self, q: np.ndarray) -> np.ndarray:
        """Frames 0 to n in the base for one position [n + 1, 4, 4]."""
        frames = [np.eye(4)]
        for angle, d, a, alpha in zip(
            q + self.theta, self.d, self.a, self.alpha, strict=True
        ):
            c, s = np.cos(angle), np.sin(angle)
            ca, sa = np.cos(alpha), np.sin(alpha)
            step = np.array(
                [
                    [c, -s * ca, s * sa, a * c],
                    [s, c * ca, -c * sa, a * s],
                    [0.0, sa, ca, d],
                    [0.0, 0.0, 0.0, 1.0],
                ]
            )
            frames.append(frames[-1] @ step)
        return np.array(frames)

    def torque(
        self,
        q: np.ndarray,
        qd: np.ndarray,
        qdd: np.ndarray,
        base_acceleration: np.ndarray,
    ) -> np.ndarray:
        """Joint torques without friction for one state [n], N m.

        Args:
            q: positions [n], rad.
            qd: speeds [n], rad/s.
            qdd: accelerations [n], rad/s^2.
            base_acceleration: acceleration of the base [3], m/s^2; gravity is an
                acceleration of the base upwards.
        """
        frames = self.frames(q)
        spin = np.zeros(3)
        spin_rate = np.zeros(3)
        acceleration = np.array(base_acceleration, float)
        forces = []
        moments = []
        for i in range(len(q)):
            axis = frames[i, :3, 2]
            spin_rate = spin_rate + qdd[i] * axis + np.cross(spin, qd[i] * axis)
            spin = spin + qd[i] * axis
            arm = frames[i + 1, :3, 3] - frames[i, :3, 3]
            acceleration = (
                acceleration
                + np.cross(spin_rate, arm)
                + np.cross(spin, np.cross(spin, arm))
            )
            turn = frames[i + 1, :3, :3]
            centre = turn @ self.centre[i]
            of_centre = (
                acceleration
                + np.cross(spin_rate, centre)
                + np.cross(spin, np.cross(spin, centre))
            )
            tensor = turn @ self.tensors[i] @ turn.T
            force = self.mass[i] * of_centre
            forces.append(force)
            moments.append(
                tensor @ spin_rate
                + np.cross(spin, tensor @ spin)
                + np.cross(arm + centre, force)
            )
        torque = np.zeros(len(q))
        force = np.zeros(3)
        moment = np.zeros(3)
        for i in reversed(range(len(q))):
            arm = frames[i + 1, :3, 3] - frames[i, :3, 3]
            moment = moment + moments[i] + np.cross(arm, force)
            force = force + forces[i]
            torque[i] = moment @ frames[i, :3, 2]
        return torque

    def torques(
        self,
        q: np.ndarray,
        qd: np.ndarray,
        qdd: np.ndarray,
        base_acceleration: np.ndarray,
    ) -> np.ndarray:
        """Joint torques of several states [samples, n], N m."""
        return np.array(
            [
                self.torque(*state, base_acceleration)
                for state in zip(q, qd, qdd, strict=True)
            ]
        )
