# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Joints, standby, drivers, regeneration and unexplained sum to the total, and all but the latter
to the model: at every sample, in every integral, on every surface."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rosbags.rosbag2 import Reader
from rosbags.typesys import Stores, get_typestore

from test.energy.known_arm import ROBOT, changed, known_model, motion
from test.properties import examples
from test.telemetry.bag.bag_files import write_bag
from ur_energy_model.energy.cycle_energies import Cycle
from ur_energy_model.energy.energy_bag import write_energy_bag
from ur_energy_model.energy.live import LiveEstimator, LiveOptions
from ur_energy_model.energy.meter import MeterReading
from ur_energy_model.energy.powers import ArmState, Channels, PowerOptions
from ur_energy_model.energy.snapshot import Snapshot
from ur_energy_model.energy.topics import (
    MODEL_PARTS,
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
from ur_energy_model.sinks.live_arm import LiveState
from ur_energy_model.sinks.sink import ArmReading
from ur_energy_model.sinks.terminal import json_line
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.telemetry.source import LinkStatus
from ur_energy_model.typing import Array

MESSAGES: Any = get_typestore(Stores.ROS2_JAZZY)
JOINTS = ROBOT.joint_names


def sums(channels: Channels, values: Array) -> None:
    model, total, unexplained = (
        values[..., channels.arm[name]] for name in ("model", "total", "unexplained")
    )
    parts = [channels.arm[name] for name in MODEL_PARTS.values()]
    joints = values[..., channels.per_joint["electrical_power"]].sum(axis=-1)
    found = joints + values[..., parts].sum(axis=-1)
    assert found == pytest.approx(model, rel=1e-12, abs=1e-8)
    assert found + unexplained == pytest.approx(total, rel=1e-12, abs=1e-8)


def states(channels: Channels, reading: MeterReading) -> None:
    """Time and energy are those of the states."""
    time, energy = (
        reading.net[start : start + len(ArmState)].sum()
        for start in (channels.state_time, channels.state_energy)
    )
    assert time == pytest.approx(reading.accounted)
    assert energy == pytest.approx(reading.net[channels.arm["total"]])


def model_with(
    capacity: float = 0.0, floor: float = 0.0, inductance: float = 0.0
) -> EnergyModel:
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


@examples(5)
@given(
    model=st.sampled_from(
        [
            model_with(*v)
            for v in ((), (20.0,), (3.0, 5.0), (0.0, 0.0, 0.01), (8.0, 2.0, 0.02))
        ]
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
    estimator = LiveEstimator(
        model, ROBOT, options, on_cycle=cycles.append, on_powers=check
    )
    start = 0
    turn = 0
    while start < len(telemetry):
        stop = start + sizes[turn % len(sizes)]
        estimator.update(telemetry.cut(slice(start, stop)))
        snapshot = estimator.snapshot(f"viewer {turn % 2}")
        if snapshot is not None:
            for values in (
                snapshot.power,
                snapshot.since_reset.net,
                snapshot.lifetime.net,
            ):
                sums(snapshot.channels, values)
            states(snapshot.channels, snapshot.since_reset)
        if turn == 2:
            estimator.reset("a test")
            sums(estimator.channels, estimator.read_interval().net)
            estimator.use_model(replace(model, bus=replace(model.bus, standby=31.0)))
        start = stop
        turn = turn + 1
    assert cycles
    assert method == "motion" or given_back > 0.0
    for cycle in cycles:
        sums(estimator.channels, cycle.reading.net)


SOURCES = {"measured": 1.0, "modelled": 0.0, "mixed": 0.5}
"""Sources of a total, and the share of the samples whose bus power is measured."""


def telemetry_of(source: str) -> Telemetry:
    """`braking`, with so many samples of measured bus power, every other stretch of 100."""
    telemetry = braking()
    count = len(telemetry)
    measured = np.arange(count) // 100 % 2 < 2.0 * SOURCES[source]
    if source == "measured":
        measured[:] = True
    current = np.where(measured, telemetry["actual_robot_current"], np.nan)
    stamp = 10**18 + np.rint((telemetry.time - telemetry.time[0]) * 1e9).astype(np.int64)
    return replace(changed(telemetry, actual_robot_current=current), stamp=stamp)


@dataclass(frozen=True)
class Given:
    """What a surface gives; None where it has no such value."""

    parts: dict[str, float]  # joints, modelled parts and unexplained
    total: float
    model: float | None = None
    source: str | None = None
    share: float | None = None


class Surfaces:
    """An arm whose total is of a source, read from everything that is published of it."""

    def __init__(self, source: str, folder: Path) -> None:
        self.telemetry = telemetry_of(source)
        self.folder = folder
        cycles: list[Cycle] = []
        self.log = folder / "cycles.csv"
        options = LiveOptions(cycle_trigger="program", cycle_log=self.log)
        estimator = LiveEstimator(model_with(5.0), ROBOT, options, on_cycle=cycles.append)
        half = len(self.telemetry) // 2
        estimator.update(self.telemetry.cut(slice(half)))
        estimator.snapshot()  # since which the powers of the next one are means
        estimator.update(self.telemetry.cut(slice(half, None)))
        snapshot = estimator.snapshot()
        assert snapshot is not None
        self.snapshot: Snapshot = snapshot
        self.channels = snapshot.channels
        self.cycle = cycles[-1]
        self.passed = estimator.read_interval()
        status = LinkStatus()
        self.reading = ArmReading(
            "arm", 10**18, JOINTS, snapshot, status, tuple(cycles), "m", ROBOT
        )
        self.state = LiveState("bag", self.reading, status, cycle=self.cycle)

    def of_names(self, values: Mapping[str, Any], pattern: str, **names: str) -> Given:
        """From values by name, the pattern with that of a part; other names of parts by theirs."""
        every = {
            part: pattern.format(names.get(part, part)) for part in (*JOINTS, *PARTS)
        }
        model, total = (values.get(pattern.format(name)) for name in ("model", "total"))
        return Given(
            {part: float(values[name]) for part, name in every.items()},
            float(cast(float, total)),
            None if model is None else float(model),
            values.get("total_source"),
            None
            if (share := values.get("total_measured_share")) is None
            else float(share),
        )

    def topics(self, quantity: str) -> Given:
        return self.of_names(numbers(self.snapshot, JOINTS), f"energy/{{}}/{quantity}")

    def energy_message(self, row: int) -> Given:
        values = energy_values([self.snapshot])[0][row]
        return self.of_names(dict(zip(energy_names(JOINTS), values, strict=True)), "{}")

    def joints_message(self, quantity: str) -> Given:
        found = joint_interfaces(self.snapshot, JOINTS)
        return self.of_names({name: each[quantity] for name, each in found.items()}, "{}")

    def summary(self, quantity: str) -> Given:
        found = {
            each.name: each.values for each in summary_statuses(self.snapshot, JOINTS, "")
        }
        total = dict(found["energy: total"])
        joints = {
            f"{j}_{quantity}": found[f"energy: {j}"][f"electrical_{quantity}"]
            for j in JOINTS
        }
        motors = sum(float(cast(float, each)) for each in joints.values())
        assert total[f"motors_{quantity}"] == pytest.approx(motors)
        total |= joints | {f"total_{quantity}": total[quantity]}
        total[f"model_{quantity}"] = found["energy: model"][quantity]
        return self.of_names(total, f"{{}}_{quantity}", drivers="driver")

    def cycle_message(self) -> Given:
        values = cycle_status(self.cycle, self.channels).values
        return self.of_names(values, "{}_energy_J", drivers="driver")

    def cycle_log(self) -> Given:
        with self.log.open(newline="") as file:
            *_, row = csv.DictReader(file)
        return self.of_names(row, "{}_energy_J", drivers="driver")

    def read_interval(self) -> Given:
        found = json.loads(
            json.dumps(interval_energies(self.passed, self.channels, JOINTS))
        )
        joints = {f"{name}_J": each["energy_J"] for name, each in found["joints"].items()}
        return self.of_names({**found, **joints}, "{}_J")

    def live_json(self) -> Given:
        found = json.loads(json_line(self.state))
        rows = {row["name"]: row["energy"] for row in (*found["joints"], *found["parts"])}
        # unexplained of a modelled total
        rows |= dict.fromkeys(set(PARTS) - rows.keys(), 0.0)
        values = found["values"]
        rows |= {name: values[f"energy/{name}/energy"] for name in ("model", "total")}
        return self.of_names({**found, **rows}, "{}")

    def live_json_cycle(self) -> Given:
        found = json.loads(json_line(self.state))["cycle"]
        return self.of_names(found, "{}_energy", drivers="driver")

    def energy_bag(self) -> Given:
        recording = write_bag(self.folder / "recording", self.telemetry)
        write_energy_bag(model_with(5.0), recording, self.folder / "energy")
        with Reader(self.folder / "energy") as reader:
            for connection, _, raw in reader.messages():
                if connection.topic == "/energy":
                    last = MESSAGES.deserialize_cdr(raw, connection.msgtype)
        return self.of_message(last)

    def of_message(self, message: Any) -> Given:
        return self.of_names(dict(zip(message.name, message.position, strict=True)), "{}")

    def measured_energy(self) -> float:
        """Trapezoid of voltage times current, gaps left out [J]."""
        power = (
            self.telemetry["actual_robot_voltage"]
            * self.telemetry["actual_robot_current"]
        )
        steps = np.diff(self.telemetry.time)
        return float(np.where(steps > 0.1, 0.0, steps) @ (power[1:] + power[:-1]) / 2.0)


SURFACES: dict[str, Callable[[Surfaces], Given]] = {
    "energies of topics": lambda all_: all_.topics("energy"),
    "powers of topics": lambda all_: all_.topics("power"),
    "positions of energy": lambda all_: all_.energy_message(0),
    "velocities of energy": lambda all_: all_.energy_message(1),
    "energies of energy/joints": lambda all_: all_.joints_message("electrical_energy"),
    "powers of energy/joints": lambda all_: all_.joints_message("electrical_power"),
    "energies of energy/summary": lambda all_: all_.summary("energy_J"),
    "powers of energy/summary": lambda all_: all_.summary("power_W"),
    "energy/cycle": Surfaces.cycle_message,
    "cycle log": Surfaces.cycle_log,
    "read_interval": Surfaces.read_interval,
    "live view as JSON": Surfaces.live_json,
    "cycle of the live view as JSON": Surfaces.live_json_cycle,
    "energy bag": Surfaces.energy_bag,
}
WITHOUT_SOURCE = {  # numbers alone; energy/summary beside them has it
    "energies of topics", "powers of topics", "positions of energy", "velocities of energy",
    "energies of energy/joints", "powers of energy/joints", "energy bag", "messages",
}  # fmt: skip
OF_A_PART = {"energy/cycle", "cycle log", "cycle of the live view as JSON"}
"""Those whose time is not that of the recording."""


@pytest.mark.parametrize("source", SOURCES)
def test_on_every_surface(source: str, tmp_path: Path) -> None:
    arm = Surfaces(source, tmp_path)
    for name, surface in SURFACES.items():
        check_surface(name, surface(arm), arm, source)


def check_surface(name: str, given_: Given, arm: Surfaces, source: str) -> None:
    """The parts sum to the total, and the source is that of the arm."""
    parts = given_.parts
    assert set(parts) == {*JOINTS, *PARTS}, name
    assert sum(parts.values()) == pytest.approx(given_.total, rel=1e-9), name
    model = given_.total - parts["unexplained"]
    assert given_.model == pytest.approx(model, rel=1e-9), name
    assert (parts["unexplained"] == 0.0) == (source == "modelled"), name
    if name in WITHOUT_SOURCE:
        return
    assert given_.source == source, name
    wide = 0.25 if name in OF_A_PART else 0.06
    assert given_.share == pytest.approx(SOURCES[source], abs=wide), name
    if source == "measured" and name.startswith(("energies", "read", "live")):
        assert given_.total == pytest.approx(arm.measured_energy(), rel=1e-9), name


@pytest.mark.parametrize("source", SOURCES)
def test_each_total_and_model_has_an_interval_of_its_own(
    source: str, tmp_path: Path
) -> None:
    arm = Surfaces(source, tmp_path)
    net = arm.snapshot.since_reset.net
    total = float(arm.channels.deviations_of_total(net))
    model = float(arm.channels.deviations_of_model(net))
    assert total > 0.0
    # What is measured is known far better than what is modelled.
    assert (total < 0.1 * model) == (source == "measured")
    found = json.loads(json_line(arm.state))
    stds = {
        "total": [found["total_energy_std"], energy_std(arm, "total")],
        "model": [found["model_energy_std"], energy_std(arm, "model")],
    }
    summary = {
        each.name: each.values for each in summary_statuses(arm.snapshot, JOINTS, "")
    }
    interval = interval_energies(arm.passed, arm.channels, JOINTS)
    for name in ("total", "model"):
        stds[name].append(cast(float, summary[f"energy: {name}"]["energy_std_J"]))
        stds[name].append(cast(float, interval[f"{name}_std_J"]))
    assert stds["total"] == pytest.approx([total] * 4)
    assert stds["model"] == pytest.approx([model] * 4)
    over = arm.snapshot.seconds
    of_power = float(arm.channels.deviations_of_total(arm.snapshot.power, over))
    assert summary["energy: total"]["power_std_W"] == pytest.approx(of_power)


def energy_std(arm: Surfaces, name: str) -> float:
    """Standard deviation in the topic energy [J]."""
    return float(energy_values([arm.snapshot])[0][2][energy_names(JOINTS).index(name)])
