# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Power meters that cannot be right, and those of many kinds that can."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from test.identification.wall_cells import IDLE, RATE, Work
from test.truth import first_fast
from ur_energy_model.consistency.contradiction import Contradiction
from ur_energy_model.consistency.meter_readings import FrozenRuns
from ur_energy_model.energy.wall import RecordedMeter
from ur_energy_model.robot_modes import POWER_OFF
from ur_energy_model.simulation.wall import SimulatedWall, draw_wall
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.typing import Array

SECONDS = 400.0
LOOKS = (15.0, 30.0, 60.0, 120.0, 240.0, SECONDS)
"""Times at which the meter of a recording is judged [s]."""


def bus_and_mode(
    kind: str, work: Work, random: np.random.Generator
) -> tuple[Array, Array]:
    """Bus power [W] and robot mode of a kind of work."""
    time = work.time - work.time[0]
    bus = work.bus.copy()
    mode = work.mode.copy()
    if kind == "standstill":
        bus[:] = random.uniform(24.0, 36.0)
    elif kind == "off":
        bus[:] = 0.0
        mode[:] = POWER_OFF
    elif kind == "idle":
        bus[:] = random.uniform(8.0, 20.0)
        mode[:] = IDLE
    elif kind == "switched on":
        on = time > SECONDS * random.uniform(0.1, 0.6)
        bus[~on] = 0.0
        mode[~on] = POWER_OFF
    elif kind == "heavy":
        bus *= 3.0
    elif kind == "square":
        period = random.choice([10.0, 20.0, 60.0, 120.0])
        bus = 30.0 + random.uniform(30.0, 200.0) * (time % period < period / 2.0)
    elif kind == "regenerating":
        bus = np.maximum(bus - 80.0 * (random.random(len(bus)) < 0.3), 0.0)
    return bus + 1.5 * random.normal(size=len(bus)) * (mode != POWER_OFF), mode


KINDS = (
    "work",
    "standstill",
    "off",
    "idle",
    "switched on",
    "heavy",
    "square",
    "regenerating",
)
METERS: tuple[dict[str, float], ...] = (
    {"period": 0.5, "averaging": 0.5, "delay": 0.2, "resolution": 0.1},
    {"period": 1.0, "averaging": 1.0, "delay": 1.0, "resolution": 1.0},
    {"period": 2.0, "averaging": 2.0, "delay": 3.0, "resolution": 5.0},
    {"period": 10.0, "averaging": 10.0, "delay": 5.0, "resolution": 10.0},
    {"period": 60.0, "averaging": 60.0, "delay": 2.0, "resolution": 1.0},
    {"period": 60.0, "averaging": 1.0, "delay": 2.0, "resolution": 1.0},
    {"period": 1.0, "averaging": 60.0, "delay": 2.0, "resolution": 1.0},
    {"period": 1.0, "averaging": 30.0, "delay": 5.0, "resolution": 5.0},
)


def columns_of(
    wall: SimulatedWall, kind: str, seed: int
) -> tuple[Array, dict[str, Array]]:
    """Times and columns of a recording with the meter of a wall."""
    work = Work(wall, seed, SECONDS)
    random = np.random.default_rng([seed, 77])
    bus, mode = bus_and_mode(kind, work, random)
    power = wall.power(mode, np.maximum(bus, 0.0))
    return work.time, {
        "actual_qd": np.zeros((len(bus), 6)),
        "robot_mode": mode,
        "actual_robot_voltage": np.full(len(bus), 48.0),
        "actual_robot_current": bus / 48.0,
        **wall.readings(work.time, power),
    }


def judged(
    time: Array,
    columns: dict[str, Array],
    looks: tuple[float, ...] = LOOKS,
    batch: int = 397,
) -> dict[float, tuple[Contradiction, ...]]:
    """What is said of the meter after each of the times [s]."""
    meter = RecordedMeter()
    found = dict[float, tuple[Contradiction, ...]]()
    row = 0
    info = RecordingInfo(source="cell", robot="ur5e", extra={"meter": "http://cell/rpc"})
    for look in (*looks, SECONDS):
        while row < min(look * RATE, len(time)):
            part = slice(row, row + batch)
            values = {name: each[part] for name, each in columns.items()}
            meter.observe(Telemetry(time[part], values, info, ()))
            row += batch
        found[look] = meter.contradictions
    meter.finish()
    return found | {SECONDS: meter.contradictions}


@pytest.mark.parametrize(
    "meter", first_fast(METERS), ids=lambda each: "-".join(map(str, each.values()))
)
def test_a_meter_that_is_right_is_never_accused(meter: dict[str, Any]) -> None:
    """Delay, averaging and resolution of real meters, at any time of any work."""
    for seed, kind in enumerate(KINDS):
        wall = replace(draw_wall(seed), **meter)
        found = judged(*columns_of(wall, kind, seed))
        assert not any(found.values()), (kind, found)


ROOT = np.sqrt(2.0)
WRONG: dict[str, tuple[Callable[[Array, Array], Array], str, float]] = {
    "reversed": (lambda watts, time: -watts, "turn its clamp", 30.0),
    "a tenth": (lambda watts, time: 0.1 * watts, "current transformer", 30.0),
    "one phase": (lambda watts, time: watts / 3.0, "one phase of three", 60.0),
    "three phases": (lambda watts, time: 3.0 * watts, "three phases", 60.0),
    "kW": (lambda watts, time: 0.001 * watts, "@kW", 30.0),
    "mW": (lambda watts, time: 1000.0 * watts, "@mW", 30.0),
    "zero": (lambda watts, time: 0.0 * watts, "meter", 30.0),
    "other machine": (
        lambda watts, time: np.where(
            np.isnan(watts), np.nan, 700.0 + 300.0 * np.sin(time / ROOT)
        ),
        "control box, and of nothing else",
        30.0,
    ),
}
"""Readings of wrong meters, what the remedy names, and when it is said of a working arm [s]."""


@pytest.mark.parametrize("seed", first_fast(range(3)))
@pytest.mark.parametrize("name", WRONG)
def test_a_meter_that_cannot_be_right_is_named(name: str, seed: int) -> None:
    """In the first minute, and with a remedy that fits."""
    change, remedy, latest = WRONG[name]
    time, columns = columns_of(replace(draw_wall(seed), noise=0.3), "work", seed)
    columns["wall_power"] = change(columns["wall_power"], time)
    found = judged(time, columns, (latest, SECONDS))
    for (contradiction,) in found.values():
        assert contradiction.subject == "wall_meter"
        assert "http://cell/rpc" in contradiction.stated
        assert remedy in contradiction.remedy, contradiction.words()
        assert contradiction.evidence


def test_readings_of_another_machine_do_not_follow_the_robot() -> None:
    """A plausible mean is not enough, once the load has changed for some minutes."""
    wall = replace(draw_wall(3), averaging=1.0)
    time, columns = columns_of(wall, "heavy", 5)
    work = Work(wall, 5, SECONDS)
    expected = float(wall.power(work.mode, 3.0 * work.bus).mean())
    other = np.round(expected + 10.0 * np.sin(0.3 * time))
    columns["wall_power"] = np.where(np.isnan(columns["wall_power"]), np.nan, other)
    (contradiction,) = judged(time, columns, ())[SECONDS]
    assert "do not follow" in contradiction.shown


def test_a_frozen_meter_is_a_warning_about_that_time() -> None:
    time, columns = columns_of(replace(draw_wall(1), noise=0.3), "work", 1)
    frozen = (time > time[0] + 150.0) & (time < time[0] + 300.0)
    columns["wall_power"][frozen] = columns["wall_power"][np.argmax(frozen)]
    (contradiction,) = judged(time, columns, ())[SECONDS]
    assert "repeated" in contradiction.shown


@pytest.mark.parametrize(
    ("seconds", "begins", "changes", "quick", "frozen"),
    [
        (220.0, 150.0, (60.0, 40.0, 30.0), False, True),
        (220.0, 150.0, (60.0, 40.0, 5.0), False, False),  # it may average over a minute
        (60.0, 30.0, (60.0, 40.0, 5.0), True, True),  # it does not
        (60.0, 10.0, (60.0, 60.0, 60.0), True, False),  # the run began with this power
        (25.0, 10.0, (60.0, 60.0, 60.0), True, False),  # not for half a minute
        # at rest the same reading is right
        (220.0, 150.0, (10.0, 10.0, 10.0), True, False),
        # no measured power to compare with
        (220.0, 150.0, (60.0, np.nan, np.nan), False, False),
    ],
)
def test_runs_of_equal_readings(
    seconds: float, begins: float, changes: tuple[float, ...], quick: bool, frozen: bool
) -> None:
    """Of 90 W, while the means of the power change by this after some time [s]."""
    runs = FrozenRuns()
    found = []
    for time in np.arange(0.0, seconds + 0.5, 2.0):
        means = 40.0 + np.array(changes) * (time > begins)
        means = np.where(np.isnan(changes), np.nan, means)
        found.append(runs.includes(time, 90.0, means, quick=quick))
    assert found[-1] == frozen
    assert (runs.seconds > 0.0) == frozen
    assert not runs.includes(seconds + 2.0, 91.0, means, quick=quick)  # it goes on


def test_batches_do_not_matter_and_a_clock_may_go_back() -> None:
    time, columns = columns_of(replace(draw_wall(2), noise=0.3), "work", 2)
    columns["wall_power"] = 0.1 * columns["wall_power"]
    first, second = (
        judged(time, columns, (), batch=size)[SECONDS] for size in (13, 1009)
    )
    assert first[0].shown == second[0].shown
    again = np.where(np.arange(len(time)) < len(time) // 2, time, time - SECONDS / 2.0)
    assert judged(again, columns, (), batch=100)[SECONDS]


@pytest.mark.parametrize("missing", ["wall_power", "actual_robot_current", "actual_qd"])
def test_without_meter_or_bus_power_nothing_is_said(missing: str) -> None:
    time, columns = columns_of(draw_wall(2), "work", 2)
    columns["wall_power"] = -columns["wall_power"]
    del columns[missing]
    assert not any(judged(time, columns).values())
