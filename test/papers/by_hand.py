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
        """Frames 0 to n in the base [n + 1, samples, 4, 4], for positions [samples, n]."""
        frames = [np.tile(np.eye(4), (len(q), 1, 1))]
        for angle, d, a, alpha in zip(
            (q + self.theta).T, self.d, self.a, self.alpha, strict=True
        ):
            c, s = np.cos(angle), np.sin(angle)
            ca, sa = np.cos(alpha), np.sin(alpha)
            zero, one = np.zeros(len(q)), np.ones(len(q))
            rows = [
                [c, -s * ca, s * sa, a * c],
                [s, c * ca, -c * sa, a * s],
                [zero, sa * one, ca * one, d * one],
                [zero, zero, zero, one],
            ]
            step = np.moveaxis(np.array(rows), 2, 0)
            frames.append(frames[-1] @ step)
        return np.array(frames)

    def torques(
        self,
        q: np.ndarray,
        qd: np.ndarray,
        qdd: np.ndarray,
        base_acceleration: np.ndarray,
    ) -> np.ndarray:
        """Joint torques without friction [samples, n], N m.

        Args:
            q: positions [samples, n], rad.
            qd: speeds [samples, n], rad/s.
            qdd: accelerations [samples, n], rad/s^2.
            base_acceleration: acceleration of the base [3], m/s^2; gravity is an
                acceleration of the base upwards.
        """
        frames = self.frames(q)
        samples, n = q.shape
        spin = np.zeros((samples, 3))
        spin_rate = np.zeros((samples, 3))
        acceleration = np.tile(np.asarray(base_acceleration, float), (samples, 1))
        forces = []
        moments = []
        arms = frames[1:, :, :3, 3] - frames[:-1, :, :3, 3]
        for i in range(n):
            axis = frames[i, :, :3, 2]
            turning = qd[:, [i]] * axis
            spin_rate = spin_rate + qdd[:, [i]] * axis + np.cross(spin, turning)
            spin = spin + turning
            acceleration = moved(acceleration, arms[i], spin, spin_rate)
            turn = frames[i + 1, :, :3, :3]
            centre = turn @ self.centre[i]
            force = self.mass[i] * moved(acceleration, centre, spin, spin_rate)
            tensor = turn @ self.tensors[i] @ np.swapaxes(turn, 1, 2)
            forces.append(force)
            momentum = (tensor @ spin[:, :, None])[:, :, 0]
            moments.append(
                (tensor @ spin_rate[:, :, None])[:, :, 0]
                + np.cross(spin, momentum)
                + np.cross(arms[i] + centre, force)
            )
        torque = np.zeros((samples, n))
        force = np.zeros((samples, 3))
        moment = np.zeros((samples, 3))
        for i in reversed(range(n)):
            moment = moment + moments[i] + np.cross(arms[i], force)
            force = force + forces[i]
            torque[:, i] = (moment * frames[i, :, :3, 2]).sum(axis=1)
        return torque


def moved(
    acceleration: np.ndarray, by: np.ndarray, spin: np.ndarray, spin_rate: np.ndarray
) -> np.ndarray:
    """Acceleration of a point of a body that is a vector away [samples, 3], m/s^2."""
    return acceleration + np.cross(spin_rate, by) + np.cross(spin, np.cross(spin, by))
