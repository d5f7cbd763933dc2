"""From packages to telemetry: each tick once, and why ticks are missing."""

import numpy as np
import pytest

from ur_energy_model.errors import WrongRobotError
from ur_energy_model.telemetry.rtde.packet_stream import ClockMap, PacketStream
from ur_energy_model.telemetry.rtde.protocol import Recipe
from ur_energy_model.telemetry.samples import RecordingInfo

RECIPE = Recipe(("timestamp", "payload"), ("DOUBLE", "DOUBLE"), 1)
INFO = RecordingInfo(rate=500.0)
HOST = 1_700_000_000_000_000_000


def push(stream, times, host_seconds):
    packages = b"".join(RECIPE.pack({"timestamp": t, "payload": t}) for t in times)
    arrival = HOST + round(host_seconds * 1e9)
    return stream.telemetry(RECIPE, RECIPE.unpack_many(packages), arrival, INFO)


def ticks(start, count=10):
    return (start + np.arange(count) * 0.002).tolist()


@pytest.fixture
def stream():
    """One that was read for a moment, from a controller that has run for 100 s."""
    stream_ = PacketStream("10.0.0.1")
    assert push(stream_, ticks(100.0), 0.02).gaps == ()
    return stream_


@pytest.mark.parametrize(
    ("start", "host", "missing", "cause"),
    [
        (105.02, 5.04, 2500, "connection lost: cable"),  # the clock ran on
        (100.12, 8.0, 50, "connection lost: cable"),  # the controller stood still
        (40.0, 70.0, 34980, "controller restarted: cable"),  # its clock went back
    ],
)
def test_a_lost_connection_is_explained(stream, start, host, missing, cause):
    stream.loss = "cable"
    batch = push(stream, ticks(start), host)
    (gap,) = batch.gaps
    assert (gap.index, gap.missing, gap.cause) == (0, missing, cause)
    assert (gap.start, gap.end) == (ticks(100.0)[-1], start)
    restarted = cause.startswith("controller")
    assert gap.away == (pytest.approx(host - 0.038) if restarted else None)
    assert stream.restarted == restarted
    stood_still = missing == 50
    expected = start + 0.018 - 100.018 + 0.02 if stood_still else host
    assert abs(batch.stamp[-1] - HOST - expected * 1e9) < 20e6
    assert push(stream, ticks(start + 0.02), host + 0.02).gaps == ()


def test_a_clock_ahead_of_the_outage_is_another_controllers_without_serial_number(stream):
    cause = "connection lost: cable"
    stream.loss = "cable"
    with pytest.raises(WrongRobotError, match="its clock is ahead"):
        push(stream, ticks(4000.0), 30.0)
    assert push(stream, ticks(130.0), 31.0).gaps[0].cause == cause
    stream.loss, stream.same_serial = "cable", True
    assert push(stream, ticks(4000.0), 60.0).gaps[0].cause == cause


# Stamps: the map from the controller's clock to the host's.


def run(clock, *, seconds, delays, drift=0.0, batch=25, start=100.0, host=0.0):
    """Feed a stream; returns stamps [ns] and what they should be."""
    times = start + np.arange(int(seconds / 0.002)) * 0.002
    elapsed = np.rint((times - start) * (1.0 + drift) * 1e9).astype(np.int64)
    true = HOST + int(host * 1e9) + elapsed
    stamps = []
    for first in range(0, len(times), batch):
        part = slice(first, first + batch)
        stamps.append(clock.stamp(times[part], int(true[part][-1] + 1e9 * delays(first // batch))))
    return np.concatenate(stamps), true


def prompt(_):
    return 0.0002


def jitter(seed, scale):
    rng = np.random.default_rng(seed)
    return lambda _: 0.0001 + rng.exponential(scale)


def test_stamps_follow_a_drifting_clock_under_jitter():
    drift, batch = 200e-6, 25
    clock = ClockMap()
    stamps, true = run(clock, seconds=60, drift=drift, delays=jitter(1, 0.002), batch=batch)
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
