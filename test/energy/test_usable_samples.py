# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Which samples energy is computed from: all of real arms, none with impossible values."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from test.energy.known_arm import ROBOT, changed, known_model, motion, packets, total
from test.properties import examples
from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.cycles import Trigger
from ur_energy_model.energy.live import LiveEstimator, LiveOptions
from ur_energy_model.energy.meter import EnergyMeter
from ur_energy_model.energy.powers import Method, PowerOptions
from ur_energy_model.energy.snapshot import Snapshot
from ur_energy_model.energy.telemetry_checks import (
    UsableSamples,
    most_power,
    rated_limits,
)
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.csv.reader import read_csv
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array

REAL = (
    "ur10e_excitation_loaded_2.805kg_56s",
    "ur10e_other_days_2020_02_05",
    "ur3e_moves_payload_1.07kg_25hz_36s",
    "ur5e_pick_place_50hz_24s",
)


@pytest.mark.parametrize("name", REAL)
def test_every_sample_of_a_real_arm_is_usable_with_a_wide_margin(
    recordings: Path, name: str
) -> None:
    robot = load_robot(name.partition("_")[0])
    telemetry = read_csv([recordings / f"{name}.csv.gz"], robot.name)
    current = telemetry["actual_current"]
    limits = rated_limits(robot)
    half = {field: (0.6 * low, 0.6 * high) for field, (low, high) in limits.items()}
    half["timestamp"] = limits["timestamp"]
    power = most_power(robot)
    for measured in (current, None):
        assert UsableSamples(half, power)(telemetry, measured).all()
    motors = current * robot.gear_ratio * robot.torque_constant * telemetry["actual_qd"]
    assert np.abs(motors).sum(axis=1).max() < power / 8
    if telemetry.bus_power is not None:
        assert np.abs(telemetry.bus_power).max() < power / 8


def full_motion(seconds: float) -> Telemetry:
    """The known arm with every field that the estimator reads."""
    telemetry = motion(seconds)
    n = len(telemetry)
    still = np.zeros((n, 6))
    return changed(
        telemetry,
        target_q=telemetry["actual_q"],
        target_qd=telemetry["actual_qd"],
        target_qdd=still,
        payload_inertia=still,
        target_speed_fraction=np.ones(n),
        actual_robot_energy_consumed=np.linspace(0.0, 40.0, n),
    )


WHOLE = full_motion(0.8)
VALUES = (np.nan, np.inf, -np.inf, 1e300, -1e300, 1e19, 2.0**64, 1e6, 300.0, -1.0, 0.0)


def with_garbage(
    telemetry: Telemetry, places: list[tuple[str, int, int, float]]
) -> Telemetry:
    """Values written into `count` rows of fields from a row on."""
    columns = {name: np.array(values) for name, values in telemetry.columns.items()}
    for name, row, count, value in places:
        columns[name][row : row + count] = value
    return replace(telemetry, time=columns["timestamp"], columns=columns)


def finite(snapshot: Snapshot) -> Array:
    life = snapshot.lifetime
    session = (snapshot.standby_std, snapshot.unexplained_mean)
    numbers = (
        life.accounted,
        life.unaccounted,
        *session,
        snapshot.controller_energy or 0.0,
    )
    return np.concatenate([life.net, life.consumed, snapshot.power, numbers])


@pytest.mark.filterwarnings("error")
@examples(5)
@given(
    places=st.lists(
        st.tuples(
            st.sampled_from(sorted(WHOLE.columns)),
            st.integers(0, len(WHOLE) - 1),
            st.sampled_from((1, 3, 60, 400)),
            st.sampled_from(VALUES),
        ),
        min_size=1,
        max_size=4,
    ),
    size=st.sampled_from((1, 7, 50, 400)),
    method=st.sampled_from(("auto", "current", "motion")),
    trigger=st.sampled_from(("none", "program", "digital_output", "int_register")),
)
def test_no_value_in_any_field_stops_or_spoils_the_counters(
    places: list[tuple[str, int, int, float]], size: int, method: Method, trigger: Trigger
) -> None:
    telemetry = with_garbage(WHOLE, places)
    options = LiveOptions(power=PowerOptions(method=method), cycle_trigger=trigger)
    estimator = LiveEstimator(known_model(), ROBOT, options)
    column = estimator.channels.arm["total"]
    limit = most_power(ROBOT)
    before = 0.0
    for batch in packets(telemetry, size):
        estimator.update(batch)
        snapshot = estimator.snapshot()
        if snapshot is None:
            continue
        assert np.isfinite(finite(snapshot)).all()
        energy = float(snapshot.lifetime.consumed[column])
        assert before <= energy <= limit * snapshot.lifetime.accounted + 1e-6
        before = energy
    assert estimator.samples + estimator.refused <= len(telemetry)

    calculator = EnergyCalculator(known_model(), ROBOT, options.power)
    meter = EnergyMeter(len(calculator.channels))
    table = calculator(telemetry)
    if table is not None:
        table.integrate(meter)
    assert calculator.refused == estimator.refused
    assert meter.reading.accounted == pytest.approx(
        0.0 if snapshot is None else snapshot.lifetime.accounted
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("timestamp", np.nan),
        ("actual_current", 500.0),
        ("robot_mode", np.inf),
        ("actual_robot_current", 101.0),
    ],
)
def test_impossible_samples_are_refused_counted_and_unaccounted(
    name: str, value: float
) -> None:
    telemetry = motion(2.0)
    estimator = LiveEstimator(known_model(), ROBOT)
    for batch in packets(with_garbage(telemetry, [(name, 300, 400, value)]), 50):
        estimator.update(batch)
    snapshot = estimator.snapshot()
    assert snapshot is not None
    assert snapshot.refused == 400
    assert snapshot.lifetime.unaccounted == pytest.approx(401 / 500)
    good = np.r_[0:300, 700:1001]
    steps = np.diff(telemetry.time[good])
    steps[299] = 0.0
    power = total(telemetry)[good]
    expected = float(0.5 * steps @ (power[1:] + power[:-1]))
    assert snapshot.lifetime.net[estimator.channels.arm["total"]] == pytest.approx(
        expected
    )
