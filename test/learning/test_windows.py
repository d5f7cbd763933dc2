"""Windows: the same whatever the batches, and none runs across a restart of the clock."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.learning.minute import WINDOW, Windows
from ur_energy_model.telemetry.samples import Telemetry


def samples(time: np.ndarray) -> Telemetry:
    return Telemetry(time, {"actual_q": np.zeros((len(time), 6))})


def cut(time: np.ndarray, size: int) -> list[np.ndarray]:
    windows, out = Windows(), []
    for start in range(0, len(time), size):
        out += windows.add(samples(time[start : start + size]))
    return [window.time for window in (*out, *windows.finish())]


@pytest.mark.parametrize("size", [1, 7, 100, 10_000])
def test_windows_do_not_depend_on_batches(size: int) -> None:
    time = 33.0 + 0.01 * np.arange(2300)
    found = cut(time, size)
    np.testing.assert_array_equal(np.concatenate(found), time)
    for window in found[:-1]:
        assert window[-1] - window[0] == pytest.approx(WINDOW - 0.01)


@pytest.mark.parametrize("size", [50, 333])
def test_a_restarted_clock_ends_a_window(size: int) -> None:
    time = np.concatenate([500.0 + 0.1 * np.arange(70), 0.1 * np.arange(120)])
    found = cut(time, size)
    np.testing.assert_array_equal(np.concatenate(found), time)
    assert all((np.diff(window) > 0).all() for window in found)
    assert [window[0] for window in found] == pytest.approx([500.0, 505.0, 0.0, 5.0, 10.0])


def test_a_gap_ends_a_window() -> None:
    time = np.concatenate([0.01 * np.arange(100), 1000.0 + 0.01 * np.arange(100)])
    assert [len(window) for window in cut(time, 40)] == [100, 100]
