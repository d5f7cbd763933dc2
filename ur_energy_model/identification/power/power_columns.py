"""What the power at the supply is linear in, column by column, from a batch of telemetry.

Heredia et al. (EcBot, eq. 13-21):  P = P_c + sum(R i^2 + k_b w i + driver |i| + L i di/dt).

Two delays come on top. Currents and speeds of one packet do not belong to the same instant: a
drive holds its current over a controller cycle of which the packet tells the speed at the end.
One millisecond of that is half a percent of the mechanical energy of a joint that accelerates
much, because current and acceleration go together. So, to first order in the delays,

    k_b w i  becomes  k_b (w - current_delay dw/dt) i - supply_delay k_b d(w i)/dt.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ur_energy_model.energy.powers.speed_alignment import backward_difference
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array, Mask

STANDSTILL_SPEED = 0.003
"""Joint speed below which a joint counts as standing [rad/s]."""
WIND_UP_TIME = 0.03
"""A period of the gears' resonance, some 30 Hz [s]."""


class PowerRows(NamedTuple):
    """A batch's finite samples.

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
    """Finite samples of a batch; None where a column is missing.

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
    """Samples at which a joint has just begun to move [samples].

    Its motor winds up the gear before the link turns, so that the link's speed does not tell the
    power.
    """
    moving = np.abs(rows.qd) > STANDSTILL_SPEED
    began = np.zeros(len(rows.time), dtype=bool)
    began[1:] = (moving[1:] & ~moving[:-1]).any(axis=1)
    last = np.maximum.accumulate(np.where(began, rows.time, -np.inf))
    return np.asarray(rows.time - last <= WIND_UP_TIME)


def width(n: int) -> int:
    """Number of columns for n joints."""
    return 4 * n + 3


def power_columns(rows: PowerRows, gear_ratio: Array, constant: Array) -> Array:
    """(1, i^2, w i, |i|, i di/dt, current delay, supply delay) [samples, 4 n + 3].

    Args:
        rows: of a batch.
        gear_ratio: motor turns per joint turn [n].
        constant: torque constants that the delays' columns are weighted with [n], N m/A.
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
