# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Energy at the wall of recordings: by a meter where it was read, by the model elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from test.identification.wall_cells import Work, fit_of
from test.truth import first_fast
from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.meter import CONFIDENCE, EnergyMeter, StepRule
from ur_energy_model.energy.powers import Channels, PowerTable, arm_states
from ur_energy_model.energy.wall import RecordedWall, WallEnergy
from ur_energy_model.identification.wall_fit import fit_wall
from ur_energy_model.model.generic import generic_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.wall import WallModel, generic_wall
from ur_energy_model.simulation.wall import SimulatedWall, draw_wall
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.typing import Array

CHANNELS = Channels(["joint"], (0, 1))
WALL = SimulatedWall((30.0, 38.0, 42.0), 1.12, 1.5e-4, delay=1.4, noise=0.3)


def tables(
    time: Array, columns: dict[str, Array], std: float = 0.0
) -> Iterator[PowerTable]:
    """Powers as the calculator makes them, the total's deviation a share of it."""
    gaps = StepRule()
    total = columns["actual_robot_voltage"] * columns["actual_robot_current"]
    for start in range(0, len(time), 1000):
        part = slice(start, start + 1000)
        batch = Telemetry(
            time[part],
            {k: v[part] for k, v in columns.items()},
            RecordingInfo(source="cell"),
            (),
        )
        states = arm_states(batch, batch["actual_qd"])
        power = np.zeros((len(batch), len(CHANNELS)))
        power[:, CHANNELS.arm["total"]] = total[part]
        power[:, CHANNELS.arm["total_square"]] = total[part] ** 2
        power[np.arange(len(batch)), CHANNELS.state_time + states] = 1.0
        power[:, -1] = std * total[part]
        yield PowerTable(batch, gaps(batch.time), states, power, True)


def measured(
    time: Array, columns: dict[str, Array], model: WallModel, std: float = 0.0
) -> tuple[WallEnergy, float]:
    """Energy at the wall of a recording, and its time [s]."""
    wall = RecordedWall(Channels(["joint"], (0, 1), model))
    meter = EnergyMeter(len(CHANNELS))
    for table in tables(time, columns, std):
        table.integrate(meter)
        wall.add(table)
    return wall.energy(meter.reading.net), meter.reading.accounted


@pytest.mark.parametrize("seconds", first_fast([120.0, 900.0]))
def test_a_recorded_meter_is_integrated(seconds: float) -> None:
    errors = []
    covered = []
    widths = []
    for seed in range(20):
        work = Work(draw_wall(seed), seed, seconds, 0.1)
        found, time = measured(
            work.time, work.columns, generic_wall("e-series"), std=0.02
        )
        error = found.energy - work.truth * time
        errors.append(error / found.energy)
        covered.append(abs(error) < CONFIDENCE * found.std)
        widths.append(CONFIDENCE * found.std / found.energy)
        assert found.source == "meter"
    assert np.abs(errors).max() < 0.05  # silences up to a tenth of the time
    assert np.mean(covered) >= 0.9
    assert np.median(widths) < (0.08 if seconds < 200.0 else 0.02)


def test_the_model_fills_the_time_without_readings() -> None:
    work = Work(WALL, 3, 900.0)
    fitted = fit_wall([fit_of(work.time, work.columns)], "e-series")
    assert fitted is not None
    columns = work.columns
    columns["wall_power"][20_000:40_000] = np.nan  # of 45,000 samples
    results = {}
    for name, model in (("own", fitted), ("other", generic_wall("e-series"))):
        results[name], time = measured(work.time, columns, model)
        error = abs(results[name].energy - work.truth * time)
        assert error < CONFIDENCE * results[name].std
    assert abs(results["own"].energy - work.truth * time) < 2e-3 * results["own"].energy
    assert results["own"].std < 0.1 * results["other"].std
    whole, _ = measured(work.time, work.columns, generic_wall("e-series"))
    assert whole.std < 0.2 * results["other"].std


@pytest.mark.parametrize(
    ("kind", "source"), first_fast([("generic", "generic"), ("fitted", "model")])
)
def test_without_a_meter_the_model_covers_and_names_itself(
    kind: str, source: str
) -> None:
    covered = []
    for seed in range(15):
        work, hour = (Work(draw_wall(seed), 2 * seed + k, 600.0) for k in range(2))
        model = generic_wall("cb3")
        if kind == "fitted":
            found = fit_wall([fit_of(work.time, work.columns)], "cb3")
            assert found is not None
            model = found
        columns = {
            name: v for name, v in hour.columns.items() if not name.startswith("wall")
        }
        energy, time = measured(hour.time, columns, model)
        covered.append(abs(energy.energy - hour.truth * time) < CONFIDENCE * energy.std)
        assert energy.source == source
        assert ("not measured" in energy.words()) == (kind == "generic")
    assert np.mean(covered) >= 0.9


def test_power_and_energy_are_one_function_of_the_channels() -> None:
    work = Work(WALL, 3, 300.0, 0.1)
    meter = EnergyMeter(len(CHANNELS))
    powers = []
    for table in tables(work.time, work.columns, std=0.01):
        table.integrate(meter)
        powers.append(table.power)
    value, std = CHANNELS.at_wall(np.concatenate(powers))
    energy, energy_std = CHANNELS.at_wall(meter.reading.net)
    steps = np.diff(work.time)
    assert energy == pytest.approx(0.5 * ((value[1:] + value[:-1]) * steps).sum())
    assert energy_std <= 0.5 * ((std[1:] + std[:-1]) * steps).sum()
    mean, mean_std = CHANNELS.at_wall(meter.reading.net / meter.reading.accounted)
    assert mean * meter.reading.accounted == pytest.approx(energy)
    assert mean_std * meter.reading.accounted == pytest.approx(energy_std)


def test_the_calculator_has_the_squares_and_the_wall_of_its_model() -> None:
    model = generic_model("ur5")
    robot = load_robot("ur5")
    calculator = EnergyCalculator(model, robot)
    time = np.arange(0.0, 4.0, 0.008)
    n = len(time)
    current = 2.0 * np.sin(5.0 * time)[:, None] * np.ones(6)
    columns = {"actual_qd": np.full((n, 6), 0.5), "actual_current": current}
    table = calculator(Telemetry(time, columns, RecordingInfo(source="arm"), ()))
    assert table is not None
    arm = calculator.channels.arm
    np.testing.assert_allclose(
        table.power[:, arm["total_square"]], table.power[:, arm["total"]] ** 2
    )
    assert calculator.channels.wall is generic_wall("cb3")
    own = replace(generic_wall("cb3"), source="meter")
    assert EnergyCalculator(replace(model, wall=own), robot).channels.wall is own
