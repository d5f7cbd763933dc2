"""Messages of other topics beside samples: they neither delay nor displace them."""

import struct

import numpy as np
from rosbags.rosbag2 import Reader

from test.telemetry.recording.scripted_source import batches
from ur_energy_model.telemetry.bag.cdr import encode_numbers
from ur_energy_model.telemetry.bag.extra_messages import Messages
from ur_energy_model.telemetry.bag.message_encoder import FLOAT64, BagTopic
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.telemetry.recording.reception import RecorderOptions
from ur_energy_model.telemetry.recording.recorder import Recorder
from ur_energy_model.telemetry.samples import concatenate

TOPIC = BagTopic("/energy/total/power", FLOAT64)


def numbers(first, count):
    stamps = 1_700_000_000_000_000_000 + np.arange(first, first + count)
    return Messages(TOPIC, stamps, encode_numbers(np.arange(first, first + count, dtype=float)))


def recorded(tmp_path, source, messages):
    """Samples that were given and those in the bag, and the numbers of the messages in it."""
    inside = batches(40)
    options = RecorderOptions(messages=messages)
    with Recorder(source, tmp_path, options=options) as recorder:
        bag = recorder.start(tmp_path / "bag")
        source.give(*inside)
        status = recorder.stop()
    assert status.lost == 0
    with Reader(bag) as reader:
        wanted = [each for each in reader.connections if each.topic == TOPIC.name]
        found = [raw for _, _, raw in reader.messages(wanted)] if wanted else []
    return (
        concatenate(inside),
        read_bag(bag),
        [struct.unpack_from("<d", raw, 4)[0] for raw in found],
    )


def test_they_are_in_the_bag_from_its_beginning_to_its_end(tmp_path, source):
    waiting = [numbers(0, 3)]  # from before the bag

    def take():
        taken = list(waiting)
        waiting[:] = [numbers(3, 5)] if taken and taken[0].stamp[0] % 10 == 0 else []
        return taken

    given, read, found = recorded(tmp_path, source, take)
    assert len(read) == len(given)
    assert found == [3, 4, 5, 6, 7]


def test_a_flood_of_them_costs_no_sample(tmp_path, source):
    given, read, found = recorded(tmp_path, source, lambda: [numbers(0, 100_000)] * 10)
    assert np.array_equal(read.time, given.time)
    assert np.array_equal(read["actual_q"], given["actual_q"])
    assert found
