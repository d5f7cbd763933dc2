# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""From packages to telemetry: each tick once, and why ticks are missing."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from test.properties import examples
from ur_energy_model.errors import WrongRobotError
from ur_energy_model.telemetry.rtde.clock_map import ClockMap
from ur_energy_model.telemetry.rtde.packet_stream import PacketStream
from ur_energy_model.telemetry.rtde.protocol import Recipe
from ur_energy_model.telemetry.samples import RecordingInfo

RECIPE = Recipe(("timestamp", "payload"), ("DOUBLE", "DOUBLE"), 1)
INFO = RecordingInfo(rate=500.0)
HOST = 1_700_000_000_000_000_000


def push(stream, times, host_seconds):
    """Batches of packages with these times, read at a host time."""
    packages = b"".join(RECIPE.pack({"timestamp": t, "payload": t}) for t in times)
    arrival = HOST + round(host_seconds * 1e9)
    return stream.telemetry(RECIPE, RECIPE.unpack_many(packages), arrival, INFO)


def ticks(start, count=10):
    return (start + np.arange(count) * 0.002).tolist()


@pytest.fixture
def stream():
    """One that was read for a moment, from a controller that has run for 100 s."""
    stream_ = PacketStream("10.0.0.1")
    (batch,) = push(stream_, ticks(100.0), 0.02)
    assert batch.gaps == ()
    return stream_


@pytest.mark.parametrize(
    ("start", "host", "missing", "cause"),
    [
        (105.02, 5.04, 2500, "connection lost: cable"),  # the clock ran on
        (100.12, 8.0, 50, "connection lost: cable"),  # the controller stood still
        (40.0, 70.0, 34980, "controller restarted: cable"),  # its clock went back
        # it is younger than the outage
        (120.0, 200.0, 99980, "controller restarted: cable"),
    ],
)
def test_a_lost_connection_is_explained(stream, start, host, missing, cause):
    stream.note_loss("cable")
    (batch,) = push(stream, ticks(start), host)
    (gap,) = batch.gaps
    assert (gap.index, gap.missing, gap.cause) == (0, missing, cause)
    assert (gap.start, gap.end) == (ticks(100.0)[-1], start)
    restarted = cause.startswith("controller")
    assert gap.away == (pytest.approx(host - 0.038) if restarted else None)
    stood_still = missing == 50
    expected = start + 0.018 - 100.018 + 0.02 if stood_still else host
    assert abs(batch.stamp[-1] - HOST - expected * 1e9) < 20e6
    (following,) = push(stream, ticks(start + 0.02), host + 0.02)
    assert following.gaps == ()


def test_a_clock_ahead_of_the_outage_is_another_controllers_without_serial_number(stream):
    stream.note_loss("cable")
    with pytest.raises(WrongRobotError, match="its clock is ahead"):
        push(stream, ticks(4000.0), 30.0)
    (batch,) = push(stream, ticks(130.0), 31.0)
    assert batch.gaps[0].cause == "connection lost: cable"
    stream.note_loss("cable")
    stream.same_serial = True
    (batch,) = push(stream, ticks(4000.0), 60.0)
    (gap,) = batch.gaps
    assert gap.cause == "clock jumped by 3870 s: cable"
    # by the host's clock
    assert gap.missing == pytest.approx((60.0 - 31.0) * 500, abs=20)


@pytest.mark.parametrize("jump", [-60.0, -0.5, 3.0, 3600.0, 1e6])
@pytest.mark.parametrize("place", [0, 4])
def test_another_clock_costs_only_the_time_that_the_host_measures(stream, jump, place):
    """In front of a batch, and within one."""
    times = ticks(100.02, 20)
    times[place:] = [time + jump for time in times[place:]]
    batches = push(stream, times, 0.06)
    following = [time + 0.02 for time in times[-10:]]
    batches += push(stream, following, 0.08)
    taken = np.concatenate([batch.time for batch in batches])
    assert taken.tolist() == [*times, *following]
    gaps = [gap for batch in batches for gap in batch.gaps]
    cause = "controller restarted" if jump < 0 else f"clock jumped by {jump:.0f} s"
    assert [gap.cause for gap in gaps] == [cause]
    assert gaps[0].missing == 0
    assert gaps[0].away == pytest.approx(0.0, abs=0.005)
    assert stream.skipped == stream.duplicates == 0
    stamps = np.concatenate([batch.stamp for batch in batches])
    assert (np.diff(stamps) > 0).all()


DAMAGED = st.one_of(
    st.sampled_from(
        [0.0, -0.0, -1.0, 99.0, 100.0, 1e6 + 100.0, 1e300, math.inf, math.nan]
    ),
    st.floats(),
)


@examples(20)
@given(
    st.lists(
        st.tuples(st.integers(0, 199), DAMAGED),
        max_size=40,
        unique_by=lambda each: each[0],
    ),
    st.integers(1, 60),
    st.booleans(),
)
def test_single_packets_with_other_times_are_left_out(damage, size, in_between):
    """Instead of good packets or between them: all others arrive, in order."""
    stream_ = PacketStream("10.0.0.1")
    sound = ticks(100.0, 1000)
    sent = [[time] for time in sound]
    replaced = set()
    for place, time in damage:
        each = 5 * place + 3  # behind the begin; three in a row would be another clock
        sent[each] = [sound[each], time] if in_between else [time]
        replaced.add(each)
    stream = [time for times in sent for time in times]
    taken = list[float]()
    for first in range(0, len(stream), size):
        part = stream[first : first + size]
        for batch in push(stream_, part, 0.002 * (first + len(part))):
            taken += batch.time.tolist()
    left_out = len(stream) - len(taken)
    odd = [time for time in taken if time not in sound]
    assert all(0.0 < time < 1e9 for time in odd)  # by chance they follow the clock
    expected = (
        sound if in_between else [t for k, t in enumerate(sound) if k not in replaced]
    )
    if not odd:
        assert taken == expected
    assert stream_.skipped + stream_.duplicates == left_out


def test_gaps_of_packets_that_cannot_be_used_are_named(stream):
    stream.unreadable = 1
    (batch,) = push(stream, [*ticks(100.022, 3), *ticks(100.06, 3)], 0.06)
    assert [gap.cause for gap in batch.gaps] == [
        "packets that could not be used",
        "skipped",
    ]
    (batch,) = push(stream, ticks(100.068, 3), 0.07)  # the next call, too
    assert [gap.cause for gap in batch.gaps] == ["packets that could not be used"]
    (batch,) = push(stream, ticks(100.076, 3), 0.08)
    assert [gap.cause for gap in batch.gaps] == ["skipped"]


# Stamps: the map from the controller's clock to the host's.


def run(clock, *, seconds, delays, drift=0.0, batch=25, start=100.0, host=0.0):
    """Feed a stream; returns stamps [ns] and what they should be."""
    times = start + np.arange(int(seconds / 0.002)) * 0.002
    elapsed = np.rint((times - start) * (1.0 + drift) * 1e9).astype(np.int64)
    true = HOST + int(host * 1e9) + elapsed
    stamps = []
    for first in range(0, len(times), batch):
        part = slice(first, first + batch)
        stamps.append(
            clock.stamp(times[part], int(true[part][-1] + 1e9 * delays(first // batch)))
        )
    return np.concatenate(stamps), true


def prompt(_):
    return 0.0002


def jitter(seed, scale):
    rng = np.random.default_rng(seed)
    return lambda _: 0.0001 + rng.exponential(scale)


def test_stamps_follow_a_drifting_clock_under_jitter():
    drift = 200e-6
    batch = 25
    clock = ClockMap()
    stamps, true = run(
        clock, seconds=60, drift=drift, delays=jitter(1, 0.002), batch=batch
    )
    late = (stamps - true)[len(stamps) // 3 :]
    assert abs(late).max() < 1_000_000
    assert np.ptp(late) < 500_000
    assert clock.drift == pytest.approx(drift, abs=20e-6)
    steps = np.diff(stamps)
    assert (steps > 0).all()
    assert abs(steps[-5000:] - 0.002 * 1e9).max() < 100_000


@pytest.mark.parametrize(
    ("delays", "then"),
    [
        (lambda i: 0.3 if i % 7 else 0.0002, {}),  # most packets are late
        (jitter(3, 0.001), {"start": 160.0, "host": 60.0}),  # a connection made again
        (prompt, {"start": 40.0, "host": 70.0}),  # a restarted controller
    ],
)
def test_delays_reconnections_and_restarts_do_not_disturb(delays, then):
    clock = ClockMap()
    before, _ = run(clock, seconds=20, delays=prompt)
    then = {"start": 120.0, "host": 20.0, **then}
    stamps, true = run(clock, seconds=10, delays=delays, **then)
    assert abs(stamps - true).max() < 1_000_000
    assert (np.diff(np.concatenate([before, stamps])) > 0).all()
