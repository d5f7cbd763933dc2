# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Stamps of samples, the clock of the process, and checks of recorded times."""

import numpy as np
import pytest

from test.telemetry.conftest import make_telemetry
from test.telemetry.system_clock import SystemClock
from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.clock import HostClock, checked_clock
from ur_energy_model.telemetry.samples import Telemetry

# The clock of a process: steps of the system's clock take effect between recordings.


def test_a_step_takes_effect_where_nobody_holds_the_clock(monkeypatch):
    system = SystemClock(monkeypatch)

    def error():
        return (clock.stamp() - system.time_ns()) * 1e-9

    step = -3600.0
    clock = HostClock()
    batch = make_telemetry(5)
    base = clock.now()
    assert clock.corrected(batch) is batch
    with clock.held(), clock.held():
        system.step(step)
        assert clock.check() == 1
        assert clock.correction == 0
        assert "next recording" in clock.describe_step()
    clock.check()
    assert abs(error()) < 0.5
    assert "next" not in clock.describe_step()
    assert clock.last_step == pytest.approx(step, abs=0.5)
    assert abs(clock.now() - base) < 10e9  # the uncorrected time never steps
    shifted = (
        np.diff(np.array([batch.stamp, clock.corrected(batch).stamp]), axis=0) * 1e-9
    )
    assert np.abs(shifted - step).max() < 0.5
    system.step(-step)
    with clock.held():  # holding begins with the present time
        assert abs(error()) < 0.5


# Recordings whose times cannot be those of a controller.

TIME = 100.0 + 0.002 * np.arange(6000)


def recorded(times, batch=700):
    """Batches of a recording with these times."""
    whole = Telemetry(times, {"robot_mode": np.arange(float(len(times)))})
    return [whole.cut(slice(i, i + batch)) for i in range(0, len(times), batch)]


def changed(index, value, count=1):
    times = TIME.copy()
    times[index : index + count] = value
    return times


@pytest.mark.parametrize(
    ("times", "problem"),
    [
        (TIME[::-1], "goes back"),
        (np.full(6000, 5.0), "does not advance"),
        (TIME * 1e-9, "advances by less than"),
        (np.full(6000, np.nan), "times that are impossible"),
        (changed(1000, np.nan, 100), "100 of 6000 samples"),
    ],
)
def test_times_that_no_controller_has_are_refused(times, problem):
    with pytest.raises(RecordingError, match=problem) as refusal:
        list(checked_clock(recorded(times), "bag"))
    assert refusal.value.field == "timestamp"


@pytest.mark.parametrize(("value", "index"), [(np.nan, 0), (1e300, 3000), (-5.0, 5999)])
def test_few_impossible_times_are_left_out(value, index):
    passed = list(checked_clock(recorded(changed(index, value, 3)), "bag"))
    kept = np.concatenate([batch["robot_mode"] for batch in passed])
    assert np.array_equal(
        kept, np.delete(np.arange(6000), range(index, min(index + 3, 6000)))
    )
    gaps = [gap for batch in passed for gap in batch.gaps]
    inside = 0 < index < 5997
    assert [(gap.missing, gap.cause) for gap in gaps] == [
        (3, "impossible times")
    ] * inside


def test_a_jump_of_the_clock_is_a_gap_once():
    for shift, cause in ((-50.0, "controller restarted"), (1e6, "clock jumped")):
        times = np.where(np.arange(6000) < 2100, TIME, TIME + shift)
        gaps = [
            gap for batch in checked_clock(recorded(times), "bag") for gap in batch.gaps
        ]
        assert [(gap.cause, gap.start) for gap in gaps] == [(cause, TIME[2099])]
