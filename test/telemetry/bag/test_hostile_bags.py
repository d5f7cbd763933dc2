"""Bags that are damaged or malicious: refused in one line, in bounded time and memory."""

import os
import shutil
import struct
import zlib

import pytest
import zstandard

from test.telemetry.bag.bag_files import chunk_record, write_bag, write_file
from test.telemetry.conftest import make_telemetry
from ur_energy_model.errors import RecordingError
from ur_energy_model.telemetry.bag.mcap_format import Op
from ur_energy_model.telemetry.bag.metadata import gap_of_custom, info_of_custom, read_metadata
from ur_energy_model.telemetry.bag.reader import iterate_bag, read_bag
from ur_energy_model.telemetry.bag.recovery import recover_bag
from ur_energy_model.telemetry.bag.writer import BagWriter

METADATA = "metadata.yaml"


@pytest.fixture(scope="module")
def intact(tmp_path_factory):
    """A bag of two seconds, with an event."""
    path = tmp_path_factory.mktemp("intact") / "bag"
    telemetry = make_telemetry(1000, fields=("actual_q", "payload"))
    return write_bag(path, telemetry)


@pytest.fixture
def bag(intact, tmp_path):
    return shutil.copytree(intact, tmp_path / "bag")


def edit_metadata(bag, old, new):
    text_ = (bag / METADATA).read_text()
    assert old in text_
    (bag / METADATA).write_text(text_.replace(old, new))


@pytest.mark.parametrize("fraction", [0.0, 0.001, 0.3, 0.7, 0.9])
def test_a_truncated_file_is_refused_and_recovered(bag, fraction):
    file = bag / "bag_0.mcap"
    data = file.read_bytes()
    file.write_bytes(data[: int(fraction * len(data))])
    with pytest.raises(RecordingError) as caught:
        read_bag(bag)
    assert "\n" not in str(caught.value)
    if fraction > 0.1:
        assert "ur_energy recover" in str(caught.value)
        recovered = recover_bag(bag)
        assert 0 < recovered.samples < 1000
        assert len(read_bag(bag)) == recovered.samples


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("nanoseconds: ", "nanoseconds: .inf # ", "whole number"),
        ("message_count: ", "message_count: -", "must be 0 to"),
        ("message_count: ", "message_count: many # ", "whole number"),
        ("relative_file_paths:", "relative_fiel_paths:", "did you mean 'relative_file_paths'"),
        ("custom_data:", "custom_data: &x", "aliases"),
        ("storage_identifier: mcap", "storage_identifier: [mcap]", "single value"),
        ("compression_mode: ''", "compression_mode: FILE", "'FILE' is not supported"),
    ],
)
def test_malformed_metadata_is_refused_with_its_line(bag, old, new, problem):
    edit_metadata(bag, old, new)
    with pytest.raises(RecordingError, match=rf"metadata.yaml: line \d+: .*{problem}") as refusal:
        read_bag(bag)
    assert "\n" not in str(refusal.value)


def test_what_other_writers_add_to_metadata_does_no_harm(bag):
    """Keys of later rosbag2 versions, and text that they do not put in quotes."""
    root = "rosbag2_bagfile_information:"
    edit_metadata(bag, root, f"{root}\n  a_later_key: {{with: [1, 2.5, null, 2026-01-01]}}")
    edit_metadata(
        bag,
        "custom_data:",
        "custom_data:\n    site: 12\n    day: 2026-01-01\n    more: [1]\n    note: !<!> 'x'",
    )
    custom = read_metadata(bag).custom
    assert (custom["site"], custom["day"], custom["note"]) == ("12", "2026-01-01", "x")
    assert "more" not in custom
    assert len(read_bag(bag)) == 1000
    edit_metadata(bag, "simulated: 'false'", "simulated: true")
    assert info_of_custom(read_metadata(bag).custom, "bag").simulated


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("rate", "NaN"),
        ("rate", "-500"),
        ("rate", "1e999"),
        ("rate", "[5]"),
        ("rate", "9" * 400),
        ("payload_mass", "x"),
        ("gravity", "[0, 0]"),
        ("extra", "[1]"),
        ("extra", "[" * 9999),
    ],
)
def test_provenance_that_cannot_be_is_refused(key, value):
    with pytest.raises(RecordingError, match="recording information is malformed") as refusal:
        info_of_custom({key: value}, "a bag")
    assert len(str(refusal.value)) < 200


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("payload_mass", "-3"),
        ("payload_mass", "1e6"),
        ("payload_mass", "NaN"),
        ("gravity", "[0, 0, 0]"),
        ("gravity", "[0, 0, -98]"),
    ],
)
def test_a_payload_and_gravity_that_cannot_be_are_unknown(key, value):
    assert getattr(info_of_custom({key: value}, "a bag"), key) is None


@pytest.mark.parametrize("value", ["1e999", "NaN", "[1]", "x", ""])
def test_gaps_that_cannot_be_are_none(value):
    gap = {"index": "3", "start": "1.5", "end": "2.5", "missing": "4", "cause": "skipped"}
    assert gap_of_custom(gap) is not None
    assert gap_of_custom({**gap, "missing": value}) is None


@pytest.mark.parametrize("name", ["../secret.mcap", "/etc/passwd", "a/../../secret.mcap", "''"])
def test_file_names_that_leave_the_bag_are_refused(bag, name):
    shutil.copy(bag / "bag_0.mcap", bag.parent / "secret.mcap")
    edit_metadata(bag, "  - bag_0.mcap", f"  - {name}")
    with pytest.raises(RecordingError, match="leads out of the bag"):
        read_bag(bag)


def test_missing_files_are_named(bag):
    (bag / "bag_0.mcap").unlink()
    with pytest.raises(RecordingError, match=r"bag_0\.mcap: is missing"):
        read_bag(bag)


@pytest.mark.parametrize("name", [b"\xff", b"a\nb", b"\x1b[2J"])
def test_bags_whose_files_have_names_that_are_no_text_are_refused(bag, telemetry, name):
    file = bag / os.fsdecode(name + b".mcap")
    (bag / METADATA).unlink()
    (bag / "bag_0.mcap").rename(file)
    assert len(read_bag(bag)) == 1000
    for refused in (
        lambda: recover_bag(bag),
        lambda: BagWriter(bag.parent / os.fsdecode(name), telemetry.info, ("actual_q",)),
    ):
        with pytest.raises(RecordingError, match="rename") as caught:
            refused()
        assert str(caught.value).isprintable()
    assert [path.name for path in bag.parent.iterdir()] == ["bag"]


@pytest.mark.parametrize("what", ["nothing", "folder", "file", "fifo"])
def test_what_is_not_a_bag_is_refused(tmp_path, what):
    path = tmp_path / "x"
    if what == "folder":
        path.mkdir()
    elif what == "file":
        path.write_text("hello")
    elif what == "fifo":
        os.mkfifo(path)
    with pytest.raises(RecordingError, match=str(path)):
        read_bag(path)


def test_lying_lengths_are_refused(tmp_path):
    body = struct.pack("<BQ", Op.MESSAGE, 1 << 62) + bytes(50)
    packed = zstandard.ZstdCompressor().compress(body)
    chunk = chunk_record(len(body), packed, checksum=zlib.crc32(body))
    with pytest.raises(RecordingError, match="do not fit"):
        read_bag(write_file(tmp_path / "x.mcap", chunk))
    short = struct.pack("<BQ", Op.MESSAGE, 5) + bytes(5)
    with pytest.raises(RecordingError, match="without header"):
        read_bag(write_file(tmp_path / "y.mcap", chunk_record(14, short, "")))
    with pytest.raises(RecordingError, match="compressed by 'rot13'"):
        read_bag(write_file(tmp_path / "z.mcap", chunk_record(14, short, "rot13")))


def test_an_empty_bag_is_refused(tmp_path, telemetry):
    BagWriter(tmp_path / "bag", telemetry.info, ("actual_q",)).close()
    with pytest.raises(RecordingError, match="holds no samples"):
        read_bag(tmp_path / "bag")
    with pytest.raises(RecordingError, match="holds no samples"):
        list(iterate_bag(tmp_path / "bag"))
