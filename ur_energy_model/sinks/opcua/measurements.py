"""Metering points of an arm, with the measurement identifiers of OPC 34100."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ur_energy_model.energy.channels import Channels
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.sinks.arm_reading import ArmReading
from ur_energy_model.sinks.opcua.companion import WATT, WATT_HOUR, Unit
from ur_energy_model.typing import Array

MAIN, BUS, STANDBY, DRIVERS, REGENERATION = "Main", "Bus", "Standby", "Drivers", "Regeneration"
"""Metering points besides the joints; Main is the well-known name of OPC 40001-4."""
JOULES_PER_WATT_HOUR = 3600.0
ACCURACY_CLASSES: tuple[float, ...] = (
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 5.0, 10.0, 20.0,
)  # fmt: skip
"""Classes 1 to 14 of the domain "percent of the actual reading" [%]; 15 is more than the last."""
UNKNOWN_CLASS = 0


@dataclass(frozen=True)
class Quantity:
    """A measurement that OPC 34100 numbers.

    Attributes:
        name: BrowseName.
        number: MeasurementID.
        unit: of the values.
        is_double: Double if true, Float otherwise.
        is_statistic: whether a reset sets it to zero.
    """

    name: str
    number: int
    unit: Unit
    is_double: bool = True
    is_statistic: bool = True


POWER = Quantity("DcActivePower", 1032, WATT, is_double=False, is_statistic=False)
IMPORT = Quantity("DcEnergyTotalImportHp", 1023, WATT_HOUR)
EXPORT = Quantity("DcEnergyTotalExportHp", 1026, WATT_HOUR)
SUM = Quantity("DcEnergyTotalSumHp", 1029, WATT_HOUR)
QUANTITIES = (POWER, IMPORT, EXPORT, SUM)
"""Of the arm's 48 V supply: consumed, fed back and their difference, since the last reset."""


@dataclass(frozen=True)
class Measurement:
    """A value of one metering point.

    Attributes:
        value: W or Wh.
        uncertainty: half width of its 95 % interval, in the same unit; NaN where unknown.
    """

    value: float
    uncertainty: float

    @property
    def accuracy_class(self) -> int:
        """The smallest class of ACCURACY_CLASSES that covers the interval."""
        if not math.isfinite(self.uncertainty):
            return UNKNOWN_CLASS
        percent = 100.0 * self.uncertainty / abs(self.value) if self.value else math.inf
        covering = (k for k, limit in enumerate(ACCURACY_CLASSES, 1) if percent <= limit)
        return next(covering, len(ACCURACY_CLASSES) + 1)


def metering_points(reading: ArmReading) -> dict[str, dict[Quantity, Measurement]]:
    """All measurements of a reading, by metering point; BUS only where it is measured.

    The uncertainties of import and export are that of their difference: the model does not tell
    them apart.
    """
    snapshot = reading.snapshot
    columns, energy = snapshot.channels, snapshot.since_reset
    power_std, energy_std = _deviations(columns, snapshot.power), _deviations(columns, energy.net)
    channels = {MAIN: "total", STANDBY: "standby", DRIVERS: "driver", REGENERATION: "regeneration"}
    positions = {point: columns.arm[channel] for point, channel in channels.items()}
    if snapshot.bus_measured:
        positions[BUS] = columns.arm["bus"]
    first = columns.per_joint["electrical_power"].start
    positions |= {joint: first + i for i, joint in enumerate(reading.joints)}
    joints = dict(zip(reading.joints, columns.joints, strict=True))
    consumed, fed_back = energy.consumed, energy.regenerated
    out = {}
    for point, column in positions.items():
        name = joints.get(point, point)
        wide = CONFIDENCE * energy_std.get(name, math.nan) / JOULES_PER_WATT_HOUR
        out[point] = {
            POWER: Measurement(
                float(snapshot.power[column]), CONFIDENCE * power_std.get(name, math.nan)
            ),
            **{
                quantity: Measurement(float(values[column]) / JOULES_PER_WATT_HOUR, wide)
                for quantity, values in ((IMPORT, consumed), (EXPORT, fed_back), (SUM, energy.net))
            },
        }
    return out


def _deviations(columns: Channels, values: Array) -> dict[str, float]:
    """Standard deviations of MAIN, STANDBY and the joints, by name in the channels."""
    joints, total = columns.deviations(values)
    return {
        MAIN: total,
        STANDBY: columns.deviation_of_standby(values),
        **dict(zip(columns.joints, joints.tolist(), strict=True)),
    }
