"""A bag read once: filtered motion, buffers, and the parts of long recordings that are used."""

from __future__ import annotations

import pickle
from contextlib import closing
from dataclasses import replace
from functools import reduce
from pathlib import Path

import numpy as np
import pytest

from test.identification.conftest import filtered_motions
from test.identification.exact_arm import TORQUE_CONSTANT, ExactArm
from ur_energy_model.cli.identify import identification_json
from ur_energy_model.energy.telemetry_checks import check_batch
from ur_energy_model.errors import MissingFieldError, RecordingError
from ur_energy_model.identification.filtered_motion import (
    CUTOFF_RANGE,
    FilteredMotion,
    ParallelFilter,
    choose_cutoff,
    sample_period,
)
from ur_energy_model.identification.parts import KeptTime, Segment, SegmentSelector, chosen_parts
from ur_energy_model.identification.pipeline import Identification, identify
from ur_energy_model.identification.recording import REQUIRED, TorqueBuffer, read_recording
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.bag.metadata import bag_hash
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.samples import Telemetry, find_gaps


def batch(**columns):
    names = (*REQUIRED, "target_moment")
    return Telemetry(
        np.arange(5.0) * 0.1, {**{name: np.zeros((5, 6)) for name in names}, **columns}
    )


def test_ordinary_values_pass():
    unmeasured = np.full((5, 6), np.nan)
    check_batch("bag", batch(target_moment=unmeasured), REQUIRED, 6)


@pytest.mark.parametrize("field", [*REQUIRED, "target_moment"])
def test_impossible_values_of_any_field_are_refused_by_time(field):
    values = np.zeros((5, 6))
    values[3, 1] = -1e160
    with pytest.raises(RecordingError, match=r"value -1e\+160 at t = 0.300 s is impossible") as no:
        check_batch("bag", batch(**{field: values}), REQUIRED, 6)
    assert no.value.field == field


def test_a_missing_field_is_named():
    with pytest.raises(MissingFieldError, match="actual_qd"):
        check_batch("bag", Telemetry(np.zeros(1), {"actual_q": np.zeros((1, 6))}), REQUIRED, 6)


def joined(parts: list[FilteredMotion]) -> FilteredMotion:
    return reduce(FilteredMotion.followed_by, parts)


@pytest.mark.parametrize("rate", [50.0, 100.0, 500.0])
def test_acceleration_comes_from_speed(rate: float) -> None:
    recording = ExactArm().record(20.0, rate=rate)
    motion = joined(list(filtered_motions([recording], 6, 4.0, 1 / rate)))
    expected = np.stack(
        [np.interp(motion.time, recording.time, c) for c in recording["target_qdd"].T], axis=1
    )
    scale = np.abs(expected).max(axis=0)
    assert (np.abs(motion.qdd - expected).max(axis=0) < 0.02 * scale).all()


def test_batches_make_no_difference() -> None:
    recording = ExactArm().record(100.0)
    whole = joined(list(filtered_motions([recording], 6, 4.0, 0.01)))
    batches = [recording.cut(slice(i, i + 700)) for i in range(0, len(recording), 700)]
    pieces = joined(list(filtered_motions(batches, 6, 4.0, 0.01)))
    np.testing.assert_allclose(pieces.time, whole.time, atol=1e-9)
    np.testing.assert_allclose(pieces.qd, whole.qd, atol=1e-6)
    np.testing.assert_allclose(pieces.current, whole.current, atol=1e-4)


def without(recording: Telemetry, rows: slice) -> Telemetry:
    keep = np.ones(len(recording), dtype=bool)
    keep[rows] = False
    return Telemetry(
        recording.time[keep],
        {name: values[keep] for name, values in recording.columns.items()},
        recording.info,
        find_gaps(recording.time[keep], 0.01),
    )


def test_a_gap_is_not_bridged_and_a_lost_sample_is() -> None:
    recording = ExactArm().record(20.0)
    gap = list(filtered_motions([without(recording, slice(900, 950))], 6, 4.0, 0.01))
    assert len(gap) == 2
    assert gap[0].time[-1] < recording.time[900] <= gap[1].time[0] - 0.4
    lost = list(filtered_motions([without(recording, slice(900, 901))], 6, 4.0, 0.01))
    assert len(lost) == 1
    assert np.abs(lost[0].qd).max() < 1.1 * np.abs(recording["actual_qd"]).max()


def test_repeated_samples_and_uneven_steps_are_borne() -> None:
    recording = ExactArm().record(20.0)
    random = np.random.default_rng(0)
    rows = np.sort(random.choice(len(recording), 1850, replace=False))
    rows = np.sort(np.concatenate([rows, rows[::40]]))
    uneven = Telemetry(
        recording.time[rows],
        {name: values[rows] for name, values in recording.columns.items()},
        recording.info,
    )
    motion = joined(list(filtered_motions([uneven], 6, 4.0, sample_period(uneven.time))))
    expected = np.interp(motion.time, recording.time, recording["actual_qd"][:, 1])
    assert np.abs(motion.qd[:, 1] - expected).max() < 0.02


def test_moving_samples_keep_clear_of_standstill() -> None:
    time = np.arange(0, 4.0, 0.01)
    qd = np.where(time < 2.0, 0.0, 0.5)[:, None]
    zero = np.zeros_like(qd)
    motion = FilteredMotion(time, zero, qd, zero, zero, zero, zero, np.full((len(time), 4), np.nan))
    moving = ParallelFilter(4.0).moving(motion, 0.02)[:, 0]
    assert not moving[:205].any()
    assert moving[220:-1].all()


def test_cutoff_follows_the_motion_and_the_noise() -> None:
    recording = ExactArm().record(40.0)
    quiet = choose_cutoff(recording)
    assert CUTOFF_RANGE[0] <= quiet <= CUTOFF_RANGE[1]
    time = recording.time
    lively = np.sin(2 * np.pi * 4.5 * time)[:, None] * np.ones(6) * 0.3
    fast = replace(recording, columns={**recording.columns, "actual_qd": lively})
    assert choose_cutoff(fast) > quiet


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


def test_a_pickled_recording_holds_the_same_samples(tmp_path: Path) -> None:
    bag = ExactArm().bag(tmp_path, seconds=8.0, rate=125.0)
    kept = KeptTime.of_each(1)
    with closing(read_recording(bag, load_robot("ur5e"), kept=kept)) as recording:
        sent = pickle.dumps(recording)
        with closing(pickle.loads(sent)) as found:
            for name in ("info", "rate", "samples", "duration", "torque_reference"):
                assert getattr(found, name) == getattr(recording, name)
            for mine, theirs in zip(found.motions(), recording.motions(), strict=True):
                np.testing.assert_array_equal(mine.current, theirs.current)
            for one, other in zip(found.supply(), recording.supply(), strict=True):
                np.testing.assert_array_equal(np.column_stack(one), np.column_stack(other))
            assert found.power.saved().keys() == recording.power.saved().keys()
            assert found.sha256 == bag_hash(bag)


def information(parts: int, seed: int = 0) -> np.ndarray:
    """Gram matrices [parts, 2, 3, 3] of alike parts."""
    rows = np.random.default_rng(seed).normal(size=(parts, 2, 50, 3))
    return np.swapaxes(rows, 2, 3) @ rows


def test_alike_parts_are_spread_over_the_recording() -> None:
    chosen = chosen_parts(information(100), np.full(100, 30.0), 600.0)
    assert chosen[0] == 0
    assert 30.0 * len(chosen) == 600.0
    assert (np.diff(chosen) > 0).all()
    tenths = np.bincount(chosen // 10, minlength=10)
    assert (tenths >= 1).all()


def test_the_only_part_in_which_a_joint_moves_is_chosen() -> None:
    told = information(100)
    told[:, 1] = 0.0
    told[73, 1] = 50.0 * np.eye(3)
    assert 73 in chosen_parts(told, np.full(100, 30.0), 120.0)


RATE, MINUTES = 50.0, 9


@pytest.fixture(scope="module")
def long_bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine minutes, a motion of its own in each."""
    path, arm = tmp_path_factory.mktemp("long") / "bag", ExactArm()
    minutes = [arm.record(60.0, rate=RATE, seed=seed) for seed in range(MINUTES)]
    with BagWriter(path, minutes[0].info, tuple(minutes[0].columns)) as writer:
        for number, part in enumerate(minutes):
            writer.write(replace(part, time=part.time + 60.0 * number))
    return path


@pytest.fixture(scope="module")
def identified(long_bag: Path) -> Identification:
    return identify([long_bag], "ur5e")


def test_the_user_is_told_how_much_is_used(identified: Identification) -> None:
    (line,) = identified.notes
    assert "of 9.0 minutes" in line
    assert identification_json(identified)["notes"] == [line]
    (bag,) = identified.model.provenance["bags"]
    assert bag["duration"] == pytest.approx(60.0 * MINUTES, rel=0.01)
    assert 240.0 < bag["seconds_of_motion_used"] <= 300.0
    assert 60.0 < bag["seconds_of_samples_used"] <= 90.0


def test_the_constants_are_those_of_the_arm(identified: Identification) -> None:
    for joint, true in zip(identified.model.joints, TORQUE_CONSTANT, strict=True):
        error = joint.torque_constant - float(true)
        assert abs(error) < 4.0 * joint.std["torque_constant"]
    metrics = identified.fit[0]
    assert metrics.samples == RATE * 60 * MINUTES
    assert metrics.power is not None
    assert metrics.power["energy_error_percent"] == pytest.approx(0.0, abs=0.5)


def test_a_short_recording_is_used_as_a_whole(tmp_path: Path) -> None:
    bag = ExactArm().bag(tmp_path, seconds=40.0, rate=RATE)
    robot = load_robot("ur5e")
    with (
        closing(read_recording(bag, robot)) as whole,
        closing(read_recording(bag, robot, kept=KeptTime.of_each(1))) as kept,
    ):
        for one, other in zip(whole.motions(), kept.motions(), strict=True):
            for name in ("time", "q", "qd", "qdd", "current", "temperature"):
                np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        samples = kept.kept_samples()
        assert samples is not None
        assert sum(map(len, samples)) == whole.samples
        assert whole.kept_samples() is None


def test_a_pool_stays_within_twice_its_limit() -> None:
    pool = SegmentSelector(100.0)
    for number in range(200):
        recorded = ExactArm().record(1.0, rate=10.0)
        pool.add(Segment(6, (), replace(recorded, time=recorded.time + 10.0 * number)))
        assert pool.kept <= 200.0
    kept = pool.finished()
    times = [part.samples.time[0] for part in kept if part.samples is not None]
    assert sum(part.seconds for part in kept) <= 100.0
    assert times == sorted(times)
    assert times[0] == 60.0
    assert times[-1] > 1500.0
