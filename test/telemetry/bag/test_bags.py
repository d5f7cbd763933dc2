"""Bags: what was written is read, bit for bit, with its gaps, events and provenance."""

import math
from dataclasses import replace

import numpy as np
import pytest
import yaml
from mcap.reader import make_reader

from test.telemetry.bag.bag_files import write_bag
from test.telemetry.conftest import EPOCH, assert_same_samples, make_telemetry
from ur_energy_model.errors import MissingFieldError, RecordingError
from ur_energy_model.telemetry.bag.files import FileSplit
from ur_energy_model.telemetry.bag.reader import iterate_bag, read_bag, read_events
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.fields import FIELDS
from ur_energy_model.telemetry.samples import Event, Gap, RecordingInfo, concatenate

BAG_KEYS = {
    "version", "storage_identifier", "duration", "starting_time", "message_count",
    "topics_with_message_count", "compression_format", "compression_mode", "relative_file_paths",
    "files", "custom_data", "ros_distro",
}  # fmt: skip


TOPIC_KEYS = {
    "name",
    "type",
    "serialization_format",
    "offered_qos_profiles",
    "type_description_hash",
}


def test_every_bit_comes_back(tmp_path, telemetry):
    bag = write_bag(tmp_path / "bag", telemetry)
    assert_same_samples(read_bag(bag), telemetry)


def test_special_numbers_come_back(tmp_path):
    telemetry = make_telemetry(8, fields=("actual_main_voltage",))
    values = np.array([math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.8e308, 0.1, 2**53 + 2.0])
    telemetry = replace(telemetry, columns={**telemetry.columns, "actual_main_voltage": values})
    bag = write_bag(tmp_path / "bag", telemetry)
    assert read_bag(bag)["actual_main_voltage"].tobytes() == values.tobytes()


def test_every_field_of_the_table_comes_back(tmp_path):
    telemetry = make_telemetry(20, fields=tuple(FIELDS))
    assert_same_samples(read_bag(write_bag(tmp_path / "bag", telemetry)), telemetry)


@pytest.mark.parametrize("fields", [("timestamp",), ("actual_q",), ("payload", "joint_mode")])
def test_few_fields_come_back(tmp_path, fields):
    telemetry = make_telemetry(50, fields=fields)
    assert_same_samples(read_bag(write_bag(tmp_path / "bag", telemetry)), telemetry)


def test_what_made_a_recording_comes_back(tmp_path):
    info = RecordingInfo(
        source="10.0.0.1",
        robot="ur10e",
        serial="20195500123",
        controller_version="5.11.1.108318",
        rate=500.0,
        gravity=(0.0, 6.9, -6.9),
        payload_mass=1.25,
        payload_center_of_mass=(0.0, 0.01, 0.1),
        simulated=True,
        extra={"cell": "7: left"},
    )
    bag = write_bag(tmp_path / "bag", make_telemetry(10, info=info))
    assert read_bag(bag).info == replace(info, source=str(bag))
    assert read_bag(bag / "bag_0.mcap").info == replace(info, source=str(bag / "bag_0.mcap"))


def test_chunks_of_single_samples_come_back(tmp_path):
    """Chunks without any message for viewers, of which there is one in 20 ms."""
    telemetry = make_telemetry(40)
    bag = tmp_path / "bag"
    with BagWriter(bag, telemetry.info, tuple(telemetry.columns)) as writer:
        for i in range(len(telemetry)):
            writer.write(telemetry.cut(slice(i, i + 1)))
            writer.flush()
    assert_same_samples(read_bag(bag), telemetry)


def test_gaps_come_back_with_their_causes(tmp_path):
    first, second = make_telemetry(300), make_telemetry(300, first=310)
    restarted = replace(make_telemetry(200), stamp=make_telemetry(200, first=5000).stamp)
    gaps = (
        Gap(300, first.time[-1], second.time[0], 10, "connection lost: closed by the controller"),
        Gap(600, second.time[-1], restarted.time[0], 0, "controller restarted: no answer"),
    )
    whole = replace(concatenate([first, second, restarted]), gaps=gaps)
    bag = write_bag(tmp_path / "bag", whole, batch=60)
    assert read_bag(bag).gaps == gaps
    assert read_bag(bag).lost == 10
    batches = list(iterate_bag(bag, samples=100))
    assert [gap.index for batch in batches for gap in batch.gaps] == [0, 0]
    assert concatenate(batches).gaps == gaps


def test_gaps_in_the_second_file_keep_their_place(tmp_path):
    first, second = make_telemetry(1000), make_telemetry(1000, first=1005)
    gap = Gap(1000, first.time[-1], second.time[0], 5, "skipped")
    whole = replace(concatenate([first, second]), gaps=(gap,))
    bag = write_bag(tmp_path / "bag", whole, split=FileSplit(seconds=1.0))
    assert len(list(bag.glob("*.mcap"))) > 2
    assert read_bag(bag).gaps == (gap,)


def test_selected_fields_are_those_of_the_whole(tmp_path, telemetry):
    bag = write_bag(tmp_path / "bag", telemetry)
    part = read_bag(bag, ["actual_q", "payload_cog", "no_such_field"])
    assert set(part.columns) == {"actual_q", "payload_cog"}
    assert np.array_equal(part["actual_q"], telemetry["actual_q"])
    assert np.array_equal(part.time, telemetry.time)
    with pytest.raises(MissingFieldError, match="actual_current"):
        part.require("actual_current")


@pytest.mark.parametrize("samples", [1, 7, 250, 10_000])
def test_batches_join_to_the_whole(tmp_path, samples):
    telemetry = make_telemetry(600, fields=("actual_q", "robot_mode"))
    bag = write_bag(tmp_path / "bag", telemetry)
    batches = list(iterate_bag(bag, samples=samples))
    assert max(map(len, batches)) <= samples
    assert_same_samples(concatenate(batches), telemetry)


def test_a_bag_without_host_stamps_has_none_again(tmp_path):
    telemetry = make_telemetry(100, stamped=False)
    assert_same_samples(read_bag(write_bag(tmp_path / "bag", telemetry)), telemetry)


def test_log_times_never_go_back(tmp_path):
    parts = [make_telemetry(100, stamped=False), make_telemetry(100, first=-3000, stamped=False)]
    bag = write_bag(tmp_path / "bag", concatenate(parts, cause="next file"))
    with (bag / "bag_0.mcap").open("rb") as file:
        times = [message.log_time for _, _, message in make_reader(file).iter_messages()]
    assert times == sorted(times)
    assert np.array_equal(read_bag(bag).time, concatenate(parts).time)


def test_a_flood_of_events_is_bounded_and_cheap(tmp_path, telemetry):
    with BagWriter(tmp_path / "bag", telemetry.info, ("actual_q",)) as bag:
        for i in range(5000):
            bag.write_event(Event(EPOCH + i, "mode", f"robot_mode: {i}"))
        bag.write(telemetry)
    events = read_events(tmp_path / "bag")
    assert [event.stamp for event in events] == list(range(EPOCH, EPOCH + len(events)))
    assert 500 <= len(events) < 5000
    assert len(read_bag(tmp_path / "bag")) == len(telemetry)
    with (tmp_path / "bag" / "bag_0.mcap").open("rb") as file:
        messages = [message for _, _, message in make_reader(file).iter_messages()]
    assert len(messages) == 1200 + len(events)


def test_events_come_back(tmp_path, telemetry):
    with BagWriter(tmp_path / "bag", telemetry.info, ("actual_q",)) as bag:
        bag.write(telemetry)
        bag.write_event(Event(EPOCH + 5, "mark", "gripper closes ⚙"))
        bag.write_event(Event(EPOCH + 9, "message", "safety", 40))
    events = read_events(tmp_path / "bag")
    assert events == [
        Event(EPOCH + 5, "mark", "gripper closes ⚙"),
        Event(EPOCH + 9, "message", "safety", 40),
    ]


def test_chunks_are_short_enough_to_lose_less_than_a_second(tmp_path):
    bag = write_bag(tmp_path / "bag", make_telemetry(3000, fields=("actual_q",)))
    with (bag / "bag_0.mcap").open("rb") as file:
        summary = make_reader(file).get_summary()
        assert summary is not None
        chunks = summary.chunk_indexes
    longest = max(chunk.message_end_time - chunk.message_start_time for chunk in chunks)
    assert longest <= 600_000_000


def test_metadata_has_all_that_rosbag2_insists_on(tmp_path, telemetry):
    bag = write_bag(tmp_path / "bag", telemetry, split=FileSplit(seconds=0.7))
    root = yaml.safe_load((bag / "metadata.yaml").read_text())["rosbag2_bagfile_information"]
    assert set(root) == BAG_KEYS
    assert root["version"] == 9
    assert root["storage_identifier"] == "mcap"
    files = sorted(path.name for path in bag.glob("*.mcap"))
    assert root["relative_file_paths"] == files == [entry["path"] for entry in root["files"]]
    assert sum(entry["message_count"] for entry in root["files"]) == root["message_count"] == 1200
    assert root["starting_time"]["nanoseconds_since_epoch"] == EPOCH
    assert root["duration"]["nanoseconds"] == 999 * 2_000_000
    for topic in root["topics_with_message_count"]:
        assert set(topic["topic_metadata"]) == TOPIC_KEYS
        assert topic["topic_metadata"]["type_description_hash"].startswith("RIHS01_")
    assert all(isinstance(value, str) for value in root["custom_data"].values())
    assert root["custom_data"]["robot"] == "ur5e"


def test_split_by_size(tmp_path):
    telemetry = make_telemetry(3000, fields=("actual_q", "actual_qd"))
    bag = write_bag(tmp_path / "bag", telemetry, split=FileSplit(bytes=50_000))
    sizes = [path.stat().st_size for path in bag.glob("*.mcap")]
    assert len(sizes) > 2
    assert max(sizes) < 150_000
    assert_same_samples(read_bag(bag), telemetry)


def test_an_existing_path_is_refused(tmp_path, telemetry):
    (tmp_path / "bag").mkdir()
    with pytest.raises(RecordingError, match="exists already"):
        BagWriter(tmp_path / "bag", telemetry.info, ("actual_q",))
    assert list((tmp_path / "bag").iterdir()) == []


def test_fields_must_be_in_the_table(tmp_path, telemetry):
    with pytest.raises(RecordingError, match="actual_qq"):
        BagWriter(tmp_path / "bag", telemetry.info, ("actual_qq",))
    with BagWriter(tmp_path / "other", telemetry.info, ("actual_TCP_force",)) as bag:
        with pytest.raises(MissingFieldError, match="actual_TCP_force"):
            bag.write(telemetry)
        bag.write(make_telemetry(5, fields=("actual_TCP_force",)))


def test_a_file_is_split_at_its_first_limit() -> None:
    split = FileSplit(seconds=2.0, bytes=1000)
    assert not split.is_due(1_999_999_999, 999)
    assert split.is_due(2_000_000_000, 0)
    assert split.is_due(0, 1000)
    assert not FileSplit().is_due(10**18, 10**12)


@pytest.mark.parametrize("split", [None, FileSplit(seconds=1.0)])
def test_samples_carry_the_program_that_was_loaded(tmp_path, split):
    """From its first sample on, in whatever batches they are read; metadata has the last."""
    names = [None, "first", "first", "second", None, "third"]
    with BagWriter(tmp_path / "bag", RecordingInfo(rate=500.0), ("actual_q",), split=split) as bag:
        for number, name in enumerate(names):
            part = make_telemetry(400, fields=("actual_q",), first=400 * number)
            bag.write(replace(part, info=replace(part.info, program=name)))
    for size in (130, 1000, 10_000):
        read = [
            batch.info.program for batch in iterate_bag(bag.path, None, size) for _ in batch.time
        ]
        assert read == [name for name in names for _ in range(400)]
    assert "third" in (bag.path / "metadata.yaml").read_text()
