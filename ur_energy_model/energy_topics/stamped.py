"""Content of energy/stamped: all energies of one instant as a sensor_msgs/JointState.

JointState is in every ROS installation, has the sample's time, and PlotJuggler and rqt_plot show
its values by name. A position and its velocity are an energy and its derivative, the power; effort
holds the standard uncertainty of the energy, which no other numeric topic has.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ur_energy_model.energy.live.snapshot import Snapshot
from ur_energy_model.typing import Array

ARM_NAMES = ("total", "bus", "standby", "residual")
"""Names behind those of the joints."""


def stamped_names(joints: Sequence[str]) -> tuple[str, ...]:
    """All names, in the order of the values."""
    return (*joints, *ARM_NAMES)


def stamped_values(snapshot: Snapshot) -> Array:
    """Values of a snapshot [3, names], NaN where unknown.

    Returns:
        Energy since reset (J); mean power since the previous message (W), its derivative; standard
        uncertainty of the energy (J), known for the joints, `total` and `standby`. `bus` and
        `residual` (total minus bus) are NaN if the bus power is not measured.
    """
    columns = snapshot.channels
    electrical, arm = columns.per_joint["electrical_power"], columns.arm
    net = snapshot.since_reset.net
    joints_std, total_std = columns.deviations(net)

    def row(values: Array) -> list[float]:
        total, standby = values[arm["total"]], values[arm["standby"]]
        bus = values[arm["bus"]] if snapshot.bus_measured else np.nan
        return [*values[electrical], total, bus, standby, total - bus]

    std = [*joints_std, total_std, np.nan, columns.deviation_of_standby(net), np.nan]
    return np.array([row(net), row(snapshot.power), std])
