# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Nothing twice within one bag: files, chunks and messages that a bag has more than once."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap.writer import Writer

from test.telemetry.bag.bag_files import change_rows, in_sqlite, write_bag
from test.telemetry.conftest import assert_same_samples, make_telemetry
from ur_energy_model.telemetry.bag.files import FileSplit
from ur_energy_model.telemetry.bag.mcap_writer import LIBRARY
from ur_energy_model.telemetry.bag.reader import iterate_bag, read_bag
from ur_energy_model.telemetry.bag.recovery import recover_bag
from ur_energy_model.telemetry.gaps import find_gaps

RESTART = 1100  # first sample after the controller started again


@pytest.fixture(scope="module")
def telemetry():
    """Three seconds with a gap; the controller starts again, and repeats its clock."""
    whole = make_telemetry(1500, fields=("actual_q", "payload"))
    time = whole.time.copy()
    time[RESTART:] = time[: len(time) - RESTART]
    whole = replace(whole, time=time, columns={**whole.columns, "timestamp": time})
    kept = whole.select((np.arange(1500) < 700) | (np.arange(1500) >= 760))
    return replace(kept, gaps=find_gaps(kept.time, 0.002))


def write(path, telemetry, first=0, stop=None):
    """A bag of files of 0.9 s with a part of the samples."""
    stop = len(telemetry) if stop is None else stop
    inside = [gap for gap in telemetry.gaps if first <= gap.index < stop]
    gaps = tuple(replace(gap, index=gap.index - first) for gap in inside)
    part = replace(telemetry.cut(slice(first, stop)), gaps=gaps)
    return write_bag(path, part, split=FileSplit(seconds=0.9))


@pytest.fixture(scope="module")
def intact(telemetry, tmp_path_factory):
    """A bag of three files."""
    return write(tmp_path_factory.mktemp("intact") / "bag", telemetry)


@pytest.fixture
def bag(intact, tmp_path):
    return shutil.copytree(intact, tmp_path / "bag")


def rewrite(bag, change):
    """Rewrite the middle file by another library, with its messages in another order, or twice."""
    file = bag / "bag_1.mcap"
    with file.open("rb") as source:
        reader = make_reader(source)
        messages = list(reader.iter_messages())
        metadata = list(reader.iter_metadata())
    with file.open("wb") as target:
        writer = Writer(target, chunk_size=100_000)
        writer.start("ros2", LIBRARY)
        for each in metadata:
            writer.add_metadata(each.name, each.metadata)
        numbers = {}
        for schema, channel, message in change(messages):
            if channel.id not in numbers:
                schema_id = writer.register_schema(
                    schema.name, schema.encoding, schema.data
                )
                own = channel.topic, channel.message_encoding, schema_id, channel.metadata
                numbers[channel.id] = writer.register_channel(*own)
            times = message.log_time, message.data, message.publish_time
            writer.add_message(numbers[channel.id], *times)
        writer.finish()


def list_copy(bag):
    shutil.copy(bag / "bag_1.mcap", bag / "copy.mcap")
    text = (bag / "metadata.yaml").read_text()
    (bag / "metadata.yaml").write_text(
        text.replace("- bag_2.mcap", "- copy.mcap\n  - bag_2.mcap")
    )


DAMAGES = {
    "file in between": list_copy,
    "chunk beside itself": lambda bag: rewrite(bag, lambda all_: all_[:400] + all_[200:]),
    "each message": lambda bag: rewrite(
        bag, lambda all_: [r for r in all_ for _ in range(2)]
    ),
    "backwards again": lambda bag: rewrite(bag, lambda all_: all_ + all_[-200:][::-1]),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_each_sample_counts_once(bag, telemetry, damage):
    DAMAGES[damage](bag)
    repeated = sum(batch.repeated for batch in iterate_bag(bag, (), 100))
    assert repeated > 0
    recovered = shutil.copytree(bag, bag.parent / "recovered")
    recover_bag(recovered)
    for each in (bag, recovered):
        read = read_bag(each)
        assert read.repeated == repeated
        if damage != "backwards again":
            assert_same_samples(read, telemetry)
            for batches in (read,), iterate_bag(each, (), 100):
                found = [
                    (gap.start, gap.cause) for batch in batches for gap in batch.gaps
                ]
                assert found == [(gap.start, gap.cause) for gap in telemetry.gaps]
        else:  # the same samples in another order, with a gap at each step back
            assert read.stamp is not None
            assert sorted(read.stamp.tolist()) == telemetry.stamp.tolist()
            back = set(np.flatnonzero(np.diff(read.time) < 0) + 1)
            assert back <= {gap.index for gap in read.gaps}


def test_gaps_of_recordings_that_overlap_stay_at_their_samples(tmp_path, telemetry):
    (tmp_path / "bag").mkdir()
    for number, part in enumerate([(0, 900), (500, None)]):
        bag = write(tmp_path / str(number), telemetry, *part)
        for file in sorted(bag.glob("*.mcap")):
            place = len(list((tmp_path / "bag").iterdir()))
            shutil.copy(file, tmp_path / "bag" / f"bag_{place}.mcap")
    bag = tmp_path / "bag"
    recover_bag(bag)
    read = read_bag(bag)
    assert_same_samples(read, telemetry)
    assert [(g.index, g.cause) for g in read.gaps] == [
        (g.index, g.cause) for g in telemetry.gaps
    ]


def test_rows_of_sqlite_bags_count_once(tmp_path, telemetry, intact):
    bag = in_sqlite(tmp_path / "bag", intact)
    change_rows(
        bag,
        "INSERT INTO messages(topic_id, timestamp, data) SELECT topic_id, timestamp + 1, data "
        "FROM messages WHERE topic_id = (SELECT id FROM topics WHERE name LIKE '%telemetry') "
        "ORDER BY timestamp LIMIT 401",
    )
    read = read_bag(bag)
    assert_same_samples(read, telemetry)
    assert read.repeated == 401
