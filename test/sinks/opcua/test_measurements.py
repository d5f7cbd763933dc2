"""Metering points of a reading, compared with recorded ones: no server, no asyncua."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from test.sinks.made_up_reading import CHANNELS, POWER, made_up_reading, without_bus
from ur_energy_model.sinks.opcua_nodes import (
    BUS,
    DRIVERS,
    EXPORT,
    IMPORT,
    JOULE,
    MAIN,
    REGENERATION,
    SECOND,
    STANDBY,
    SUM,
    WATT,
    WATT_HOUR,
    Measurement,
    metering_points,
    plain_values,
)
from ur_energy_model.sinks.opcua_nodes import POWER as DC_POWER

HOUR = 36_000
"""Number of the reading after one hour."""


def test_units_have_the_numbers_of_the_specification() -> None:
    """OPC 34100 tables 21 to 23 print those of watt and watt hour."""
    assert (WATT.number, WATT_HOUR.number) == (5723220, 5720146)
    assert JOULE.number == 0x4A4F55


def test_golden_points_after_an_hour() -> None:
    """Powers were constant, so that energies in Wh are powers in W; a tenth was fed back."""
    points = metering_points(made_up_reading(HOUR))
    joints = {"shoulder_joint": 1.0, "elbow_joint": 2.0}
    expected = {MAIN: 9.0, STANDBY: 10.0, DRIVERS: 11.0, REGENERATION: 12.0, BUS: 13.0, **joints}
    assert list(points) == list(expected)
    for point, power in expected.items():
        values = {quantity.name: found.value for quantity, found in points[point].items()}
        assert values == {
            "DcActivePower": power,
            "DcEnergyTotalImportHp": pytest.approx(1.1 * power),
            "DcEnergyTotalExportHp": pytest.approx(0.1 * power),
            "DcEnergyTotalSumHp": pytest.approx(power),
        }
    numbers = {quantity.name: quantity.number for quantity in points[MAIN]}
    assert numbers == {
        "DcActivePower": 1032,
        "DcEnergyTotalImportHp": 1023,
        "DcEnergyTotalExportHp": 1026,
        "DcEnergyTotalSumHp": 1029,
    }


def test_uncertainties_are_those_of_the_model() -> None:
    points = metering_points(made_up_reading(HOUR))
    joints, total = CHANNELS.deviations(POWER)
    for quantity in (DC_POWER, IMPORT, EXPORT, SUM):
        assert points[MAIN][quantity].uncertainty == pytest.approx(1.96 * total)
        assert points["elbow_joint"][quantity].uncertainty == pytest.approx(1.96 * joints[1])
        assert math.isnan(points[BUS][quantity].uncertainty)
    assert BUS not in metering_points(without_bus(made_up_reading(1)))


@pytest.mark.parametrize(
    ("value", "uncertainty", "number"),
    [
        (100.0, 0.001, 1),
        (100.0, 0.1, 4),
        (-100.0, 0.9, 7),
        (100.0, 2.6, 11),
        (100.0, 20.0, 14),
        (100.0, 21.0, 15),
        (0.0, 1.0, 15),
        (100.0, math.nan, 0),
    ],
)
def test_accuracy_classes(value: float, uncertainty: float, number: int) -> None:
    assert Measurement(value, uncertainty).accuracy_class == number


def test_plain_values_are_those_of_the_topics() -> None:
    reading = made_up_reading(10)
    found = plain_values(reading)
    for name, value in reading.numbers().items():
        assert found[name][0] == value
        assert found[name][1] == (WATT if name.endswith("/power") else JOULE)
    assert found["state"][0] == "moving"
    assert found["energy/cycle/number"][0] == 1
    assert found["energy/cycle/duration"][1] == SECOND
    assert found["energy/cycle/program"][0] == ""
    named = replace(reading, cycles=(replace(reading.cycles[0], program="weld"),))
    assert plain_values(named)["energy/cycle/program"][0] == "weld"
    assert "energy/cycle/number" not in plain_values(made_up_reading(9))
