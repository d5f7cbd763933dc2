"""A controller or a reader that stands still and catches up: samples come again, from the same arm.

Nothing tells a serial number here, so that only the clocks tell the controller from another one.
"""

import signal
import time

from test.telemetry.rtde.source_helpers import closed_port, read
from ur_energy_model.telemetry.clock import HOST_CLOCK
from ur_energy_model.telemetry.fields import FIELDS
from ur_energy_model.telemetry.rtde.source import LinkOptions, RtdeSource

STALL = 10.0
"""Longer than buffers last, the silence that counts as a lost connection, and AHEAD_SECONDS [s]."""
NEW_NS = 1_000_000_000
"""Age of a sample that was just taken, on a busy machine [ns]."""
MOST = 40.0
"""Longest wait for samples after a stall [s]."""


def test_stalls_of_both_sides_end_with_samples(simulate, fresh_host):
    host = fresh_host()
    process = simulate(host)
    link = LinkOptions(dashboard_port=closed_port())
    with RtdeSource(host, fields=tuple(FIELDS), link=link, patience=30.0) as source:
        read(source, 500)
        time.sleep(STALL)  # as a reader that was stopped
        wait_for_new_samples(source)
        assert source.status.reconnects > 0

        process.send_signal(signal.SIGSTOP)
        end = time.monotonic() + STALL
        while time.monotonic() < end:
            source.read(0.2)
        process.send_signal(signal.SIGCONT)  # sends a burst for the time it stood still
        wait_for_new_samples(source)
        texts = [event.text for event in source.take_events()]
    assert not any("another controller" in text for text in texts)


def wait_for_new_samples(source):
    """Read what waited in buffers, until samples come that were just taken."""
    end = time.monotonic() + MOST
    while time.monotonic() < end:
        batch = source.read(0.2)
        if batch is not None and HOST_CLOCK.now() - batch.stamp[-1] < NEW_NS:
            read(source, 500)
            return
    raise AssertionError(f"no new samples: {source.status.problem}")
