"""No-load friction of a simulated joint, fitted to a factory calibration.

Friction grows less than proportionally to speed because grease is shear-thinning. The curve follows
the calibration; it deliberately has none of the forms that the identification fits.
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
    def from_directions(
        cls,
        forward: Array,
        backward: Array,
        *,
        scale: Array,
        breakaway: float,
        stribeck_speed: float,
    ) -> NoLoadFriction:
        """Fits of both directions (`fit_calibration`, [n, 4] each), multiplied by `scale` [n]."""
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

    def without(self, coulomb: Array, viscous: Array) -> NoLoadFriction:
        """The curve minus Coulomb and viscous friction [n] that is modelled elsewhere."""
        remaining = np.maximum(self.coulomb - coulomb, 0.1 * self.coulomb)
        return replace(self, coulomb=remaining, viscous=self.viscous - viscous)

    def scaled(self, scale: Array) -> NoLoadFriction:
        """The curve with the torque of each joint multiplied by a factor [n]."""
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
            factor: on the speed-dependent part, from the temperature.
        """
        row = (qd < 0).astype(int)
        joint = np.arange(qd.shape[-1])
        coulomb, rise, pace, viscous = (
            values[row, joint] for values in (self.coulomb, self.rise, self.pace, self.viscous)
        )
        speed = np.abs(qd)
        stribeck = 1.0 + (self.breakaway - 1.0) * np.exp(-((speed / self.stribeck_speed) ** 2))
        moving = rise * (1.0 - np.exp(-speed / pace)) + viscous * speed
        return np.asarray(np.sign(qd) * (coulomb * stribeck + factor * moving))

    def straight_line(self, max_speed: Array, factor: Array | float = 1.0) -> tuple[Array, Array]:
        """Best fitting Coulomb [n] and viscous [n] friction from 5 to 100 % of `max_speed`.

        Args:
            max_speed: [n], rad/s.
            factor: on the speed-dependent part, from the temperature.
        """
        share = np.linspace(0.05, 1.0, 40)
        speed = share[:, None] * max_speed
        torque = 0.5 * (self.torque(speed, factor) - self.torque(-speed, factor))
        columns = np.stack([np.ones_like(share), share], axis=1)
        fit = np.linalg.lstsq(columns, torque, rcond=None)[0]
        return np.asarray(fit[0]), np.asarray(fit[1] / max_speed)


def fit_calibration(speed: Array, torque: Array) -> Array:
    """Coulomb, rise, pace and viscous [n, 4] of n friction curves.

    |torque| = coulomb + rise (1 - exp(-speed / pace)) + viscous speed, all non-negative, with the
    smallest relative error over a grid of paces from 0.05 to 3 rad/s.

    Args:
        speed: of the calibration [m], rad/s.
        torque: measured friction [n, m], N m.
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
