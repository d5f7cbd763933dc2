"""JointRow: what views and metrics state about one joint or another part of the arm."""

from __future__ import annotations

from dataclasses import dataclass

from ur_energy_model.energy.meter import efficiency
from ur_energy_model.energy_topics.arm_energies import PARTS
from ur_energy_model.sinks.arm_reading import ArmReading


@dataclass(frozen=True)
class JointRow:
    """One joint, or another part of the arm, at one moment.

    Attributes:
        name: of the joint, prefix included, or of the part.
        power: electrical [W].
        energy: electrical, since reset [J].
        efficiency: mechanical over electrical energy since reset; NaN where no electrical energy
            was taken.
        temperature: [degC], None where unknown.
    """

    name: str
    power: float
    energy: float
    efficiency: float
    temperature: float | None


def joint_rows(reading: ArmReading) -> tuple[JointRow, ...]:
    """A row for each joint."""
    snapshot = reading.snapshot
    parts, net = snapshot.channels.per_joint, snapshot.since_reset.net
    energy = net[parts["electrical_power"]]
    temperatures = snapshot.temperature
    known = [None] * len(energy) if temperatures is None else temperatures.tolist()
    return tuple(
        JointRow(*values)
        for values in zip(
            reading.joints,
            snapshot.power[parts["electrical_power"]].tolist(),
            energy.tolist(),
            efficiency(net[parts["mechanical_power"]], energy).tolist(),
            known,
            strict=True,
        )
    )


def part_rows(reading: ArmReading) -> tuple[JointRow, ...]:
    """A row for standby, drivers and regeneration; with the joints they sum to the total."""
    snapshot = reading.snapshot
    return tuple(
        JointRow(
            name,
            float(snapshot.power[snapshot.channels.arm[channel]]),
            float(snapshot.since_reset.net[snapshot.channels.arm[channel]]),
            float("nan"),
            None,
        )
        for name, channel in PARTS.items()
    )
