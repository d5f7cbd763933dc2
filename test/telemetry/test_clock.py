"""Host stamps: close to the truth, smooth, never decreasing, with any delay of the network."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ur_energy_model.telemetry.clock import ClockMap

PERIOD = 0.002
START = 1_700_000_000_000_000_000


def run(clock, *, seconds, drift=0.0, delays, batch=25, start=100.0, host=START):
    """Feed a stream; returns stamps [ns] and what they should be."""
    count = int(seconds / PERIOD)
    time = start + np.arange(count) * PERIOD
    true = host + np.rint((time - start) * (1.0 + drift) * 1e9).astype(np.int64)
    stamps = []
    for first in range(0, count, batch):
        part = slice(first, first + batch)
        arrival = int(true[part][-1] + 1e9 * delays(first // batch))
        stamps.append(clock.stamp(time[part], arrival))
    return np.concatenate(stamps), true


def jitter(seed, scale):
    rng = np.random.default_rng(seed)
    return lambda _: 0.0001 + rng.exponential(scale)


@pytest.mark.parametrize("drift", [0.0, 30e-6, -80e-6, 200e-6])
@pytest.mark.parametrize("batch", [1, 25])
def test_stamps_follow_a_drifting_clock_under_jitter(drift, batch):
    clock = ClockMap()
    stamps, true = run(clock, seconds=60, drift=drift, delays=jitter(1, 0.002), batch=batch)
    late = stamps[len(stamps) // 3 :] - true[len(true) // 3 :]
    assert abs(late).max() < 1_000_000
    assert np.ptp(late) < 500_000
    assert clock.drift == pytest.approx(drift, abs=20e-6)


def test_stamps_are_smooth_and_never_go_back():
    stamps, _ = run(ClockMap(), seconds=40, drift=50e-6, delays=jitter(2, 0.01))
    steps = np.diff(stamps)
    assert (steps > 0).all()
    assert abs(steps - PERIOD * 1e9).max() < 100_000


def test_late_packets_do_not_count():
    def delays(i):
        return 0.3 if i % 7 else 0.0002

    stamps, true = run(ClockMap(), seconds=30, delays=delays)
    assert abs(stamps[5000:] - true[5000:]).max() < 1_000_000


def test_a_backlog_does_not_disturb():
    """Five seconds are read at once after a stall of the reader."""
    clock = ClockMap()
    first, _ = run(clock, seconds=20, delays=lambda _: 0.0002)
    at = START + 20_000_000_000
    backlog, true = run(clock, seconds=5, start=120.0, host=at, delays=lambda i: 5.0 - i * 0.05)
    after, true_after = run(
        clock, seconds=5, start=125.0, host=at + 5_000_000_000, delays=lambda _: 0.0002
    )
    assert abs(backlog - true).max() < 1_000_000
    assert abs(after - true_after).max() < 1_000_000
    assert (np.diff(np.concatenate([first, backlog, after])) > 0).all()


def test_a_controller_that_lags_for_seconds_does_not_disturb():
    """It lacks computing time for ten seconds and then catches up."""
    clock = ClockMap()
    run(clock, seconds=30, delays=jitter(4, 0.001))

    def delays(i):
        return min(0.02 * i, 1.5, 0.02 * (200 - i)) + 0.0002

    at = START + 30_000_000_000
    stamps, true = run(clock, seconds=10, start=130.0, host=at, delays=delays)
    assert abs(stamps - true).max() < 1_000_000


def test_a_connection_made_again_goes_on_where_it_was():
    clock = ClockMap()
    run(clock, seconds=20, delays=lambda _: 0.0002)
    stamps, true = run(
        clock, seconds=5, start=150.0, host=START + 50_000_000_000, delays=jitter(3, 0.001)
    )
    assert abs(stamps - true).max() < 1_000_000


def test_a_restarted_controller_gets_a_new_map():
    clock = ClockMap()
    before, _ = run(clock, seconds=10, start=5000.0, delays=lambda _: 0.0002)
    stamps, true = run(
        clock, seconds=5, start=40.0, host=START + 70_000_000_000, delays=lambda _: 0.0002
    )
    assert abs(stamps - true).max() < 1_000_000
    assert stamps[0] > before[-1]


def test_a_clock_that_stood_still_is_followed_after_a_while():
    """A suspended controller goes on later: its clock stays behind for good."""
    clock = ClockMap()
    run(clock, seconds=10, delays=lambda _: 0.0002)
    stamps, true = run(
        clock, seconds=20, start=110.0, host=START + 40_000_000_000, delays=lambda _: 0.0002
    )
    assert abs(stamps[-1000:] - true[-1000:]).max() < 1_000_000
    assert (np.diff(stamps) > 0).all()


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.lists(st.floats(0, 1e8), min_size=1, max_size=6), st.integers(0, 4 * 10**18)),
        min_size=1,
        max_size=20,
    )
)
def test_stamps_never_decrease(batches):
    clock, last = ClockMap(), 0
    for times, arrival in batches:
        stamps = clock.stamp(np.unique(times), arrival)
        assert stamps.shape == np.unique(times).shape
        assert stamps[0] > last
        assert (np.diff(stamps) >= 0).all()
        last = stamps[-1]
