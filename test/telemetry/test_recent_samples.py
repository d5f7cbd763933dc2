# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The last samples of a source: which are kept, in bounded memory, and as a bag."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.telemetry.recent_samples import RecentSamples
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry

JOINTS = tuple(f"joint_{k}" for k in range(6))


def batches(
    rate: float, seconds: float, size: int, start: float = 100.0
) -> list[Telemetry]:
    """Samples whose first joint is at the number of the sample."""
    count = round(rate * seconds)
    time = start + np.arange(count) / rate
    q = np.zeros((count, 6))
    q[:, 0] = np.arange(count)
    info = RecordingInfo(source="live", robot="ur5e", rate=rate)
    parts = [slice(k, k + size) for k in range(0, count, size)]
    return [Telemetry(time[part], {"actual_q": q[part]}, info) for part in parts]


@pytest.mark.parametrize("rate", [10.0, 100.0, 125.0, 250.0, 500.0])
@pytest.mark.parametrize("size", [1, 7, 25])
def test_what_is_kept(rate: float, size: int, tmp_path: Path) -> None:
    recent = RecentSamples(seconds=4.0, rate=125.0)
    given = batches(rate, 9.0, size)
    for batch in given:
        recent.add(batch)
    assert recent.write(tmp_path / "bag", JOINTS)
    bag = read_bag(tmp_path / "bag")
    last = float(given[-1].time[-1])
    assert 4.0 <= last - bag.time[0] <= 6.5
    assert last - bag.time[-1] < 1.0 / min(rate, 125.0)
    steps = np.diff(bag.time)
    assert steps == pytest.approx(1.0 / min(rate, 125.0), rel=0.51)
    assert np.median(steps) == pytest.approx(1.0 / min(rate, 125.0), rel=0.01)
    assert bag["actual_q"][:, 0] == pytest.approx((bag.time - 100.0) * rate, abs=1e-3)
    assert bag.gaps == ()


def test_a_clock_that_goes_back_starts_anew(tmp_path: Path) -> None:
    recent = RecentSamples()
    for batch in (*batches(125.0, 5.0, 10), *batches(125.0, 3.0, 10, start=1.0)):
        recent.add(batch)
    assert recent.write(tmp_path / "bag", JOINTS)
    assert read_bag(tmp_path / "bag").time[[0, -1]] == pytest.approx([1.0, 4.0], abs=0.01)


def test_nothing_was_seen(tmp_path: Path) -> None:
    recent = RecentSamples()
    recent.add(batches(125.0, 1.0, 200)[0].cut(slice(0, 0)))
    assert not recent.write(tmp_path / "bag", JOINTS)
    assert not (tmp_path / "bag").exists()
