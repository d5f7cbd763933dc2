"""When cycles start, and what each of them took."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from test.energy.known_arm import ROBOT, changed, known_model, motion, packets, total
from ur_energy_model.energy.live.cycles import Cycle, CycleDetector, Trigger
from ur_energy_model.energy.live.estimator import LiveEstimator
from ur_energy_model.energy.live.options import LiveOptions
from ur_energy_model.errors import MissingFieldError
from ur_energy_model.telemetry.samples import Telemetry

SIGNALS: dict[Trigger, tuple[str, list[float], list[int]]] = {
    "program": ("runtime_state", [2, 2, 1, 2, 2, 4, 2], [3, 6]),
    "digital_output": ("actual_digital_output_bits", [0, 8, 12, 4, 8, 0, 255], [1, 4, 6]),
    "int_register": ("output_int_register_0", [0, 0, 5, 5, 6, 0, 0], [2, 4, 5]),
}


@pytest.mark.parametrize("trigger", SIGNALS)
@pytest.mark.parametrize("size", [1, 3, 7])
def test_starts_are_found_at_their_samples(trigger: Trigger, size: int) -> None:
    field, signal, expected = SIGNALS[trigger]
    telemetry = Telemetry(np.arange(7.0), {field: np.array(signal)})
    starts = CycleDetector(trigger, output=3)
    found = []
    for i, batch in enumerate(packets(telemetry, size)):
        found += [int(k) + i * size for k in starts.find(batch)]
    assert found == expected


def test_a_source_without_the_signal_is_refused() -> None:
    with pytest.raises(MissingFieldError, match="cycle_trigger"):
        CycleDetector("program").find(Telemetry(np.zeros(1), {}))


def run_cycles(log: Path | None, size: int) -> tuple[list[Cycle], Telemetry, LiveEstimator]:
    """Cycles that start at samples 500, 1250 and 2000."""
    telemetry = motion(6.0)
    register = np.zeros(len(telemetry))
    for place in (500, 1250, 2000):
        register[place:] += 1
    telemetry = changed(telemetry, output_int_register_0=register)
    done: list[Cycle] = []
    estimator = LiveEstimator(
        known_model(),
        ROBOT,
        LiveOptions(cycle_trigger="int_register", cycle_log=log),
        on_cycle=done.append,
    )
    for batch in packets(telemetry, size):
        estimator.update(batch)
    estimator.snapshot()
    return done, telemetry, estimator


@pytest.mark.parametrize("size", [1, 40, 5000])
def test_each_cycle_has_the_energy_of_its_samples(size: int) -> None:
    done, telemetry, estimator = run_cycles(None, size)
    assert [cycle.number for cycle in done] == [1, 2]
    power, time = total(telemetry), telemetry.time
    for cycle, (start, stop) in zip(done, [(500, 1250), (1250, 2000)], strict=True):
        summary = cycle.summary(estimator.channels)
        # A cycle reaches from the sample before its start to the last one before the next.
        part = slice(start - 1, stop)
        assert summary["total_energy"] == pytest.approx(np.trapezoid(power[part], time[part]))
        assert summary["duration"] == pytest.approx(1.5)
        assert summary["start"] == pytest.approx(time[start])
        assert summary["peak_power"] == pytest.approx(power[start:stop].max())
        whole = summary["motion_energy"] + summary["idle_energy"]
        assert whole == pytest.approx(summary["total_energy"])
        assert summary["motion_time"] + summary["idle_time"] == pytest.approx(1.5)


def test_cycles_are_kept_in_a_file(tmp_path: Path) -> None:
    log = tmp_path / "new" / "cycles.csv"
    done, _, estimator = run_cycles(log, 10)
    run_cycles(log, 10)
    with log.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["cycle"] for row in rows] == ["1", "2", "1", "2"]
    first = done[0].summary(estimator.channels)
    assert {key: float(rows[0][key]) for key in first} == pytest.approx(first)


def test_a_call_starts_a_cycle_with_the_next_sample() -> None:
    telemetry = motion(3.0)
    done: list[Cycle] = []
    estimator = LiveEstimator(known_model(), ROBOT, on_cycle=done.append)
    for i, batch in enumerate(packets(telemetry, 10)):
        if i in (20, 120):
            estimator.start_cycle()
        estimator.update(batch)
    estimator.snapshot()
    (cycle,) = done
    assert cycle.start == pytest.approx(telemetry.time[200])
    assert cycle.duration == pytest.approx(2.0)
