"""Identification from a recording that is longer than what the fits use."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from test.identification.exact_arm import TORQUE_CONSTANT, ExactArm
from ur_energy_model.cli.identify import identification_json
from ur_energy_model.identification.parts import KeptTime, Segment, SegmentSelector
from ur_energy_model.identification.pipeline import Identification, identify
from ur_energy_model.identification.recording_reader import read_recording
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.bag.writer import BagWriter

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


def test_each_of_many_recordings_has_a_share() -> None:
    alone, many = KeptTime.of_each(1), KeptTime.of_each(10)
    assert 10 * many.motions == 5 * alone.motions
    assert KeptTime.of_each(1000).motions == 60.0


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
