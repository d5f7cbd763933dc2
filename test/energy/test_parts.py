# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Joints, standby, drivers and regeneration sum to the total: every sample, integral, surface."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from test.energy.known_arm import ROBOT, changed, known_model, motion
from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.cycle_energies import Cycle
from ur_energy_model.energy.live import LiveEstimator, LiveOptions, Snapshot
from ur_energy_model.energy.meter import EnergyMeter, MeterReading
from ur_energy_model.energy.powers import ArmState, Channels, PowerOptions
from ur_energy_model.energy.topics import (
    PARTS,
    cycle_status,
    energy_names,
    energy_values,
    interval_energies,
    joint_interfaces,
    numbers,
    summary_statuses,
)
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.sinks.live_arm import joint_rows, part_rows
from ur_energy_model.sinks.opcua_nodes import MAIN, SUM, metering_points
from ur_energy_model.sinks.prometheus import ArmMetrics
from ur_energy_model.sinks.sink import ArmReading
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.telemetry.source import LinkStatus
from ur_energy_model.typing import Array

JOINTS = ROBOT.joint_names


def sums(channels: Channels, values: Array) -> None:
    total = values[..., channels.arm["total"]]
    parts = [channels.arm[name] for name in ("standby", "driver", "regeneration")]
    joints = values[..., channels.per_joint["electrical_power"]].sum(axis=-1)
    found = joints + values[..., parts].sum(axis=-1)
    assert found == pytest.approx(total, rel=1e-12, abs=1e-8)


def states(channels: Channels, reading: MeterReading) -> None:
    """Time and energy are those of the states."""
    time, energy = (
        reading.net[start : start + len(ArmState)].sum()
        for start in (channels.state_time, channels.state_energy)
    )
    assert time == pytest.approx(reading.accounted)
    assert energy == pytest.approx(reading.net[channels.arm["total"]])


def model_with(capacity: float = 0.0, floor: float = 0.0, inductance: float = 0.0) -> EnergyModel:
    model = known_model()
    bus = replace(
        model.bus,
        capacitor_energy=capacity,
        floor=floor,
        inductance=np.full(len(JOINTS), inductance),
    )
    return replace(model, bus=bus)


def braking(rate: float = 500.0, seconds: float = 4.0) -> Telemetry:
    """Much is fed back; with standstill, brakes, a protective stop, a gap and a program start."""
    telemetry = motion(seconds)
    telemetry = telemetry.select(np.arange(len(telemetry)) % round(500.0 / rate) == 0)
    n = len(telemetry)
    share = np.arange(n) / n
    still = (share > 0.2) & (share < 0.5)
    qd = np.where(still[:, None], 0.0, telemetry["actual_qd"])
    mode = np.where(share > 0.9, 5.0, 7.0)
    telemetry = changed(
        telemetry,
        actual_qd=qd,
        actual_current=np.where(still[:, None], 1.0, -2.5 * qd),
        robot_mode=mode,
        safety_mode=np.where((share > 0.6) & (share < 0.65), 3.0, 1.0),
        runtime_state=np.where(np.floor(share * 20) % 3 == 0, 1.0, 2.0),
        actual_robot_current=(30.0 + 5.0 * np.sin(9.0 * share)) / 48.0,
    )
    return telemetry.select((share < 0.7) | (share > 0.75))


@settings(max_examples=8)
@given(
    model=st.sampled_from(
        [model_with(*v) for v in ((), (20.0,), (3.0, 5.0), (0.0, 0.0, 0.01), (8.0, 2.0, 0.02))]
    ),
    rate=st.sampled_from([10.0, 125.0, 500.0]),
    method=st.sampled_from(["current", "motion"]),
    sizes=st.lists(st.integers(1, 400), min_size=1, max_size=6),
)
def test_at_every_sample_and_in_every_integral(
    model: EnergyModel, rate: float, method: str, sizes: list[int]
) -> None:
    telemetry = braking(rate)
    cycles: list[Cycle] = []
    given_back = 0.0

    def check(table: object, _: object) -> None:
        nonlocal given_back
        power = table.power  # type: ignore[attr-defined]
        sums(estimator.channels, power)
        given_back += power[:, estimator.channels.arm["regeneration"]].max()

    options = LiveOptions(power=PowerOptions(method=method), cycle_trigger="program")  # type: ignore
    estimator = LiveEstimator(model, ROBOT, options, on_cycle=cycles.append, on_powers=check)
    start, turn = 0, 0
    while start < len(telemetry):
        stop = start + sizes[turn % len(sizes)]
        estimator.update(telemetry.cut(slice(start, stop)))
        snapshot = estimator.snapshot(f"viewer {turn % 2}")
        if snapshot is not None:
            for values in (snapshot.power, snapshot.since_reset.net, snapshot.lifetime.net):
                sums(snapshot.channels, values)
            states(snapshot.channels, snapshot.since_reset)
        if turn == 2:
            estimator.reset("a test")
            sums(estimator.channels, estimator.read_interval().net)
            estimator.use_model(replace(model, bus=replace(model.bus, standby=31.0)))
        start, turn = stop, turn + 1
    assert cycles
    assert method == "motion" or given_back > 0.0
    for cycle in cycles:
        sums(estimator.channels, cycle.reading.net)


def reading_of(telemetry: Telemetry) -> tuple[ArmReading, Cycle, MeterReading]:
    cycles: list[Cycle] = []
    options = LiveOptions(cycle_trigger="program")
    estimator = LiveEstimator(model_with(5.0), ROBOT, options, on_cycle=cycles.append)
    estimator.update(telemetry)
    snapshot = estimator.snapshot()
    assert snapshot is not None
    assert snapshot.since_reset.net[snapshot.channels.arm["regeneration"]] > 10.0
    passed = estimator.read_interval()
    return ArmReading("arm", 0, JOINTS, snapshot, LinkStatus()), cycles[0], passed


def of_names(values: dict[str, float], pattern: str) -> tuple[float, float]:
    parts = sum(values[pattern.format(name)] for name in (*JOINTS, *PARTS))
    return parts, values[pattern.format("total")]


def of_row(names: Iterable[str], values: Array) -> tuple[float, float]:
    return of_names(dict(zip(names, values.tolist(), strict=True)), "{}")


def of_status(snapshot: Snapshot) -> tuple[float, float]:
    total = {status.name: status.values for status in summary_statuses(snapshot, JOINTS, "")}[
        "energy: total"
    ]
    parts = ("standby_energy_J", "driver_energy_J", "regeneration_energy_J", "motors_energy_J")
    return sum(float(total[name]) for name in parts), float(total["energy_J"])  # type: ignore


def of_cycle(values: dict[str, object]) -> tuple[float, float]:
    names = (*JOINTS, "standby", "driver", "regeneration")
    numbers = {name: float(value) for name, value in values.items() if name != "cycle"}  # type: ignore
    return sum(numbers[f"{name}_energy"] for name in names), numbers["total_energy"]


def of_interval(values: dict[str, object]) -> tuple[float, float]:
    found = json.loads(json.dumps(values))
    joints = sum(each["energy_J"] for each in found["joints"].values())
    return joints + sum(found[f"{name}_J"] for name in PARTS), found["total_J"]


def of_prometheus(reading: ArmReading) -> tuple[float, float]:
    values = ArmMetrics().values(reading)
    parts, total = (
        values[f"ur_energy_{name}"] for name in ("part_energy_joules", "total_energy_joules_total")
    )
    return sum(parts.values()), total["arm",]


def of_opcua(reading: ArmReading) -> tuple[float, float]:
    values = {name: each[SUM].value for name, each in metering_points(reading).items()}
    return sum(values[name] for name in (*JOINTS, *map(str.title, PARTS))), values[MAIN]


def of_views(reading: ArmReading) -> tuple[float, float]:
    rows = (*joint_rows(reading), *part_rows(reading))
    snapshot = reading.snapshot
    return sum(row.energy for row in rows), snapshot.since_reset.net[snapshot.channels.arm["total"]]


def test_on_every_surface() -> None:
    reading, cycle, passed = reading_of(braking())
    snapshot = reading.snapshot
    values = numbers(snapshot, JOINTS)
    energy, power, _ = energy_values([snapshot])[0]
    interfaces = joint_interfaces(snapshot, JOINTS)
    surfaces: dict[str, Callable[[], tuple[float, float]]] = {
        "energies of topics": lambda: of_names(values, "energy/{}/energy"),
        "powers of topics": lambda: of_names(values, "energy/{}/power"),
        "positions of energy": lambda: of_row(energy_names(JOINTS), energy),
        "velocities of energy": lambda: of_row(energy_names(JOINTS), power),
        "energy/joints": lambda: of_names(
            {name: each["electrical_energy"] for name, each in interfaces.items()}, "{}"
        ),
        "energy/summary": lambda: of_status(snapshot),
        "energy/cycle": lambda: of_cycle(dict(cycle_status(cycle, snapshot.channels).values)),
        "read_interval": lambda: of_interval(interval_energies(passed, snapshot.channels, JOINTS)),
        "Prometheus": lambda: of_prometheus(reading),
        "OPC UA": lambda: of_opcua(reading),
        "live view": lambda: of_views(reading),
    }
    for name, surface in surfaces.items():
        parts, total = surface()
        assert parts == pytest.approx(total, rel=1e-9), name


def test_counters_of_a_version_without_regeneration_sum_too() -> None:
    calculator = EnergyCalculator(model_with(5.0), ROBOT)
    channels, table = calculator.channels, calculator(braking())
    assert table is not None
    table.integrate(meter := EnergyMeter(len(channels)))
    reading = meter.reading
    assert reading.net[channels.arm["regeneration"]] > 10.0
    kept = [k for k, name in enumerate(channels.names) if name != "regeneration"]
    names = [channels.names[k] for k in kept]
    old = MeterReading(reading.net[kept], reading.consumed[kept], 1.0, 0.0)
    new = channels.convert(old, names)
    assert new.net == pytest.approx(reading.net, rel=1e-9, abs=1e-9)
    sums(channels, new.net)
