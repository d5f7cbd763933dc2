"""Content of the topic energy: all energies of one instant as a sensor_msgs/JointState.

JointState is in every ROS installation, has the sample's time, and PlotJuggler and rqt_plot show
its values by name. A position and its velocity are an energy and its derivative, the power; effort
holds the standard uncertainty of the energy, which no other numeric topic has.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ur_energy_model.energy.live.snapshot import Snapshot
from ur_energy_model.typing import Array

PARTS = {"standby": "standby", "drivers": "driver", "regeneration": "regeneration"}
"""Parts of the arm besides its joints, and their channels; together they are the total."""
ARM_NAMES = (*PARTS, "total", "bus", "residual")
"""Names behind those of the joints."""
STAMPED_ARM_NAMES = ("total", "bus", "standby", "residual")
"""Those of energy/stamped, the name and the content of this topic in earlier versions."""


def energy_names(joints: Sequence[str]) -> tuple[str, ...]:
    """All names, in the order of the values."""
    return (*joints, *ARM_NAMES)


def energy_values(snapshot: Snapshot) -> Array:
    """Values of a snapshot [3, names], NaN where unknown.

    Returns:
        Energy since reset (J); mean power since the previous message (W), its derivative; standard
        uncertainty of the energy (J), known for the joints, `standby` and `total`. Joints, standby,
        drivers and regeneration sum to the total. `bus` and `residual` (total minus bus) are NaN if
        the bus power is not measured.
    """
    columns, arm = snapshot.channels, snapshot.channels.arm
    joints = columns.per_joint["electrical_power"]
    parts = (arm[name] for name in PARTS.values())
    order = [*range(joints.start, joints.stop), *parts, arm["total"]]
    net, power = snapshot.since_reset.net, snapshot.power
    joints_std, total_std = columns.deviations(net)
    known = len(order)
    out = np.full((3, known + 2), np.nan)
    out[0, :known], out[1, :known] = net[order], power[order]
    if snapshot.bus_measured:
        for row, values in enumerate((net, power)):
            bus = values[arm["bus"]]
            out[row, known:] = bus, values[arm["total"]] - bus
    out[2, : len(joints_std)] = joints_std
    out[2, len(joints_std)] = columns.deviation_of_standby(net)
    out[2, known - 1] = total_std
    return out


def stamped_order(joints: int) -> list[int]:
    """Places in `energy_names` of the values of energy/stamped, for a number of joints."""
    return [*range(joints), *(joints + ARM_NAMES.index(name) for name in STAMPED_ARM_NAMES)]
