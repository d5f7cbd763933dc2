"""EcBot's power model: 4n + 1 free coefficients of currents or torques.

Heredia, Schlette, Kjaergaard, EcBot, eq. 16 (currents), 17 (torques) and 20-21.
"""

from __future__ import annotations

import numpy as np

from ur_energy_model.identification.power.power_columns import (
    PowerLayout,
    PowerRows,
    power_columns,
)
from ur_energy_model.identification.regression.least_squares import solve_normal_equations
from ur_energy_model.typing import Array


class FreePowerModel:
    """Accumulates samples, fits the coefficients and predicts power.

    Args:
        joints: n.
    """

    def __init__(self, joints: int) -> None:
        self._layout = PowerLayout(joints)
        width = self._layout.without_delays.stop
        self._gram = np.zeros((width + 1, width + 1))

    def accumulate(self, time: Array, qd: Array, measured: Array, power: Array) -> None:
        """Add consecutive samples; those without power are ignored.

        Args:
            time: [samples], s.
            qd: joint speeds [samples, n], rad/s.
            measured: currents [samples, n], A, or torques, N m.
            power: at the supply [samples], W.
        """
        good = np.isfinite(power)
        rows = np.column_stack([self._columns(time, qd, measured), power])[good]
        self._gram += rows.T @ rows

    def fit(self) -> Array:
        """Coefficients [4n + 1]: P_c, then R, k_t, k_MD and L of all joints."""
        return solve_normal_equations(self._gram[:-1, :-1], self._gram[:-1, -1])

    def predict(self, coefficients: Array, time: Array, qd: Array, measured: Array) -> Array:
        """Power of consecutive samples [samples], W; the supply takes none back."""
        return np.maximum(self._columns(time, qd, measured) @ coefficients, 0.0)

    def _columns(self, time: Array, qd: Array, measured: Array) -> Array:
        """Columns [samples, 4n + 1]."""
        n = self._layout.joints
        rows = PowerRows(time, qd, measured, np.zeros(len(time)), np.zeros(len(time)))
        return power_columns(rows, np.ones(n), np.zeros(n))[:, self._layout.without_delays]
