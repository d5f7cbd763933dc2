"""Recordings whose times cannot be those of a controller."""

from __future__ import annotations

import numpy as np
import pytest

from test.telemetry.bag.bag_files import write_bag
from test.telemetry.conftest import make_telemetry
from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.clock import ClockCheck, checked_clock
from ur_energy_model.telemetry.samples import Telemetry

TIME = 100.0 + 0.002 * np.arange(6000)


def recorded(time, batch=700):
    """Batches of a recording with these times."""
    whole = Telemetry(time, {"robot_mode": np.arange(float(len(time)))})
    return [whole.cut(slice(i, i + batch)) for i in range(0, len(time), batch)]


def changed(index, value, count=1):
    time = TIME.copy()
    time[index : index + count] = value
    return time


def test_an_ordinary_recording_passes_unchanged():
    batches = recorded(TIME)
    passed = list(checked_clock(batches, "bag"))
    assert all(given is taken for given, taken in zip(batches, passed, strict=True))


@pytest.mark.parametrize(
    ("time", "problem"),
    [
        (TIME[::-1], "goes back"),
        (np.random.default_rng(1).permutation(TIME), "goes back"),
        (TIME + 0.1 * (-1.0) ** np.arange(6000), "goes back"),
        (np.full(6000, 5.0), "does not advance"),
        (TIME * 1e-9, "advances by less than"),
        (np.full(6000, np.nan), "times that are impossible"),
        (TIME * 1e300, "times that are impossible"),
        (-TIME, "times that are impossible"),
        (changed(1000, np.nan, 100), "100 of 6000 samples"),
    ],
)
def test_times_that_no_controller_has_are_refused(time, problem):
    with pytest.raises(RecordingError, match=problem) as refusal:
        list(checked_clock(recorded(time), "bag"))
    assert refusal.value.field == "timestamp"
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300, -1e300, -5.0])
@pytest.mark.parametrize("index", [0, 700, 3000, 5999])
def test_few_impossible_times_are_left_out(value, index):
    passed = list(checked_clock(recorded(changed(index, value, 3)), "bag"))
    kept = np.concatenate([batch["robot_mode"] for batch in passed])
    assert np.array_equal(kept, np.delete(np.arange(6000), range(index, min(index + 3, 6000))))
    gaps = [gap for batch in passed for gap in batch.gaps]
    inside = 0 < index < 5997
    assert [(gap.missing, gap.cause) for gap in gaps] == [(3, "impossible times")] * inside


@pytest.mark.parametrize(
    ("shift", "cause"), [(-50.0, "controller restarted"), (1e6, "clock jumped")]
)
def test_a_jump_of_the_clock_is_a_gap(shift, cause):
    time = np.where(np.arange(6000) < 2100, TIME, TIME + shift)
    gaps = [gap for batch in checked_clock(recorded(time), "bag") for gap in batch.gaps]
    assert [(gap.cause, gap.start) for gap in gaps] == [(cause, TIME[2099])]


def test_jumps_that_the_bag_knows_are_not_counted_twice(tmp_path):
    telemetry = make_telemetry(3000, fields=("actual_q",))
    time = np.where(np.arange(3000) < 1500, telemetry.time, telemetry.time - 900.0)
    columns = {**telemetry.columns, "timestamp": time}
    path = write_bag(tmp_path / "bag", Telemetry(time, columns, telemetry.info))
    gaps = [gap for batch in checked_clock(iterate_bag(path), path) for gap in batch.gaps]
    assert [gap.cause for gap in gaps] == ["controller restarted"]


def test_one_sample_is_no_reason_to_refuse():
    check = ClockCheck("bag")
    check.update(np.array([3.0]))
    check.finish()
