"""A bag read once: filtered motion, buffers, and the parts of long recordings that are used."""

from __future__ import annotations

import pickle
from contextlib import closing
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

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
from ur_energy_model.identification.pipeline import IdentificationOptions, identify
from ur_energy_model.identification.recording import REQUIRED, TorqueBuffer, read_recording
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.bag.metadata import bag_hash
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.samples import Telemetry, find_gaps


@pytest.fixture(scope="module")
def made() -> Telemetry:
    return ExactArm().record(100.0)


def test_missing_and_impossible_fields_are_refused_with_their_time() -> None:
    columns = {name: np.zeros((5, 6)) for name in (*REQUIRED, "target_moment")}
    time, unmeasured = np.arange(5.0) * 0.1, np.full((5, 6), np.nan)
    check_batch("bag", Telemetry(time, {**columns, "target_moment": unmeasured}), REQUIRED, 6)
    for field in columns:
        values = np.zeros((5, 6))
        values[3, 1] = -1e160
        with pytest.raises(RecordingError, match=r"-1e\+160 at t = 0.300 s is impossible") as no:
            check_batch("bag", Telemetry(time, {**columns, field: values}), REQUIRED, 6)
        assert no.value.field == field
    del columns["actual_qd"]
    with pytest.raises(MissingFieldError, match="actual_qd"):
        check_batch("bag", Telemetry(time, columns), REQUIRED, 6)


def motion_of(*batches: Telemetry, rate: float = 100.0) -> FilteredMotion:
    """Their motion, which has no gap."""
    return reduce(FilteredMotion.followed_by, filtered_motions(batches, 6, 4.0, 1 / rate))


def some(made: Telemetry, rows: np.ndarray) -> Telemetry:
    columns, time = {name: values[rows] for name, values in made.columns.items()}, made.time[rows]
    return Telemetry(time, columns, made.info, find_gaps(time, 0.01))


@pytest.mark.parametrize("rate", [50.0, 500.0])
def test_acceleration_comes_from_speed(rate: float) -> None:
    made = ExactArm().record(20.0, rate=rate)
    motion = motion_of(made, rate=rate)
    pairs = zip(motion.qdd.T, made["target_qdd"].T, strict=True)
    for found, true in pairs:
        expected = np.interp(motion.time, made.time, true)
        assert np.abs(found - expected).max() < 0.02 * np.abs(expected).max()


def test_batches_make_no_difference(made: Telemetry) -> None:
    whole = motion_of(made)
    pieces = motion_of(*(made.cut(slice(i, i + 700)) for i in range(0, len(made), 700)))
    for name, close in (("time", 1e-9), ("qd", 1e-6), ("current", 1e-4)):
        np.testing.assert_allclose(getattr(pieces, name), getattr(whole, name), atol=close)


def test_gaps_lost_repeated_and_uneven_samples(made: Telemetry) -> None:
    """A gap is not bridged, the others are."""
    made, every = made.cut(slice(0, 2000)), np.arange(2000)
    gap = list(filtered_motions([some(made, np.delete(every, slice(900, 950)))], 6, 4.0, 0.01))
    assert len(gap) == 2
    assert gap[0].time[-1] < made.time[900] <= gap[1].time[0] - 0.4
    kept = np.sort(np.random.default_rng(0).choice(2000, 1850, replace=False))
    for rows in (np.delete(every, 900), np.sort(np.concatenate([kept, kept[::40]]))):
        part = some(made, rows)
        (motion,) = filtered_motions([part], 6, 4.0, sample_period(part.time))
        expected = np.interp(motion.time, made.time, made["actual_qd"][:, 1])
        assert np.abs(motion.qd[:, 1] - expected).max() < 0.02


def test_moving_samples_keep_clear_of_standstill() -> None:
    time = np.arange(0, 4.0, 0.01)
    qd = np.where(time < 2.0, 0.0, 0.5)[:, None]
    zero = np.zeros_like(qd)
    motion = FilteredMotion(time, zero, qd, zero, zero, zero, zero, np.full((len(time), 4), np.nan))
    moving = ParallelFilter(4.0).moving(motion, 0.02)[:, 0]
    assert not moving[:205].any()
    assert moving[220:-1].all()


def test_cutoff_follows_the_motion_and_the_noise(made: Telemetry) -> None:
    quiet = choose_cutoff(made)
    assert CUTOFF_RANGE[0] <= quiet <= CUTOFF_RANGE[1]
    lively = np.sin(2 * np.pi * 4.5 * made.time)[:, None] * np.ones(6) * 0.3
    assert choose_cutoff(replace(made, columns={**made.columns, "actual_qd": lively})) > quiet


def test_torques_are_kept_at_a_reduced_rate_where_they_have_targets(made: Telemetry) -> None:
    whole = made.cut(slice(0, 2000))
    bare = {name: c for name, c in whole.columns.items() if not name.startswith("target_q")}
    for part, expected, count in (
        (whole, "target", 1000),
        (replace(whole, columns=bare), "actual", 2000),
    ):
        buffer = TorqueBuffer()
        for rows in (slice(None, 700), slice(700, None)):
            buffer.append(part.cut(rows))
        (found,) = buffer.telemetry(part.info, 100.0)
        assert buffer.reference == expected
        assert len(found) == pytest.approx(count, abs=3)
        places = np.searchsorted(whole.time, found.time)
        for name in (f"{expected}_q", "target_moment"):
            np.testing.assert_array_equal(found[name], whole[name][places])
        buffer.close()


def test_a_short_recording_is_used_as_a_whole_and_can_be_pickled(tmp_path: Path) -> None:
    bag, robot = ExactArm().bag(tmp_path, seconds=40.0, rate=50.0), load_robot("ur5e")
    with (
        closing(read_recording(bag, robot)) as whole,
        closing(read_recording(bag, robot, kept=KeptTime.of_each(1))) as kept,
        closing(pickle.loads(pickle.dumps(kept))) as found,
    ):
        for name in ("info", "rate", "samples", "duration", "torque_reference"):
            assert getattr(found, name) == getattr(kept, name) == getattr(whole, name)
        assert found.sha256 == bag_hash(bag)
        for other in (whole, found):
            for one, two in zip(kept.motions(), other.motions(), strict=True):
                for name in ("time", "q", "qd", "qdd", "current", "temperature"):
                    np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
        for one, two in zip(found.supply(), kept.supply(), strict=True):
            np.testing.assert_array_equal(np.column_stack(one), np.column_stack(two))
        assert sum(map(len, kept.kept_samples() or ())) == whole.samples
        assert whole.kept_samples() is None


def test_parts_are_spread_and_the_only_one_in_which_a_joint_moves_is_chosen() -> None:
    rows = np.random.default_rng(0).normal(size=(100, 2, 50, 3))
    information, seconds = np.swapaxes(rows, 2, 3) @ rows, np.full(100, 30.0)
    chosen = chosen_parts(information, seconds, 600.0)
    assert (chosen[0], len(chosen)) == (0, 20)
    assert (np.diff(chosen) > 0).all()
    assert (np.bincount(chosen // 10, minlength=10) >= 1).all()
    information[:, 1] = 0.0
    information[73, 1] = 50.0 * np.eye(3)
    assert 73 in chosen_parts(information, seconds, 120.0)


def test_a_pool_stays_within_twice_its_limit() -> None:
    pool, second = SegmentSelector(100.0), ExactArm().record(1.0, rate=10.0)
    for number in range(200):
        pool.add(Segment(6, (), replace(second, time=second.time + 10.0 * number)))
        assert pool.kept <= 200.0
    kept = pool.finished()
    times = [part.samples.time[0] for part in kept if part.samples is not None]
    assert sum(part.seconds for part in kept) <= 100.0
    assert times == sorted(times)
    assert times[0] == 60.0
    assert times[-1] > 1500.0


def test_a_long_recording_is_used_in_part_and_says_so(tmp_path: Path) -> None:
    """Seven minutes, a motion of its own in each."""
    path, arm = tmp_path / "bag", ExactArm()
    minutes = [arm.record(60.0, rate=25.0, seed=seed) for seed in range(7)]
    with BagWriter(path, minutes[0].info, tuple(minutes[0].columns)) as writer:
        for number, part in enumerate(minutes):
            writer.write(replace(part, time=part.time + 60.0 * number))
    found = identify([path], "ur5e", IdentificationOptions(friction="power_flow"))
    (line,) = found.notes
    assert "of 7.0 minutes" in line
    assert list(identification_json(found)["notes"]) == [line]
    bag: dict[str, Any] = found.model.provenance["bags"][0]
    assert bag["duration"] == pytest.approx(420.0, rel=0.01)
    assert 240.0 < bag["seconds_of_motion_used"] <= 300.0
    assert 60.0 < bag["seconds_of_samples_used"] <= 90.0
    for joint, true in zip(found.model.joints, TORQUE_CONSTANT, strict=True):
        assert abs(joint.torque_constant - true) < 4.0 * joint.std["torque_constant"]
    metrics = found.fit[0]
    assert metrics.samples == 25 * 60 * 7
    assert metrics.power is not None
    assert metrics.power["energy_error_percent"] == pytest.approx(0.0, abs=0.5)
