"""What recordings with a known payload told of links and drives, for payload identification."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ur_energy_model.typing import Array

LINK_PARAMETERS = 4
"""Parameters of a link that weight shows: mass [kg] and first moments [kg m]."""


@dataclass(frozen=True)
class PayloadCalibration:
    """How links and drives of an arm differ from its robot file and model: a normal distribution.

    The torque of joint j that links and payload account for is, as currents times the model's
    torque constant show it,

        link_gain_j * (links as published + deviations + payload_gain_j * payload).

    A link gain of one says that the torque constant and the published links agree; a payload gain
    of one that the payload and the links do.

    Attributes:
        links: deviation of the links' masses and first moments [n, 4], kg and kg m, link frames;
            the last one includes everything on the flange that counts as empty.
        link_gain: [n].
        payload_gain: [n].
        covariance: of all of them in that order, links row by row [6 n, 6 n].
    """

    links: Array
    link_gain: Array
    payload_gain: Array
    covariance: Array

    @classmethod
    def from_vector(cls, values: Array, covariance: Array) -> PayloadCalibration:
        """From all values in one vector [6 n] and their covariance [6 n, 6 n]."""
        dof = len(values) // (LINK_PARAMETERS + 2)
        links, gains = np.split(values, [LINK_PARAMETERS * dof])
        return cls(links.reshape(dof, LINK_PARAMETERS), gains[:dof], gains[dof:], covariance)

    @property
    def vector(self) -> Array:
        """All values [6 n], links first."""
        return np.concatenate([self.links.ravel(), self.link_gain, self.payload_gain])

    @property
    def dof(self) -> int:
        """Number of joints n."""
        return len(self.link_gain)

    @property
    def torque_gain(self) -> Array:
        """The model's torque constants over those that the payload shows [n]."""
        return np.asarray(self.link_gain * self.payload_gain)

    @property
    def torque_gain_std(self) -> Array:
        """Standard deviations of `torque_gain` [n]."""
        n, start = self.dof, LINK_PARAMETERS * self.dof
        slopes = np.zeros((n, len(self.covariance)))
        joints = np.arange(n)
        slopes[joints, start + joints] = self.payload_gain
        slopes[joints, start + n + joints] = self.link_gain
        return np.asarray(np.sqrt(np.diag(slopes @ self.covariance @ slopes.T)))

    def with_calibrated_drives(self) -> PayloadCalibration:
        """The same beside torque constants that were divided by `torque_gain`."""
        scale = np.ones(len(self.vector))
        gains = slice(LINK_PARAMETERS * self.dof, (LINK_PARAMETERS + 1) * self.dof)
        scale[gains] = 1.0 / self.torque_gain
        return PayloadCalibration.from_vector(
            scale * self.vector, scale[:, None] * self.covariance * scale
        )
