"""No-load friction of a joint as its factory calibration shows it, for the simulated arm only.

Friction grows less than in proportion to speed, as grease does that thins under shear. The curve is
made to meet the calibration, not to have the form of any law that the identification fits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import nnls

from ur_energy_model.typing import Array


@dataclass(frozen=True)
class NoLoadFriction:
    """Friction torque of n joints over speed, joint side.

    |torque| = coulomb (1 + (breakaway - 1) exp(-(qd / stribeck_speed)^2))
        + rise (1 - exp(-|qd| / pace)) + viscous |qd|

    Attributes:
        coulomb: forwards and backwards [2, n], N m.
        rise: forwards and backwards [2, n], N m.
        pace: forwards and backwards [2, n], rad/s.
        viscous: forwards and backwards [2, n], N m s/rad.
        breakaway: static over Coulomb friction [n].
        stribeck_speed: [n], rad/s.
    """

    coulomb: Array
    rise: Array
    pace: Array
    viscous: Array
    breakaway: Array
    stribeck_speed: Array

    @classmethod
    def of_directions(
        cls,
        forward: Array,
        backward: Array,
        *,
        scale: Array,
        breakaway: float,
        stribeck_speed: float,
    ) -> NoLoadFriction:
        """From the fits of both directions (`fit_calibration`, [n, 4] each), times `scale` [n]."""
        both = np.stack([forward, backward])
        n = both.shape[1]
        return cls(
            coulomb=both[:, :, 0] * scale,
            rise=both[:, :, 1] * scale,
            pace=both[:, :, 2].copy(),
            viscous=both[:, :, 3] * scale,
            breakaway=np.full(n, breakaway),
            stribeck_speed=np.full(n, stribeck_speed),
        )

    def less(self, coulomb: Array, viscous: Array) -> NoLoadFriction:
        """The curve without a part [n] that another body of the joint has."""
        rest = np.maximum(self.coulomb - coulomb, 0.1 * self.coulomb)
        return replace(self, coulomb=rest, viscous=self.viscous - viscous)

    def times(self, scale: Array) -> NoLoadFriction:
        """The curve with every torque multiplied by a factor [n] of its joint."""
        return replace(
            self,
            coulomb=self.coulomb * scale,
            rise=self.rise * scale,
            viscous=self.viscous * scale,
        )

    def torque(self, qd: Array, factor: Array | float = 1.0) -> Array:
        """Friction torque [..., n], N m joint side, with the sign of the speed [..., n].

        Args:
            qd: joint speed, rad/s.
            factor: of the speed-dependent part, by temperature.
        """
        way = (qd < 0).astype(int)
        joint = np.arange(qd.shape[-1])
        coulomb, rise, pace, viscous = (
            values[way, joint] for values in (self.coulomb, self.rise, self.pace, self.viscous)
        )
        speed = np.abs(qd)
        dip = 1.0 + (self.breakaway - 1.0) * np.exp(-((speed / self.stribeck_speed) ** 2))
        moving = rise * (1.0 - np.exp(-speed / pace)) + viscous * speed
        return np.asarray(np.sign(qd) * (coulomb * dip + factor * moving))

    def straight_line(self, max_speed: Array, factor: Array | float = 1.0) -> tuple[Array, Array]:
        """Coulomb [n] and viscous [n] friction that fit best from 5 to 100 % of `max_speed`.

        Args:
            max_speed: [n], rad/s.
            factor: of the speed-dependent part, by temperature.
        """
        share = np.linspace(0.05, 1.0, 40)
        speed = share[:, None] * max_speed
        torque = 0.5 * (self.torque(speed, factor) - self.torque(-speed, factor))
        columns = np.stack([np.ones_like(share), share], axis=1)
        fit = np.linalg.lstsq(columns, torque, rcond=None)[0]
        return np.asarray(fit[0]), np.asarray(fit[1] / max_speed)


def fit_calibration(speed: Array, torque: Array) -> Array:
    """Coulomb, rise, pace and viscous [n, 4] of a joint's friction over speed.

    |torque| = coulomb + rise (1 - exp(-speed / pace)) + viscous speed, none of them negative, with
    the least relative error over a grid of paces from 0.05 to 3 rad/s.

    Args:
        speed: of the calibration [m], rad/s.
        torque: friction measured there [n, m], N m.
    """
    best = np.empty((len(torque), 4))
    error = np.full(len(torque), np.inf)
    for pace in np.geomspace(0.05, 3.0, 100):
        columns = np.stack([np.ones_like(speed), 1.0 - np.exp(-speed / pace), speed], axis=1)
        for joint, values in enumerate(torque):
            found, residual = nnls(columns / values[:, None], np.ones_like(values))
            if residual < error[joint]:
                error[joint] = residual
                best[joint] = found[0], found[1], pace, found[2]
    return best
