"""PayloadCalibration: corrections of links and drives from recordings with a known payload."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ur_energy_model.typing import Array

LINK_PARAMETERS = 4
"""Inertial parameters of a link that its weight depends on: mass [kg], first moments [kg m]."""


@dataclass(frozen=True)
class CalibrationLayout:
    """Positions of a calibration's values in one vector, for n joints.

    Attributes:
        dof: n.
    """

    dof: int

    @property
    def links(self) -> slice:
        """Deviations of the links, link by link [4 n]."""
        return slice(0, LINK_PARAMETERS * self.dof)

    @property
    def link_gain(self) -> slice:
        """Link gains [n]."""
        return slice(self.links.stop, self.links.stop + self.dof)

    @property
    def payload_gain(self) -> slice:
        """Payload gains [n]."""
        return slice(self.link_gain.stop, self.link_gain.stop + self.dof)

    @property
    def size(self) -> int:
        """Length of the vector."""
        return (LINK_PARAMETERS + 2) * self.dof


@dataclass(frozen=True)
class PayloadCalibration:
    """Deviations of an arm's links and drives from robot file and model: a normal distribution.

    The torque that links and payload cause in joint j, measured as current times the model's
    torque constant, is

        link_gain_j * (links as published + deviations + payload_gain_j * payload).

    With a link gain of one, torque constant and published links agree; with a payload gain of one,
    payload and links do.

    Attributes:
        links: deviation of the links' masses and first moments [n, 4], kg and kg m, link frames;
            the last one includes everything on the flange of the unloaded arm.
        link_gain: [n].
        payload_gain: [n].
        covariance: of `vector` [6 n, 6 n].
    """

    links: Array
    link_gain: Array
    payload_gain: Array
    covariance: Array

    @classmethod
    def from_vector(cls, values: Array, covariance: Array) -> PayloadCalibration:
        """From all values in one vector [6 n] and their covariance [6 n, 6 n]."""
        dof = len(values) // (LINK_PARAMETERS + 2)
        layout = CalibrationLayout(dof)
        links = values[layout.links].reshape(dof, LINK_PARAMETERS)
        return cls(links, values[layout.link_gain], values[layout.payload_gain], covariance)

    @property
    def vector(self) -> Array:
        """All values [6 n]: links row by row, link gains, payload gains."""
        return np.concatenate([self.links.ravel(), self.link_gain, self.payload_gain])

    @property
    def dof(self) -> int:
        """Number of joints n."""
        return len(self.link_gain)

    @property
    def torque_gain(self) -> Array:
        """The model's torque constants over those measured with the payload [n]."""
        return np.asarray(self.link_gain * self.payload_gain)

    @property
    def torque_gain_std(self) -> Array:
        """Standard deviations of `torque_gain` [n]."""
        layout = CalibrationLayout(self.dof)
        slopes = np.zeros((self.dof, layout.size))
        slopes[:, layout.link_gain] = np.diag(self.payload_gain)
        slopes[:, layout.payload_gain] = np.diag(self.link_gain)
        return np.asarray(np.sqrt(np.diag(slopes @ self.covariance @ slopes.T)))

    def with_calibrated_drives(self) -> PayloadCalibration:
        """The calibration for a model whose torque constants were divided by `torque_gain`."""
        scale = np.ones(len(self.vector))
        scale[CalibrationLayout(self.dof).link_gain] = 1.0 / self.torque_gain
        return PayloadCalibration.from_vector(
            scale * self.vector, scale[:, None] * self.covariance * scale
        )
