"""No-load friction of a joint as its factory calibration shows it, for the simulated arm only.

Between the calibration's speeds friction grows less than in proportion to speed, so that neither
"Coulomb and viscous" nor any other law of the identification fits it exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class FrictionCurve:
    """Friction torque of n joints over speed, joint side.

    |torque| = coulomb (1 + (breakaway - 1) exp(-(qd/stribeck_speed)^2)) + slope |qd|^power + ...

    Attributes:
        coulomb: forwards and backwards [2, n], N m.
        slope: forwards and backwards [2, n], N m (s/rad)^power.
        power: forwards and backwards [2, n].
        viscous: taken off (negative) or added [n], N m s/rad.
        breakaway: static over Coulomb friction [n].
        stribeck_speed: [n], rad/s.
    """

    coulomb: Array
    slope: Array
    power: Array
    viscous: Array
    breakaway: Array
    stribeck_speed: Array

    @classmethod
    def of_directions(
        cls, forward: Array, backward: Array, *, scale: Array, breakaway: float,
        stribeck_speed: float,
    ) -> FrictionCurve:  # fmt: skip
        """From the fits of both directions (`fit_calibration`, [n, 3] each), times `scale` [n]."""
        both = np.stack([forward, backward])
        n = both.shape[1]
        return cls(
            coulomb=both[:, :, 0] * scale,
            slope=both[:, :, 1] * scale,
            power=both[:, :, 2].copy(),
            viscous=np.zeros(n),
            breakaway=np.full(n, breakaway),
            stribeck_speed=np.full(n, stribeck_speed),
        )

    def less(self, coulomb: Array, viscous: Array) -> FrictionCurve:
        """The curve without a part [n] that another body of the joint has."""
        rest = np.maximum(self.coulomb - coulomb, 0.1 * self.coulomb)
        return replace(self, coulomb=rest, viscous=self.viscous - viscous)

    def torque(self, qd: Array, factor: Array | float = 1.0) -> Array:
        """Friction torque [..., n], N m joint side, with the sign of the speed [..., n].

        Args:
            qd: joint speed, rad/s.
            factor: of the speed-dependent part, by temperature.
        """
        way = (qd < 0).astype(int)
        joint = np.arange(qd.shape[-1])
        coulomb, slope, power = (
            values[way, joint] for values in (self.coulomb, self.slope, self.power)
        )
        speed = np.abs(qd)
        dip = 1.0 + (self.breakaway - 1.0) * np.exp(-((speed / self.stribeck_speed) ** 2))
        moving = slope * speed**power + self.viscous * speed
        return np.asarray(np.sign(qd) * (coulomb * dip + factor * moving))

    def straight_line(self, max_speed: Array) -> tuple[Array, Array]:
        """Coulomb [n] and viscous [n] friction that fit best from 5 to 100 % of `max_speed`."""
        share = np.linspace(0.05, 1.0, 40)
        speed = share[:, None] * max_speed
        torque = 0.5 * (self.torque(speed) - self.torque(-speed))
        columns = np.stack([np.ones_like(share), share], axis=1)
        fit = np.linalg.lstsq(columns, torque, rcond=None)[0]
        return np.asarray(fit[0]), np.asarray(fit[1] / max_speed)


def fit_calibration(speed: Array, torque: Array) -> Array:
    """Coulomb, slope and power [n, 3] of |torque| = coulomb + slope speed^power.

    Args:
        speed: of the calibration [m], rad/s.
        torque: friction measured there [n, m], N m.

    Returns:
        Least squares over a grid of powers from 0.4 to 1.
    """
    best = np.empty((len(torque), 3))
    error = np.full(len(torque), np.inf)
    for power in np.linspace(0.4, 1.0, 121):
        columns = np.stack([np.ones_like(speed), speed**power], axis=1)
        fit = np.linalg.lstsq(columns, torque.T, rcond=None)[0]
        residual = ((columns @ fit - torque.T) ** 2).sum(axis=0)
        better = residual < error
        error[better] = residual[better]
        best[better] = np.column_stack([fit.T, np.full(len(torque), power)])[better]
    return best
