"""Buffers that keep samples of a recording for a second pass."""

from __future__ import annotations

import pickle
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from test.identification.exact_arm import ExactArm
from ur_energy_model.identification.parts import KeptTime
from ur_energy_model.identification.recording import RowBuffer, TorqueBuffer
from ur_energy_model.identification.recording_reader import read_recording
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.bag.metadata import bag_hash
from ur_energy_model.telemetry.samples import Telemetry


def test_rows_come_back_in_order_and_more_than_once() -> None:
    buffer = RowBuffer(3)
    blocks = [
        np.arange(3.0 * n).reshape(n, 3) for n in (4, 0, 60_000)
    ]  # beyond what stays in memory
    for block in blocks:
        buffer.append(block)
    for _ in range(2):
        for expected, found in zip(blocks, buffer, strict=True):
            np.testing.assert_array_equal(found, expected)
    assert buffer.rows == 60_004
    with pytest.raises(ValueError, match="expected"):
        buffer.append(np.zeros((2, 4)))
    buffer.close()


def kept(recording: Telemetry, *without: str) -> tuple[str, list[Telemetry]]:
    """Reference and samples after the buffer, the recording in two batches."""
    columns = {name: c for name, c in recording.columns.items() if name not in without}
    part = Telemetry(recording.time, columns, recording.info, recording.gaps)
    buffer = TorqueBuffer()
    for rows in (slice(None, 700), slice(700, None)):
        buffer.append(part.cut(rows))
    reference, out = buffer.reference, list(buffer.telemetry(part.info, 100.0))
    buffer.close()
    return reference, out


def test_targets_are_kept_at_a_reduced_rate() -> None:
    recording = ExactArm().record(20.0, rate=100.0)
    reference, (found,) = kept(recording)
    assert reference == "target"
    assert len(found) == pytest.approx(20.0 * 50.0, abs=3)
    rows = np.searchsorted(recording.time, found.time)
    for name in ("target_q", "target_moment"):
        np.testing.assert_array_equal(found[name], recording[name][rows])


def test_measured_motion_is_kept_whole_without_targets() -> None:
    recording = ExactArm().record(20.0, rate=100.0)
    reference, (found,) = kept(recording, "target_q", "target_qd", "target_qdd")
    assert reference == "actual"
    np.testing.assert_array_equal(found["actual_q"], recording["actual_q"])


def test_without_torque_nothing_is_kept() -> None:
    recording = ExactArm().record(5.0)
    assert kept(recording, "target_moment") == ("none", [])


def test_a_pickled_recording_holds_the_same_samples(tmp_path: Path) -> None:
    bag = ExactArm().bag(tmp_path, seconds=8.0, rate=125.0)
    kept = KeptTime.of_each(1)
    with closing(read_recording(bag, load_robot("ur5e"), kept=kept)) as recording:
        sent = pickle.dumps(recording)
        with closing(pickle.loads(sent)) as found:
            for name in ("info", "rate", "samples", "duration", "torque_reference"):
                assert getattr(found, name) == getattr(recording, name)
            for mine, theirs in zip(found.motions(), recording.motions(), strict=True):
                np.testing.assert_array_equal(mine.rows, theirs.rows)
            for one, other in zip(found.supply(), recording.supply(), strict=True):
                np.testing.assert_array_equal(np.column_stack(one), np.column_stack(other))
            assert found.power.saved().keys() == recording.power.saved().keys()
            assert found.sha256 == bag_hash(bag)
