"""Which steps between samples are gaps, at any rate."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ur_energy_model.energy.meter import GapRule, bridged_steps
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.samples import Gap, RecordingInfo, Telemetry


@pytest.mark.parametrize("rate", [4.0, 5.0, 8.0, 10.0, 94.0, 500.0])
def test_a_recording_without_gaps_is_bridged_throughout(rate: float) -> None:
    time = 1e5 + np.arange(200) / rate  # large times, so that steps are not exactly equal
    assert bridged_steps(time).sum() == pytest.approx(time[-1] - time[0], rel=1e-12)


@pytest.mark.parametrize("rate", [5.0, 10.0, 50.0, 500.0])
def test_an_outage_is_a_gap_at_any_rate(rate: float) -> None:
    time = np.arange(300) / rate
    time[150:] += 3.0
    steps = GapRule()(time)
    assert np.flatnonzero(steps.lost).tolist() == [150]
    assert steps.lost.sum() == pytest.approx(3.0 + 1.0 / rate)
    assert steps.bridged.sum() == pytest.approx(298 / rate)


def test_single_missing_samples_of_a_slow_recording_are_bridged() -> None:
    time = np.delete(np.arange(100) / 10.0, [30, 60])
    assert not GapRule()(time).lost.any()


@pytest.mark.parametrize("size", [1, 3, 17])
def test_batches_give_the_same_as_the_whole(size: int) -> None:
    random = np.random.default_rng(4)
    steps = random.choice([0.2, 0.2, 0.2, 0.41, 0.7, 0.0, 2.0, -50.0], 400)
    time = 1000.0 + np.cumsum(steps)
    whole, rule = GapRule()(time), GapRule()
    parts = [rule(time[k : k + size]) for k in range(0, len(time), size)]
    for name in ("bridged", "lost", "back"):
        joined = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(joined, getattr(whole, name))


def test_a_restarted_clock_is_reported_and_not_bridged() -> None:
    steps = GapRule()(np.array([10.0, 10.1, 3.0, 3.1]))
    assert steps.back.tolist() == [False, False, True, False]
    assert steps.bridged == pytest.approx([0.0, 0.1, 0.0, 0.1])


def test_a_limit_must_be_positive() -> None:
    with pytest.raises(ValueError, match="positive"):
        GapRule(0.0)


def stamps_of(*seconds: float) -> NDArray[np.int64]:
    return 1_700_000_000_000_000_000 + np.rint(np.array(seconds) * 1e9).astype(np.int64)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_the_hosts_stamps_tell_how_long_a_restart_took(size: int) -> None:
    time = np.array([100.0, 100.1, 3.0, 3.1, 9.1])
    stamp = stamps_of(50.0, 50.1, 66.1, 66.2, 72.2)
    rule = GapRule()
    parts = [rule(time[i : i + size], stamp[i : i + size]) for i in range(0, len(time), size)]
    lost = np.concatenate([part.lost for part in parts])
    assert lost == pytest.approx([0.0, 0.0, 16.0, 0.0, 6.0])
    assert np.concatenate([part.bridged for part in parts]) == pytest.approx(
        [0.0, 0.1, 0.0, 0.1, 0.0]
    )
    assert (
        np.concatenate([part.back for part in parts]).tolist() == [False, False, True] + [False] * 2
    )


def test_a_recorded_gap_tells_how_long_samples_were_missing() -> None:
    time = np.array([100.0, 100.1, 130.0, 130.1, 130.15, 130.2])
    restarts = (
        Gap(0, 0.0, 100.0, 7, "before the recording", 5.0),
        Gap(2, 100.1, 130.0, 999, "controller restarted", 199.9),
        Gap(4, 130.1, 130.15, 999, "controller restarted", 60.0),
        Gap(6, 130.2, 144.2, 7000, "connection lost", 14.0),
    )
    steps = GapRule()(time, gaps=restarts)
    assert steps.lost == pytest.approx([0.0, 0.0, 199.9, 0.0, 60.0, 14.0])
    assert steps.bridged == pytest.approx([0.0, 0.1, 0.0, 0.1, 0.0, 0.05])


def test_a_restart_in_a_bag_is_lost_time_too(tmp_path: Path) -> None:
    time = np.concatenate([100.0 + np.arange(50) / 500.0, 3.0 + np.arange(50) / 500.0])
    stamp = stamps_of(*np.concatenate([np.arange(50) / 500.0, 16.098 + np.arange(50) / 500.0]))
    columns = {"timestamp": time, "actual_qd": np.zeros((100, 6))}
    gap = Gap(50, 100.098, 3.0, 7999, "controller restarted: cable", 16.0)
    info = RecordingInfo(rate=500.0)
    with BagWriter(tmp_path / "bag", info, tuple(columns)) as bag:
        bag.write(Telemetry(time, columns, info, (gap,), stamp))
    telemetry = read_bag(tmp_path / "bag")
    assert telemetry.gaps == (gap,)
    for known in ((), telemetry.gaps):
        steps = GapRule()(telemetry.time, telemetry.stamp, known)
        assert steps.lost.sum() == pytest.approx(16.0)
