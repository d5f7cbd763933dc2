# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Points of the front of energy against peak power, run on an arm and measured at its bus."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from test.benchmarks.bench_saving import cell_of
from test.optimization.hand_made import hand_made_cycle
from test.truth import first_fast
from ur_energy_model.errors import RecordingError
from ur_energy_model.experiment.cycle_proof import (
    Proof,
    measured_peak,
    require_predicted,
    run_energies,
    run_peaks,
)
from ur_energy_model.optimization.cycle import OptimizationOptions
from ur_energy_model.optimization.optimize import optimize_cycle
from ur_energy_model.optimization.page import measured_front_table
from ur_energy_model.optimization.power_front import (
    PEAK_WINDOW,
    FrontPoint,
    MeasuredPeak,
    Peak,
    PowerFront,
)
from ur_energy_model.telemetry.samples import Telemetry

OPTIMIZED = hand_made_cycle()
POINT = FrontPoint(OPTIMIZED.stretches, Peak(60.0, 90.0, 80.0, (70.0, 90.0)))
REST = 0.537  # before and after the run [s]
BASE = 60.0
PULSE = 100.0  # power of a short pulse in the middle of each cycle [W]
LENGTHS = (0.04, 0.3)  # of the pulse in recorded and new cycles [s]


def recording(proof: Proof) -> Telemetry:
    """The run: constant power, and in the middle of each cycle a pulse, longer in new ones."""
    motion = proof.motion()
    time = np.arange(0.0, motion.duration + 2 * REST, 0.002)
    q, _, _ = motion.sample(np.clip(time - REST, 0.0, motion.duration))
    power = np.full(len(time), BASE)
    start = REST
    for new in proof.order:
        cycle = proof.after if new else proof.before
        middle = start + 0.5 * cycle.duration
        pulse = np.abs(time - middle) < 0.5 * LENGTHS[new]
        power[pulse] += PULSE
        start += cycle.duration
    columns = {
        "target_q": q,
        "actual_robot_voltage": np.full(len(time), 48.0),
        "actual_robot_current": power / 48.0,
    }
    return Telemetry(time + 1000.0, columns)


def test_peaks_of_every_cycle_are_means_over_the_window() -> None:
    """A pulse shorter than the window counts by its share, a longer one in full."""
    proof = Proof.of(OPTIMIZED, 2, POINT)
    whole = recording(proof)
    truth = np.where(proof.order, BASE + PULSE, BASE + PULSE * LENGTHS[0] / PEAK_WINDOW)
    np.testing.assert_allclose(run_peaks(whole, proof), truth, rtol=0.03)
    since = whole.time - whole.time[0]
    away = (since > REST + 1.0) & (since < REST + 1.3)  # an outage in the first cycle
    broken = run_peaks(whole.select(~away), proof)
    assert np.flatnonzero(~np.isfinite(broken)).tolist() == [0]
    energy, _ = run_energies(whole, proof)
    assert np.isfinite(energy).all()


def test_a_point_of_the_front_is_run_and_its_measurement_is_reported() -> None:
    proof = Proof.of(OPTIMIZED, 1, POINT)
    duration = sum(stretch.plan.duration for stretch in POINT.stretches)
    assert proof.after.duration == pytest.approx(duration)
    front = PowerFront(POINT.predicted, (POINT,))
    assert measured_front_table(front) is None
    measured = MeasuredPeak(410.0, 369.0, 10.0, (9.0, 11.0), 120.0, 81.0, 6)
    table = measured_front_table(front.with_measured(1, measured))
    assert table is not None
    before, after = table.rows
    assert before == ("as recorded", "410.0", "", "120.0")
    assert after == ("point 1", "369.0", "10.00 (9.00 to 11.00)", "81.0")


@pytest.mark.truth
@pytest.mark.parametrize(("name", "seed"), first_fast([("ur5e", 41), ("ur3e", 43)], 0))
def test_measured_peaks_have_the_promised_order_and_are_within_their_intervals(
    name: str, seed: int, tmp_path: Path
) -> None:
    """The controller of a simulated arm plays each point in turns with the recorded cycle."""
    model, cell, run = cell_of(name, seed, tmp_path)
    found = optimize_cycle(model, cell, OptimizationOptions(front_points=3))
    front = found.power_front
    assert front is not None
    assert len(front.points) == 3
    peaks = []
    energies = []
    for number, point in enumerate(front.points, 1):
        proof = Proof.of(found, 2, point)
        bag = run(f"point_{number}", proof.motion())
        measured = measured_peak(bag, proof)
        require_predicted(measured, found, bag, point)
        low, high = point.predicted.window_peak_power_interval
        assert low < measured.new_window_peak_power < high
        assert measured.new_window_peak_power < measured.window_peak_power
        low, high = front.recorded.window_peak_power_interval
        assert low < measured.window_peak_power < high
        peaks.append(measured.new_window_peak_power)
        energies.append(measured.new_energy)
        front = front.with_measured(number, measured)
    assert peaks == sorted(peaks, reverse=True)
    assert energies[0] < energies[-1]
    table = measured_front_table(front)
    assert table is not None
    assert len(table.rows) == 2 * len(front.points)
    wrong = replace(found, energy=0.5 * found.energy)
    with pytest.raises(RecordingError, match="no saving is proven"):
        require_predicted(measured, wrong, bag, point)
