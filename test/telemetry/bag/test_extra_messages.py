"""Messages of other topics in a bag: every reader finds them, samples stay what they are."""

import itertools
from typing import Any

import numpy as np
import pytest
from mcap.reader import make_reader
from rosbags.highlevel import AnyReader
from rosbags.rosbag2 import Reader
from rosbags.typesys import Stores, get_typestore

from test.telemetry.conftest import assert_same_samples, make_telemetry
from ur_energy_model.telemetry.bag.extra_messages import MOST_BYTES, Messages
from ur_energy_model.telemetry.bag.files import FileSplit
from ur_energy_model.telemetry.bag.mcap_format import PREFIX, Op
from ur_energy_model.telemetry.bag.message_encoder import FLOAT64, BagTopic
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.telemetry.bag.recovery import recover_bag
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.samples import Event

POWER = BagTopic("/cell1/energy/total/power", FLOAT64)
ENERGY = BagTopic("/cell1/energy/total/energy", FLOAT64)
STORE: Any = get_typestore(Stores.ROS2_JAZZY)


def number(topic, stamp, value):
    data = STORE.serialize_cdr(
        STORE.types["std_msgs/msg/Float64"](data=value), "std_msgs/msg/Float64"
    )
    return Messages.single(topic, stamp, bytes(data))


def write_both(path, telemetry, **options):
    """A bag with a number on each of two topics for every tenth sample, 50 ms late."""
    fields = tuple(telemetry.columns)
    with BagWriter(path, telemetry.info, fields, **options) as bag:
        for start in range(0, len(telemetry), 25):
            for i in range(start - 25, start, 10):
                if i >= 0:
                    for topic in (POWER, ENERGY):
                        bag.write_messages(number(topic, int(telemetry.stamp[i]), float(i)))
            bag.write(telemetry.cut(slice(start, start + 25)))
    return path


def read_numbers(path, topic):
    with Reader(path) as reader:
        wanted = [each for each in reader.connections if each.topic == topic.name]
        return [
            (stamp, STORE.deserialize_cdr(raw, connection.msgtype).data)
            for connection, stamp, raw in reader.messages(wanted)
        ]


def stamps_of(telemetry):
    return telemetry.stamp.tolist()


@pytest.fixture
def telemetry():
    return make_telemetry(1000, fields=("actual_q", "payload"))


def test_each_file_of_a_bag_is_complete(tmp_path, telemetry):
    bag = write_both(tmp_path / "bag", telemetry, split=FileSplit(seconds=0.6))
    files = sorted(bag.glob("*.mcap"))
    assert len(files) > 2
    ends = []
    for path in files[:-1]:  # the last one may be empty still
        with path.open("rb") as file:
            messages = list(make_reader(file, validate_crcs=True).iter_messages())
        assert POWER.name in {channel.topic for _, channel, _ in messages}
        ends.append((messages[0][2].log_time, messages[-1][2].log_time))
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(ends))
    with Reader(bag) as reader:
        counts = {each.topic: each.msgcount for each in reader.connections}
    assert counts[POWER.name] == len(read_numbers(bag, POWER)) > 100


@pytest.mark.parametrize("late", [0.0, 0.05, 0.2, 1.5, -0.3], ids="{} s late".format)
def test_a_file_without_index_is_in_the_order_of_log_times(tmp_path, late):
    """As a killed logger leaves it: other readers refuse any other order."""
    telemetry = make_telemetry(3000, fields=("actual_q", "payload"))
    bag = BagWriter(tmp_path / "bag", telemetry.info, ("actual_q", "payload"))
    shift = int(500 * late)
    for start in range(0, len(telemetry), 25):
        bag.write(telemetry.cut(slice(start, start + 25)))
        for i in range(max(start - shift, 0), min(start - shift + 25, 3000), 10):
            bag.write_messages(number(POWER, stamps_of(telemetry)[i], float(i)))
        if start % 250 == 0:
            bag.flush()
        if start == 1500:
            bag.write_event(Event(stamps_of(telemetry)[start], "mark", "here"))
    bag.abandon()
    bag.write_metadata()
    with AnyReader([bag.path]) as reader:
        times = [stamp for _, stamp, _ in reader.messages()]
    assert times == sorted(times)
    with (bag.path / "bag_0.mcap").open("rb") as file:
        messages = list(make_reader(file, validate_crcs=True).iter_messages(log_time_order=False))
    assert [message.log_time for _, _, message in messages] == times
    given = [m for _, channel, m in messages if channel.topic == POWER.name]
    given = given[50:]  # until then nothing has waited for them
    assert len(given) > 200
    if 0.0 <= late <= 0.2:  # they have the times of their samples
        values = [STORE.deserialize_cdr(m.data, "std_msgs/msg/Float64").data for m in given]
        stamps = stamps_of(telemetry)
        assert [m.log_time for m in given] == [stamps[int(value)] for value in values]


def test_messages_that_wait_for_a_chunk_are_bounded(tmp_path, telemetry):
    with BagWriter(tmp_path / "bag", telemetry.info, ("actual_q",)) as bag:
        big = Messages(POWER, np.arange(1000), np.zeros((1000, 1000), np.uint8))
        for _ in range(20):
            bag.write_messages(big)
        bag.write(telemetry)
    assert len(read_bag(tmp_path / "bag")) == len(telemetry)
    with Reader(tmp_path / "bag") as reader:
        counts = {each.topic: each.msgcount for each in reader.connections}
    assert 0 < counts[POWER.name] <= MOST_BYTES / 1000


def test_recovery_keeps_the_samples_where_a_definition_is_lost(tmp_path, telemetry):
    bag = write_both(tmp_path / "bag", telemetry)
    file = bag / "bag_0.mcap"
    data = bytearray(file.read_bytes())
    place = data.index(POWER.name.encode())
    record = data.rindex(bytes([Op.CHANNEL]), 0, place - PREFIX.size)
    data[record] = 0x7F  # no known record
    file.write_bytes(data)
    recovery = recover_bag(bag)
    assert recovery.problems
    assert recovery.samples == len(telemetry)
    assert_same_samples(read_bag(bag), telemetry)
    with file.open("rb") as stream:
        assert list(make_reader(stream, validate_crcs=True).iter_messages())
