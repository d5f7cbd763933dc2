# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Metering points of an arm for OPC UA: their measurements, with uncertainties.

A metering point is a part of the arm whose power and energy are known (OPC 34100): the
whole arm, each joint, standby and so on. Nothing here depends on a server.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from asyncua import ua

from ur_energy_model.energy.cycle_energies import (
    MEASURED_SHARE,
    TOTAL_SOURCE,
    UNACCOUNTED,
)
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.topics import PARTS
from ur_energy_model.sinks.opcua.companion_types import (
    ACCURACY_CLASSES,
    HAS_STATISTIC_COMPONENT,
    JOULE,
    SECOND,
    UNKNOWN_CLASS,
    WATT,
    WATT_HOUR,
    NodeNumber,
)
from ur_energy_model.sinks.sink import ArmReading
from ur_energy_model.typing import Array

# Metering points of an arm besides its joints.
MAIN = "Main"
"""The whole arm; this name is the well-known one of OPC 40001-4."""
MODEL = "Model"
BUS = "Bus"
PART_POINTS = {name.title(): channel for name, channel in PARTS.items()}
"""Points whose energies, with the energies of the joints, sum to the energy of MAIN; and
their channels."""
REPEATED_POINTS = (MODEL, BUS)
"""Points that repeat the energy of MAIN: computed by the model, and measured at the bus."""
JOULES_PER_WATT_HOUR = 3600.0


class Measurand(NamedTuple):
    """A measurement that OPC 34100 numbers.

    Attributes:
        name: BrowseName.
        number: MeasurementID.
        unit: unit of the values, an EUInformation.
        kind: type of the values.
        by: type of the reference from the metering point to the measurement; a statistic
            is set to zero by a reset.
    """

    name: str
    number: int
    unit: ua.Variant = WATT_HOUR
    kind: ua.VariantType = ua.VariantType.Double
    by: NodeNumber = HAS_STATISTIC_COMPONENT

    def __hash__(self) -> int:
        """The number: units, which are compared as well, have no hash."""
        return self.number


POWER = Measurand(
    "DcActivePower", 1032, WATT, ua.VariantType.Float, ua.ObjectIds.HasComponent
)
# Energies at the arm's 48 V supply since the last reset.
IMPORT = Measurand("DcEnergyTotalImportHp", 1023)
"""Consumed."""
EXPORT = Measurand("DcEnergyTotalExportHp", 1026)
"""Fed back."""
SUM = Measurand("DcEnergyTotalSumHp", 1029)
"""Consumed minus fed back."""


class Measurement(NamedTuple):
    """A value of one metering point.

    Attributes:
        value: power [W] or energy [Wh].
        uncertainty: half the width of the 95 % interval of the value, in the same unit;
            NaN where it is not known.
    """

    value: float
    uncertainty: float

    @property
    def accuracy_class(self) -> int:
        """Number, from 1, of the narrowest class of ACCURACY_CLASSES that holds the interval.

        The number is one more than the number of classes where the interval is wider
        than all classes, and UNKNOWN_CLASS where the interval is not known.
        """
        if not math.isfinite(self.uncertainty):
            return UNKNOWN_CLASS
        percent = math.inf
        if self.value:
            percent = 100.0 * self.uncertainty / abs(self.value)
        return 1 + sum(percent > limit for limit in ACCURACY_CLASSES)


def metering_points(reading: ArmReading) -> dict[str, dict[Measurand, Measurement]]:
    """All measurements of a reading, by metering point.

    MAIN is measured where the bus power is, else modelled; joints and PART_POINTS sum to
    MAIN. BUS is there only where the bus power is measured. Import and export have the
    uncertainty of their difference.

    Args:
        reading: reading of the arm.
    """
    snapshot = reading.snapshot
    energy = snapshot.since_reset
    power_std = _deviations(reading, snapshot.power, snapshot.seconds)
    energy_std = _deviations(reading, energy.net, None)
    found: dict[str, dict[Measurand, Measurement]] = {}
    for point, column in _point_columns(reading).items():
        # Half the widths of the 95 % intervals, W and J.
        power_half = CONFIDENCE * power_std.get(point, math.nan)
        energy_half = CONFIDENCE * energy_std.get(point, math.nan)
        measurements = {POWER: Measurement(float(snapshot.power[column]), power_half)}
        for quantity, joules in (
            (IMPORT, energy.consumed),
            (EXPORT, energy.regenerated),
            (SUM, energy.net),
        ):
            watt_hours = float(joules[column]) / JOULES_PER_WATT_HOUR
            half_width = energy_half / JOULES_PER_WATT_HOUR
            measurements[quantity] = Measurement(watt_hours, half_width)
        found[point] = measurements
    return found


def _point_columns(reading: ArmReading) -> dict[str, int]:
    """Column of each metering point in arrays of channels, in the order of the points."""
    columns = reading.snapshot.channels
    channels = {MAIN: "total", **PART_POINTS, MODEL: "model"}
    if reading.snapshot.bus_measured:
        channels[BUS] = "bus"
    found = {point: columns.arm[channel] for point, channel in channels.items()}
    first = columns.per_joint["electrical_power"].start
    for number, joint in enumerate(reading.joints):
        found[joint] = first + number
    return found


def _deviations(
    reading: ArmReading, values: Array, seconds: float | None
) -> dict[str, float]:
    """Standard uncertainties by metering point, as far as they are known.

    Args:
        reading: reading of the arm.
        values: powers [W] or energies [J] of all channels.
        seconds: time over which the powers are means [s]; None for energies.
    """
    columns = reading.snapshot.channels
    joints = columns.deviations_of_joints(values)
    return {
        **dict(zip(reading.joints, joints.tolist(), strict=True)),
        MAIN: float(columns.deviations_of_total(values, seconds)),
        MODEL: float(columns.deviations_of_model(values, seconds)),
        "Unexplained": float(columns.deviations_of_unexplained(values, seconds)),
        "Standby": float(columns.deviation_of_standby(values)),
    }


def plain_values(reading: ArmReading) -> dict[str, tuple[float | str, ua.Variant | None]]:
    """Values and units under the names of the ROS topics, for clients that use no model.

    Args:
        reading: reading of the arm; it has values of a cycle only if one has ended since
            the previous reading.

    Returns:
        Value and unit by name; the unit of a text or count is None.
    """
    values: dict[str, tuple[float | str, ua.Variant | None]] = {}
    for name, value in reading.numbers().items():
        values[name] = (value, WATT if name.endswith("/power") else JOULE)
    lost = reading.link.losses.samples
    source = reading.snapshot.total_source
    values |= {
        "state": (reading.state, None),
        "samples_lost": (lost, None),
        TOTAL_SOURCE: (source.name, None),
        MEASURED_SHARE: (source.share, None),
    }
    units = {
        "energy": JOULE,
        "model_energy": JOULE,
        "unexplained_energy": JOULE,
        "duration": SECOND,
        UNACCOUNTED: SECOND,
        "peak_power": WATT,
    }
    if reading.cycles:
        for name, figure in reading.figures_of(reading.cycles[-1]).items():
            shown = "" if figure is None else figure
            values[f"energy/cycle/{name}"] = (shown, units.get(name))
    return values
