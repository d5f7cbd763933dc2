"""Values under the names of the ROS topics, for clients that want numbers and no model."""

from __future__ import annotations

from dataclasses import dataclass

from ur_energy_model.sinks.arm_reading import ArmReading
from ur_energy_model.sinks.opcua.companion import JOULE, SECOND, WATT, Unit

STATE, LOST = "state", "samples_lost"
CYCLE = "energy/cycle/"


@dataclass(frozen=True)
class PlainValue:
    """A value and its unit, None for numbers and texts without one."""

    value: float | int | str
    unit: Unit | None = None


def plain_values(reading: ArmReading) -> dict[str, PlainValue]:
    """Values by name; those of cycles only where one has ended."""
    out = {
        name: PlainValue(value, WATT if name.endswith("/power") else JOULE)
        for name, value in reading.numbers().items()
    }
    out[STATE] = PlainValue(reading.snapshot.state.name.lower())
    out[LOST] = PlainValue(reading.link.lost)
    for cycle in reading.cycles[-1:]:
        energy = float(cycle.reading.net[reading.snapshot.channels.arm["total"]])
        out[f"{CYCLE}number"] = PlainValue(cycle.number)
        out[f"{CYCLE}energy"] = PlainValue(energy, JOULE)
        out[f"{CYCLE}duration"] = PlainValue(cycle.duration, SECOND)
        out[f"{CYCLE}peak_power"] = PlainValue(cycle.peak_power, WATT)
        out[f"{CYCLE}program"] = PlainValue(cycle.program or "")
    return out
