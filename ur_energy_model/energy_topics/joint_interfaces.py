"""Content of energy/joints: powers and energies by joint and interface name."""

from __future__ import annotations

from collections.abc import Sequence

from ur_energy_model.energy.live.snapshot import Snapshot
from ur_energy_model.energy_topics.arm_energies import PARTS


def joint_interfaces(snapshot: Snapshot, joints: Sequence[str]) -> dict[str, dict[str, float]]:
    """Values [W, J] by name of a joint, of a part of the arm or "total", and interface name."""
    columns, power = snapshot.channels, snapshot.power
    energy = snapshot.since_reset.net[columns.per_joint["electrical_power"]]
    values = {name: power[part] for name, part in columns.per_joint.items()}
    out = {
        joint: {
            **{name: float(each[i]) for name, each in values.items()},
            "electrical_energy": float(energy[i]),
        }
        for i, joint in enumerate(joints)
    }
    net = snapshot.since_reset.net
    for name, channel in PARTS.items():
        column = columns.arm[channel]
        out[name] = {
            "electrical_power": float(power[column]),
            "electrical_energy": float(net[column]),
        }
    out["total"] = {
        **{name: float(each.sum()) for name, each in values.items()},
        "electrical_power": float(power[columns.arm["total"]]),
        "electrical_energy": float(net[columns.arm["total"]]),
    }
    return out
