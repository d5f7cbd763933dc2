"""The system's clock is set while bags are recorded."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from test.telemetry.recording.scripted_source import ScriptedSource, batches
from test.telemetry.system_clock import SystemClock
from ur_energy_model.telemetry.bag.reader import read_bag, read_events
from ur_energy_model.telemetry.clock import HOST_CLOCK
from ur_energy_model.telemetry.recording.recorder import Recorder
from ur_energy_model.telemetry.samples import Telemetry

HOUR = 3600.0


def live(count: int, first: int) -> list[Telemetry]:
    """Batches stamped as a source would stamp them now."""
    start = HOST_CLOCK.now()
    made = batches(count, first=first)
    origin = made[0].time[0]
    return [
        replace(part, stamp=start + np.rint((part.time - origin) * 1e9).astype(np.int64))
        for part in made
    ]


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_samples_marks_and_names_share_one_clock(tmp_path, monkeypatch, step):
    system = SystemClock(monkeypatch)
    before = HOST_CLOCK.check()
    source = ScriptedSource()
    with Recorder(source, tmp_path) as recorder:
        first = recorder.start()
        source.give(*live(4, 0))
        system.step(step)
        recorder.mark("after the step")
        source.give(*live(4, 100))
        recorder.stop()
        second = recorder.start()
        named_at = time.localtime(system.time_ns() * 1e-9)
        recorder.mark("in the second bag")
        source.give(*live(4, 200))
        recorder.stop()
    monkeypatch.undo()
    HOST_CLOCK.check()
    assert HOST_CLOCK.steps == before + 2  # there and back

    stamps = read_bag(first).stamp
    assert stamps is not None
    assert len(np.unique(stamps)) == 200
    assert np.ptp(stamps) * 1e-9 < 60
    events = {event.kind: event for event in read_events(first)}
    assert abs(events["mark"].stamp - stamps[0]) * 1e-9 < 60
    assert "was set" in events["clock"].text

    later = read_bag(second).stamp
    assert later is not None
    assert (later[0] - stamps[-1]) * 1e-9 == pytest.approx(step, abs=60)
    mark = next(event for event in read_events(second) if event.kind == "mark")
    assert abs(mark.stamp - later[0]) * 1e-9 < 60
    assert time.strftime("_%Y%m%d_%H", named_at) in second.name
