"""Linear model of one drive: rotor and link, connected by the elastic gear.

Battistini, Samori, Subini, "Modeling and simulation of an UR5 Robot Manipulator", PD tuning: small
speeds and twists, no static friction, the links a constant inertia. Four states: position and speed
of rotor and link. Everything on the joint side, rotor angle and torque over and times the gear
ratio; `published_form` gives the motor-side transfer function of the slides.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ur_energy_model.typing import Array


@dataclass(frozen=True)
class LinearDrive:
    """Constants of one drive, joint side.

    Attributes:
        rotor_inertia: motor and wave generator, kg m^2.
        rotor_damping: N m s/rad.
        link_inertia: flex spline and links, kg m^2.
        link_damping: N m s/rad.
        stiffness: of the gear, N m/rad.
    """

    rotor_inertia: float
    rotor_damping: float
    link_inertia: float
    link_damping: float
    stiffness: float

    @property
    def state_space(self) -> tuple[Array, Array]:
        """A [4, 4] and b [4] of x' = A x + b torque, x = rotor angle, speed, link angle, speed."""
        k, rotor, link = self.stiffness, self.rotor_inertia, self.link_inertia
        matrix = np.array(
            [
                [0.0, 1.0, 0.0, 0.0],
                [-k / rotor, -self.rotor_damping / rotor, k / rotor, 0.0],
                [0.0, 0.0, 0.0, 1.0],
                [k / link, 0.0, -k / link, -self.link_damping / link],
            ]
        )
        return matrix, np.array([0.0, 1.0 / rotor, 0.0, 0.0])

    @property
    def denominator(self) -> Array:
        """Coefficients of s^4 ... s^0 [5], that of s^4 is one."""
        return np.asarray(np.poly(self.state_space[0]).real)

    @property
    def to_link(self) -> Array:
        """Numerator from torque to link angle [1], over `denominator`."""
        return np.array([self.stiffness / (self.rotor_inertia * self.link_inertia)])

    @property
    def to_rotor(self) -> Array:
        """Numerator from torque to rotor angle [3], over `denominator`."""
        link = np.array([self.link_inertia, self.link_damping, self.stiffness])
        return link / (self.rotor_inertia * self.link_inertia)

    def response(self, frequency: Array, numerator: Array) -> Array:
        """Complex frequency response at angular frequencies [m], rad/s."""
        s = 1j * np.asarray(frequency, dtype=float)
        return np.asarray(np.polyval(numerator, s) / np.polyval(self.denominator, s))

    def published_form(self, gear_ratio: float) -> tuple[float, Array]:
        """Numerator and denominator [5] from motor torque to joint angle, as in the slides."""
        return float(self.to_link[0] * gear_ratio), self.denominator


def pd_gains(drive: LinearDrive, crossover: float, phase_margin: float) -> tuple[float, float]:
    """Proportional and derivative gain of a position loop around the rotor.

    The open loop has magnitude one and the phase margin at the crossover frequency:
    (kp + i w kd) G(i w) = exp(i (phase_margin - pi)). The derivative gain is not negative: where
    viscous friction gives a larger margin, that one holds.

    Args:
        drive: the plant.
        crossover: angular frequency w, rad/s.
        phase_margin: rad.

    Returns:
        kp [N m/rad] and kd [N m s/rad], joint side.
    """
    plant = drive.response(np.array([crossover]), drive.to_rotor)[0]
    gain = np.exp(1j * (phase_margin - np.pi)) / plant
    if gain.imag < 0.0:  # friction alone gives a larger margin
        return float(1.0 / np.abs(plant)), 0.0
    return float(gain.real), float(gain.imag / crossover)
