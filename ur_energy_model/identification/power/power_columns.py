"""Columns that the power at the supply is linear in, from telemetry.

Heredia et al. (EcBot, eq. 13-21):  P = P_c + sum(R i^2 + k_b w i + driver |i| + L i di/dt).

Two delays are added. Current and speed of one packet belong to different instants: a drive holds
its current over a controller cycle, and the packet reports the speed at the end of it. One
millisecond of that is half a percent of the mechanical energy of a joint with high acceleration,
because current and acceleration are correlated. To first order in the delays,

    k_b w i  becomes  k_b (w - current_delay dw/dt) i - supply_delay k_b d(w i)/dt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ur_energy_model.energy.powers.speed_alignment import backward_difference
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array, Mask

STANDSTILL_SPEED = 0.003
"""Joint speed below which a joint stands still [rad/s]."""
WIND_UP_TIME = 0.03
"""Time in which a gear winds up: one period of its resonance, about 30 Hz [s]."""


@dataclass(frozen=True)
class PowerLayout:
    """Positions of the power columns and their coefficients, for an arm with n joints.

    Attributes:
        joints: n.
        standby: constant column.
        current_delay, supply_delay: columns of the two delays.
    """

    joints: int
    standby: int = 0
    current_delay: int = -2
    supply_delay: int = -1

    @property
    def copper(self) -> slice:
        """Columns i^2 of each joint; coefficients in ohm."""
        return self._per_joint(0)

    @property
    def conversion(self) -> slice:
        """Columns w i of each joint, w the motor speed; coefficients in V s/rad."""
        return self._per_joint(1)

    @property
    def driver(self) -> slice:
        """Columns |i| of each joint; coefficients in W/A."""
        return self._per_joint(2)

    @property
    def inductance(self) -> slice:
        """Columns i di/dt of each joint; coefficients in H."""
        return self._per_joint(3)

    @property
    def bus_errors(self) -> slice:
        """Standby, copper, conversion and driver, as `BusModel.errors` has them."""
        return slice(0, self.driver.stop)

    @property
    def without_delays(self) -> slice:
        """EcBot's 4 n + 1 columns."""
        return slice(0, self.inductance.stop)

    @property
    def width(self) -> int:
        """Number of columns, 4 n + 3."""
        return 4 * self.joints + 3

    def coefficients(self, position: int | slice, values: Array | float) -> Array:
        """Coefficients [width] that have `values` at a position and are zero elsewhere."""
        out = np.zeros(self.width)
        out[position] = values
        return out

    def _per_joint(self, kind: int) -> slice:
        return slice(1 + kind * self.joints, 1 + (kind + 1) * self.joints)


class PowerRows(NamedTuple):
    """Samples of a batch with finite values.

    Attributes:
        time: [samples], s.
        qd: joint side [samples, n], rad/s.
        current: [samples, n], A.
        power: measured at the supply [samples], W.
        mode: robot mode [samples].
    """

    time: Array
    qd: Array
    current: Array
    power: Array
    mode: Array


def power_rows(telemetry: Telemetry) -> PowerRows | None:
    """Samples of a batch with finite values; None where a column is missing.

    Without robot_mode the robot counts as running.
    """
    names = ("actual_qd", "actual_current", "actual_robot_voltage", "actual_robot_current")
    if any(name not in telemetry for name in names):
        return None
    telemetry = telemetry.distinct()
    speed, current, voltage, supply = (telemetry[name] for name in names)
    power = voltage * supply
    mode = telemetry["robot_mode"] if "robot_mode" in telemetry else np.full(len(power), 7.0)
    good = np.isfinite(power) & np.isfinite(speed).all(axis=1) & np.isfinite(current).all(axis=1)
    return PowerRows(telemetry.time[good], speed[good], current[good], power[good], mode[good])


def breaking_away(rows: PowerRows) -> Mask:
    """Samples within WIND_UP_TIME after a joint's breakaway [samples].

    The motor winds up the gear before the link moves, so the link speed does not give the power.
    """
    moving = np.abs(rows.qd) > STANDSTILL_SPEED
    began = np.zeros(len(rows.time), dtype=bool)
    began[1:] = (moving[1:] & ~moving[:-1]).any(axis=1)
    last = np.maximum.accumulate(np.where(began, rows.time, -np.inf))
    return np.asarray(rows.time - last <= WIND_UP_TIME)


def power_columns(rows: PowerRows, gear_ratio: Array, constant: Array) -> Array:
    """Columns (1, i^2, w i, |i|, i di/dt, current delay, supply delay) [samples, 4 n + 3].

    Args:
        rows: of a batch.
        gear_ratio: motor turns per joint turn [n].
        constant: torque constants that weight the columns of the delays [n], N m/A.
    """
    time, current = rows.time, rows.current
    speed = gear_ratio * rows.qd
    product = speed * current
    return np.column_stack(
        [
            np.ones(len(time)),
            current**2,
            product,
            np.abs(current),
            current * backward_difference(time, current),
            -(backward_difference(time, speed) * current) @ constant,
            -backward_difference(time, product) @ constant,
        ]
    )
