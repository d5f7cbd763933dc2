"""Stamps of bags: the host's clock if there is one, else the controller's, never going back."""

from __future__ import annotations

import numpy as np

from test.telemetry.conftest import make_telemetry
from ur_energy_model.telemetry.bag.message_encoder import StampRule


def test_host_stamps_are_kept() -> None:
    rule = StampRule()
    batch = make_telemetry(10, fields=("actual_q",))
    assert np.array_equal(rule.stamps(batch), np.asarray(batch.stamp))
    assert rule.host_clock is True


def test_without_host_stamps_the_controllers_time_counts() -> None:
    rule = StampRule()
    first, second = (
        rule.stamps(make_telemetry(10, fields=("actual_q",), first=start, stamped=False))
        for start in (0, 10)
    )
    assert rule.host_clock is False
    expected = 1_000_000_000_000 + 2_000_000 * np.arange(20)
    assert np.array_equal(np.concatenate([first, second]), expected)


def test_a_restarted_clock_continues_a_second_later() -> None:
    rule = StampRule()
    before = rule.stamps(make_telemetry(10, fields=("actual_q",), first=500, stamped=False))
    after = rule.stamps(make_telemetry(10, fields=("actual_q",), stamped=False))
    assert after[0] - before[-1] == 1_000_000_000
    assert np.array_equal(np.diff(after), np.full(9, 2_000_000))
