# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Namespace, joint prefix and quality of service of the live graph in bags, and their readers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from rosbags.rosbag2 import Reader, StoragePlugin, Writer

from test.energy.known_arm import ROBOT, known_model, motion
from test.layouts.viewers import STORE, messages_of_bag
from test.telemetry.bag.bag_files import in_sqlite, write_bag
from test.telemetry.conftest import EPOCH, assert_same_samples
from test.telemetry.recorded_events import read_events
from ur_energy_model.energy.recording_energy import estimate_energy
from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.bag.files import FileSplit
from ur_energy_model.telemetry.bag.messages import (
    DIAGNOSTIC_ARRAY,
    BagTopic,
    Messages,
    encode_diagnostics,
)
from ur_energy_model.telemetry.bag.metadata import read_metadata
from ur_energy_model.telemetry.bag.reader import iterate_bag, read_bag
from ur_energy_model.telemetry.bag.recovery import recover_bag
from ur_energy_model.telemetry.bag.retention import file_contents
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.samples import Event, RecordingInfo, Telemetry

MARK = Event(EPOCH + 10, "mark", "part 17")


def recording(namespace: str = "", tf_prefix: str = "") -> Telemetry:
    """Three seconds of the known arm."""
    telemetry = motion(3.0)
    info = RecordingInfo(
        robot="ur5e", rate=500.0, namespace=namespace, tf_prefix=tf_prefix
    )
    return replace(
        telemetry, info=info, stamp=EPOCH + np.arange(len(telemetry)) * 2_000_000
    )


def write(path: Path, telemetry: Telemetry, *, finish: bool = True) -> None:
    """A bag of two files with a mark, and a latched topic; as a killed recorder leaves it."""
    fields = tuple(telemetry.columns)
    bag = BagWriter(
        path, telemetry.info, fields, name="bag", split=FileSplit(seconds=1.4)
    )
    bag.write_event(MARK)
    topic = BagTopic(
        f"{telemetry.info.namespace}/energy/cycle", DIAGNOSTIC_ARRAY, latched=True
    )
    bag.write_messages(Messages.single(topic, EPOCH, encode_diagnostics(EPOCH, [])))
    for start in range(0, len(telemetry), 25):
        bag.write(telemetry.cut(slice(start, start + 25)))
    for _ in range(2):  # the newest samples wait once for messages of other topics
        bag.flush()
    (bag.close if finish else bag.abandon)()


def damaged(path: Path, telemetry: Telemetry) -> None:
    """The definitions of the topics are lost in the second file of a killed recorder."""
    write(path, telemetry, finish=False)
    file = path / "bag_1.mcap"
    data = bytearray(file.read_bytes())
    end = data.index(b"(\xb5/\xfd") - 60  # of what comes before the first chunk
    data[30:end] = bytes(end - 30)
    file.write_bytes(data)
    assert recover_bag(path).samples == len(telemetry)


def rewritten(path: Path, telemetry: Telemetry) -> None:
    """A copy by another library, without what this package notes about a recording."""
    first = path.with_name("first")
    write(first, telemetry)
    in_sqlite(path, first)


WAYS = {"damaged": damaged, "sqlite 8": rewritten}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same samples without namespace and prefix."""
    path = tmp_path_factory.mktemp("plain") / "bag"
    write(path, recording())
    return path


@pytest.mark.parametrize("way", WAYS)
def test_every_reader_reads_the_same(tmp_path: Path, plain: Path, way: str) -> None:
    namespace = "/cell/left"
    tf_prefix = "left_"
    bag = tmp_path / "bag"
    telemetry = recording(namespace, tf_prefix)
    WAYS[way](bag, telemetry)
    read = read_bag(bag)
    assert_same_samples(read, read_bag(plain))
    assert sum(map(len, iterate_bag(bag, ("actual_q",), 77))) == len(telemetry)
    energy, expected = (estimate_energy(known_model(), each) for each in (bag, plain))
    assert energy.supply == pytest.approx(expected.supply, rel=1e-9)
    if way == "damaged":
        assert (read.info.namespace, read.info.tf_prefix) == (namespace, tf_prefix)
        assert read_events(bag) == [MARK]
        assert any(file_contents(file).marked for file in bag.glob("*.mcap"))
    with Reader(bag) as reader:
        found = {each.topic for each in reader.connections}
    names = ("/rtde/joint_telemetry", "/joint_states", "/rtde/events", "/rtde/fields")
    assert found == {namespace + name for name in (*names, "/energy/cycle")}
    joints = [tf_prefix + joint for joint in ROBOT.joint_names]
    messages = messages_of_bag(bag)
    assert messages[f"{namespace}/rtde/joint_telemetry"].joint_names == [*joints, "robot"]
    assert messages[f"{namespace}/joint_states"].name == joints
    assert f"actual_q/{joints[2]}" in messages[f"{namespace}/rtde/fields"].name


def test_a_bag_of_two_arms_is_refused(tmp_path: Path) -> None:
    with Writer(tmp_path / "both", version=9, storage_plugin=StoragePlugin.MCAP) as out:
        for namespace in ("/left", "/right"):
            with Reader(
                write_bag(tmp_path / namespace[1:], recording(namespace))
            ) as reader:
                wanted = [
                    each for each in reader.connections if "telemetry" in each.topic
                ]
                kind = wanted[0].topic, wanted[0].msgtype
                copy = out.add_connection(*kind, typestore=STORE)
                for _, time, raw in reader.messages(wanted):
                    out.write(copy, time, raw)
    with pytest.raises(
        RecordingError, match=r"two arms: /left/rtde.* and /right/rtde"
    ) as error:
        read_bag(tmp_path / "both")
    assert "\n" not in str(error.value)


def test_profiles_of_older_versions_are_read(tmp_path: Path, plain: Path) -> None:
    content = yaml.safe_load((plain / "metadata.yaml").read_text())
    for profiles, latched in (("", False), ("- history: 3\n  durability: 1\n", True)):
        for topic in content["rosbag2_bagfile_information"]["topics_with_message_count"]:
            topic["topic_metadata"]["offered_qos_profiles"] = profiles
        (tmp_path / "metadata.yaml").write_text(yaml.safe_dump(content))
        assert {topic.latched for topic in read_metadata(tmp_path).topics} == {latched}
