# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""How well the bus power is known, against known noise, resolution and outages."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.energy.meter import bridged_steps
from ur_energy_model.energy.supply import BusMeter, BusPower
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array

RATE = 50.0


def measured(
    voltage: Array, current: Array, time: Array | None = None, size: int = 7
) -> BusPower:
    """Bus power of a running arm, batch by batch."""
    if time is None:
        time = np.arange(len(voltage)) / RATE
    columns = {"actual_robot_voltage": voltage, "actual_robot_current": current}
    samples = Telemetry(time, columns)
    steps = bridged_steps(time)
    meter = BusMeter()
    found = []
    for start in range(0, len(time), size):
        rows = slice(start, start + size)
        part = samples.cut(rows)
        meter, power = meter.step(part, steps[rows], np.ones(len(part), dtype=bool))
        found.append(power)
    return BusPower(*map(np.concatenate, zip(*found, strict=True)))


def test_white_noise_has_its_variance() -> None:
    random = np.random.default_rng(1)
    current = 1.5 + 0.05 * random.standard_normal(20_000)
    power = measured(np.full(20_000, 48.0), current)
    variance = (48.0 * 0.05) ** 2
    assert power.noise.sum() == pytest.approx(variance * 20_000 / RATE, rel=0.05)


@pytest.mark.parametrize("step", [0.001, 0.01])
def test_a_signal_that_rests_has_the_error_of_its_resolution(step: float) -> None:
    current = np.full(1000, 1.5)
    current[10] += step
    power = measured(np.full(1000, 48.0), current)
    expected = 48.0 * step / np.sqrt(12.0)
    assert power.resolution[-1] == pytest.approx(expected, rel=0.01)


def test_an_outage_is_no_noise_and_every_second_sample_keeps_the_noise_that_was_seen() -> (
    None
):
    random = np.random.default_rng(2)
    watts = np.repeat([60.0, 600.0], 500)
    time = np.arange(1000) / RATE + np.where(np.arange(1000) < 500, 0.0, 30.0)
    current = watts / 48.0 + 0.05 * random.standard_normal(1000)
    power = measured(np.full(1000, 48.0), current, time)
    assert power.noise.max() * RATE < 25.0 * (48.0 * 0.05) ** 2
    current[501::2] = np.nan
    holes = measured(np.full(1000, 48.0), current, time)
    assert (holes.noise[502::2] > 0.0).all()
    assert not holes.measured[501::2].any()


def test_an_arm_that_is_off_has_an_interval_too() -> None:
    current = np.zeros(100)
    current[:10] = 1.0
    power = measured(np.where(current > 0.0, 48.0, 0.0), current)
    assert power.measured.all()
    assert (power.resolution > 0.0).all()
